"""The changes of a replica's state after which nothing is found that was kept of its rows before."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cortado.raft.log import Entry
from cortado.store.aggregate.bind import Aggregate, Kind
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import AcceptLoss, Removal
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version
from cortado.store.process.budget import Budget
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.log_entry import LogEntry
from cortado.store.tables import aggregate_slices
from cortado.store.tables.aggregate import AggregateScan, plan_aggregate
from cortado.store.tables.aggregating import aggregate_step, begin_aggregate
from cortado.store.tables.kept_columns import kept_columns
from cortado.store.tables.scan import Budget as StepBudget
from cortado.store.tables.scan import Scan
from support.kept_pieces import PIECE_BYTES, START, is_found, keep, opened
from support.large_transactions import Scene, nothing_put_in_place
from support.memory_engine import MemoryEngine
from support.nodes import run, running_node

MIB = 1 << 20
ROW = LogicalKey(START + b"\x01")


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    """Let slices of any size be kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregate_slices, "KEPT_ROWS_MIN", 1)
        yield


def at(wall_ms: int) -> Timestamp:
    return Timestamp(0, wall_ms, 0)


def entry(index: int, **fields: object) -> Entry:
    ts = at(10 * index)
    return Entry(index, 1, LogEntry(index - 1, min(index - 1, 1), ts, ts, **fields))  # type: ignore[arg-type]


def a_machine() -> tuple[StateMachine, VersionStore]:
    engine = MemoryEngine()
    store = VersionStore(engine)
    store.kept.room = lambda: MIB
    machine = StateMachine(engine, store, META_GROUP)
    machine.settle(machine.apply(machine.state, [entry(1, items=[encode_version(ROW, b"v", at(10))])]))
    return machine, store


def lose(machine: StateMachine) -> None:
    loss = AcceptLoss(encode_version(ROW, b"v", at(10))[0], is_key_right=True)
    machine.settle(machine.apply(machine.state, [entry(2, controls=[loss])]))


def write(machine: StateMachine) -> None:
    machine.apply(machine.state, [entry(2, items=[encode_version(ROW, b"w", at(20))])])


def move(machine: StateMachine) -> None:
    """Put a staged row in its place, at the time of a commit before the entry."""
    moved = encode_version(ROW, b"w", at(15))
    machine.apply(machine.state, [entry(2, items=[moved], removal=Removal([b"s" + bytes(20)]))])


@pytest.mark.parametrize(
    "change",
    [write, move, lose, StateMachine.replaced, StateMachine.repaired],
    ids=["write", "moved row", "loss", "snapshot", "repair"],
)
def test_a_change_of_stored_rows_closes_what_was_kept(change: Callable[[StateMachine], None]) -> None:
    machine, store = a_machine()
    kept = opened(store, at(15))
    assert kept is not None
    keep(kept, at(15))
    assert is_found(kept, at(30))
    change(machine)
    assert not is_found(kept, at(30))
    found = store.kept_table(65_537, b"reader", at(30))
    assert found is None, "and the next read is a first one"


def test_at_a_start_all_tables_count_as_written_by_the_last_entry() -> None:
    _, before = a_machine()
    store = VersionStore(before.engine)
    StateMachine(before.engine, store, META_GROUP)
    assert opened(store, at(9)) is None
    assert opened(store, at(10)) is not None


def test_rows_of_a_large_transaction_count_from_its_commit_on() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            scene = await Scene.make(node)
            await scene.load([(each, each, 1) for each in range(5)])
            assert [await total(scene) for _ in range(3)] == [5] * 3
            assert node.meta.store.kept.hits == 1
            await scene.begin()
            await scene.stage([(each, each, 10) for each in range(3, 8)])
            before = await node.meta.reads.linearize()
            assert await total(scene) == 5
            with nothing_put_in_place() as release:
                await scene.commit()
                assert [await total(scene) for _ in range(3)] == [53] * 3
                assert await total(scene, before) == 5
                release.set()
            await scene.resolved()
            hits = node.meta.store.kept.hits
            assert [await total(scene) for _ in range(3)] == [53] * 3
            assert node.meta.store.kept.hits == hits + 1
            assert await total(scene, before) == 5

    run(scenario)


