"""Nothing was changed, and the request as it stands will not work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from cortado.errors.root import CortadoError


@dataclass(eq=False)
class DidNotHappen(CortadoError):
    """Nothing was changed, and the same request will be refused again."""


@dataclass(eq=False)
class InvalidArgument(DidNotHappen):
    """Bad input. ``field`` is a path in the request or document, ``problem`` says what is wrong and the limit."""

    field: str
    problem: str
    value: str = ""

    code: ClassVar[str] = "INVALID_ARGUMENT"
    reason: ClassVar[str] = "INVALID_ARGUMENT"

    def message(self) -> str:
        got = f" (got {self.value})" if self.value else ""
        return f"{self.field}: {self.problem}{got}" if self.field else f"{self.problem}{got}"


@dataclass(eq=False)
class KeyTooLong(InvalidArgument):
    """An encoded key is over the engine's limit. ``field`` names the table's key, the index or the key-value key."""

    length: int = 0
    limit: int = 0
    reason: ClassVar[str] = "KEY_TOO_LONG"


@dataclass(eq=False)
class TooLarge(InvalidArgument):
    """A document, value, batch or message is over its limit (``length`` and ``limit`` in bytes or rows, as said)."""

    length: int = 0
    limit: int = 0
    reason: ClassVar[str] = "TOO_LARGE"


@dataclass(eq=False)
class InvalidDocument(InvalidArgument):
    """A document does not fit its schema; ``field`` is the path in it, ``row`` its place in the batch (from 0)."""

    row: int = 0
    reason: ClassVar[str] = "INVALID_DOCUMENT"


@dataclass(eq=False)
class InvalidSchema(InvalidArgument):
    """An Avro schema that is malformed, or that Cortado refuses; ``field`` is the path in the schema."""

    reason: ClassVar[str] = "INVALID_SCHEMA"


@dataclass(eq=False)
class InvalidFilter(InvalidArgument):
    """A filter that does not parse, or does not fit the table; ``position`` counts characters from 0."""

    position: int = 0
    reason: ClassVar[str] = "INVALID_FILTER"


@dataclass(eq=False)
class InvalidPageToken(InvalidArgument):
    """A page token that is malformed, or was given out for another request."""

    reason: ClassVar[str] = "INVALID_PAGE_TOKEN"


@dataclass(eq=False)
class TimestampInFuture(InvalidArgument):
    """A read above what the clock allows. ``value`` is its timestamp and ``now`` the server's, as text."""

    now: str = ""
    reason: ClassVar[str] = "TIMESTAMP_IN_FUTURE"

    def message(self) -> str:
        return (
            f"{self.field}: {self.problem}: it means {_time_of(self.value)}, and the server's time is "
            f"{_time_of(self.now)} (timestamps {self.value} and {self.now})"
        )


@dataclass(eq=False)
class NotFound(DidNotHappen):
    """``kind`` is database, table, index, field, subject, schema, namespace, document, dropped table, dropped database,
    or dropped (of a number). ``at`` is the timestamp as text, where it is of an earlier time that there is none."""

    kind: str
    name: str
    at: str = ""

    code: ClassVar[str] = "NOT_FOUND"
    reason: ClassVar[str] = "NOT_FOUND"

    def message(self) -> str:
        return f"no {self.kind} {self.name}" + (f" at {_time_of(self.at)}" if self.at else "")


@dataclass(eq=False)
class AlreadyExists(DidNotHappen):
    """A database, table or index of that name exists."""

    kind: str
    name: str

    code: ClassVar[str] = "ALREADY_EXISTS"
    reason: ClassVar[str] = "ALREADY_EXISTS"

    def message(self) -> str:
        return f"{self.kind} {self.name} already exists"


