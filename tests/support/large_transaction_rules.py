"""The promise of each rule of large transactions (ADR 40), as a scenario on one node of virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import pytest

from cortado.errors import CortadoError, InvalidArgument, KeyLocked, WriteConflict
from cortado.proto.v1 import documents_pb2, tables_pb2
from cortado.proto.v1 import large_transactions_pb2 as pb
from cortado.store.catalog.descriptors import IndexState
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine, WriteTransaction
from cortado.store.keys.keyspace import row_key, row_range, staged_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.replica.write.proposals import WriteResult
from cortado.store.server.convert import timestamp_value
from cortado.store.server.tables_service import TablesService
from cortado.store.staging import stage
from cortado.store.tables.check import check_step, plan_check
from support.large_transactions import LONG, A, B, Scene, committed_at, nothing_put_in_place
from support.node_world import Place, World
from support.watchers import Watcher

INSERT: Final = documents_pb2.BULK_MODE_INSERT
ROWS: Final = [(1, 10, 0), (2, 20, 0), (3, 30, 0)]
RETENTION_MS: Final = 2_000


@dataclass
class Stage:
    """One node of a world, its storage, and the table on it."""

    world: World
    place: Place
    scene: Scene

    async def settle(self) -> None:
        await self.world.sleep(100)


Scenario = Callable[[Stage], Awaitable[None]]


def play(scenario: Scenario, *, retention_ms: int | None = None) -> None:
    world = World() if retention_ms is None else World(retention_ms=retention_ms)

    async def run() -> None:
        [node] = await world.grow("n1")
        await scenario(Stage(world, world.places["n1"], await Scene.make(node)))

    world.run(run)


# --- scenarios -------------------------------------------------------------------------------------------------


async def answered_when_applied(at: Stage) -> None:
    """A caller that was told of the commit reads it, however late it is applied."""
    scene = at.scene
    await scene.begin()
    await scene.stage(ROWS)
    at.place.data.hold()
    committing = asyncio.ensure_future(scene.commit())
    await at.settle()
    if committing.done():
        reader = scene.node.meta.reader(committed_at(committing.result()))
        assert len(list(reader.scan(*row_range(scene.table_id, LONG)))) == len(ROWS)
    at.place.data.release()
    assert await scene.rows(committed_at(await committing)) == ROWS


async def evaluated_when_applied(at: Stage) -> None:
    """A write right behind the begin of a transaction and its staged rows sees its locks."""
    scene, meta = at.scene, at.scene.node.meta
    row = row_key(scene.table_id, LONG, [1])

    def staged(reader: Reader, _ts: Timestamp) -> Evaluation:
        written = Evaluation(_put(row, b"staged"), None)
        return stage.stage(reader, meta.store.unresolved, A, 0, written, is_unchanged=False)

    beginning = asyncio.ensure_future(scene.begin())
    await asyncio.sleep(0)
    staging, writing = meta.write(staged), meta.write(lambda _reader, _ts: Evaluation(_put(row, b"beside it"), None))
    done = await asyncio.gather(beginning, staging, writing, return_exceptions=True)
    assert [type(each) for each in done[1:]] == [WriteResult, KeyLocked]


def _put(key: LogicalKey, payload: bytes) -> Mutations:
    mutations = Mutations()
    mutations.put(key, payload)
    return mutations


async def above_served_reads(at: Stage) -> None:
    scene = at.scene
    await scene.begin()
    await scene.stage(ROWS)
    served = await scene.node.meta.reads.linearize()
    assert await scene.rows(served) == []
    await scene.commit()
    assert await scene.rows(served) == []


async def known_before_it_is_read(at: Stage) -> None:
    scene = at.scene
    await scene.begin()
    await scene.stage(ROWS)
    committing = asyncio.ensure_future(scene.commit())
    while True:
        applied = scene.node.meta.applied.last_ts
        seen = len(list(scene.node.meta.store.snapshot(applied).scan(*row_range(scene.table_id, LONG))))
        if committing.done():
            break
        await asyncio.sleep(0.0005)
    assert seen in (0, len(ROWS))
    at_ts = committed_at(await committing)
    assert await scene.rows(at_ts) == ROWS


async def forgotten_once_it_is_durable(at: Stage) -> None:
    """Moves and the end of a transaction are applied in one: a reader that comes before they are durable finds all
    rows."""
    scene = at.scene
    await scene.begin()
    await scene.stage(ROWS)
    seen: list[int] = []
    with nothing_put_in_place() as release:
        ts = committed_at(await scene.commit())
        # One write is taken to be applied, and held; later entries are taken together.
        at.place.data.hold()
        await scene.put((9, 90, 0))
        await at.world.until(lambda: at.place.data.waiting > 0, "it is held")
        release.set()
        log = scene.node.meta.log
        before = log.last[0]
        await at.world.until(lambda: log.durable_commit_index >= before + 2, "the moves, and the end, are committed")
        with probed(scene.node.process.engine, lambda: seen.append(_count(scene, ts))):
            at.place.data.release()
            await scene.resolved()
    assert seen
    assert set(seen) == {len(ROWS)}
    assert scene.staged() == 0


async def looked_for_once_it_is_durable(at: Stage) -> None:
    """Rows that a leader takes for committed, and puts in place, can be read where they were staged."""
    scene, meta = at.scene, at.scene.node.meta
    await scene.begin()
    at.place.data.hold()
    await scene.put((9, 90, 0))
    await at.world.until(lambda: at.place.data.waiting > 0, "it is held")
    await scene.stage(ROWS)
    committing = asyncio.ensure_future(scene.commit())
    looks: list[int] = []

    def look() -> None:
        found = [
            len(meta.large_transactions._look(each, *staged_range(*each.ranges[0]))[0].stored)
            for each in meta.features.large_transactions.durable.committed
        ]
        assert all(found), found
        looks.append(len(found))

    with nothing_put_in_place() as release, probed(scene.node.process.engine, look):
        await at.settle()
        at.place.data.release()
        ts = committed_at(await committing)
        await scene.put((8, 80, 0))
        await meta.reads.caught_up()
    release.set()
    assert set(looks) == {0, 1}
    await scene.resolved()
    assert await scene.rows(ts) == [*ROWS, (9, 90, 0)]
    assert scene.staged() == 0


async def moved_in_one_entry(at: Stage) -> None:
    """At every instant all of its rows are there, at the commit's time."""
    scene = at.scene
    await scene.begin()
    await scene.stage(ROWS)
    with nothing_put_in_place() as release:
        ts = committed_at(await scene.commit())
        release.set()
        for _ in range(400):
            assert _count(scene, ts) == len(ROWS)
            await asyncio.sleep(0.001)
    assert await scene.rows(ts) == ROWS


