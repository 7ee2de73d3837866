"""A write on its way through the node, and the turn that carries it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from cortado.errors import CortadoError
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluate
from cortado.store.node.commands import Command
from cortado.store.node.overlay import Layer

EncodeReply: TypeAlias = Callable[[Timestamp, object], bytes]
"""From the commit timestamp and the domain's reply to the bytes that the caller gets, now and on a retry."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A write that is durable. ``reply`` is what ``encode_reply`` made, ``value`` the domain's reply.

    Where the request was remembered from an earlier call (``repeated``), ``value`` is None and ``reply`` is what the
    first call was answered.
    """

    ts: Timestamp
    reply: bytes
    value: object = None
    repeated: bool = False


Outcome: TypeAlias = WriteResult | CortadoError


@dataclass(slots=True, eq=False)
class Proposal:
    """One write. ``waiters`` counts the callers who still want the answer (a retry joins the first call)."""

    evaluate: Evaluate
    encode_reply: EncodeReply
    size_bytes: int
    request_id: bytes
    request_hash: bytes
    done: asyncio.Future[WriteResult]
    is_housekeeping: bool = False
    waiters: int = 0

    def finish(self, outcome: Outcome) -> None:
        """Answer every waiter."""
        if self.done.done():
            return
        if isinstance(outcome, CortadoError):
            self.done.set_exception(outcome)
            # A caller who went away must not leave an "exception was never retrieved" in the log.
            self.done.exception()
        else:
            self.done.set_result(outcome)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a proposal will be told. Where it ``rests``, it changes nothing (a refusal, a write without an effect), but
    was worked out from what is in flight, and may be given only once that is durable."""

    proposal: Proposal
    outcome: Outcome
    rests: bool


@dataclass(slots=True, eq=False)
class Turn:
    """What becomes one entry of the log: its commands in order of their timestamps, and the answers that wait for it.

    Once it ``is_closed`` (it begins an epoch), nothing more is evaluated until it is durable.
    """

    layer: Layer = field(default_factory=Layer)
    commands: list[Command] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    size_bytes: int = 0
    is_closed: bool = False
    ended: list[asyncio.Future[None]] = field(default_factory=list)

    @property
    def last_ts(self) -> Timestamp:
        return self.commands[-1].ts

    def end(self) -> None:
        """Tell those who wait for this turn that it is durable or was taken back."""
        for each in self.ended:
            if not each.done():
                each.set_result(None)
