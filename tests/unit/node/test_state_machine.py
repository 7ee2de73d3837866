"""The entries that the state machine applies, and those that it must not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from cortado.errors import DataLoss, Internal, ResourceExhausted, SnapshotTooOld
from cortado.raft.log import Encoded, Entry, Nothing
from cortado.raft.registry import Member, Roster
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.engine.interface import Space, WriteTransaction
from cortado.store.mvcc.evaluation import BumpEpoch, Cleared, RaiseCeiling, Removal
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.log_entry import LogEntry
from cortado.store.replica.write.request_table.records import Remembered, encode_remembered
from support.memory_engine import MemoryEngine
from support.nodes import key


def at(wall_ms: int, epoch: int = 0) -> Timestamp:
    return Timestamp(epoch, wall_ms, 0)


def write(name: str, after: tuple[int, int], ts: Timestamp, *, epoch: int = 0) -> Entry:
    """Return the entry that follows ``after`` in its term, and writes one key."""
    item = encode_version(key(name), b"v", ts)
    entry = LogEntry(*after, first_ts=ts, last_ts=ts, items=[item], controls=[BumpEpoch(epoch)] if epoch else ())
    return Entry(after[0] + 1, max(after[1], 1), entry)


def apply(engine: MemoryEngine, *entries: Entry) -> AppliedState:
    machine = StateMachine(engine, VersionStore(engine), META_GROUP)
    return machine.apply(machine.state, entries)


def test_entries_are_applied_in_their_order_and_the_logs_own_ones_move_the_place_alone() -> None:
    engine = MemoryEngine()
    group = Roster.of(voters=(Member("n1", "a:1"),))
    encoded = write("b", (4, 1), at(8))
    state = apply(
        engine,
        write("a", (0, 0), at(5)),
        Entry(2, 1, Nothing()),
        Entry(3, 1, group.configuration),
        Entry(4, 1, group.registry),
        Entry(5, 1, Encoded(encoded.payload.encode())),
    )
    assert state == AppliedState(index=5, term=1, last_ts=at(8), changed_ts=at(8))
    store = VersionStore(engine)
    for name in "ab":
        version = store.get(key(name), at(9))
        assert version is not None
    assert StateMachine(engine, store, META_GROUP).state == state


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (write("b", (5, 1), at(6)), r"an entry follows \(5, 1\), applied is \(1, 1\)"),
        (write("b", (1, 2), at(6)), r"an entry follows \(1, 2\), applied is \(1, 1\)"),
        (write("b", (1, 1), at(5)), "follows one at 0.5.0"),
        (write("b", (1, 1), at(4)), "follows one at 0.5.0"),
        (write("b", (1, 1), at(6), epoch=1), "epoch 1 begins at 0.6.0"),
        (Entry(2, 1, Encoded(b"\xff")), "not a LogEntry"),
    ],
)
def test_an_entry_that_does_not_follow_is_not_applied_and_nothing_with_it(second: Entry, problem: str) -> None:
    engine = MemoryEngine()
    apply(engine, write("a", (0, 0), at(5)))
    with pytest.raises(DataLoss, match=problem):
        apply(engine, second)
    assert StateMachine(engine, VersionStore(engine), META_GROUP).state.index == 1
    assert VersionStore(engine).get(key("b"), at(9)) is None


def test_a_new_epoch_and_a_ceiling_are_in_the_state() -> None:
    engine = MemoryEngine()
    ceiling = LogEntry(1, 1, first_ts=at(6), last_ts=at(6), controls=[RaiseCeiling(at(300))])
    lower = LogEntry(2, 1, first_ts=at(7), last_ts=at(7), controls=[RaiseCeiling(at(200))])
    state = apply(engine, write("a", (0, 0), at(5)), Entry(2, 1, ceiling), Entry(3, 1, lower))
    assert (state.last_ts, state.ceiling) == (at(7), at(300))
    state = apply(engine, write("b", (3, 1), at(2, epoch=1), epoch=1))
    assert (state.last_ts, state.epoch_began) == (at(2, epoch=1), at(2, epoch=1))


def test_the_oldest_requests_are_found_behind_damaged_ones_that_fill_more_than_a_page() -> None:
    engine = MemoryEngine()
    segment = META_GROUP.segment
    whole = bytes(at(9)) + bytes(8)
    with engine.write() as txn:
        for number in range(5):
            txn.put(Space.REQUESTS, segment + bytes(at(number + 1)) + bytes(8), bytes(600_000))
        record = encode_remembered(segment + whole, Remembered(bytes(16), at(9), b"reply"))
        txn.put(Space.REQUESTS, segment + whole, record)
    machine = StateMachine(engine, VersionStore(engine), META_GROUP)
    assert [request_id for request_id, _ in machine.request_table.oldest(bytes(20), 1)] == [whole]


def remove(after: tuple[int, int], ts: Timestamp, removal: Removal) -> Entry:
    return Entry(after[0] + 1, 1, LogEntry(*after, first_ts=ts, last_ts=ts, removal=removal))


def test_what_is_removed_goes_before_the_entrys_own_are_put() -> None:
    """F1: else a version would go that came with the entry."""
    engine = MemoryEngine()
    old, new = encode_version(key("a"), b"v", at(5)), encode_version(key("c"), b"v", at(9))
    last = LogEntry(2, 1, at(9), at(9), items=[new], removal=Removal([old[0]], [Cleared(b"", b"\xff", 1)]))
    apply(engine, write("a", (0, 0), at(5)), write("b", (1, 1), at(6)), Entry(3, 1, last))
    # One by its name, then the first that was left, and only then the entry's own.
    with engine.read() as txn:
        assert txn.page(Space.DATA, b"", b"\xff", max_items=9).keys == [new[0]]


def test_a_removed_key_that_is_not_there_is_passed_over() -> None:
    """F2: staged rows may be moved by a writer and by the leader, each not knowing of the other's entry."""
    engine = MemoryEngine()
    state = apply(engine, remove((0, 0), at(5), Removal([b"never written"])))
    assert state.index == 1


