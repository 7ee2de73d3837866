"""The one error tree.

Every refusal that Cortado makes is one of these, on the server, in the client, on the command line and in Spark::

    CortadoError
    ├── DidNotHappen ............ nothing was changed, and the request as it stands will not work
    │   ├── InvalidArgument ..... bad input: names the field, the value and the limit
    │   │   ├── KeyTooLong, TooLarge, InvalidDocument, InvalidSchema, InvalidFilter, InvalidPageToken
    │   │   └── TimestampInFuture
    │   ├── NotFound, AlreadyExists
    │   ├── IncompatibleSchema .. every incompatibility, each with its path
    │   ├── SnapshotTooOld, HoldExpired
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
    │   ├── KeyLocked ........... by a large transaction that is open
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

from cortado.errors.broken import Broken, ClockOutOfBounds, DataDirectoryError, DataLoss, Internal, PeerRefused
from cortado.errors.conflicts import (
    ConditionFailed,
    Conflict,
    OutOfBounds,
    TransactionAborted,
    UniqueViolation,
    WriteConflict,
)
from cortado.errors.refusals import (
    AlreadyExists,
    DidNotHappen,
    HoldExpired,
    IncompatibleSchema,
    IndexNotReady,
    InvalidArgument,
    InvalidDocument,
    InvalidFilter,
    InvalidPageToken,
    InvalidSchema,
    KeyTooLong,
    NotFound,
    PermissionDenied,
    Restoring,
    SnapshotTooOld,
    TimestampInFuture,
    TooLarge,
    Unauthenticated,
    Unsupported,
)
from cortado.errors.retryable import KeyLocked, NotLeader, QuotaExceeded, ResourceExhausted, TryAgain, Unavailable
from cortado.errors.root import CortadoError
from cortado.errors.unfinished import Cancelled, DeadlineExceeded, OutcomeUnknown

__all__ = [
    "AlreadyExists",
    "Broken",
    "Cancelled",
    "ClockOutOfBounds",
    "ConditionFailed",
    "Conflict",
    "CortadoError",
    "DataDirectoryError",
    "DataLoss",
    "DeadlineExceeded",
    "DidNotHappen",
    "HoldExpired",
    "IncompatibleSchema",
    "IndexNotReady",
    "Internal",
    "InvalidArgument",
    "InvalidDocument",
    "InvalidFilter",
    "InvalidPageToken",
    "InvalidSchema",
    "KeyLocked",
    "KeyTooLong",
    "NotFound",
    "NotLeader",
    "OutOfBounds",
    "OutcomeUnknown",
    "PeerRefused",
    "PermissionDenied",
    "QuotaExceeded",
    "ResourceExhausted",
    "Restoring",
    "SnapshotTooOld",
    "TimestampInFuture",
    "TooLarge",
    "TransactionAborted",
    "TryAgain",
    "Unauthenticated",
    "Unavailable",
    "UniqueViolation",
    "Unsupported",
    "WriteConflict",
]

# Tracebacks, also those that Spark prints, name an error as applications import it.
for _name in __all__:
    globals()[_name].__module__ = __name__
