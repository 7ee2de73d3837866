"""The edges of an index's build: each rule that random writes rarely meet, by itself."""

from __future__ import annotations

from typing import Any

import pytest

from cortado.errors import (
    AlreadyExists,
    IndexNotReady,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    TooLarge,
    UniqueViolation,
)
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.auth.owners import Asker
from cortado.store.catalog import drop
from cortado.store.catalog.declare import INDEXES_MAX
from cortado.store.catalog.descriptors import IndexDescriptor, IndexState
from cortado.store.catalog.registry import set_compatibility
from cortado.store.jobs import job as jobs
from cortado.store.jobs.job import JobState, job_of, jobs_of, next_job_id, pause, resume
from cortado.store.tables.build import Pace, build_step, cancel_build
from cortado.store.tables.bulk import evaluate_bulk
from cortado.store.tables.check import check_step, plan_check
from cortado.store.tables.chunk import prepare_chunk
from cortado.store.tables.operations import BulkChunk, BulkMode, Delete, Put, Update
from cortado.store.tables.scan import Scan, plan_scan
from cortado.store.transactions.commit import evaluate_commit
from cortado.store.transactions.operations import Commit
from support.table_world import DATABASE, WORLDS, TableWorld, index

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Thing",
    "fields": [{"name": "id", "type": "int"}, {"name": "code", "type": ["null", "string"], "default": None}],
}
CODE = index("code", "code", unique=True)
PLAIN = index("plain", "code")
TOO_LONG = "x" * 600


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> TableWorld:
    world = TableWorld(request.param())
    world.create("things", SCHEMA, ["id"])
    return world


def thing(number: int, code: str | None) -> dict[str, Any]:
    return {"id": number, "code": code}


def found(world: TableWorld, name: str) -> IndexDescriptor:
    there = world.catalog().table(DATABASE, "things").index(name)
    assert there is not None
    return there


def run(world: TableWorld, job_id: int) -> jobs.Job:
    while not (job := world.build(job_id, 1)).state.has_ended:
        pass
    return job


def put(world: TableWorld, number: int, code: str | None) -> Put:
    return Put(DATABASE, "things", world.avro("things", thing(number, code)))


def writes(world: TableWorld) -> dict[str, Any]:
    """Return each way to make row 5 the second one with the code "a"."""
    return {
        "put": lambda: world.put("things", thing(5, "a")),
        "batch": lambda: world.batch([put(world, 5, "a"), put(world, 6, "other")]),
        "bulk": lambda: world.bulk("things", [thing(5, "a"), thing(6, "other")]),
        "rows of a batch": lambda: world.batch([put(world, 7, "b"), put(world, 5, "b")]),
        "rows of a chunk": lambda: world.bulk("things", [thing(7, "b"), thing(5, "b")]),
    }


@pytest.mark.parametrize("way", ["put", "batch", "bulk", "rows of a batch", "rows of a chunk"])
def test_a_write_that_brings_a_second_row_is_done_and_the_index_fails(world: TableWorld, way: str) -> None:
    world.put("things", thing(1, "a"))
    job_id = world.begin_index("things", CODE)
    version = world.catalog().table(DATABASE, "things").version
    world.build(job_id, 1)
    writes(world)[way]()
    assert world.get("things", 5) is not None
    index = found(world, "code")
    assert index.state is IndexState.FAILED
    assert f"{DATABASE}.things(5)" in index.failed_keys
    assert world.catalog().table(DATABASE, "things").version == version + 1
    job = world.build(job_id)
    assert (job.state, job.error) == (JobState.FAILED, index.failure)
    # From now on no write maintains it, and no write is stopped by it.
    world.put("things", thing(8, "a"))
    world.delete("things", [5])
    assert world.check("things") == []