def test_safepoints_are_raised_before_anything_goes() -> None:
    # G5: a read that begins after the transaction has ended must find them raised, so they are raised within it.
    engine = MemoryEngine()
    store = VersionStore(engine)
    machine = StateMachine(engine, store, META_GROUP)
    state = machine.apply(machine.state, [write("a", (0, 0), at(5))])
    raised: list[Safepoints] = []
    write_txn = engine.write

    @contextmanager
    def write_watched() -> Iterator[WriteTransaction]:
        with write_txn() as txn:
            yield txn
            raised.append(store.safepoints)

    with patch.object(engine, "write", write_watched):
        machine.apply(state, [remove((1, 1), at(7), Removal(safepoints=Safepoints(at(6))))])
    assert raised == [Safepoints(at(6))]
    with pytest.raises(SnapshotTooOld):
        store.get(key("a"), at(5))


def test_safepoints_that_fall_stop_the_node() -> None:
    engine = MemoryEngine()
    machine = StateMachine(engine, VersionStore(engine), META_GROUP)
    state = machine.apply(machine.state, [remove((0, 0), at(5), Removal(safepoints=Safepoints(at(4))))])
    with pytest.raises(Internal, match="safepoints rise"):
        machine.apply(state, [remove((1, 1), at(6), Removal(safepoints=Safepoints(at(3))))])


def test_entries_that_found_no_room_are_applied_when_there_is_some_though_safepoints_rise_twice_in_them() -> None:
    engine = MemoryEngine()
    machine = StateMachine(engine, VersionStore(engine), META_GROUP)
    first = remove((0, 0), at(5), Removal(safepoints=Safepoints(at(1))))
    second = remove((1, 1), at(6), Removal(safepoints=Safepoints(at(2))))
    full = ResourceExhausted("the disk is full", 1_000, "disk")

    @contextmanager
    def without_room() -> Iterator[WriteTransaction]:
        with MemoryEngine().write() as txn:
            yield txn
        raise full

    with patch.object(engine, "write", without_room), pytest.raises(ResourceExhausted):
        machine.apply(machine.state, [first, second])
    assert machine.safepoints.cluster == ZERO
    assert machine.apply(machine.state, [first, second]).index == 2
    assert machine.safepoints.cluster == at(2)
