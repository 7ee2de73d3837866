"""The calls of features: their order and their number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from cortado.errors import DataLoss, ResourceExhausted
from cortado.raft.log import Entry, Nothing
from cortado.store.keys.keyspace import STAGED_SPACE, TABLE_SPACE, meta_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import AcceptLoss, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.features.feature import Effect, Features
from cortado.store.replica.feed.index import IndexWriter
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.batch import Batch
from cortado.store.replica.write.log_entry import LogEntry
from support.memory_engine import MemoryEngine
from support.nodes import key
from support.noting_features import AT, ONE, TWO, noting, taken


def machine_with(features: Features, engine: MemoryEngine) -> StateMachine:
    with patch("cortado.store.replica.apply.state_machine.Registered", lambda *_arguments: features):
        return StateMachine(engine, VersionStore(engine), META_GROUP)


def entry(index: int, *keys: LogicalKey, **more: object) -> Entry:
    items = sorted(encode_version(each, b"v", AT[index]) for each in keys)
    log_entry = LogEntry(index - 1, min(index - 1, 1), AT[index], AT[index], items, **more)  # type: ignore[arg-type]
    return Entry(index, 1, log_entry)


# --- applying --------------------------------------------------------------------------------------------------


def test_a_transaction_begins_is_applied_by_entry_and_is_settled_in_the_order_of_registration() -> None:
    features, _, second, notes = noting()
    machine = machine_with(features, MemoryEngine())
    assert taken(notes) == ["a load 0", "b load 0"]
    others = LogicalKey(STAGED_SPACE + b"x"), LogicalKey(TABLE_SPACE + b"x")
    state = machine.apply(
        machine.state,
        [
            entry(1, ONE, key("k"), *others),
            entry(2, key("k")),
            entry(3, *others),
            Entry(4, 1, Nothing()),
            Entry(5, 1, LogEntry(4, 1, AT[5], AT[5], entry(5, ONE, TWO).payload.items)),  # type: ignore[union-attr]
        ],
    )
    applied = ["a begin", "b begin", "a apply 1", "b apply 1", "a apply 2", "b apply 2"]
    assert taken(notes) == applied, "an entry without a key in m is not asked about"
    assert machine.state.index == 0
    second.closed = True
    assert not features.is_closed
    machine.settle(state)
    assert taken(notes) == ["a settle", "b settle"]
    assert features.is_closed
    assert machine.state == state


def test_without_room_features_take_back_and_the_same_entries_come_again() -> None:
    features, _, _, notes = noting()
    engine = MemoryEngine()
    machine = machine_with(features, engine)
    taken(notes)
    with full(engine), pytest.raises(ResourceExhausted):
        machine.apply(machine.state, [entry(1, ONE)])
    once = ["a begin", "b begin", "a apply 1", "b apply 1"]
    assert taken(notes) == [*once, "a take back", "b take back"]
    machine.apply(machine.state, [entry(1, ONE)])
    assert taken(notes) == once


@contextmanager
def full(engine: MemoryEngine) -> Iterator[None]:
    """Let transactions of ``engine`` fail at their end for want of room."""
    write = engine.write

    @contextmanager
    def failing() -> Iterator[object]:
        with write() as txn:
            yield txn
            raise ResourceExhausted("no room", resource="disk")

    with patch.object(engine, "write", failing):
        yield


# --- stored state ----------------------------------------------------------------------------------------------


def test_features_load_again_after_a_snapshot_and_one_that_cannot_is_told_so() -> None:
    features, first, _, notes = noting()
    machine = machine_with(features, MemoryEngine())
    state = machine.apply(machine.state, [entry(1, ONE)])
    taken(notes)
    first.damage, first.closed = DataLoss("one", "damaged"), True
    assert not features.is_closed
    machine.replaced()
    assert taken(notes) == ["a load 1", "a unread", "b load 1"]
    assert machine.state == state
    assert features.is_closed
    first.damage, first.closed = None, False
    machine.repaired()
    assert taken(notes) == ["a repaired 1", "b repaired 1"]
    assert features.is_closed, "it is changed on the loop alone"
    machine.mended()
    assert taken(notes) == ["a mended 1", "b mended 1"]
    assert not features.is_closed


def test_a_repair_that_left_damage_keeps_no_other_feature_from_loading() -> None:
    features, first, _, notes = noting()
    machine = machine_with(features, MemoryEngine())
    taken(notes)
    first.damage = DataLoss("one", "damaged")
    machine.repaired()
    assert taken(notes) == ["a repaired 0", "b repaired 0"]


def test_after_a_loss_was_accepted_features_load_at_each_settling_until_all_can() -> None:
    features, first, _, notes = noting()
    machine = machine_with(features, MemoryEngine())
    taken(notes)
    first.damage = DataLoss("one", "damaged")
    loss = AcceptLoss(ONE + bytes(12), is_key_right=True)
    state = machine.apply(machine.state, [entry(1, key("k"), controls=[loss])])
    machine.settle(state)
    assert taken(notes) == ["a begin", "b begin", "a settle", "b settle", "a load 1"]
    first.damage = None
    state = machine.apply(state, [entry(2, key("k"))])
    machine.settle(state)
    assert taken(notes)[-2:] == ["a load 2", "b load 2"]
    machine.settle(machine.apply(state, [entry(3, key("k"))]))
    assert taken(notes) == ["a begin", "b begin", "a settle", "b settle"]


def test_versions_in_no_order_of_time_begin_the_index_of_changes_anew_from_the_first_to_the_last_of_them() -> None:
    features, first, _, _ = noting()
    machine = machine_with(features, MemoryEngine())
    state, restarted = machine.state, []
    turns = {1: False, 2: True, 3: True, 4: False, 5: False}
    with patch.object(IndexWriter, "restart", lambda _self, last_ts, _items: restarted.append(last_ts)):
        for index, is_unordered in turns.items():
            first.unordered_from_here = is_unordered
            state = machine.apply(state, [entry(index, ONE)])
    assert restarted == AT[2:5]


# --- in flight -------------------------------------------------------------------------------------------------


def test_only_small_commands_with_a_key_in_m_are_asked_about() -> None:
    features, first, second, notes = noting(Effect.CLOSES)
    others = [LogicalKey(STAGED_SPACE + b"x"), LogicalKey(TABLE_SPACE + b"x"), key("k")]
    for keys in ([], *([each] for each in others), [ONE, TWO, key("k")]):
        assert not features.touched(keys)
    assert not notes
    assert features.touched([meta_key("other")]) == []
    assert features.touched([key("k"), ONE]) == [(first, Effect.CLOSES)]
    assert features.touched([ONE, TWO]) == [(first, Effect.CLOSES), (second, Effect.FOLLOWED)]


def test_the_strongest_effect_counts_for_a_batch() -> None:
    features, *_ = noting(Effect.ANSWERED_APPLIED, Effect.CLOSES)
    closing, answered, empty = Batch(META_GROUP.segment), Batch(META_GROUP.segment), Batch(META_GROUP.segment)
    closing.touch(features.touched([TWO]), Mutations())
    answered.touch(features.touched([ONE, TWO]), Mutations())
    answered.touch(features.touched([TWO]), Mutations())
    assert [(each.is_complete, each.is_answered_applied) for each in (empty, closing, answered)] == [
        (False, False),
        (True, False),
        (True, True),
    ]


def test_a_feature_follows_its_own_changes_by_the_batch() -> None:
    features, first, second, notes = noting()
    change = Mutations()
    batches = [[(first, change), (second, change)], [], [(first, change)], [(first, change), (first, change)]]
    features.follow(batches, 3)
    assert (first.followed, second.followed) == ((2, 2), (1, 0))
    taken(notes)
    features.follow(batches, 0, [second])
    assert taken(notes) == ["b follow 0 1"]
    second.is_new = True
    assert features.behind == [second]


def test_each_feature_adds_to_an_evaluation_in_its_turn_and_any_parts_a_run() -> None:
    features, *_ = noting()
    reader = VersionStore(MemoryEngine()).snapshot(AT[1])
    assert features.add_to(reader, AT[1], Evaluation(Mutations(), "x")).reply == "x a b"
    assert features.parts([key("k"), TWO])
    assert not features.parts([key("k")])


def test_what_one_feature_says_holds_for_all() -> None:
    features, first, second, _ = noting()
    assert not (features.is_moving or features.is_unordered)
    assert features.late_from(b"", b"z") is None
    assert features.broken() == []
    second.moving = second.unordered = True
    first.late, second.late = AT[4], AT[3]
    second.ranges = [(ONE, TWO)]
    assert features.is_moving
    assert features.is_unordered
    assert features.late_from(b"", b"z") == AT[3]
    assert features.broken() == [(ONE, TWO)]
    assert features.disruptions == 6


def test_a_disruption_is_told_once_when_all_parts_know_it() -> None:
    features, first, second, _ = noting()
    heard: list[int] = []
    features.on_disrupted = lambda: heard.append(features.disruptions)
    features.announce()
    features.announce()
    first.disrupted, second.disrupted = 4, 5
    features.settle()
    assert heard == [6]
    features.announce()
    features.announce()
    assert heard == [6, 9]


def test_the_first_closed_feature_tells_why_no_caller_is_served() -> None:
    features, _, second, _ = noting()
    assert features.progress == ""
    second.closed = True
    assert features.progress == "half of b"
