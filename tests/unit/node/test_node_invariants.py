"""The node's invariants, each with the state that it guards broken by hand. The node stops, and answers no caller from
impossible state."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from cortado.errors import Internal
from cortado.raft.log import Entry, Nothing
from cortado.store.clock.hlc import Clock
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.host.host import Host
from cortado.store.mvcc.store import VersionStore
from cortado.store.process.storage_thread import Done, Job
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.read.read_index import ReadIndex
from cortado.store.replica.write.batch import Forgotten
from cortado.store.replica.write.overlay import Layer
from cortado.store.replica.write.pipeline import Pipeline
from cortado.store.replica.write.request_table.forgetting import Forgetting
from support.memory_engine import MemoryEngine
from support.nodes import NOW_MS, SetClock, put, run, running_node

Break = Callable[[Host, pytest.MonkeyPatch], None]
FUTURE: Final = Timestamp(9, 0, 0)


def broken(what: str) -> pytest.RaisesExc[Internal]:
    return pytest.raises(Internal, match=f"it does not hold that {what}")


async def assert_stopped(node: Host, what: str) -> None:
    """Check that the node ends, and says that it is for want of ``what``."""
    failure = await asyncio.wait_for(node.process.life.failed(), 10)
    assert isinstance(failure, Internal)
    assert re.match(f"it does not hold that {what}", failure.problem), failure.problem


def store_a_state_of_earlier(_node: Host, patch: pytest.MonkeyPatch) -> None:
    apply = StateMachine.apply
    patch.setattr(StateMachine, "apply", lambda *arguments: replace(apply(*arguments), last_ts=ZERO))


def store_a_floor_of_earlier(node: Host, patch: pytest.MonkeyPatch) -> None:
    apply = StateMachine.apply
    node.meta.driver.pipeline.applied = replace(node.meta.driver.applied, request_floor=b"\1" * 20)
    patch.setattr(StateMachine, "apply", lambda *arguments: replace(apply(*arguments), request_floor=bytes(20)))


def apply_what_is_not_committed(_node: Host, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("cortado.raft.core.Core.durable_commit_index", property(lambda _core: 0))
    patch.setattr("cortado.raft.core.Core.appliable_index", property(lambda core: core.journal.durable_index))


def turn_the_clock_back(node: Host, _patch: pytest.MonkeyPatch) -> None:
    node.process.clock._last = ZERO
    node.process.clock._read_physical_ms = lambda: NOW_MS - 1_000


def lose_a_layer(node: Host, _patch: pytest.MonkeyPatch) -> None:
    node.meta.driver.pipeline._layers.push(Layer())


def count_bytes_twice(_node: Host, patch: pytest.MonkeyPatch) -> None:
    append = Pipeline.append_open

    def twice(self: Pipeline) -> None:
        append(self)
        self._appended_bytes += self._appended[-1].size_bytes

    patch.setattr(Pipeline, "append_open", twice)


def acknowledge_the_future(node: Host, _patch: pytest.MonkeyPatch) -> None:
    node.meta.driver.pipeline.acknowledged_ts = FUTURE


def hand_out_changes_of_the_past(node: Host, _patch: pytest.MonkeyPatch) -> None:
    node.meta.driver.feed.position = FUTURE


def store_what_nobody_gave(node: Host, _patch: pytest.MonkeyPatch) -> None:
    writing = node.meta.driver.writer
    submit = writing._thread.submit

    def forgetful(job: Job, done: Done, *, is_small: bool) -> None:
        writing._work = []
        submit(job, done, is_small=is_small)

    writing._thread.submit = forgetful


BREAKS: Final[dict[str, Break]] = {
    "the state that was stored is the next one": store_a_state_of_earlier,
    "the state that was stored is the next one: .*request_floor": store_a_floor_of_earlier,
    "what is applied is committed": apply_what_is_not_committed,
    "timestamps rise along the log": turn_the_clock_back,
    "each batch that is not applied has its layer": lose_a_layer,
    "no bytes are in flight where no batch is": count_bytes_twice,
    "commits are acknowledged in their order": acknowledge_the_future,
    "changes are handed out in their order": hand_out_changes_of_the_past,
    "the thread reports the work that it was given": store_what_nobody_gave,
}


@pytest.mark.parametrize(("what", "break_it"), BREAKS.items(), ids=BREAKS)
def test_a_node_whose_state_cannot_be_stops(what: str, break_it: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_node(clock=SetClock()) as node:
            await node.meta.write(put("k", b"v"))
            await node.meta.reads.caught_up()
            break_it(node, monkeypatch)
            write = asyncio.ensure_future(node.meta.write(put("k", b"w")))
            await assert_stopped(node, what)
            await asyncio.wait_for(asyncio.gather(write, return_exceptions=True), 10)
            monkeypatch.undo()

    run(scenario)


def test_a_read_ahead_of_the_log_is_not_served_above_the_ceiling() -> None:
    async def scenario() -> None:
        async with running_node() as node:

            async def forget(_ceiling: Timestamp) -> None:
                """Leave the ceiling as it is."""

            node.meta.reads._raise_ceiling = forget
            with broken("the ceiling covers what is read ahead of the log"):
                await node.meta.reads.resolve(node.process.clock.now())

    run(scenario)


def test_a_read_ahead_of_the_log_is_not_served_above_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_node() as node:
            monkeypatch.setattr(Clock, "update", lambda _clock, _at: None)
            at = node.process.clock.last
            with broken("later writes sort above what is read"):
                await node.meta.reads.resolve(Timestamp(at.epoch, at.wall_ms + 100, 0))

    run(scenario)


def test_a_leader_begins_above_the_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_node() as node:
            monkeypatch.setattr(Clock, "observe_log", lambda _clock, _ts: None)
            node.meta.driver.pipeline.applied = replace(node.meta.driver.applied, ceiling=FUTURE)
            with broken("a leader begins above the ceiling"):
                node.meta.driver._lead()
            monkeypatch.undo()

    run(scenario)


class RoundOfOne:
    """The part of a log that rounds look at: each is confirmed at once."""

    durable_commit_index = 5
    last = (5, 1)
    confirmed_round = 1

    def read_round(self) -> int:
        return 1


def test_a_read_sees_what_was_acknowledged_before_its_round() -> None:
    async def scenario() -> None:
        rounds = ReadIndex(asyncio.get_running_loop(), RoundOfOne(), lambda _answer: None)
        waiting = rounds.ask()
        rounds.begin(Timestamp(0, 7, 0))
        with broken("a read sees what was acknowledged before its round"):
            rounds.settle(Timestamp(0, 6, 0))
        assert not waiting.done()

    run(scenario)


@pytest.mark.parametrize("entries", [[Entry(2, 1, Nothing())], [Entry(1, 2, Nothing()), Entry(2, 1, Nothing())]])
def test_an_entry_is_applied_behind_the_last_one_or_nothing_is(entries: list[Entry]) -> None:
    engine = MemoryEngine()
    machine = StateMachine(engine, VersionStore(engine), META_GROUP)
    with broken("an entry is applied behind the last one"):
        machine.apply(machine.state, entries)
    assert machine.load() == AppliedState()


@pytest.mark.parametrize(
    "less",
    [
        {"index": 4},
        {"term": 1},
        {"last_ts": ZERO},
        {"ceiling": ZERO},
        {"epoch_began": ZERO},
        {"request_floor": b""},
        {"changed_ts": ZERO},
    ],
)
def test_a_state_of_later_has_nothing_that_only_rises_below_the_one_before(less: dict[str, object]) -> None:
    ts = Timestamp(1, 2, 3)
    state = AppliedState(5, 2, ts, ts, ts, b"\1" * 20, changed_ts=ts)
    assert state.is_after(state)
    assert replace(state, index=6, term=3, last_ts=FUTURE).is_after(state)
    assert not replace(state, **less).is_after(state)
    assert state.is_after(replace(state, **less))


def test_an_applied_state_does_not_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MemoryEngine()
    machine = StateMachine(engine, VersionStore(engine), META_GROUP)
    monkeypatch.setattr(
        StateMachine,
        "_apply_entry",
        lambda _machine, _txn, _index, _state, entry: AppliedState(entry.index, entry.term),
    )
    state = AppliedState(request_floor=b"\1" * 20)
    with broken("what an applied state says does not fall"):
        machine.apply(state, [Entry(1, 1, Nothing())])


def test_a_floor_of_requests_is_above_the_ones_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_node() as node:
            floor = node.meta.driver.applied.request_floor
            monkeypatch.setattr(Forgetting, "_choose", lambda *_: replace(Forgotten(b"", 0, 0), floor=floor))
            write = asyncio.ensure_future(
                node.meta.write(put("k", b"v"), request_id=bytes(node.process.clock.last) + b"\1" * 8)
            )
            await assert_stopped(node, "a floor of requests is above the ones before it")
            await asyncio.wait_for(asyncio.gather(write, return_exceptions=True), 10)

    run(scenario)