@pytest.mark.parametrize("way", ["put", "update", "delete", "batch", "bulk"])
def test_a_row_gives_up_an_entry_of_a_unique_index_only_if_it_is_its_own(world: TableWorld, way: str) -> None:
    """X5: row 2 has the value, too, and has not been met; the entry is row 1's, and stays."""
    world.put("things", thing(1, "a"))
    world.put("things", thing(2, "a"))
    job_id = world.begin_index("things", CODE)
    world.build(job_id, 1)
    match way:
        case "put":
            world.put("things", thing(2, "free"))
        case "update":
            world.update("things", [2], {"code": "free"})
        case "delete":
            world.delete("things", [2])
        case "batch":
            world.batch([Update(DATABASE, "things", [2], {"code": "free"}), Delete(DATABASE, "things", [9])])
        case "bulk":
            world.bulk("things", [thing(2, "free"), thing(3, None)])
    assert run(world, job_id).state is JobState.DONE
    assert world.check("things") == []
    assert [each["id"] for each in world.scan("things", index="code", prefix=["a"])] == [1]
    with pytest.raises(UniqueViolation):
        world.put("things", thing(4, "a"))


def test_a_batch_that_moves_a_value_away_does_not_hide_a_third_row_that_has_it(world: TableWorld) -> None:
    for number in (1, 2):
        world.put("things", thing(number, "a"))
    job_id = world.begin_index("things", CODE)
    world.build(job_id, 1)
    # Row 2 gives "a" up, and row 3 takes it: but the entry is row 1's.
    world.batch([put(world, 2, "free"), put(world, 3, "a")])
    assert found(world, "code").state is IndexState.FAILED
    assert run(world, job_id).state is JobState.FAILED


def test_the_backfill_names_the_rows_that_share_a_value(world: TableWorld) -> None:
    world.bulk("things", [thing(n, f"c{n % 3}") for n in range(6)])
    job_id = world.begin_index("things", CODE)
    assert run(world, job_id).state is JobState.FAILED
    assert found(world, "code").failed_keys == (f"{DATABASE}.things(3)", f"{DATABASE}.things(0)")
    assert len(found(world, "code").failed_keys) <= 100
    world.drop_index("things", "code")
    again = world.begin_index("things", PLAIN)
    assert run(world, again).state is JobState.DONE


@pytest.mark.parametrize("way", ["before", "put", "update", "batch", "bulk", "delete", "replaced in bulk"])
def test_a_row_whose_entry_is_too_long_fails_the_index_and_is_written(world: TableWorld, way: str) -> None:
    if way in ("before", "delete", "replaced in bulk"):
        world.put("things", thing(5, TOO_LONG))
    else:
        world.put("things", thing(5, "short"))
    job_id = world.begin_index("things", PLAIN)
    match way:
        case "put":
            world.put("things", thing(5, TOO_LONG))
        case "update":
            world.update("things", [5], {"code": TOO_LONG})
        case "batch":
            world.batch([put(world, 5, TOO_LONG), put(world, 6, "other")])
        case "bulk":
            assert world.bulk("things", [thing(5, TOO_LONG), thing(6, "x")]).written == 2
        case "delete":
            world.delete("things", [5])
        case "replaced in bulk":
            assert world.bulk("things", [thing(5, "now short"), thing(6, "x")]).written == 2
    if way != "before":
        assert found(world, "plain").state is IndexState.FAILED
    job = run(world, job_id)
    assert job.state is JobState.FAILED
    assert "499" in job.error
    assert world.check("things") == []


@pytest.mark.parametrize("way", ["put", "delete", "bulk", "backfill"])
def test_a_row_that_the_newest_schema_cannot_read_fails_the_index_and_can_be_replaced(
    world: TableWorld, way: str
) -> None:
    """Without compatibility rules a field may change its type, and nothing was pinned when the row was written."""
    world.put("things", thing(1, "a"))
    world.store.write(
        lambda reader, ts: set_compatibility(world.catalog(reader), f"{DATABASE}.things", CompatibilityMode.NONE)
    )
    world.register("things", {**SCHEMA, "fields": [SCHEMA["fields"][0], {"name": "code", "type": "int"}]})
    job_id = world.begin_index("things", PLAIN)
    match way:
        case "put":
            world.put("things", {"id": 1, "code": 7})
        case "delete":
            world.delete("things", [1])
        case "bulk":
            assert world.bulk("things", [{"id": 1, "code": 7}]).written == 1
        case "backfill":
            world.build(job_id)
    index = found(world, "plain")
    assert (index.state, index.failure != "") == (IndexState.FAILED, True)
    assert world.build(job_id).state is JobState.FAILED


