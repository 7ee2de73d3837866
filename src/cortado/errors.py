"""The one error tree.

Every refusal that Cortado makes is one of these, on the server, in the client, on the command line and in Spark::

    CortadoError
    ├── DidNotHappen ............ nothing was changed, and the request as it stands will not work
    │   ├── InvalidArgument ..... bad input: names the field, the value and the limit
    │   │   ├── KeyTooLong, TooLarge, InvalidDocument, InvalidSchema, InvalidFilter, InvalidPageToken
    │   │   └── TimestampInFuture
    │   ├── NotFound, AlreadyExists
    │   ├── IncompatibleSchema .. every incompatibility, each with its path
    │   ├── SnapshotTooOld, LeaseExpired
    │   ├── Restoring ........... of a cluster that takes a backup
    │   ├── IndexNotReady
    │   ├── Unauthenticated, PermissionDenied
    │   └── Unsupported
    ├── Conflict ................ nothing was changed; read again and retry from the start
    │   ├── ConditionFailed ..... a stale etag, a key that exists or does not
    │   │   └── OutOfBounds ..... a counter that would leave its bounds
    │   ├── UniqueViolation
    │   ├── WriteConflict
    │   └── TransactionAborted
    ├── TryAgain ................ nothing was changed; the same request may work later
    │   ├── Unavailable, NotLeader
    │   └── ResourceExhausted ... with the delay to wait
    │       └── QuotaExceeded ... of a principal, a database or a namespace
    ├── OutcomeUnknown .......... it may or may not have happened, and may yet
    ├── DeadlineExceeded ........ of a read (a write's is OutcomeUnknown)
    ├── Cancelled
    └── Broken .................. an operator is needed
        ├── DataLoss, DataDirectoryError, ClockOutOfBounds, PeerRefused
        └── Internal

An error carries fields, not prose: ``WriteConflict(key=..., start_ts=..., conflict_ts=...)``. Its ``reason`` is stable
and travels in the status details of a gRPC reply (``google.rpc.ErrorInfo``): :mod:`cortado.error_metadata` has the one
mapping, used by the server and the client alike.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

DOMAIN = "cortado.v1"


@dataclass(eq=False)
class CortadoError(Exception):
    """Root of the tree. ``code`` is the canonical gRPC code's name, ``reason`` the stable machine-readable name."""

    code: ClassVar[str] = "INTERNAL"
    reason: ClassVar[str] = "CORTADO_ERROR"

    def __str__(self) -> str:
        return self.message()

    def message(self) -> str:
        """One sentence for a person: what was wrong, with the value and the limit."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self.fields().items() if value not in (None, ""))
        return f"{self.reason}: {shown}" if shown else self.reason

    def fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __reduce__(self) -> tuple[Any, ...]:
        # Spark carries errors between processes; a dataclass exception does not pickle by its positional args.
        from cortado.error_metadata import from_metadata, to_metadata

        return (from_metadata, (self.reason, to_metadata(self)))


# --- it did not happen -----------------------------------------------------------------------------------------


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
    """A read above what the clock allows. ``now`` is the server's timestamp as text."""

    now: str = ""
    reason: ClassVar[str] = "TIMESTAMP_IN_FUTURE"


@dataclass(eq=False)
class NotFound(DidNotHappen):
    """``kind`` is database, table, index, field, subject, schema, namespace, document, dropped table, dropped database,
    or dropped (of a number)."""

    kind: str
    name: str

    code: ClassVar[str] = "NOT_FOUND"
    reason: ClassVar[str] = "NOT_FOUND"

    def message(self) -> str:
        return f"no {self.kind} {self.name}"


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
    """A read below the safepoint: what it needs may have been collected. Both timestamps as text."""

    read_ts: str
    safepoint: str

    code: ClassVar[str] = "OUT_OF_RANGE"
    reason: ClassVar[str] = "SNAPSHOT_TOO_OLD"

    def message(self) -> str:
        return f"timestamp {self.read_ts} is below the oldest readable timestamp {self.safepoint}"


@dataclass(eq=False)
class LeaseExpired(DidNotHappen):
    """A lease that has ended, or never was: what is read at its timestamp may have been collected. Its id as text."""

    lease_id: str

    code: ClassVar[str] = "FAILED_PRECONDITION"
    reason: ClassVar[str] = "LEASE_EXPIRED"

    def message(self) -> str:
        return f"the lease {self.lease_id} has ended, or there never was one: acquire another, and begin again"


