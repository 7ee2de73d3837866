"""A node against a dictionary: any mix of writes, refusals, retries, full disks, crashes and epochs, at any instant.

Acknowledged writes must be there, once, at their timestamp; refused ones must not; and a retry of a write without an
answer tells its outcome. The dictionary is told of each write when it is acknowledged.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import ConditionFailed, InvalidArgument, ResourceExhausted
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.host.host import Host
from cortado.store.mvcc.evaluation import Absent, Evaluation, check_condition
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.controls import epoch_after
from cortado.store.replica.write.proposals import WriteResult
from support.examples import examples
from support.nodes import NodeDisk, SetClock, increment, key, make_node, read, run

NAMES = "abc"
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("increment"), st.sampled_from(NAMES)),
        st.tuples(st.just("burst"), st.sampled_from(NAMES)),
        st.tuples(st.just("insert"), st.sampled_from(NAMES)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES)),
        st.tuples(st.just("retry"), st.integers(0, 5)),
        st.tuples(st.just("pause"), st.just("")),
        st.tuples(st.just("settle"), st.just("")),
        st.tuples(st.just("no room"), st.just("")),
        st.tuples(st.just("clock"), st.integers(-2_000, 2_000)),
        st.tuples(st.just("bump"), st.just("")),
        st.tuples(st.just("restart"), st.just("")),
    ),
    max_size=40,
)


def insert(name: str) -> object:
    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        check_condition(Absent(), name, reader.get(key(name)))
        mutations = Mutations()
        mutations.put(key(name), b"100")
        return Evaluation(mutations, 100)

    return evaluate


def delete(name: str) -> object:
    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        mutations = Mutations()
        if reader.get(key(name)) is not None:
            mutations.delete(key(name))
        return Evaluation(mutations, None)

    return evaluate


@dataclass
class World:
    """The node, its requests, and its acknowledgements: name and value by timestamp."""

    disk: NodeDisk = field(default_factory=NodeDisk)
    clock: SetClock = field(default_factory=SetClock)
    acknowledged: dict[Timestamp, tuple[str, int | None]] = field(default_factory=dict)
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    calls: list[tuple[str, bytes, asyncio.Future[WriteResult]]] = field(default_factory=list)
    answers: dict[bytes, tuple[Timestamp, bytes]] = field(default_factory=dict)
    ids: int = 0

    def ask(self, node: Host, kind: str, name: str, request_id: bytes = b"") -> None:
        if not request_id:
            self.ids += 1
            request_id = bytes(node.meta.read_ts()) + self.ids.to_bytes(8)
        self.asked.append((kind, name, request_id))
        evaluate = {"increment": increment, "insert": insert, "delete": delete}[kind](name)
        write = node.meta.write(
            evaluate,
            request_id=request_id,
            request_hash=f"{kind} {name}".encode().ljust(16),
            encode_reply=lambda ts, value: str(value).encode(),
        )
        self.calls.append((name, request_id, asyncio.ensure_future(write)))

    async def settle(self) -> None:
        """Take the answers of everything asked."""
        self.disk.release()
        calls, self.calls = self.calls, []
        outcomes = await asyncio.gather(*(call for _, _, call in calls), return_exceptions=True)
        for (name, request_id, _), outcome in zip(calls, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                assert isinstance(outcome, ConditionFailed | ResourceExhausted | InvalidArgument), repr(outcome)
                continue
            answer = (outcome.ts, outcome.reply)
            assert self.answers.setdefault(request_id, answer) == answer, "one effect, one answer"
            value = None if outcome.reply == b"None" else int(outcome.reply)
            assert self.acknowledged.setdefault(outcome.ts, (name, value)) == (name, value)

    async def check(self, node: Host) -> None:
        """Check that the node's state is the acknowledged one, now and at every timestamp; now, also before it is
        applied."""
        self._check_now(node)
        await node.meta.reads.caught_up()
        self._check_now(node)
        self._check_always(node)

    def _check_now(self, node: Host) -> None:
        state = dict(self.acknowledged[ts] for ts in sorted(self.acknowledged))
        for each in NAMES:
            expected = state.get(each)
            assert read(node, each) == (None if expected is None else str(expected).encode())

    def _check_always(self, node: Host) -> None:
        state: dict[str, int | None] = {}
        previous = ZERO
        for ts in sorted(self.acknowledged):
            name, value = self.acknowledged[ts]
            assert ts > previous
            assert value is None or value in (100, (state.get(name) or 0) + 1), "worked out from the one before"
            state[name], previous = value, ts
            for each in NAMES:
                expected = state.get(each)
                assert read(node, each, ts) == (None if expected is None else str(expected).encode())


async def play(operations: list[tuple[str, str | int]]) -> None:
    world = World()
    limits = NodeLimits(batch_commands_max=3)
    node = make_node(world.disk, clock=world.clock, limits=limits)
    await node.start()
    bumps: list[asyncio.Future[WriteResult]] = []
    for kind, argument in operations:
        match kind:
            case "retry":
                if world.asked:
                    world.ask(node, *world.asked[-1 - int(argument) % len(world.asked)])
            case "burst":
                # More than one batch takes, so that some are evaluated on top of a batch being stored.
                for _ in range(5):
                    world.ask(node, "increment", str(argument))
            case "pause":
                world.disk.hold()
                await asyncio.sleep(0.001)
            case "settle":
                await world.settle()
            case "no room":
                world.disk.failures.append(ResourceExhausted("no room", 1, "map"))
            case "clock":
                world.clock.now_ms += int(argument)
            case "bump":
                bumps.append(asyncio.ensure_future(node.meta.write(epoch_after(node.process.clock.epoch))))
            case "restart":
                await world.settle()
                world.disk.failures.clear()
                await node.stop()
                node = make_node(world.disk, clock=world.clock, limits=limits)
                await node.start()
                await world.check(node)
            case _:
                world.ask(node, kind, str(argument))
    await world.settle()
    await asyncio.gather(*bumps, return_exceptions=True)
    await world.check(node)
    await node.stop()


@settings(max_examples=examples(100))
@given(OPERATIONS)
def test_a_node_does_what_a_dictionary_does(operations: list[tuple[str, str | int]]) -> None:
    run(lambda: play(operations))