def test_a_chunk_that_was_prepared_before_the_index_is_prepared_again(world: TableWorld) -> None:
    """X1: else its rows would come without entries, below the cursor, and no later step would add them."""
    world.put("things", thing(1, "a"))
    chunk = BulkChunk(DATABASE, "things", world.rows("things", [thing(0, "early"), thing(2, "late")]), BulkMode.UPSERT)
    prepared = prepare_chunk(world.catalog(), chunk)
    job_id = world.begin_index("things", PLAIN)
    world.build(job_id, 1)
    world.store.write(lambda reader, ts: evaluate_bulk(reader, ts, world.catalog(reader), chunk, prepared))
    assert run(world, job_id).state is JobState.DONE
    assert world.check("things") == []
    assert len(world.scan("things", index="plain")) == 3


def test_the_catalogue_goes_on_from_its_newest_numbers_where_a_chunk_fails_an_index(world: TableWorld) -> None:
    """The chunk was prepared before another table was made: its catalogue is old, the counters are not."""
    world.put("things", thing(1, "a"))
    world.begin_index("things", CODE)
    chunk = BulkChunk(DATABASE, "things", world.rows("things", [thing(0, TOO_LONG)]), BulkMode.UPSERT)
    prepared = prepare_chunk(world.catalog(), chunk)
    world.create("others", {**SCHEMA, "doc": "another schema"}, ["id"])
    before = world.catalog().counters
    world.store.write(lambda reader, ts: evaluate_bulk(reader, ts, world.catalog(reader), chunk, prepared))
    assert found(world, "code").state is IndexState.FAILED
    assert world.catalog().counters == before


def test_one_commit_fails_indexes_of_two_tables(world: TableWorld) -> None:
    world.create("others", SCHEMA, ["id"])
    for table in ("things", "others"):
        world.put(table, thing(1, "a"))
        world.build(world.begin_index(table, CODE), 1)
    others = Put(DATABASE, "others", world.avro("others", thing(2, "a")))
    world.store.write(
        lambda reader, ts: evaluate_commit(reader, ts, world.catalog(reader), Commit([put(world, 2, "a"), others]))
    )
    states = [world.catalog().table(DATABASE, table).indexes[0].state for table in ("things", "others")]
    assert states == [IndexState.FAILED] * 2


def test_it_is_read_from_the_commit_on_that_made_it_ready(world: TableWorld) -> None:
    """X4: at the timestamps before it, rows that the build had not met have no entry."""
    world.put("things", thing(1, "a"))
    job_id = world.begin_index("things", PLAIN)
    before = world.store.now
    run(world, job_id)
    ready = found(world, "plain")
    assert ready.ready_ts == world.store.now
    assert len(world.scan("things", index="plain")) == 1
    with pytest.raises(IndexNotReady) as early:
        world.plan("things", index="plain", at=before)
    assert early.value.ready_ts == str(ready.ready_ts)


@pytest.mark.parametrize("is_ready", [False, True])
@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_read_at_a_time_before_it_was_begun_is_told_when_it_is_ready(
    world: TableWorld, is_ready: bool, is_renamed: bool
) -> None:
    """X4: an index unknown to the catalogue of then is an index all the same."""
    world.put("things", thing(1, "a"))
    before = world.store.now
    job_id = world.begin_index("things", PLAIN)
    if is_ready:
        run(world, job_id)
    ready_ts = str(found(world, "plain").ready_ts) if is_ready else ""
    world.create("behind", SCHEMA, ["id"])
    if is_renamed:
        world.store.write(
            lambda reader, ts: drop.rename_table(
                world.catalog(reader), DATABASE, "things", "others", replaces=0, commit_ts=ts
            )
        )
    names = world.catalog().named_as_in(world.catalog(world.store.snapshot(before)))
    with pytest.raises(IndexNotReady) as early:
        plan_scan(names, Scan(DATABASE, "things", index="plain"), before)
    assert early.value.ready_ts == ready_ts
    with pytest.raises(NotFound):
        plan_scan(names, Scan(DATABASE, "things", index="other"), before)


