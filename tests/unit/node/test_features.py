"""What a replica asks of its features, when, and how many times."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar
from unittest.mock import patch

import pytest

from cortado.errors import CortadoError, DataLoss, OutcomeUnknown, ResourceExhausted, Unavailable
from cortado.raft.log import Entry, Nothing
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import STAGED_SPACE, TABLE_SPACE, KeyRange, meta_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import AcceptLoss, Evaluation, Removal
from cortado.store.mvcc.mutations import Changes, Mutations
from cortado.store.mvcc.reader import Reader, logical_of
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import Item, encode_version
from cortado.store.node.applied_state import AppliedState
from cortado.store.node.batch import Batch
from cortado.store.node.changefeed.index import IndexWriter
from cortado.store.node.features.feature import Effect, Feature, Features
from cortado.store.node.features.registration import Registered
from cortado.store.node.limits import NodeLimits
from cortado.store.node.log_entry import LogEntry
from cortado.store.node.run import RunEffects
from cortado.store.node.run_submission import submit_run
from cortado.store.node.state_machine import StateMachine
from support.memory_engine import MemoryEngine
from support.node_world import World
from support.nodes import increment, key, put

ONE, TWO = meta_key("one"), meta_key("two")
AT = [Timestamp(0, wall_ms, 0) for wall_ms in range(10)]


class Noting(Feature):
    """Takes notes of its calls. It keeps the payload of ``kept``."""

    keys_max: ClassVar[int] = 2

    def __init__(self, name: str, kept: LogicalKey, notes: list[str], effect: Effect = Effect.FOLLOWED) -> None:
        self.called, self.kept, self.effect = name, kept, effect
        self.notes = notes
        self.damage: CortadoError | None = None
        self.closed = self.is_new = self.moving = self.unordered = False
        self.unordered_from_here = False
        self.disrupted = 3
        self.followed: tuple[int, int] = 0, 0
        self.late: Timestamp | None = None
        self.ranges: Sequence[KeyRange] = ()

    def note(self, hook: str) -> None:
        self.notes.append(f"{self.called} {hook}")

    @property
    def is_behind(self) -> bool:
        return self.is_new

    @property
    def is_closed(self) -> bool:
        return self.closed

    @property
    def is_unordered(self) -> bool:
        return self.unordered

    @property
    def is_moving(self) -> bool:
        return self.moving

    @property
    def disruptions(self) -> int:
        return self.disrupted

    def refusal(self) -> CortadoError:
        return Unavailable(f"{self.called} is closed")

    def load(self, newest: Reader, state: AppliedState) -> None:
        self.note(f"load {state.index}")
        newest.get(self.kept)
        if self.damage is not None:
            raise self.damage

    def unread(self) -> None:
        self.note("unread")

    def repaired(self, _newest: Reader, state: AppliedState) -> None:
        self.note(f"repaired {state.index}")
        if self.damage is not None:
            raise self.damage

    def mended(self, _newest: Reader, state: AppliedState) -> None:
        self.note(f"mended {state.index}")

    def add_to(self, _reader: Reader, _ts: Timestamp, evaluation: Evaluation) -> Evaluation:
        return Evaluation(evaluation.mutations, f"{evaluation.reply} {self.called}")

    def parts(self, keys: Sequence[LogicalKey]) -> bool:
        return self.kept in keys

    def touches(self, keys: Sequence[LogicalKey]) -> Effect:
        self.note("touches")
        return self.effect if self.kept in keys else Effect.NONE

    def follow(self, committed: Sequence[Changes], uncommitted: Sequence[Changes]) -> None:
        self.is_new = False
        self.followed = len(committed), len(uncommitted)
        self.note(f"follow {len(committed)} {len(uncommitted)}")

    def begin(self) -> None:
        self.note("begin")

    def apply(self, items: Sequence[Item], state: AppliedState) -> AppliedState:
        assert all(logical_of(each)[:1] == b"m" for each, _ in items)
        self.unordered = self.unordered_from_here
        self.note(f"apply {len(items)}")
        return state

    def take_back(self) -> None:
        self.note("take back")

    def settle(self) -> None:
        self.is_new = True
        self.note("settle")

    def announce(self) -> None:
        self.note("announce")

    def late_from(self, _start: bytes, _end: bytes) -> Timestamp | None:
        return self.late

    def broken(self) -> Sequence[KeyRange]:
        return self.ranges


def noting(*effects: Effect) -> tuple[Features, Noting, Noting, list[str]]:
    """Return two features, and their notes."""
    notes: list[str] = []
    first, second = Noting("a", ONE, notes, *effects[:1]), Noting("b", TWO, notes, *effects[1:])
    return Features([first, second]), first, second, notes


def taken(notes: list[str]) -> list[str]:
    found = notes[:]
    notes.clear()
    return found


def machine_with(features: Features, engine: MemoryEngine) -> StateMachine:
    with patch("cortado.store.node.state_machine.Registered", lambda *_arguments: features):
        return StateMachine(engine, VersionStore(engine))


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
    closing, answered, empty = Batch(), Batch(), Batch()
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


# --- in a group ------------------------------------------------------------------------------------------------


@contextmanager
def registered(effect: Effect) -> Iterator[list[Noting]]:
    """Register one more feature with every replica that is opened meanwhile."""
    made: list[Noting] = []

    class One(Registered):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            made.append(Noting("more", ONE, [], effect))
            Features.__init__(self, [*self.all, made[-1]])

    with patch("cortado.store.node.state_machine.Registered", One):
        yield made


def change_one(_reader: Reader, _ts: Timestamp) -> Evaluation:
    mutations = Mutations()
    mutations.put(ONE, b"")
    return Evaluation(mutations, None)


@pytest.mark.parametrize("effect", [Effect.FOLLOWED, Effect.CLOSES, Effect.ANSWERED_APPLIED])
def test_an_effect_says_when_the_next_command_is_evaluated_and_when_callers_are_answered(effect: Effect) -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        data, committed = world.places["n1"].data, n1.meta.log.durable_commit_index
        data.hold()
        first = asyncio.ensure_future(n1.meta.write(change_one))
        await world.until(lambda: n1.meta.log.durable_commit_index > committed, "it is committed")
        second = asyncio.ensure_future(n1.meta.write(put("k", b"v")))
        await world.sleep(1_000)
        assert first.done() == (effect < Effect.ANSWERED_APPLIED)
        assert second.done() == (effect < Effect.CLOSES)
        data.release()
        await asyncio.gather(first, second)

    with registered(effect):
        world.run(scenario)


def test_a_feature_follows_its_change_when_it_is_taken_committed_and_applied() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        assert made[0].notes[:2] == ["more load 0", "more follow 0 0"]
        await n1.meta.write(put("k", b"v"))
        await world.settled()
        data, more = world.places["n1"].data, made[0]
        data.hold()
        taken(more.notes)
        await n1.meta.write(change_one)
        assert taken(more.notes) == ["more touches", "more follow 0 1", "more follow 1 0"]
        await n1.meta.write(put("k", b"v"))
        assert taken(more.notes) == [], "another command's batch has none of its changes"
        await world.until(lambda: data.waiting > 0, "a transaction is held")
        data.release()
        await world.until(lambda: n1.meta.driver.pipeline.newest_in_flight is None, "all is applied")
        applied = ["more begin", "more apply 1", "more settle", "more follow 0 0", "more announce"]
        assert taken(more.notes)[: len(applied)] == applied

    with registered(Effect.FOLLOWED) as made:
        world.run(scenario)


def test_changes_in_flight_that_are_given_up_are_followed_no_more() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        world.cut_off("n1")
        writing = asyncio.ensure_future(n1.meta.write(change_one))
        await world.until(lambda: made[0].followed == (0, 1), "it is taken")
        with pytest.raises(OutcomeUnknown):
            await writing
        assert made[0].followed == (0, 0)

    with registered(Effect.FOLLOWED) as made:
        world.run(scenario)


def test_a_closed_feature_refuses_calls_and_writes_but_for_those_made_while_closed() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        replica, pipeline, more = n1.meta, n1.meta.driver.pipeline, made[0]
        more.closed = True
        await replica.write(put("k", b"v"))
        pipeline.repaired()
        with pytest.raises(Unavailable, match="more is closed"):
            await replica.write(put("k", b"w"))
        with pytest.raises(Unavailable, match="more is closed"):
            replica.reads.resolve(None)
        with pytest.raises(Unavailable, match="more is closed"):
            await replica.collector.pass_now()
        await replica.write(put("k", b"x"), while_closed=True)
        more.closed = False
        pipeline.repaired()
        await replica.write(put("k", b"y"))

    with registered(Effect.FOLLOWED) as made:
        world.run(scenario)


def test_features_add_to_a_write_and_part_a_run() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        assert (await n1.meta.write(change_one)).value == "None more"
        for number, written in enumerate((ONE, key("k"))):
            request_id = bytes(n1.process.clock.now()) + bytes([number] * 8)
            effects = RunEffects([written], [b"v"], [b""])
            run = submit_run(
                n1.meta,
                lambda _reader, _first, effects=effects: effects,
                size_bytes=10,
                request_ids=[request_id],
                hashes=[b"h" * 16],
            )
            await run.done
            assert (run.outcome is run.parting) == (written == ONE)

    with registered(Effect.FOLLOWED):
        world.run(scenario)


def test_reads_are_not_compared_while_a_feature_moves_values() -> None:
    world = World(limits=NodeLimits(examined_percent=100))

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        for moving in (True, False):
            for each in made:
                each.moving = moving
            await world.settled()
            examined = n2.meta.integrity.examiner.examined
            await n1.meta.write(increment("k"))
            await world.settled()
            assert (n2.meta.integrity.examiner.examined > examined) != moving

    with registered(Effect.FOLLOWED) as made:
        world.run(scenario)


def test_garbage_that_was_found_before_a_disruption_is_not_removed_after_it() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await n1.meta.collector.pass_now()
        removing = n1.meta.collector._removing(Removal(keys=[key("k") + bytes(12)]))
        await n1.meta.write(removing)
        made[0].disrupted += 1
        with pytest.raises(Unavailable, match="found before a restore"):
            await n1.meta.write(removing)

    with registered(Effect.FOLLOWED) as made:
        world.run(scenario)


def test_changes_before_a_restores_begin_or_end_are_recent_no_more() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        before = (await n1.meta.write(put("k", b"v"))).ts
        await n1.meta.write(put("k", b"w"))
        recent = n1.meta.driver.feed.recent
        await world.until(lambda: bool(recent.all_since(before)), "both are applied")
        n1.meta.features.restore.on_change()
        assert recent.all_since(before) is None

    world.run(scenario)
