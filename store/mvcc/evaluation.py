"""A write before it happens: a pure function from the stored state to its changes.

A command is an :data:`Evaluate`: it reads a :class:`~cortado.store.mvcc.reader.Reader`, takes the timestamp of its
commit, and returns an :class:`Evaluation`, or raises a ``CortadoError`` to refuse. It touches no disk, no clock and no
network. So the node may run it against the newest state with all commands in flight laid over it, and may throw the
result away and run it again::

    evaluate(reader, commit_ts) -> Evaluation(mutations, reply, control, removal)
                                              |          |      |        `- for the log: stored items that go
                                              |          |      `- for the node: a new epoch, a higher ceiling, a loss
                                              |          `-------- for the caller: a frozen dataclass of the domain
                                              `------------------- for the log: final keys and payloads

A condition is a writer's belief about one key. It is checked against the same reader that the mutations were worked out
from, so a condition that held at evaluation still holds when its entry is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from cortado.errors import ConditionFailed, InvalidArgument
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.mutations import Changes
from cortado.store.mvcc.reader import Reader, Version
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.versions import Item


@dataclass(frozen=True, slots=True)
class BumpEpoch:
    """Begin ``epoch``: every later timestamp carries it."""

    epoch: int


@dataclass(frozen=True, slots=True)
class RaiseCeiling:
    """Timestamps up to ``ceiling`` may be given out ahead of the log; writes stay below it until then."""

    ceiling: Timestamp


@dataclass(frozen=True, slots=True)
class AcceptLoss:
    """The item under ``engine_key`` is damaged everywhere: give it up, on every replica alike.

    The key of a version may be another one's unless ``is_key_right``, and nothing takes its place then. Which
    remembered request is lost is unknown: all below ``request_floor`` are forgotten.
    """

    engine_key: bytes
    is_key_right: bool
    request_floor: bytes = b""


Control: TypeAlias = BumpEpoch | RaiseCeiling | AcceptLoss


@dataclass(frozen=True, slots=True)
class Cleared:
    """The first ``items_max`` stored items of ``[start, end)``, of any kind."""

    start: bytes
    end: bytes
    items_max: int


@dataclass(frozen=True, slots=True)
class Removal:
    """Stored items that go, before those of the same entry are put: no read can see them any more, or ever could.

    ``keys`` are the engine's, with their timestamps, ascending; one that is not there is passed over. It ``is_dense``
    if many of the items between the first and the last are among them. ``safepoints`` are those that hold from then on,
    if they rise: a write that has them puts their key, too.
    """

    keys: Sequence[bytes] = ()
    cleared: Sequence[Cleared] = ()
    safepoints: Safepoints | None = None
    is_dense: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The outcome of a command that was not refused. Empty ``mutations`` and neither ``control`` nor ``removal`` need
    no log entry.

    ``restored`` are versions at timestamps of their own, as they are stored: of a cluster that is being filled from a
    backup, and serves no callers. Evaluation does not see them before they are applied.
    """

    mutations: Changes
    reply: object
    control: Control | None = None
    removal: Removal | None = None
    restored: Sequence[Item] = ()


Evaluate: TypeAlias = Callable[[Reader, Timestamp], Evaluation]


@dataclass(frozen=True, slots=True)
class Absent:
    """The key must not exist."""


@dataclass(frozen=True, slots=True)
class Present:
    """The key must exist."""


@dataclass(frozen=True, slots=True)
class EtagIs:
    """The live version must be the one that was committed at ``etag``."""

    etag: Timestamp


@dataclass(frozen=True, slots=True)
class ValueIs:
    """The key must exist with exactly this payload (compare-and-set)."""

    value: bytes


Condition: TypeAlias = Absent | Present | EtagIs | ValueIs


def parse_etag(text: str, field: str = "condition.etag") -> EtagIs:
    """Return the condition that an etag's text asks for. Raises InvalidArgument naming ``field``."""
    try:
        return EtagIs(Timestamp.parse(text))
    except InvalidArgument as malformed:
        raise InvalidArgument(field, f"not an etag: {malformed.problem}", repr(text)) from malformed


def check_condition(condition: Condition | None, key_for_people: str, version: Version | None, *, row: int = 0) -> None:
    """Return if ``condition`` holds for the live ``version`` (None: absent); else raise ConditionFailed.

    ``key_for_people`` names the key in the error, ``row`` its place in a batch.
    """
    if condition is None:
        return
    actual = "absent" if version is None else str(version.ts)
    match condition:
        case Absent():
            holds, expected = version is None, "absent"
        case Present():
            holds, expected = version is not None, "present"
        case EtagIs(etag):
            holds, expected = version is not None and version.ts == etag, str(etag)
        case ValueIs(value):
            holds, expected = version is not None and version.payload == value, f"the given value of {len(value)} bytes"
            if version is not None:
                actual = f"another value of {len(version.payload)} bytes at {version.ts}"
        case _:
            assert_never(condition)
    if not holds:
        raise ConditionFailed(key=key_for_people, expected=expected, actual=actual, row=row)