def test_a_step_looks_at_the_newest_state_and_not_where_it_was_told_that_rows_are(world: TableWorld) -> None:
    """X2: rows that came since the pace was worked out are looked at, however many there are."""
    for number in range(4):
        world.put("things", thing(10 * number, f"c{number}"))
    job_id = world.begin_index("things", PLAIN)
    view = world.view("things")
    pace = Pace(lambda: 0.0, rows=2, upto=view.row_key(view.encode_key([30])), total=4)
    world.bulk("things", [thing(number, "new") for number in range(1, 9)])
    _, done = world.store.write(lambda reader, ts: build_step(reader, ts, world.catalog(reader), job_id, pace))
    assert isinstance(done.reply, jobs.Job)
    assert (done.reply.done, done.reply.total) == (2, 4)
    assert run(world, job_id).done == 12
    assert world.check("things") == []


def test_time_ends_a_step_before_its_rows_do(world: TableWorld) -> None:
    world.bulk("things", [thing(number, f"c{number}") for number in range(400)])
    job_id = world.begin_index("things", PLAIN)
    ticks = iter(range(1_000))
    pace = Pace(lambda: float(next(ticks)), rows=500, ms=2.0)
    _, done = world.store.write(lambda reader, ts: build_step(reader, ts, world.catalog(reader), job_id, pace))
    assert isinstance(done.reply, jobs.Job)
    assert 0 < done.reply.done < 400
    assert not done.reply.state.has_ended


# --- the table goes, or changes ------------------------------------------------------------------------------------


def test_a_renamed_table_is_found_and_a_dropped_one_ends_the_job(world: TableWorld) -> None:
    world.bulk("things", [thing(number, f"c{number}") for number in range(4)])
    job_id = world.begin_index("things", PLAIN)
    world.build(job_id, 1)
    world.store.write(
        lambda reader, ts: drop.rename_table(world.catalog(reader), DATABASE, "things", "renamed", commit_ts=ts)
    )
    assert world.build(job_id, 1).state is JobState.RUNNING
    world.store.write(lambda reader, ts: drop.drop_table(world.catalog(reader), DATABASE, "renamed", commit_ts=ts))
    assert world.build(job_id, 1).state is JobState.CANCELLED
    world.store.write(lambda reader, ts: drop.undrop_table(world.catalog(reader), DATABASE, "renamed", commit_ts=ts))
    [index] = world.catalog().table(DATABASE, "renamed").indexes
    assert index.state is IndexState.FAILED


def test_a_truncated_table_has_the_index_ready(world: TableWorld) -> None:
    world.put("things", thing(1, "a"))
    job_id = world.begin_index("things", PLAIN)
    world.store.write(lambda reader, ts: drop.truncate_table(world.catalog(reader), DATABASE, "things", commit_ts=ts))
    assert found(world, "plain").state is IndexState.READY
    assert world.build(job_id).state is JobState.CANCELLED
    world.put("things", thing(2, "b"))
    assert world.check("things") == []
    assert len(world.scan("things", index="plain")) == 1


# --- refusals ------------------------------------------------------------------------------------------------------


def test_a_name_that_is_taken_is_refused_whatever_its_state(world: TableWorld) -> None:
    world.bulk("things", [thing(1, "a"), thing(2, "a")])
    job_id = world.begin_index("things", CODE)
    with pytest.raises(AlreadyExists):
        world.begin_index("things", index("code", "id"))
    run(world, job_id)
    with pytest.raises(AlreadyExists, match="failed: drop it"):
        world.begin_index("things", index("code", "id"))
    world.drop_index("things", "code")
    assert world.begin_index("things", index("code", "id")) == job_id + 1
    for number in range(INDEXES_MAX - 1):
        world.begin_index("things", index(f"i{number}", "code"))
    with pytest.raises(TooLarge, match="64"):
        world.begin_index("things", index("one_more", "code"))