async def moved_by_writers(at: Stage) -> None:
    scene = at.scene
    await scene.load([(1, 1, 1)])
    await scene.begin()
    await scene.stage(ROWS)
    with nothing_put_in_place() as release:
        ts = committed_at(await scene.commit())
        await scene.put((1, 11, 0))
        assert await scene.rows() == [(1, 11, 0), *ROWS[1:]]
        assert await scene.rows(ts) == ROWS
        release.set()
    await scene.resolved()
    assert await scene.rows() == [(1, 11, 0), *ROWS[1:]]
    assert await scene.rows(ts) == ROWS


async def named_attempts(at: Stage) -> None:
    scene = at.scene
    await scene.begin()
    await scene.stage([(1, 11, 0), (9, 90, 0)], task=0, attempt=0)
    await scene.stage(ROWS, task=0, attempt=1)
    await scene.stage([(8, 80, 0)], task=1)
    await scene.commit(attempts=[(0, 1)])
    assert await scene.rows() == ROWS
    await scene.resolved()
    assert await scene.rows() == ROWS


async def staged_while_open(at: Stage) -> None:
    scene = at.scene
    await scene.begin()
    await scene.stage(ROWS[:1])
    await scene.commit()
    with pytest.raises(InvalidArgument):
        await scene.stage(ROWS[1:])
    await scene.resolved()
    assert await scene.rows() == ROWS[:1]
    assert scene.staged() == 0