async def total(scene: Scene, ts: Timestamp | None = None) -> int:
    """Return the sum of ``n`` over all rows at ``ts``, or the newest, by the steps of an aggregate."""
    replica = scene.node.meta
    read_ts = await replica.reads.applied_to(await replica.reads.linearize() if ts is None else ts)
    asked = AggregateScan(Scan("d", "t"), [], [Aggregate(Kind.SUM, "n")])
    plan = plan_aggregate(Catalog(replica.store.snapshot(read_ts)), asked, read_ts)
    state = begin_aggregate(plan, None, 0.0, kept_columns(replica.store, plan.scan))
    page = aggregate_step(replica.store, plan, state, StepBudget(1, 1, 1e9, lambda: 0.0))
    assert page is not None and page.next is None
    # A union's branch, and 16 bytes of the sum.
    return int.from_bytes(page.bodies[1:17], "big", signed=True)


# --- memory -----------------------------------------------------------------------------------------------------


def test_what_is_kept_has_the_room_that_calls_and_chunks_leave_and_gives_it_back_to_them() -> None:
    limits = NodeLimits(in_flight_bytes_max=NodeLimits().in_flight_bytes_min, kept_bytes_max=20 * MIB)
    budget = Budget(limits)
    _, store = a_machine()
    budget.keep(store.kept)
    kept = opened(store, at(15))
    assert kept is not None
    assert store.kept.room() == 20 * MIB
    keep(kept, at(15))
    call = budget.calls.take(90 * MIB)
    assert store.kept.room() == 20 * MIB
    assert store.kept.bytes == PIECE_BYTES
    chunk = budget.chunks.add(32 * MIB)
    assert store.kept.room() == 6 * MIB
    assert store.kept.bytes == PIECE_BYTES
    more = budget.chunks.add(6 * MIB)
    assert (store.kept.room(), store.kept.bytes) == (0, 0)
    keep(kept, at(15))
    assert store.kept.bytes == 0
    for held in (call, chunk, more):
        held.leave()
    keep(kept, at(15))
    assert store.kept.bytes == PIECE_BYTES


def test_the_replicas_of_a_process_share_the_room_for_kept_columns() -> None:
    limits = NodeLimits(in_flight_bytes_max=NodeLimits().in_flight_bytes_min, kept_bytes_max=20 * MIB)
    budget = Budget(limits)
    stores = [a_machine()[1] for _ in range(2)]
    for each in stores:
        budget.keep(each.kept)
        kept = opened(each, at(15))
        assert kept is not None
        keep(kept, at(15))
    room = 20 * MIB - PIECE_BYTES
    assert [(each.kept.bytes, each.kept.room()) for each in stores] == [(PIECE_BYTES, room)] * 2
    held = budget.chunks.add(budget.bytes_max - PIECE_BYTES)
    assert [each.kept.bytes for each in stores] == [0, PIECE_BYTES]
    held.leave()
    budget.chunks.add(budget.bytes_max)
    assert [each.kept.bytes for each in stores] == [0, 0]


def test_a_chunk_that_is_let_in_takes_memory_back() -> None:
    limits = NodeLimits(in_flight_bytes_max=NodeLimits().in_flight_bytes_min)

    async def scenario() -> None:
        budget = Budget(limits)
        _, store = a_machine()
        budget.keep(store.kept)
        kept = opened(store, at(15))
        assert kept is not None
        keep(kept, at(15))
        held = budget.chunks.add(MIB)
        await budget.chunks.enter(held, 128 * MIB)
        assert store.kept.bytes == 0

    run(scenario)


def test_a_node_keeps_within_its_own_budget() -> None:
    async def scenario() -> None:
        async with running_node(limits=NodeLimits(kept_bytes_max=5 * MIB)) as node:
            assert node.meta.store.kept.room() == 5 * MIB
            assert node.process.budget.kept == [node.meta.store.kept]

    run(scenario)
