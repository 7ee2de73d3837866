"""Tables that are dropped, truncated, renamed and brought back under everything that reads and writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cortado.errors import Conflict, InvalidArgument, NotFound, WriteConflict
from cortado.store.client import Changed, Client, Deleted, Index
from cortado.store.clock.timestamp import Timestamp
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = pytest.mark.process

ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "id", "type": "long"}, {"name": "title", "type": "string"}, {"name": "left", "type": "long"}],
}


def rows(count: int, left: int = 0) -> list[dict[str, Any]]:
    return [{"id": number, "title": f"t{number}", "left": left} for number in range(count)]


@pytest.fixture
def name(client: Client, database: str) -> str:
    """A table of five rows with an index."""
    full_name = f"{database}.items"
    client.schemas.register(full_name, json.dumps(ITEM))
    client.create_table(full_name, ["id"], indexes=[Index("by_title", ["title"])])
    with client.transaction() as txn:
        for row in rows(5):
            txn.table(full_name).put(row)
    return full_name


def found(client: Client, name: str, **options: Any) -> list[int]:
    return [each.value["left"] for each in client.table(name).scan(**options)]


def drop(client: Client, name: str) -> None:
    client.drop_table(name)


def drop_and_make_anew(client: Client, name: str) -> None:
    """With a key of another type: a caller with the old description would be refused."""
    client.drop_table(name)
    client.create_table(name, ["title"])


def truncate(client: Client, name: str) -> None:
    client.truncate_table(name)


def rename(client: Client, name: str) -> None:
    client.rename_table(name, "renamed")


def drop_database(client: Client, name: str) -> None:
    client.drop_database(name.partition(".")[0], cascade=True)


def replace(client: Client, name: str) -> None:
    client.create_table(f"{name}_new", ["id"], subject=name)
    client.rename_table(f"{name}_new", name.partition(".")[2], replaces=client.describe(name))


ENDS = [drop, drop_and_make_anew, truncate, rename, replace, drop_database]


@pytest.mark.parametrize("end", ENDS)
def test_every_read_of_an_earlier_time_finds_the_table_that_there_was(
    client: Client, server: ServerProcess, name: str, end: Callable[[Client, str], None]
) -> None:
    before, was = client.now(), client.describe(name)
    end(client, name)
    with Client(server.endpoint) as other:
        for each in (client, other):
            table = each.table(name)
            assert table.get(3, at=before).value["title"] == "t3"
            assert [row.value["id"] for row in table.get_many([1, 4], at=before)] == [1, 4]
            assert found(each, name, at=before) == [0] * 5
            assert found(each, name, index="by_title", prefix="t2", at=before) == [0]
            assert found(each, name, filter="id > 2", columns=["left"], at=before) == [0] * 2
            assert [row.value["id"] for row in table.scan(1, 3, at=before)] == [1, 2]
            assert sum(len(batch.bodies) > 0 for batch in table.scan_batches(at=before)) == 1
            assert sum(batch.num_rows for batch in table.scan_arrow(at=before)) == 5
            assert table.split(2, at=before)[0] == before
            report = each.verify_indexes(name, at=before)
            assert (report.rows_checked, report.entries_checked, report.problems) == (5, 5, ())
            then = each.at(before)
            assert then.describe(name) == was
            assert was in then.tables(name.partition(".")[0])
            assert then.table(name).get(3).value["title"] == "t3"


@pytest.mark.parametrize("end", [drop, rename, drop_database])
def test_what_is_gone_is_not_found(client: Client, name: str, end: Callable[[Client, str], None]) -> None:
    table = client.table(name)
    table.get(1)
    end(client, name)
    calls: list[Callable[[], Any]] = [
        lambda: table.get(1),
        lambda: list(table.scan()),
        lambda: list(table.scan(index="by_title")),
        lambda: table.split(2),
        lambda: table.put(rows(1)[0]),
        lambda: table.delete(1),
        lambda: table.put_many(rows(1)),
        lambda: client.verify_indexes(name),
        lambda: client.describe(name),
        lambda: client.alter_table(name, retention_ms=5_000),
        lambda: client.truncate_table(name),
        lambda: next(iter(table.watch())),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            call()


@pytest.mark.parametrize("end", [drop, drop_database])
def test_what_comes_back_has_its_rows_its_index_and_its_history(
    client: Client, name: str, end: Callable[[Client, str], None]
) -> None:
    before = client.now()
    table = client.table(name)
    table.put({"id": 3, "title": "new", "left": 7})
    end(client, name)
    gone = client.now()
    if end is drop_database:
        client.undrop_database(name.partition(".")[0])
    else:
        client.undrop_table(name)
    assert found(client, name) == [0, 0, 0, 7, 0]
    assert found(client, name, index="by_title", prefix="new") == [7]
    assert found(client, name, at=before) == [0] * 5
    assert client.verify_indexes(name).problems == ()
    with pytest.raises(NotFound):
        found(client, name, at=gone)
    table.put({"id": 9, "title": "t9", "left": 1})
    assert found(client, name, index="by_title", prefix="t9") == [1]


def test_a_truncated_table_begins_anew_and_what_it_was_comes_back_beside_it(client: Client, name: str) -> None:
    database, _, _ = name.partition(".")
    record = client.truncate_table(name)
    assert record.kind == "truncated"
    assert found(client, name) == found(client, name, index="by_title") == []
    client.table(name).put({"id": 1, "title": "t1", "left": 5}, if_absent=True)
    client.undrop_table(name, as_name="before", number=record.number)
    assert found(client, f"{database}.before", index="by_title") == [0] * 5
    assert found(client, name, index="by_title") == [5]
    assert [each.name for each in client.dropped() if each.name == name] == []


def test_a_scan_that_has_begun_goes_on_at_its_time(client: Client, name: str) -> None:
    client.table(name).put_many({"id": number, "title": f"{number}", "left": 1} for number in range(9_000))
    scan = client.table(name).scan()
    first = next(scan)
    client.drop_table(name)
    assert 1 + sum(1 for _ in scan) == 9_000
    assert first.value["left"] == 1


@pytest.mark.parametrize(("end", "how"), [(drop, "dropped"), (truncate, "truncated"), (drop_database, "dropped")])
def test_a_watch_tells_what_changed_and_then_that_the_table_is_gone(
    client: Client, name: str, end: Callable[[Client, str], None], how: str
) -> None:
    before = client.now()
    watch = client.table(name).watch(resolved_ms=20)
    next(iter(watch))
    client.table(name).delete(3)
    end(client, name)
    assert [type(each) for each in until_its_end(watch, name, how)] == [Deleted]
    later = client.table(name).watch(after=before, resolved_ms=20)
    assert [each.key for each in until_its_end(later, name, how)] == [(3,)]


def until_its_end(watch: Iterator[Any], name: str, how: str) -> list[Any]:
    told = []
    with pytest.raises(NotFound, match=rf"no table {name}, which was {how} at "):
        for event in watch:
            told += [event] if isinstance(event, Changed | Deleted) else []
    return told


def test_a_watch_goes_on_where_its_table_is_renamed_or_comes_back(client: Client, name: str) -> None:
    database, _, _ = name.partition(".")
    watch = client.table(name).watch(resolved_ms=20)
    next(iter(watch))
    client.rename_table(name, "renamed")
    client.create_table(name, ["id"])
    client.table(name).put({"id": 8, "title": "of another table", "left": 0})
    client.table(f"{database}.renamed").put({"id": 9, "title": "t9", "left": 0})
    event = next(each for each in watch if isinstance(each, Changed))
    assert event.key == (9,)


def test_a_bulk_load_ends_where_its_table_is_truncated(client: Client, name: str) -> None:
    taken = []

    def source() -> Iterator[dict[str, Any]]:
        for number in range(100, 10_000):
            if number == 3_000:
                wait_until(lambda: len(found(client, name)) > 5, "the first chunks are stored")
                client.truncate_table(name)
            taken.append(number)
            yield {"id": number, "title": "x", "left": 0}

    with pytest.raises(NotFound, match=rf"no table {name} as when the load began"):
        client.table(name).put_many(source(), chunk_rows=100)
    assert found(client, name) == []


def test_a_job_that_began_before_its_table_was_truncated_conflicts(client: Client, name: str) -> None:
    began = client.now()
    assert client.table(name).put_many(rows(2), unchanged_since=began).written == 2
    client.truncate_table(name)
    with pytest.raises(WriteConflict) as refused:
        client.table(name).put_many(rows(2), unchanged_since=began)
    assert (refused.value.kind, refused.value.key) == ("table", name)
    with pytest.raises(WriteConflict) as refused:
        client.table(name).put_json(rows(2), unchanged_since=began)
    assert (refused.value.kind, refused.value.key) == ("table", name)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("how", ["reads", "writes"])
def test_a_transaction_conflicts_with_what_ended_its_table(
    client: Client, name: str, end: Callable[[Client, str], None], how: str
) -> None:
    isolation: Any = "serializable" if how == "reads" else "snapshot"
    with pytest.raises(WriteConflict) as refused, client.transaction(isolation=isolation) as txn:
        if how == "reads":
            assert txn.table(name).get(3).value["left"] == 0
            txn.kv(name).put(b"k", b"v")
        else:
            txn.kv(name).get(b"k")
            txn.table(name).put(rows(1, left=9)[0])
        end(client, name)
        if how == "reads":
            assert txn.table(name).get(4).value["left"] == 0, "all of its reads are of one state"
    assert (refused.value.kind, refused.value.key) == ("table", name)
    assert isinstance(refused.value, Conflict)


def test_run_begins_again_on_the_table_that_there_is(client: Client, name: str) -> None:
    attempts = []

    def fn(txn: Any) -> None:
        found = txn.table(name).get(3)
        attempts.append(found)
        if len(attempts) == 1:
            client.truncate_table(name)
        txn.table(name).put({"id": 3, "title": "again", "left": len(attempts)})

    client.run(fn, isolation="serializable")
    assert [each is None for each in attempts] == [False, True]
    assert found(client, name) == [2]


def test_a_transaction_that_only_reads_sees_the_table_to_its_end(client: Client, name: str) -> None:
    with client.snapshot() as then:
        assert then.table(name).get(1).value["left"] == 0
        client.drop_table(name)
        assert [each.value["id"] for each in then.table(name).scan(index="by_title")] == [0, 1, 2, 3, 4]
        assert then.describe(name).name == "items"


def test_own_writes_go_to_the_table_of_the_start(client: Client, name: str) -> None:
    with pytest.raises(WriteConflict), client.transaction() as txn:
        assert txn.table(name).get(1).value["left"] == 0
        txn.table(name).put({"id": 77, "title": "own", "left": 3})
        client.truncate_table(name)
        seen = [each.value["left"] for each in txn.table(name).scan(index="by_title")]
        assert sorted(seen) == [0, 0, 0, 0, 0, 3]


def test_a_subject_of_a_dropped_table_is_not_deleted(client: Client, name: str) -> None:
    client.drop_table(name)
    with pytest.raises(InvalidArgument, match="the dropped table"):
        client.schemas.delete(name)
    client.undrop_table(name)
    assert found(client, name) == [0] * 5


VERBS: dict[str, Callable[[Client, str], Any]] = {
    "drop": lambda client, name: client.drop_table(name),
    "truncate": lambda client, name: client.truncate_table(name),
    "rename": lambda client, name: client.rename_table(name, "other"),
    "alter": lambda client, name: client.alter_table(name, retention_ms=9_000),
    "undrop": lambda client, name: client.undrop_table(name.replace("items", "gone")),
    "drop database": lambda client, name: client.drop_database(name.partition(".")[0], cascade=True),
    "undrop database": lambda client, _: client.undrop_database("before"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_node_that_is_killed_knows_what_it_has_acknowledged(tmp_path: Any, verb: str) -> None:
    """And each state before it, at its time."""
    with running_server(tmp_path / "data") as process, Client(process.endpoint, timeout_s=30) as client:
        client.schemas.register("s", json.dumps(ITEM))
        for full_name in ("d.items", "d.gone", "before.items"):
            database, _, _ = full_name.partition(".")
            if database not in client.databases():
                client.create_database(database)
            client.create_table(full_name, ["id"], subject="s", indexes=[Index("by_title", ["title"])])
            client.table(full_name).put_many(rows(5))
        client.drop_table("d.gone")
        client.drop_database("before", cascade=True)
        states = [state_of(client, client.now())]
        VERBS[verb](client, "d.items")
        states.append(state_of(client, client.now()))
        assert states[0][1:] != states[1][1:]
        process.kill()
        process.start()
        for state in states:
            assert state_of(client, state[0]) == state
        assert state_of(client, client.now())[1:] == states[1][1:]


State = tuple[Timestamp, dict[str, Any], list[int]]


def state_of(client: Client, ts: Timestamp) -> State:
    then = client.at(ts)
    tables = {
        each.full_name: (each, [row.value for row in then.table(each.full_name).scan()]) for each in then.tables()
    }
    return ts, tables, []


def test_a_read_of_a_time_before_says_that_there_was_none_then(client: Client, database: str) -> None:
    before = client.now()
    name, later = f"{database}.items", f"{database}-later"
    client.schemas.register(name, json.dumps(ITEM))
    client.create_table(name, ["id"])
    client.create_database(later)
    then = client.at(before)
    asked: dict[str, list[Callable[[], object]]] = {
        name: [
            lambda: then.table(name).get(1),
            lambda: list(then.table(name).scan()),
            lambda: list(client.table(name).scan(at=before)),
        ],
        later: [lambda: then.tables(later)],
    }
    for missing, reads in asked.items():
        for read in reads:
            with pytest.raises(NotFound, match=rf"no (table|database) {missing} at 20[0-9-]+T[0-9:.]+Z$") as refused:
                read()
            assert refused.value.at == str(before)
    with pytest.raises(NotFound, match=rf"no table {database}.none$"):
        client.table(f"{database}.none").get(1)