async def watched_in_order(at: Stage) -> None:
    scene = at.scene
    replica = scene.node.meta
    watcher = Watcher(scene.node, await replica.reads.linearize(), bounds=row_range(scene.table_id, LONG))
    await scene.begin()
    await scene.stage(ROWS)
    with nothing_put_in_place() as release:
        ts = committed_at(await scene.commit())
        await scene.put((7, 70, 0))
        await at.world.sleep(500)
        assert watcher.resolved < ts
        release.set()
        await scene.resolved()
    last = await replica.reads.linearize()
    await scene.put((8, 80, 0))
    await at.world.until(lambda: watcher.resolved > last, "all of it is watched")
    times = [each.ts for each in watcher.changes]
    watcher.stop()
    assert times == sorted(times)
    assert times.count(ts) == len(ROWS)


async def newest_changes_begin_anew(at: Stage) -> None:
    scene = at.scene
    await scene.load([(1, 1, 1)])
    start = await scene.node.meta.reads.linearize()
    await scene.begin()
    await scene.stage(ROWS)
    ts = committed_at(await scene.commit())
    await scene.resolved()

    def evaluate(reader: Reader, _ts: Timestamp) -> Evaluation:
        return Evaluation(Mutations(), reader.changed_since((), [row_range(scene.table_id, LONG)], start))

    with suppress(CortadoError):  # Not known from memory: it is searched for beside the loop.
        changed = (await scene.node.meta.write(evaluate)).value
        assert changed is not None
        assert changed.ts == ts  # type: ignore[attr-defined]


async def rows_are_locked(at: Stage) -> None:
    scene = at.scene
    await scene.load([(1, 1, 1)])
    await scene.begin()
    await scene.stage([(1, 1, 2)])
    # One of the row's entries is staged as gone, and this does not write it.
    with pytest.raises(KeyLocked):
        await scene.put((1, 1, 1))


async def entries_are_locked(at: Stage) -> None:
    scene = at.scene
    await scene.begin()
    await scene.stage([(5, 50, 0)])
    with pytest.raises(KeyLocked):
        await scene.put((6, 50, 0))
    await scene.commit()
    assert await scene.rows() == [(5, 50, 0)]


async def changed_rows_are_conflicts(at: Stage) -> None:
    scene = at.scene
    await scene.begin()
    await scene.load(ROWS[:1])
    await scene.delete(1)
    with pytest.raises(WriteConflict):
        await scene.stage(ROWS[:1], mode=INSERT)


async def its_start_is_held(at: Stage) -> None:
    """The versions that it compares rows with are not collected while it is open."""
    scene = at.scene
    record = await scene.begin(ttl_ms=60_000)
    start = timestamp_value(record.start, "start")
    await scene.load(ROWS[:1])
    await scene.delete(1)
    for number in range(8):
        await at.world.sleep(RETENTION_MS / 2)
        await scene.put((100 + number, 1_000 + number, 0))
    assert scene.node.meta.store.safepoints.highest <= start
    with pytest.raises(WriteConflict):
        await scene.stage(ROWS[:1], mode=INSERT)


async def makes_no_garbage(at: Stage) -> None:
    """The rows that it would overwrite or delete are those that all readers see. They are not collected while the
    outcome is unknown."""
    scene = at.scene
    await scene.load(ROWS)
    start = timestamp_value((await scene.begin(ttl_ms=60_000)).start, "start")
    await scene.stage([(1, 10, 7), (2, 21, 0)])
    await scene.stage_deletes([3])
    for _ in range(8):
        await at.world.sleep(RETENTION_MS / 2)
        await scene.put((9, 90, 0))
    assert scene.node.meta.store.safepoints.highest == start
    await scene.node.meta.collector.pass_now()
    assert scene.node.meta.collector.removed > 0
    assert await scene.rows() == [*ROWS, (9, 90, 0)]
    await scene.abort()
    await scene.resolved()
    assert await scene.rows() == [*ROWS, (9, 90, 0)]


