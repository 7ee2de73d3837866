"""The first attempt of a plain call, and the same call without it: for any servers, both have the same result.

The core of the client runs over a world in which time moves by waiting alone. A script gives the outcome of each
attempt. Two connections get the same script: one makes first attempts the short way, the other never does. Both must
send the same bytes to the same places at the same times, give up the same attempts, end each call alike, and learn the
same of the cluster.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cortado.errors import (
    Cancelled,
    ClockOutOfBounds,
    ConditionFailed,
    CortadoError,
    Internal,
    NotLeader,
    OutcomeUnknown,
    QuotaExceeded,
    ResourceExhausted,
    Unavailable,
)
from cortado.proto.v1 import cluster_pb2, common_pb2, kv_pb2
from cortado.store.client.authorization import NOBODYS
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.runtime import ThreadLock, ThreadSignal
from cortado.store.client.call_queue import ENDED_BY_SERVER, REQUEST_BYTES_MAX
from cortado.store.client.channel import Channel, stays
from cortado.store.client.connection import Connection
from cortado.store.client.kv import AsyncKeyValue
from cortado.store.client.retry import Failed, Failure
from cortado.store.client.runtime import Environment, IsMoved, WireClosed
from cortado.store.client.stubs import Method, Stubs
from support.examples import examples

ADDRESSES: Final = ("127.0.0.1:1", "127.0.0.1:2")
_NEVER: Final = 1e9


@dataclass(frozen=True)
class Step:
    """The end of one attempt, ``after_s`` of waiting."""

    kind: str
    after_s: float
    error: CortadoError | None = None
    elects: int | None = None


@dataclass
class World:
    """Two nodes, a clock, and all that a client did."""

    steps: list[Step]
    full_from_s: float = _NEVER
    full_to_s: float = _NEVER
    now_s: float = 100.0
    leader: int = 0
    cluster_id: str = "c"
    log: list[tuple[Any, ...]] = field(default_factory=list)
    close: Callable[[], Coroutine[Any, Any, None]] | None = None

    def say(self, *what: Any) -> None:
        self.log.append((round(self.now_s, 6), *what))

    def next_step(self) -> Step:
        return self.steps.pop(0) if self.steps else Step("ok", 0.0)

    def header(self) -> common_pb2.Header:
        timestamp = common_pb2.Timestamp(epoch=1, wall_ms=round(self.now_s * 1_000))
        return common_pb2.Header(cluster_id=self.cluster_id, node_id="n", term=1, timestamp=timestamp)

    def reply(self, method: str) -> bytes:
        header = self.header()
        match method.rpartition("/")[2]:
            case "Put":
                return kv_pb2.KvPutResponse(header=header, etag=f"1.{header.timestamp.wall_ms}.0").SerializeToString()
            case "Get":
                pair = kv_pb2.KvPair(key=b"k", value=b"v", etag="1.1.1")
                return kv_pb2.KvGetResponse(header=header, pair=pair).SerializeToString()
            case "Delete":
                return kv_pb2.KvDeleteResponse(header=header, existed=True).SerializeToString()
            case "Clock":
                return cluster_pb2.ClockResponse(header=header, now=header.timestamp).SerializeToString()
        members = [cluster_pb2.MemberStatus(node_id=each, address=each, voter=True) for each in ADDRESSES]
        told = cluster_pb2.MembersResponse(header=header, members=members, leader=ADDRESSES[self.leader])
        return told.SerializeToString()


class Attempt:
    """One call on its way."""

    is_sent = True

    def __init__(self, world: World, method: str, step: Step, calls: Calls | None) -> None:
        self._world, self._method, self._step, self._calls = world, method, step, calls
        self._ends_s = world.now_s + step.after_s
        self._reply: bytes | Failure | None = None

    async def wait(self, wait_s: float) -> bool:
        world = self._world
        if self._reply is None and self._ends_s > world.now_s + wait_s:
            world.now_s += wait_s
            return False
        if self._reply is None:
            world.now_s = max(world.now_s, self._ends_s)
            await self._end()
        return True

    async def _end(self) -> None:
        world, step = self._world, self._step
        if step.elects is not None:
            world.leader = step.elects
        match step.kind:
            case "ok":
                self._reply = world.reply(self._method)
            case "other cluster":
                world.cluster_id += "c"
                self._reply = world.reply(self._method)
            case "garbage":
                self._reply = b"\xff\xff"
            case "refused":
                assert step.error is not None
                self._reply = Failure(step.error, answered=True, sent=True)
            case "broken":
                self._breaks(Failure(Unavailable("Socket closed"), answered=False, sent=True))
            case "lost":
                self._reply = Failure(Unavailable("of this call alone"), answered=False, sent=True)
            case "ended":
                self._breaks(ENDED_BY_SERVER)
            case "closed":
                assert world.close is not None
                await world.close()
                if self._reply is None:
                    self._breaks(Failure(Cancelled("the client was closed"), answered=False, sent=True))
            case "cancelled":
                raise asyncio.CancelledError

    def _breaks(self, failure: Failure) -> None:
        self._reply = failure
        if self._calls is not None:
            self._calls.close(failure)

    def fail(self, failure: Failure) -> None:
        self._reply = self._reply or failure

    def outcome(self) -> bytes:
        if isinstance(self._reply, Failure):
            raise Failed(self._reply)
        assert self._reply is not None
        return self._reply

    def give_up(self) -> bool:
        self._world.say("given up", self._method)
        return self._reply is None

    def when_ended(self, tell: Callable[[Attempt], None]) -> None:
        run(self.wait(_NEVER))
        tell(self)


class Calls:
    """The coalescing stream."""

    def __init__(self, world: World, address: str, on_end: Callable[[Any, Failure], None]) -> None:
        self._world, self._address, self._on_end = world, address, on_end
        self._ended: Failure | None = None
        self._last: Attempt | None = None

    def submit(self, method: str, request: bytes, timeout_s: float) -> Attempt:
        world = self._world
        if self._ended is not None:
            raise Failed(Failure(Unavailable("over"), answered=False, sent=False))
        if world.full_from_s <= world.now_s < world.full_to_s:
            raise Failed(Failure(ResourceExhausted("full", 20, "calls", 1), answered=False, sent=False))
        self._last = _attempt(world, "merged", self._address, method, request, timeout_s, self)
        return self._last

    def close(self, failure: Failure) -> None:
        if self._ended is None:
            self._ended = failure
            self._on_end(self, failure)
            if self._last is not None:
                self._last.fail(failure)


def _attempt(
    world: World, way: str, address: str, method: str, request: bytes, timeout_s: float, calls: Calls | None
) -> Attempt:
    is_data = "KeyValue/" in method
    world.say(way, address, method, request, round(timeout_s, 6))
    # A question beside a call takes none of its time.
    step = world.next_step() if is_data else Step("ok", 0.0 if method.endswith("Members") else 0.01)
    if is_data and step.kind == "ok" and address != ADDRESSES[world.leader]:
        step = Step("refused", step.after_s, NotLeader("not here", leader=ADDRESSES[world.leader]))
    return Attempt(world, method, step, calls)


class Wire:
    """A channel to one address."""

    def __init__(self, world: World, address: str) -> None:
        self._world, self._address = world, address
        self._is_closed = False

    def begin(self, method: Method, request: bytes, timeout_s: float) -> Attempt:
        self._check()
        return _attempt(self._world, "alone", self._address, method.name, request, timeout_s, None)

    def open_calls(self, on_end: Callable[[Any, Failure], None]) -> Calls:
        self._check()
        self._world.say("opens", self._address)
        return Calls(self._world, self._address, on_end)

    def open_stream(self, method: Method, request: bytes | None, timeout_s: float, is_moved: IsMoved) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        self._is_closed = True

    def _check(self) -> None:
        if self._is_closed:
            raise WireClosed


class Runtime:
    """Waiting moves the world's clock."""

    def __init__(self, world: World) -> None:
        draw = random.Random(7)
        self._world = world
        self.environment = Environment(
            monotonic_s=lambda: world.now_s, random=draw.random, random_bytes=lambda count: draw.randbytes(count)
        )

    def check(self) -> None: ...

    def wire(self, address: str, *_: Any) -> Wire:
        return Wire(self._world, address)

    def lock(self) -> ThreadLock:
        return ThreadLock()

    def signal(self) -> ThreadSignal:
        return ThreadSignal()

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        run(work)

    async def sleep(self, seconds: float) -> None:
        self._world.say("sleeps", round(seconds, 6))
        self._world.now_s += seconds

    def release(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None: ...

    async def give_way(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Asked:
    """A call of the application, ``pause_s`` after the one before."""

    kind: str
    timeout_s: float
    pause_s: float
    value: bytes


def told(world: World, asked: list[Asked]) -> list[Any]:
    """Return all results of the calls, and all that the client did and knows."""
    connection = Connection(list(ADDRESSES), Runtime(world))
    world.close = connection.close
    outcomes: list[Any] = []
    for each in asked:
        world.now_s += each.pause_s
        kv = AsyncKeyValue(connection, "n", timeout_s=each.timeout_s)
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "put": lambda kv=kv, each=each: kv.put(b"k", each.value),
            "put if absent": lambda kv=kv, each=each: kv.put(b"k", each.value, if_absent=True),
            "get": lambda kv=kv: kv.get(b"k"),
            "delete": lambda kv=kv: kv.delete(b"k"),
        }
        try:
            outcomes.append(run(calls[each.kind]()))  # type: ignore[arg-type]
        except (CortadoError, asyncio.CancelledError) as error:
            fields = error.fields() if isinstance(error, CortadoError) else ""
            outcomes.append((type(error).__name__, str(error), fields, repr(error.__cause__), repr(error.__context__)))
        outcomes.append(round(world.now_s, 6))
    known = connection._channels.known
    state = [(each.address, each._calls, each._was_reached, each._merged is None) for each in known.values()]
    ids = connection.request_ids
    run(connection.close())
    return [outcomes, world.log, state, connection._route.target, ids.newest, ids.is_recent]


_AFTER: Final = st.sampled_from([0.0, 0.001, 0.5, 0.79, 0.81, 1.3, 3.0, 40.0])
_ERRORS: Final = st.sampled_from(
    [
        ConditionFailed("k", "absent", "present"),
        NotLeader("not here", leader=ADDRESSES[1]),
        NotLeader("not here", leader=ADDRESSES[0]),
        NotLeader("none yet"),
        OutcomeUnknown("lost"),
        ResourceExhausted("busy", 30, "calls", 5),
        QuotaExceeded("used up", 40, "quota", 5),
        ClockOutOfBounds(5, 4, "ahead"),
        Unavailable("stopping"),
        Internal("a defect"),
    ]
)
_KINDS: Final = st.sampled_from(
    [
        "ok",
        "ok",
        "ok",
        "refused",
        "refused",
        "garbage",
        "broken",
        "lost",
        "ended",
        "cancelled",
        "closed",
        "other cluster",
    ]
)
_STEPS: Final = st.lists(st.builds(Step, _KINDS, _AFTER, _ERRORS, st.sampled_from([None, None, 0, 1])), max_size=12)
_ASKED: Final = st.lists(
    st.builds(
        Asked,
        st.sampled_from(["put", "put if absent", "get", "delete"]),
        st.sampled_from([0.02, 0.3, 0.8, 2.0, 10.0]),
        st.sampled_from([0.0, 0.1, 0.6, 6.0, 31.0]),
        st.sampled_from([b"", b"v", bytes(REQUEST_BYTES_MAX)]),
    ),
    min_size=1,
    max_size=8,
)


# The first call of a connection is one of its own, the second one opens the stream.
_OK: Final = Step("ok", 0.0)
_GET: Final = Asked("get", 0.8, 0.1, b"")
_NEVER_FULL: Final = (_NEVER, _NEVER)


@settings(max_examples=examples(250))
@example(steps=[_OK, _OK, Step("garbage", 0.0)], asked=[_GET] * 4, full=_NEVER_FULL)
@example(steps=[_OK, _OK, Step("lost", 0.79)], asked=[_GET] * 4, full=_NEVER_FULL)
@example(steps=[], asked=[_GET] * 4, full=(100.25, 100.35))
@given(steps=_STEPS, asked=_ASKED, full=st.sampled_from([(_NEVER, _NEVER), (100.0, 100.05), (100.1, 101.0)]))
def test_a_first_attempt_changes_nothing_but_what_a_call_costs(
    steps: list[Step], asked: list[Asked], full: tuple[float, float]
) -> None:
    short = told(World(list(steps), *full), asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Channel, "begin", lambda *_: None)
        general = told(World(list(steps), *full), asked)
    assert short == general


def test_what_is_compared_goes_the_short_way() -> None:
    answered = 0
    with pytest.MonkeyPatch.context() as patch:
        before = Channel.answered

        def count(channel: Channel) -> None:
            nonlocal answered
            answered += 1
            before(channel)

        patch.setattr(Channel, "answered", count)
        told(World([]), [Asked(kind, 2.0, 0.0, b"v") for kind in ("put", "get", "delete", "put if absent")])
    assert answered == 3  # The first one opens the stream.


def test_after_an_attempt_that_nobody_answered_none_begins_on_the_stream() -> None:
    world = World([_OK, _OK, Step("lost", 0.0)])
    channel, get = Channel(ADDRESSES[0], None, NOBODYS, Runtime(world), coalesce=True), Stubs.kv.Get
    for _ in range(2):
        run(channel.call(get, b"", 1.0, stays))
    begun = channel.begin(get, b"", 1.0)
    assert begun is not None
    with pytest.raises(Failed):
        run(channel.call(get, b"", 1.0, stays, begun))
    assert channel.begin(get, b"", 1.0) is None
    run(channel.call(get, b"", 1.0, stays))
    assert channel.begin(get, b"", 1.0) is not None
