"""Large transactions on one node: staged rows, their visibility, their locks, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cortado.errors import (
    AlreadyExists,
    ConditionFailed,
    InvalidArgument,
    KeyLocked,
    NotFound,
    TransactionAborted,
    UniqueViolation,
    WriteConflict,
)
from cortado.proto.v1 import documents_pb2, tables_pb2
from cortado.proto.v1 import large_transactions_pb2 as pb
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import row_range
from cortado.store.mvcc.changed import changed_within
from cortado.store.server.convert import timestamp_value
from cortado.store.server.tables_service import TablesService
from cortado.store.staging import records, stage
from support.large_transactions import LONG, A, B, C, Row, Scene, committed_at, nothing_put_in_place
from support.nodes import NodeDisk, run, running_node
from support.watchers import Watcher

INSERT, REPLACE = documents_pb2.BULK_MODE_INSERT, documents_pb2.BULK_MODE_REPLACE
Test = Callable[[Scene], Awaitable[None]]


def on_a_node(test: Test) -> None:
    async def scenario() -> None:
        async with running_node() as node:
            await test(await Scene.make(node))

    run(scenario)


def rows_of(*ids: int, n: int = 0) -> list[Row]:
    return [(each, each * 10, n) for each in ids]


def test_what_is_staged_is_seen_by_nobody_and_all_of_it_at_its_commit() -> None:
    async def test(scene: Scene) -> None:
        await scene.load(rows_of(1, 2, 3))
        await scene.begin()
        await scene.stage([(2, 20, 7), (4, 40, 7), (3, 30, 0)])
        before = await scene.node.meta.reads.linearize()
        assert await scene.rows() == rows_of(1, 2, 3)
        with nothing_put_in_place() as release:
            at = committed_at(await scene.commit())
            expected = [(1, 10, 0), (2, 20, 7), (3, 30, 0), (4, 40, 7)]
            assert await scene.rows() == expected
            assert await scene.rows(at) == expected
            assert await scene.rows(before) == rows_of(1, 2, 3)
            assert scene.staged() > 0
            release.set()
        await scene.resolved()
        assert scene.staged() == 0
        assert await scene.rows() == await scene.rows(at) == expected
        assert await scene.rows(before) == rows_of(1, 2, 3)
        (listed,) = await scene.list()
        assert (listed.state, listed.is_resolved) == (pb.LargeTransaction.COMMITTED, True)

    on_a_node(test)


def test_a_row_and_its_entries_are_locked_until_the_transaction_ends() -> None:
    async def test(scene: Scene) -> None:
        await scene.load(rows_of(1, 2))
        await scene.begin()
        await scene.stage([(1, 11, 0), (5, 50, 0)])
        for row in ((1, 12, 0), (5, 51, 0), (6, 50, 0), (6, 11, 0), (6, 10, 0)):
            with pytest.raises((KeyLocked, UniqueViolation)) as refused:
                await scene.put(row)
            # The value that the row gives up is still its own: it is taken.
            assert isinstance(refused.value, KeyLocked) or row == (6, 10, 0)
        with pytest.raises(KeyLocked) as locked:
            await scene.delete(1)
        assert (locked.value.transaction, locked.value.retry_delay_ms > 0) == (A.hex(), True)
        assert locked.value.key == "d.t(1)"
        await scene.begin(B)
        with pytest.raises(KeyLocked):
            await scene.stage([(5, 55, 0)], B)
        await scene.put((2, 21, 0))
        assert (await scene.abort()).cause == "operator"
        await scene.put((1, 12, 0))
        await scene.put((6, 50, 0))
        await scene.resolved()
        assert scene.staged() == 0
        assert await scene.rows() == [(1, 12, 0), (2, 21, 0), (6, 50, 0)]

    on_a_node(test)


def test_deletes_are_staged_also_of_what_is_not_there_and_come_at_the_commit() -> None:
    async def test(scene: Scene) -> None:
        await scene.load(rows_of(1, 2, 3))
        await scene.begin()
        assert (await scene.stage_deletes([1, 3, 9])).written == 3
        assert await scene.rows() == rows_of(1, 2, 3)
        for row in ((3, 31, 0), (9, 90, 0)):
            with pytest.raises(KeyLocked):
                await scene.put(row)
        before = await scene.node.meta.reads.linearize()
        with nothing_put_in_place() as release:
            at = committed_at(await scene.commit())
            assert await scene.rows(at) == await scene.rows() == rows_of(2)
            assert await scene.rows(before) == rows_of(1, 2, 3)
            await scene.put((3, 10, 0))
            release.set()
        await scene.resolved()
        assert scene.staged() == 0
        assert await scene.rows(at) == rows_of(2)
        assert await scene.rows() == [(2, 20, 0), (3, 10, 0)]

    on_a_node(test)


def test_who_writes_what_is_committed_and_not_in_place_moves_it() -> None:
    async def test(scene: Scene) -> None:
        await scene.load(rows_of(1, 2, 3))
        await scene.begin()
        await scene.stage([(1, 11, 0), (2, 21, 0), (4, 41, 0)])
        with nothing_put_in_place() as release:
            at = committed_at(await scene.commit())
            await asyncio.gather(scene.put((1, 12, 0)), scene.put((1, 13, 0)), scene.delete(4))
            await scene.begin(B)
            await scene.stage([(2, 22, 0)], B)
            assert [row for row in await scene.rows() if row[0] != 1] == [(2, 21, 0), (3, 30, 0)]
            assert await scene.rows(at) == [(1, 11, 0), (2, 21, 0), (3, 30, 0), (4, 41, 0)]
            release.set()
            await scene.commit(B)
        await scene.resolved()
        assert scene.staged() == 0
        assert await scene.rows(at) == [(1, 11, 0), (2, 21, 0), (3, 30, 0), (4, 41, 0)]
        assert [row for row in await scene.rows() if row[0] != 1] == [(2, 22, 0), (3, 30, 0)]

    on_a_node(test)


def test_who_meets_more_than_fits_beside_a_write_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MOVED_BYTES_MAX", 300)

    async def test(scene: Scene) -> None:
        rows = rows_of(*range(20))
        await scene.begin()
        await scene.stage(rows)
        with nothing_put_in_place() as release:
            await scene.commit()
            with pytest.raises(KeyLocked) as locked:
                await scene.load(rows_of(*range(20), n=1))
            assert locked.value.transaction == A.hex()
            await scene.put((3, 30, 1))
            release.set()
        await scene.resolved()
        await scene.load(rows_of(*range(20), n=1))
        assert await scene.rows() == rows_of(*range(20), n=1)

    on_a_node(test)


def test_no_begin_goes_over_the_records_of_all_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(scene: Scene) -> None:
        await scene.begin()
        await scene.abort()
        await scene.resolved()
        with monkeypatch.context() as patch:
            patch.setattr(records, "records_of", lambda _reader: pytest.fail("all records are looked at"))
            begun = await scene.begin(B)
        assert begun.state == pb.LargeTransaction.OPEN

    on_a_node(test)


def test_only_the_attempts_count_that_the_commit_names() -> None:
    async def test(scene: Scene) -> None:
        await scene.load(rows_of(1))
        await scene.begin()
        await scene.stage([(1, 11, 0), (2, 20, 0)], task=0, attempt=0)
        await scene.stage([(1, 12, 0), (3, 30, 0)], task=0, attempt=1)
        await scene.stage([(4, 40, 0)], task=1)
        await scene.stage([(5, 50, 0)], task=2)
        with pytest.raises(AlreadyExists):
            await scene.stage([(5, 51, 0)], task=2)
        with pytest.raises(AlreadyExists):
            await scene.stage([(5, 51, 0)], task=3)
        with pytest.raises(AlreadyExists):
            await scene.stage([(6, 50, 0)], task=3)
        with nothing_put_in_place() as release:
            await scene.commit(attempts=[(0, 1), (1, 0)])
            assert await scene.rows() == [(1, 12, 0), (3, 30, 0), (4, 40, 0)]
            release.set()
        await scene.resolved()
        assert scene.staged() == 0
        assert await scene.rows() == [(1, 12, 0), (3, 30, 0), (4, 40, 0)]
        await scene.put((9, 11, 0))
        await scene.put((10, 50, 0))

    on_a_node(test)


def test_a_row_that_has_changed_since_the_transaction_began_is_a_conflict() -> None:
    async def test(scene: Scene) -> None:
        await scene.load(rows_of(1))
        await scene.begin()
        await scene.load(rows_of(2))
        await scene.delete(2)
        with pytest.raises(WriteConflict):
            await scene.stage([(2, 20, 0)], mode=INSERT)
        refused = await scene.stage([(1, 11, 0)], mode=INSERT)
        assert [each.reason for each in refused.errors] == [ConditionFailed.reason]
        await scene.stage([(2, 20, 0)])
        await scene.commit()
        assert await scene.rows() == [(1, 10, 0), (2, 20, 0)]

    on_a_node(test)


def test_a_job_that_began_before_its_transaction_is_refused_rows_that_changed_since() -> None:
    async def test(scene: Scene) -> None:
        await scene.load(rows_of(1, 2, 3, 4))
        since = await scene.node.meta.reads.linearize()
        await scene.load(rows_of(1))
        await scene.put((2, 20, 9))
        await scene.delete(3)
        await scene.begin()
        for changed in (1, 2, 3):
            with pytest.raises(WriteConflict):
                await scene.stage(rows_of(changed, n=5), since=since)
        twice = await scene.stage([(6, 60, 0), (6, 60, 1)], since=since)
        assert [each.reason for each in twice.errors] == [WriteConflict.reason]
        await scene.stage([(4, 40, 5), (5, 50, 5)], since=since)
        await scene.commit()
        assert await scene.rows() == [(1, 10, 0), (2, 20, 9), (4, 40, 5), (5, 50, 5), (6, 60, 0)]

    on_a_node(test)


def test_many_rows_are_found_unchanged_though_memory_does_not_reach_back_to_the_start() -> None:
    async def test(scene: Scene) -> None:
        await scene.load(rows_of(*range(400)))
        await scene.begin()
        await scene.begin(B)
        await scene.commit(B)
        assert scene.node.meta.driver.feed.recent.floor > timestamp_value((await scene.begin()).start, "start")
        assert (await scene.stage(rows_of(*range(300), n=1), mode=REPLACE)).written == 300
        await scene.put((350, 3500, 0))
        with pytest.raises(WriteConflict):
            await scene.stage(rows_of(*range(300, 400), n=1), mode=REPLACE)
        await scene.commit()
        assert len([row for row in await scene.rows() if row[2] == 1]) == 300

    on_a_node(test)


def test_a_commit_sees_what_is_committed_and_not_in_place_as_changed() -> None:
    async def test(scene: Scene) -> None:
        await scene.load(rows_of(1))
        start = await scene.node.meta.reads.linearize()
        await scene.begin()
        await scene.stage(rows_of(2, 3))
        with nothing_put_in_place() as release:
            at = committed_at(await scene.commit())
            replica = scene.node.meta
            start_key, end_key = row_range(scene.table_id, LONG)
            changed, _ = changed_within(replica.store, start_key, end_key, start, replica.applied.last_ts)
            assert changed is not None
            assert changed.ts == at
            reader = replica.store.snapshot(replica.applied.last_ts)
            assert reader.changed_since([changed.key], (), start) == changed
            assert reader.changed_since([changed.key], (), at) is None
            assert replica.driver.feed.recent.floor >= at
            release.set()

    on_a_node(test)


def test_a_watch_has_what_came_before_waits_and_then_has_all_of_it_in_order() -> None:
    async def test(scene: Scene) -> None:
        replica = scene.node.meta
        before = await replica.reads.linearize()
        bounds = row_range(scene.table_id, LONG)
        watcher = Watcher(scene.node, before, bounds=bounds)
        await scene.begin()
        await scene.stage(rows_of(1, 2))
        await scene.put((7, 70, 0))
        with nothing_put_in_place() as release:
            at = committed_at(await scene.commit())
            await scene.put((8, 80, 0))
            late = Watcher(scene.node, before, bounds=bounds)
            while not (watcher.changes and late.changes):
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            for each in (watcher, late):
                assert each.resolved < at
                assert len(each.changes) == 1
            release.set()
        await scene.resolved()
        last = await replica.reads.linearize()
        await scene.put((9, 90, 0))
        while min(watcher.resolved, late.resolved) <= last:
            await asyncio.sleep(0.005)
        for each in (watcher, late):
            times = [change.ts for change in each.changes]
            assert times == sorted(times)
            assert times.count(at) == 2
            assert len(times) == 5
            each.stop()

    on_a_node(test)


def test_one_that_nobody_keeps_alive_is_aborted_and_what_it_has_staged_goes() -> None:
    async def test(scene: Scene) -> None:
        await scene.begin(ttl_ms=1_000)
        await scene.stage(rows_of(1, 2))
        while (await scene.list())[0].state == pb.LargeTransaction.OPEN:
            await asyncio.sleep(0.05)
        assert (await scene.list())[0].cause == "expired"
        await scene.resolved()
        assert scene.staged() == 0
        with pytest.raises(TransactionAborted, match="expired"):
            await scene.stage(rows_of(3))
        assert (await scene.commit()).state == pb.LargeTransaction.ABORTED
        assert await scene.rows() == []

    on_a_node(test)


def test_repeated_calls_are_told_what_became_of_it() -> None:
    async def test(scene: Scene) -> None:
        first = await scene.begin(label="nightly")
        assert await scene.begin(label="nightly") == first
        with pytest.raises(AlreadyExists):
            await scene.begin(label="another")
        await scene.stage(rows_of(1))
        committed = await scene.commit()
        assert committed_at(await scene.commit()) == committed_at(committed)
        assert (await scene.abort()).state == pb.LargeTransaction.COMMITTED
        assert (await scene.begin(label="nightly")).state == pb.LargeTransaction.COMMITTED
        with pytest.raises(InvalidArgument):
            await scene.stage(rows_of(2))
        with pytest.raises(NotFound):
            await scene.commit(B)
        assert await scene.rows() == rows_of(1)

    on_a_node(test)


def test_an_application_commits_each_of_its_versions_once() -> None:
    async def test(scene: Scene) -> None:
        for name, version, is_done in ((A, 3, True), (B, 3, False)):
            await scene.begin(name)
            await scene.stage([(version, version, int(name == B))], name)
            done = await scene.commit(name, app=("stream", version))
            assert (done.state == pb.LargeTransaction.COMMITTED, done.cause) == (is_done, "" if is_done else "repeated")
            await scene.resolved()
        assert await scene.rows() == [(3, 3, 0)]
        begun = await scene.begin(C, app=("stream", 3))
        assert (begun.state, begun.cause, begun.is_resolved) == (pb.LargeTransaction.ABORTED, "repeated", True)
        assert await scene.begin(C, app=("stream", 3)) == begun == await scene.commit(C, app=("stream", 3))
        with pytest.raises(TransactionAborted, match="repeated"):
            await scene.stage(rows_of(4), C)
        assert (await scene.begin(b"d" * 16, app=("stream", 4))).state == pb.LargeTransaction.OPEN

    on_a_node(test)


def test_an_application_has_one_open_transaction_at_a_time() -> None:
    async def test(scene: Scene) -> None:
        app = ("stream", 1)
        await scene.begin(A, app=app)
        await scene.stage(rows_of(1, 2), A)
        # Its process has died, and its successor writes the same rows at once.
        await scene.begin(B, app=app)
        await scene.stage(rows_of(1, 2), B)
        with pytest.raises(TransactionAborted, match="superseded"):
            await scene.stage(rows_of(3), A)
        assert (await scene.commit(A, app=app)).cause == "superseded"
        committed_at(await scene.commit(B, app=app))
        assert await scene.rows() == rows_of(1, 2)
        # Transactions of other applications, or of none, are let alone.
        await scene.begin(C, app=("other", 1))
        await scene.begin(b"d" * 16)
        assert (await scene.begin(b"e" * 16, app=("stream", 2))).state == pb.LargeTransaction.OPEN
        by_id = {each.transaction_id: each.state for each in await scene.list()}
        assert by_id[C] == by_id[b"d" * 16] == pb.LargeTransaction.OPEN

    on_a_node(test)


def test_another_owner_does_not_number_commits_under_the_same_name() -> None:
    async def test(scene: Scene) -> None:
        app = ("stream", 1)
        await scene.begin(A, app=app, owner="query 1")
        for owner, said in (("query 2", "of query 1, and this is one of query 2"), ("", "no owner")):
            with pytest.raises(InvalidArgument, match=said):
                await scene.begin(B, app=app, owner=owner)
        await scene.begin(C, app=("later", 1), owner="query 2")
        committed_at(await scene.commit(A, app=app, owner="query 1"))
        for number in (1, 2):
            with pytest.raises(InvalidArgument, match="application: numbers the commits of query 1"):
                await scene.begin(B, app=("stream", number), owner="query 2")
        with pytest.raises(InvalidArgument, match="application: numbers the commits of query 1"):
            await scene.commit(C, app=("stream", 2), owner="query 2")
        with pytest.raises(InvalidArgument, match="owner: must not be set without an application"):
            await scene.begin(B, owner="query 2")
        assert (await scene.begin(B, app=("stream", 2), owner="query 1")).state == pb.LargeTransaction.OPEN

    on_a_node(test)


def test_a_transaction_of_a_table_that_is_gone_is_aborted() -> None:
    async def test(scene: Scene) -> None:
        await scene.begin()
        await scene.stage(rows_of(1))
        await TablesService(scene.node).truncate_table(tables_pb2.TruncateTableRequest(database="d", name="t"))
        done = await scene.commit()
        assert (done.state, done.cause) == (pb.LargeTransaction.ABORTED, "table")

    on_a_node(test)


def test_it_goes_on_where_it_was_after_a_restart() -> None:
    disk = NodeDisk()
    at: list[Timestamp] = []

    async def first() -> None:
        async with running_node(disk) as node:
            scene = await Scene.make(node)
            await scene.begin()
            await scene.stage(rows_of(1, 2))
            await scene.begin(B)
            await scene.stage(rows_of(3), B)
            with nothing_put_in_place():
                at.append(committed_at(await scene.commit()))

    async def second() -> None:
        async with running_node(disk) as node:
            catalog = node.meta.catalog(node.meta.reader(node.meta.read_ts()))
            scene = Scene(node, 1, catalog.table("d", "t").table_id)
            assert await scene.rows(at[0]) == rows_of(1, 2)
            await scene.resolved()
            assert await scene.rows() == rows_of(1, 2)
            with pytest.raises(KeyLocked):
                await scene.put((3, 31, 0))

    run(first)
    run(second)


def test_who_looks_at_stored_versions_waits_until_all_is_in_its_place() -> None:
    async def test(scene: Scene) -> None:
        await scene.begin()
        await scene.stage(rows_of(1, 2))
        reads = scene.node.meta.reads
        with nothing_put_in_place() as release:
            at = committed_at(await scene.commit())
            await reads.in_place(at.previous())
            waiting = asyncio.ensure_future(reads.in_place(at))
            await asyncio.sleep(0.02)
            assert not waiting.done()
            release.set()
            await waiting
        assert scene.staged() == 0

    on_a_node(test)