@dataclass(eq=False)
class Restoring(DidNotHappen):
    """The cluster takes the backup of ``timestamp``, and serves nobody until the restore of that id has ended."""

    restore_id: str
    timestamp: str

    code: ClassVar[str] = "FAILED_PRECONDITION"
    reason: ClassVar[str] = "RESTORING"

    def message(self) -> str:
        return f"the cluster takes the backup of {self.timestamp}, and serves nobody until {self.restore_id} ends"


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


# --- conflicts -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Conflict(CortadoError):
    """Nothing was changed. What the caller believed is no longer true: read again and retry from the start."""

    code: ClassVar[str] = "ABORTED"
    reason: ClassVar[str] = "CONFLICT"


@dataclass(eq=False)
class ConditionFailed(Conflict):
    """A condition on ``key`` did not hold: ``expected`` and ``actual`` are "absent", "present", or an etag."""

    key: str
    expected: str
    actual: str
    row: int = 0
    reason: ClassVar[str] = "CONDITION_FAILED"

    def message(self) -> str:
        return f"{self.key}: expected {self.expected}, found {self.actual}"


@dataclass(eq=False)
class OutOfBounds(ConditionFailed):
    """An add to ``key`` would come to ``actual``, and ``expected`` is the bound, such as "at least 0"."""

    reason: ClassVar[str] = "OUT_OF_BOUNDS"

    def message(self) -> str:
        return f"{self.key}: would be {self.actual}, and must be {self.expected}"


@dataclass(eq=False)
class UniqueViolation(Conflict):
    """``values`` of the unique ``index`` belong to the row ``existing_key`` already."""

    index: str
    values: str
    key: str
    existing_key: str
    row: int = 0

    code: ClassVar[str] = "ALREADY_EXISTS"
    reason: ClassVar[str] = "UNIQUE_VIOLATION"

    def message(self) -> str:
        return f"unique index {self.index}: {self.values} of row {self.key} already belongs to row {self.existing_key}"


@dataclass(eq=False)
class WriteConflict(Conflict):
    """Another write came first: ``key`` changed at ``conflict_ts``, after ``start_ts`` (timestamps as text).

    ``kind`` says what the transaction had to do with it: it wrote the key ("write"), read it ("read"), or read a range
    that holds it ("range"); or ``key`` is the name of a table or of a namespace that did not mean then what it means
    now ("table", "namespace").
    """

    key: str
    start_ts: str
    conflict_ts: str
    row: int = 0
    kind: str = "write"
    reason: ClassVar[str] = "WRITE_CONFLICT"

    def message(self) -> str:
        if self.kind == "table":
            return f"table {self.key} was dropped, made or named at {self.conflict_ts}, after {self.start_ts}"
        if self.kind == "namespace":
            return f"namespace {self.key} was dropped or undropped at {self.conflict_ts}, after {self.start_ts}"
        what = {"read": ", which was read,", "range": ", in a range that was read,"}.get(self.kind, "")
        return f"{self.key}{what} was written at {self.conflict_ts}, after {self.start_ts}"


@dataclass(eq=False)
class TransactionAborted(Conflict):
    """It has ended without a commit, for the reason ``cause``: "settled" (somebody asked for its outcome before it had
    one); of a large one "expired" (nobody kept it alive), "operator", "table" (one of its tables, or an index, was
    dropped), "repeated" (its application has committed it before), "superseded" (its application has begun another
    one). Nothing of it happened, or ever will."""

    cause: str
    reason: ClassVar[str] = "TRANSACTION_ABORTED"

    def message(self) -> str:
        return f"the transaction was aborted: {self.cause}"


# --- not now ---------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class TryAgain(CortadoError):
    """Nothing was changed; the same request may work after ``retry_delay_ms``."""

    problem: str = ""
    retry_delay_ms: int = 0

    code: ClassVar[str] = "UNAVAILABLE"
    reason: ClassVar[str] = "TRY_AGAIN"

    def message(self) -> str:
        return self.problem or self.reason


@dataclass(eq=False)
class KeyLocked(TryAgain):
    """``key`` is staged by a large ``transaction`` that is open: it can be written once that has ended."""

    key: str = ""
    transaction: str = ""

    reason: ClassVar[str] = "KEY_LOCKED"

    def message(self) -> str:
        return f"{self.key} is locked by the large transaction {self.transaction}, until that has ended"


