"""A write on its way through the node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, Protocol, TypeAlias

from cortado.errors import CortadoError, Internal, OutcomeUnknown
from cortado.store.clock.hlc import Clock
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.observe.measures import EntryTimes

EncodeReply: TypeAlias = Callable[[Timestamp, object], bytes]
"""From the commit timestamp and the domain's reply to the reply's bytes: remembered, and sent now and on a retry."""


NONE_REFUSED: Final[Mapping[int, CortadoError]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A write that is durable. ``reply`` is the result of ``encode_reply``, ``value`` the domain's reply.

    If the request was remembered from an earlier call (``repeated``), ``value`` is None and ``reply`` is that of the
    first call.
    """

    ts: Timestamp
    reply: bytes
    value: object = None
    repeated: bool = False


class RunResult(NamedTuple):
    """A run that is durable (:mod:`cortado.store.replica.write.run`): the write at place ``i`` was committed ``i``
    timestamps behind ``first``, unless it was ``refused``."""

    first: Timestamp
    replies: Sequence[bytes]
    refused: Mapping[int, CortadoError] = NONE_REFUSED


Outcome: TypeAlias = WriteResult | RunResult | CortadoError


class Place(Protocol):
    """A write's place while it is under way: in a queue, in the budget."""

    def leave(self) -> None:
        """Give the place back."""


@dataclass(slots=True, eq=False)
class Proposal:
    """One write. ``waiters`` counts the callers that still want the answer (a retry joins the first call).

    With its outcome it leaves its ``places``, and drops the request: a holder of the outcome does not hold the request,
    and all that hangs on it.

    It keeps when it came to stand in line and when it was evaluated, in monotonic milliseconds, and the times of the
    entry that carries it.
    """

    evaluate: Evaluate
    encode_reply: EncodeReply
    size_bytes: int
    request_id: bytes
    request_hash: bytes
    places: Sequence[Place] = ()
    waiters: int = 0
    while_closed: bool = False
    """Whether it is accepted while no caller is served."""
    frees: bool = False
    """Whether it makes room on a full disk."""
    is_own: bool = False
    """Whether it is the leader's own, which no reserve refuses."""
    outcome: Outcome | None = None
    proposed_ms: float = 0.0
    evaluated_ms: float = 0.0
    entry: EntryTimes | None = None
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)
    callers: ClassVar[int] = 1

    @property
    def request_ids(self) -> Sequence[bytes]:
        """Return its request's id, if it has one."""
        return (self.request_id,) if self.request_id else ()

    def tick(self, clock: Clock, physical_ms: int) -> Timestamp:
        """Return the timestamp to evaluate it at."""
        return clock.tick(physical_ms)

    def unknown(self, problem: str) -> OutcomeUnknown:
        """Return the outcome of a proposal that may have happened."""
        return OutcomeUnknown(problem, self.request_id.hex())

    async def answer(self, loop: asyncio.AbstractEventLoop) -> WriteResult:
        """Wait for the outcome. Each waiter has its own future: a cancelled one does not end the others."""
        if self.outcome is None:
            answered = loop.create_future()
            self._waiting.append(answered)
            await answered
        outcome = self.outcome
        if isinstance(outcome, WriteResult):
            return outcome
        assert isinstance(outcome, CortadoError)
        raise outcome

    def finish(self, outcome: Outcome) -> None:
        """Answer every waiter, once."""
        if self.outcome is None:
            self.outcome = outcome
            self.evaluate, self.encode_reply = _evaluated, _encoded
            for place in self.places:
                place.leave()
            self.places = ()
            for each in self._waiting:
                if not each.done():
                    each.set_result(None)


def _evaluated(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
    raise Internal("a write that has its outcome cannot be evaluated again")


def _encoded(_ts: Timestamp, _reply: object) -> bytes:
    raise Internal("a write that has its outcome has its reply")