@dataclass(eq=False)
class IncompatibleSchema(DidNotHappen):
    """A schema version was refused. ``incompatibilities`` are dictionaries of path, kind, message and version."""

    subject: str
    mode: str
    incompatibilities: list[dict[str, Any]]

    code: ClassVar[str] = "FAILED_PRECONDITION"
    reason: ClassVar[str] = "INCOMPATIBLE_SCHEMA"

    def message(self) -> str:
        lines = [f"schema is not {self.mode} compatible with subject {self.subject}:"]
        lines += [f"  version {i.get('version')}, {i.get('path')}: {i.get('message')}" for i in self.incompatibilities]
        return "\n".join(lines)


@dataclass(eq=False)
class SnapshotTooOld(DidNotHappen):
    """A read below the safepoint: what it needs may have been collected. Both timestamps as text.

    The message has the times that they are of, and how more is kept from now on.
    """

    read_ts: str
    safepoint: str

    code: ClassVar[str] = "OUT_OF_RANGE"
    reason: ClassVar[str] = "SNAPSHOT_TOO_OLD"

    def message(self) -> str:
        return (
            f"{_time_of(self.read_ts)} is too long ago: versions from before {_time_of(self.safepoint)} may have been "
            f"collected (timestamp {self.read_ts}, oldest readable {self.safepoint}). "
            "Keep more from now on by 'cortado table alter TABLE --retention 7d', or by the servers' setting retention"
        )


def _time_of(timestamp: str) -> str:
    """The wall time of a timestamp's text, or that text where it has none that a calendar knows."""
    try:
        wall_ms = int(timestamp.split(".")[1])
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=wall_ms)
    except (ValueError, IndexError, OverflowError):
        return timestamp
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(eq=False)
class HoldExpired(DidNotHappen):
    """The hold has ended, or never was: versions at its timestamp may have been collected. Its id as text."""

    hold_id: str

    code: ClassVar[str] = "FAILED_PRECONDITION"
    reason: ClassVar[str] = "HOLD_EXPIRED"

    def message(self) -> str:
        return f"the hold {self.hold_id} has ended, or there never was one: acquire another, and begin again"


@dataclass(eq=False)
class Restoring(DidNotHappen):
    """The cluster takes the backup of ``timestamp``, and serves no other call until that restore has ended."""

    restore_id: str
    timestamp: str

    code: ClassVar[str] = "FAILED_PRECONDITION"
    reason: ClassVar[str] = "RESTORING"

    def message(self) -> str:
        return f"the cluster takes the backup of {self.timestamp}; other calls are refused until {self.restore_id} ends"


@dataclass(eq=False)
class IndexNotReady(DidNotHappen):
    """A read through an index that is being built, could not be built, or was ready only at ``ready_ts``."""

    index: str
    problem: str
    ready_ts: str = ""

    code: ClassVar[str] = "FAILED_PRECONDITION"
    reason: ClassVar[str] = "INDEX_NOT_READY"

    def message(self) -> str:
        return f"index {self.index} {self.problem}"


@dataclass(eq=False)
class Unauthenticated(DidNotHappen):
    """Roles are on, and the caller has shown no credential, or none that is known. The credential is never quoted."""

    problem: str = ""

    code: ClassVar[str] = "UNAUTHENTICATED"
    reason: ClassVar[str] = "UNAUTHENTICATED"

    def message(self) -> str:
        return f"not authenticated: {self.problem}"


@dataclass(eq=False)
class PermissionDenied(DidNotHappen):
    """``principal`` lacks a role: ``needed`` says which one, on ``resource``. Whether that exists, it does not say."""

    principal: str
    needed: str
    resource: str

    code: ClassVar[str] = "PERMISSION_DENIED"
    reason: ClassVar[str] = "PERMISSION_DENIED"

    def message(self) -> str:
        return f"principal {self.principal} may not do this: {self.needed} of {self.resource} is needed"


@dataclass(eq=False)
class Unsupported(DidNotHappen):
    """Something Cortado does not do, said precisely; never a silent approximation."""

    feature: str
    problem: str = ""

    code: ClassVar[str] = "UNIMPLEMENTED"
    reason: ClassVar[str] = "UNSUPPORTED"

    def message(self) -> str:
        return f"{self.feature} is not supported" + (f": {self.problem}" if self.problem else "")