@dataclass(eq=False)
class Unavailable(TryAgain):
    """The node cannot serve now: it starts, stops, or cannot be reached."""

    reason: ClassVar[str] = "UNAVAILABLE"


@dataclass(eq=False)
class NotLeader(TryAgain):
    """This node does not lead the group; ``leader`` is an address, or empty while there is none."""

    leader: str = ""
    reason: ClassVar[str] = "NOT_LEADER"


@dataclass(eq=False)
class ResourceExhausted(TryAgain):
    """A queue, the map or the disk is full. ``resource`` says which, ``limit`` its bound."""

    resource: str = ""
    limit: int = 0

    code: ClassVar[str] = "RESOURCE_EXHAUSTED"
    reason: ClassVar[str] = "RESOURCE_EXHAUSTED"


@dataclass(eq=False)
class QuotaExceeded(ResourceExhausted):
    """The ``quota`` of a principal, a database or a namespace is used up: ``resource`` says which of its limits
    (calls_per_second, bytes_per_second, stored_bytes), and ``limit`` how much that is."""

    quota: str = ""

    reason: ClassVar[str] = "QUOTA_EXCEEDED"


# --- unknown, late, cancelled ----------------------------------------------------------------------------------


@dataclass(eq=False)
class OutcomeUnknown(CortadoError):
    """The write may have happened, or may yet. Retrying with the same ``request_id`` is safe."""

    problem: str = ""
    request_id: str = ""

    code: ClassVar[str] = "UNKNOWN"
    reason: ClassVar[str] = "OUTCOME_UNKNOWN"

    def message(self) -> str:
        return f"the outcome is unknown: {self.problem}"


@dataclass(eq=False)
class DeadlineExceeded(CortadoError):
    """A read did not finish in ``timeout_ms``."""

    problem: str = ""
    timeout_ms: int = 0

    code: ClassVar[str] = "DEADLINE_EXCEEDED"
    reason: ClassVar[str] = "DEADLINE_EXCEEDED"

    def message(self) -> str:
        return self.problem or f"no answer within {self.timeout_ms} ms"


@dataclass(eq=False)
class Cancelled(CortadoError):
    """The caller went away."""

    problem: str = ""

    code: ClassVar[str] = "CANCELLED"
    reason: ClassVar[str] = "CANCELLED"

    def message(self) -> str:
        return self.problem or "the call was cancelled"


# --- broken ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Broken(CortadoError):
    """Something that an operator must look at."""


@dataclass(eq=False)
class DataLoss(Broken):
    """A checksum failed: ``what`` was damaged, ``detail`` says where."""

    what: str
    detail: str = ""

    code: ClassVar[str] = "DATA_LOSS"
    reason: ClassVar[str] = "DATA_LOSS"

    def message(self) -> str:
        return f"damaged data: {self.what}" + (f" ({self.detail})" if self.detail else "")


@dataclass(eq=False)
class DataDirectoryError(Broken):
    """The data directory ``path`` cannot be used: damaged, of another format version, or in use by another process."""

    path: str
    problem: str

    code: ClassVar[str] = "FAILED_PRECONDITION"
    reason: ClassVar[str] = "DATA_DIRECTORY"

    def message(self) -> str:
        return f"data directory {self.path}: {self.problem}"


@dataclass(eq=False)
class ClockOutOfBounds(Broken):
    """A wall time ``ahead_ms`` ahead of the local physical clock, over ``limit_ms``, or what ``problem`` says."""

    ahead_ms: int
    limit_ms: int
    problem: str = ""

    code: ClassVar[str] = "FAILED_PRECONDITION"
    reason: ClassVar[str] = "CLOCK_OUT_OF_BOUNDS"

    def message(self) -> str:
        if self.problem:
            return self.problem
        return f"the remote wall time is {self.ahead_ms} ms ahead of this clock, the limit is {self.limit_ms} ms"


@dataclass(eq=False)
class PeerRefused(Broken):
    """A node that is no member, of another cluster, with another data directory, or without a peer's certificate."""

    problem: str

    code: ClassVar[str] = "PERMISSION_DENIED"
    reason: ClassVar[str] = "PEER_REFUSED"

    def message(self) -> str:
        return self.problem


@dataclass(eq=False)
class Internal(Broken):
    """A defect of Cortado's."""

    problem: str = ""
    reason: ClassVar[str] = "INTERNAL"

    def message(self) -> str:
        return f"internal error: {self.problem}"