async def remembered_for_a_day(at: Stage) -> None:
    scene = at.scene
    await scene.begin()
    await scene.stage(ROWS)
    ts = committed_at(await scene.commit())
    await scene.resolved()
    await at.world.sleep(3_000)
    assert committed_at(await scene.commit()) == ts


async def one_of_an_application(at: Stage) -> None:
    """Rows that a dead process has staged block no caller once its successor begins."""
    scene, app = at.scene, ("stream", 1)
    await scene.begin(A, app=app)
    await scene.stage(ROWS, A)
    await scene.begin(B, app=app)
    await scene.stage(ROWS, B)
    assert (await scene.commit(A, app=app)).state == pb.LargeTransaction.ABORTED
    committed_at(await scene.commit(B, app=app))


async def built_after_it(at: Stage) -> None:
    """An index that is begun while rows are staged has their entries, and the transaction is committed."""
    scene = at.scene
    await scene.load([(7, 70, 0)])
    await scene.begin()
    await scene.stage(ROWS)
    await _build_index(scene)
    await at.world.sleep(3_000)
    done = await scene.commit()
    await scene.resolved()
    await at.world.until(lambda: _state_of_index(scene) is IndexState.READY, "it is built")
    assert _index_problems(scene) == []
    assert done.state == pb.LargeTransaction.COMMITTED


async def built_around_staged_rows(at: Stage) -> None:
    """A build that began before a row was staged, and reaches it later, leaves no entry of the row's old state."""
    scene = at.scene
    await scene.load([(1, 11, 1), (7, 70, 0)])
    await _build_index(scene, unique=True)
    await scene.begin()
    await scene.stage(ROWS)
    await at.world.sleep(3_000)
    assert (await scene.commit()).state == pb.LargeTransaction.COMMITTED
    await scene.resolved()
    await at.world.until(lambda: _state_of_index(scene) is IndexState.READY, "it is built")
    assert _index_problems(scene) == []


async def commits_with_the_indexes_it_staged_for(at: Stage) -> None:
    """If a build did not wait: the transaction does not happen, and the index is right."""
    scene = at.scene
    await scene.load([(7, 70, 0)])
    await scene.begin()
    await scene.stage(ROWS)
    await _build_index(scene)
    await at.world.until(lambda: _state_of_index(scene) is IndexState.READY, "it is built")
    done = await scene.commit()
    await scene.resolved()
    assert _index_problems(scene) == []
    assert (done.state, done.cause) == (pb.LargeTransaction.ABORTED, "table")


async def _build_index(scene: Scene, *, unique: bool = False) -> None:
    parts = [tables_pb2.KeyPart(path="n"), tables_pb2.KeyPart(path="u")]
    index = tables_pb2.Index(name="by_n_u", parts=parts, unique=unique)
    request = tables_pb2.CreateIndexRequest(database="d", table="t", index=index)
    await TablesService(scene.node).create_index(request)


def _state_of_index(scene: Scene) -> IndexState:
    meta = scene.node.meta
    table = meta.catalog(meta.reader(meta.read_ts())).table("d", "t")
    return next(each.state for each in table.indexes if each.name == "by_n_u")


def _index_problems(scene: Scene) -> list[object]:
    meta = scene.node.meta
    read_ts = meta.applied.last_ts
    plan = plan_check(meta.catalog(meta.reader(read_ts)), "d", "t", read_ts)
    page = check_step(meta.store, plan, None)
    problems: list[object] = list(page.problems)
    while page.next is not None:
        page = check_step(meta.store, plan, page.next)
        problems += page.problems
    return problems


def _count(scene: Scene, ts: Timestamp) -> int:
    return len(list(scene.node.meta.store.snapshot(ts).scan(*row_range(scene.table_id, LONG))))


@contextmanager
def probed(engine: Engine, probe: Callable[[], None]) -> Iterator[None]:
    """Call ``probe`` at the end of each transaction that writes, before it is committed."""
    write = engine.write

    @contextmanager
    def probing() -> Iterator[WriteTransaction]:
        with write() as txn:
            yield txn
            probe()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "write", probing)
        yield