def test_a_job_is_paused_resumed_and_cancelled(world: TableWorld) -> None:
    world.put("things", thing(1, "a"))
    job_id = world.begin_index("things", PLAIN)
    world.store.write(lambda reader, ts: pause(reader, job_id))
    assert world.build(job_id).state is JobState.PAUSED
    world.store.write(lambda reader, ts: resume(reader, job_id))
    world.store.write(lambda reader, ts: cancel_build(world.catalog(reader), ts, job_id))
    assert world.catalog().table(DATABASE, "things").indexes == ()
    for refused in (pause, resume):
        with pytest.raises(InvalidArgument, match="ended"):
            world.store.write(lambda reader, ts, refused=refused: refused(reader, job_id))
    with pytest.raises(NotFound):
        world.store.write(lambda reader, ts: pause(reader, 99))


def test_jobs_are_bounded_and_those_that_ended_first_go_first(
    world: TableWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "UNFINISHED_MAX", 2)
    monkeypatch.setattr(jobs, "FINISHED_MAX", 3)
    started = [world.begin_index("things", index(f"i{number}", "code")) for number in range(2)]
    with pytest.raises(TooLarge, match="2"):
        world.begin_index("things", PLAIN)
    for job_id in reversed(started):
        world.build(job_id)
    for _ in range(3):
        world.build(world.begin_index("things", PLAIN))
        world.drop_index("things", "plain")
    known = [each.job_id for each in jobs_of(world.store.snapshot())]
    assert known == [1, 3, 4, 5]
    assert next_job_id(world.store.snapshot()) == 6


ALICE, MALLORY = (Asker(name, is_open=False, operates=False) for name in ("alice", "mallory"))


def test_jobs_have_a_share_for_each_principal(world: TableWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "UNFINISHED_MAX", 4)
    for number in range(2):
        world.begin_index("things", index(f"i{number}", "code"), MALLORY)
    with pytest.raises(ResourceExhausted, match="principal mallory has 2 of 2 jobs: the 2 left are for others"):
        world.begin_index("things", PLAIN, MALLORY)
    job_id = world.begin_index("things", PLAIN, ALICE)
    assert job_of(world.store.snapshot(), job_id).principal == "alice"


def test_jobs_that_ended_are_pushed_out_by_those_of_their_own_principal(
    world: TableWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "FINISHED_MAX", 3)
    first = world.begin_index("things", PLAIN, ALICE)
    world.build(first)
    world.drop_index("things", "plain")
    for _ in range(6):
        world.build(world.begin_index("things", PLAIN, MALLORY))
        world.drop_index("things", "plain")
    assert [each.job_id for each in jobs_of(world.store.snapshot())] == [first, 5, 6, 7]


def test_a_job_that_begins_makes_nothing_of_those_that_are_known(
    world: TableWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.build(world.begin_index("things", PLAIN))
    world.drop_index("things", "plain")

    def decoded(_payload: bytes) -> None:
        raise AssertionError("on the loop a thousand are too many")

    with monkeypatch.context() as patching:
        patching.setattr(jobs, "decode_job", decoded)
        assert world.begin_index("things", PLAIN) == 2


def test_entries_of_an_index_that_is_not_read_are_not_counted_as_checked(world: TableWorld) -> None:
    world.bulk("things", [thing(n, f"c{n}") for n in range(5)])
    job_id = world.begin_index("things", CODE)
    world.build(job_id, 1)
    world.put("things", thing(5, "c0"))
    assert run(world, job_id).state is JobState.FAILED
    plan = plan_check(world.catalog(), DATABASE, "things", world.store.now)
    page = check_step(world.store, plan, None, 100)
    entries = page.entries_checked
    while page.next is not None:
        page = check_step(world.store, plan, page.next, 100)
        entries += page.entries_checked
    sound = [each for each in world.catalog().table(DATABASE, "things").indexes if each.is_ready_at(world.store.now)]
    assert entries == 6 * len(sound)
