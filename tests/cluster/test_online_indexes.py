"""Indexes of tables that have rows, built by real nodes: under writers, over a leader that is killed, and refused."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from cortado.errors import (
    AlreadyExists,
    CortadoError,
    DidNotHappen,
    IndexNotReady,
    InvalidArgument,
    NotFound,
    UniqueViolation,
)
from cortado.proto.v1 import jobs_pb2, jobs_pb2_grpc, tables_pb2
from cortado.store.catalog.descriptors import IndexState
from cortado.store.client import AsyncClient, Client, Index, Job
from support.cluster import Cluster
from support.server_process import ServerProcess
from support.wire import Wire, refused

pytestmark = [pytest.mark.long, pytest.mark.process]

THING: dict[str, Any] = {
    "type": "record",
    "name": "Thing",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "code", "type": ["null", "string"], "default": None},
        {"name": "level", "type": "int", "default": 0},
    ],
}
ROWS = 20_000


def make_table(client: Client, name: str, rows: int) -> Any:
    client.schemas.register(name, THING)
    client.create_table(name, ["id"])
    table = client.table(name)
    assert table.put_many({"id": n, "code": f"c{n}", "level": n % 10} for n in range(rows)).written == rows
    return table


def test_an_index_is_built_and_read(client: Client, database: str) -> None:
    name = f"{database}.things"
    table = make_table(client, name, 2_000)
    before = client.now()
    seen: list[Job] = []
    built = client.create_index(name, Index("by_code", ["code"], unique=True), progress=seen.append)
    assert built.state is IndexState.READY
    assert table.get(7, at=built.ready_ts)
    assert [each.value["id"] for each in table.scan(index="by_code", prefix="c77")] == [77]
    assert client.verify_indexes(name).entries_checked == 2_000
    with pytest.raises(UniqueViolation):
        table.put({"id": 5_000, "code": "c77", "level": 0})
    with pytest.raises(IndexNotReady) as early:
        list(table.scan(index="by_code", at=before))
    assert early.value.ready_ts == str(built.ready_ts)
    with pytest.raises(IndexNotReady):
        table.count(index="by_code", at=before)
    with pytest.raises(NotFound):
        list(table.scan(index="by_nothing", at=before))
    [job] = [each for each in client.admin.jobs.list() if each.job_id == built.job_id]
    assert (job.state, job.done, job.total, job.kind) == ("done", 2_000, 2_000, "index")
    with pytest.raises(AlreadyExists):
        client.create_index(name, Index("by_code", ["level"]))
    client.drop_index(name, "by_code")
    assert client.indexes(name) == ()
    assert client.verify_indexes(name).problems == ()
    with pytest.raises(NotFound):
        client.drop_index(name, "by_code")


def test_an_index_that_was_begun_later_is_not_ready_in_a_view_of_the_past_and_under_a_new_name(
    client: Client, database: str
) -> None:
    name, moved = f"{database}.things", f"{database}.moved"
    make_table(client, name, 10)
    before = client.now()
    built = client.create_index(name, Index("by_code", ["code"]))
    then = client.at(before).table(name)
    for read in (lambda: list(then.scan(index="by_code")), lambda: then.count(index="by_code")):
        with pytest.raises(IndexNotReady, match="was begun after the time of this read") as early:
            read()
        assert early.value.ready_ts == str(built.ready_ts)
    with pytest.raises(NotFound):
        list(then.scan(index="by_nothing"))
    client.rename_table(name, "moved")
    with pytest.raises(NotFound):
        # The name meant nothing then.
        list(client.table(moved).scan(index="by_code", at=before))
    client.drop_table(moved)
    with pytest.raises(NotFound):
        list(then.scan(index="by_code"))


def test_rows_that_share_a_value_fail_it_and_are_named(client: Client, database: str) -> None:
    name = f"{database}.things"
    table = make_table(client, name, 20)
    table.put({"id": 100, "code": "c3", "level": 1})
    with pytest.raises(IndexNotReady) as failed:
        client.create_index(name, Index("by_code", ["code"], unique=True))
    assert "('c3')" in failed.value.problem or "have the same values" in failed.value.problem
    [index] = client.indexes(name)
    assert index.state is IndexState.FAILED
    assert sorted(index.failed_keys) == [f"{name}(100)", f"{name}(3)"]
    assert client.admin.jobs.get(index.job_id).state == "failed"
    table.put({"id": 101, "code": "c3", "level": 1})
    with pytest.raises(AlreadyExists, match="failed: drop it"):
        client.create_index(name, Index("by_code", ["code"]))
    client.drop_index(name, "by_code")
    assert client.create_index(name, Index("by_code", ["code"])).state is IndexState.READY
    assert len(list(table.scan(index="by_code"))) == 22


def test_a_job_waits_goes_on_and_is_cancelled(client: Client, database: str) -> None:
    name = f"{database}.things"
    table = make_table(client, name, 5_000)
    # One that cannot be done in the time between two calls, so that there is something to pause.
    started = client.create_index(name, Index("by_level", ["level", "code"]), wait=False)
    assert started.state is IndexState.BUILDING
    try:
        paused = client.admin.jobs.pause(started.job_id)
    except InvalidArgument:
        assert client.admin.jobs.wait(started.job_id).state == "done"
    else:
        assert paused.state == "paused"
        with pytest.raises(IndexNotReady):
            list(table.scan(index="by_level"))
        table.put({"id": 1, "code": "other", "level": 77})
        assert client.admin.jobs.resume(started.job_id).state == "running"
        assert client.admin.jobs.wait(started.job_id).state == "done"
        assert [each.value["id"] for each in table.scan(index="by_level", prefix=77)] == [1]
    assert client.verify_indexes(name).problems == ()
    again = client.create_index(name, Index("again", ["level"]), wait=False)
    try:
        assert client.admin.jobs.cancel(again.job_id).state == "cancelled"
        assert [each.name for each in client.indexes(name)] == ["by_level"]
    except InvalidArgument as late:
        assert "ended" in late.problem


def test_it_is_there_for_asyncio_too(server: ServerProcess, client: Client, database: str) -> None:
    name = f"{database}.things"
    make_table(client, name, 100)

    async def scenario() -> None:
        async with AsyncClient(server.endpoint) as other:
            built = await other.create_index(name, Index("by_code", ["code"]))
            assert await other.indexes(name) == (built,)
            assert (await other.admin.jobs.get(built.job_id)).state == "done"
            await other.drop_index(name, "by_code")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"database": "no-such"}, NotFound),
        ({"table": "no-such"}, NotFound),
        ({"table": ""}, InvalidArgument),
        ({"index": tables_pb2.Index()}, InvalidArgument),
        ({"index": tables_pb2.Index(name="x")}, InvalidArgument),
        ({"index": tables_pb2.Index(name="x", parts=[tables_pb2.KeyPart(path="none")])}, InvalidArgument),
        ({"index": tables_pb2.Index(name="-", parts=[tables_pb2.KeyPart(path="code")])}, InvalidArgument),
        ({"index": tables_pb2.Index(name="x", parts=[tables_pb2.KeyPart(path="code")] * 17)}, InvalidArgument),
        ({"index": tables_pb2.Index(name="x", parts=[tables_pb2.KeyPart(path="code")], state=2)}, InvalidArgument),
        ({"index": tables_pb2.Index(name="x", parts=[tables_pb2.KeyPart(path="code")], index_id=9)}, InvalidArgument),
        ({"request_id": b"short"}, InvalidArgument),
    ],
)
def test_what_may_not_be_an_index_is_refused(
    server: ServerProcess, client: Client, database: str, fields: dict[str, Any], error: type[CortadoError]
) -> None:
    name = f"{database}.things"
    make_table(client, name, 1)
    good = tables_pb2.Index(name="x", parts=[tables_pb2.KeyPart(path="code")])
    asked = tables_pb2.CreateIndexRequest(**{"database": database, "table": "things", "index": good, **fields})
    assert isinstance(refused(lambda: Wire(server.endpoint).tables.CreateIndex(asked, timeout=10)), error)
    assert client.indexes(name) == ()


@pytest.mark.parametrize("job_id", [0, 999_999, (1 << 63) - 1, (1 << 64) - 1])
def test_a_job_that_there_is_not_is_not_found(server: ServerProcess, job_id: int) -> None:
    jobs: Any = jobs_pb2_grpc.JobsStub(Wire(server.endpoint).channel)
    change = jobs_pb2.ChangeJobRequest(job_id=job_id)
    for call, request in (
        (jobs.Get, jobs_pb2.GetJobRequest(job_id=job_id)),
        (jobs.Pause, change),
        (jobs.Resume, change),
        (jobs.Cancel, change),
    ):
        assert isinstance(refused(lambda call=call, request=request: call(request, timeout=10)), NotFound)  # type: ignore[misc]


def test_an_index_is_built_under_writers_over_a_leader_that_is_killed(three_nodes: Cluster) -> None:
    cluster = three_nodes
    with Client(cluster.endpoints, timeout_s=60) as client:
        client.create_database("online")
        name = "online.things"
        table = make_table(client, name, ROWS)
        stopped = threading.Event()
        refusals: list[CortadoError] = []

        def write(first: int) -> None:
            n = first
            while not stopped.is_set():
                key = n * 7_919 % (ROWS + 5_000)
                try:
                    match n % 4:
                        case 0:
                            table.delete(key)
                        case 1:
                            table.put_many(
                                [{"id": (key + i) % ROWS, "code": f"b{n}.{i}", "level": 1} for i in range(20)]
                            )
                        case _:
                            table.put({"id": key, "code": f"w{n}", "level": n % 10})
                except CortadoError as error:
                    if isinstance(error, DidNotHappen):
                        refusals.append(error)
                n += 3

        writers = [threading.Thread(target=write, args=(first,)) for first in range(3)]
        for each in writers:
            each.start()
        killed: list[str] = []

        def kill_in_the_middle(job: Job) -> None:
            if job.done > ROWS // 10 and not killed:
                killed.append(cluster.leader())
                cluster.kill(*killed)

        try:
            # Codes are as many as writes: no two rows share one, in any order of events.
            built = client.create_index(name, Index("by_code", ["code"], unique=True), progress=kill_in_the_middle)
            level = client.create_index(name, Index("by_level", ["level desc", "id"]))
        finally:
            stopped.set()
            for each in writers:
                each.join()
        assert killed
        assert refusals == []
        assert {built.state, level.state} == {IndexState.READY}
        report = client.verify_indexes(name)
        assert report.problems == ()
        assert report.entries_checked == 2 * report.rows_checked
    cluster.mend()


def test_a_repair_of_what_is_sound_changes_nothing_and_is_of_the_newest_alone(client: Client, database: str) -> None:
    name = f"{database}.things"
    make_table(client, name, 300)
    client.create_index(name, Index("by_code", ["code"]))
    report = client.verify_indexes(name, repair=True)
    assert (report.rows_checked, report.entries_checked, report.problems) == (300, 300, ())
    assert (report.repaired, report.left) == (0, 0)
    with pytest.raises(InvalidArgument, match="repair"):
        client.verify_indexes(name, at=client.now(), repair=True)
