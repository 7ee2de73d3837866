"""Errors as HTTP carries them: a status, and ``application/problem+json`` (RFC 9457).

::

    {"type": "about:blank", "title": "Precondition Failed", "status": 412, "reason": "CONDITION_FAILED",
     "detail": "UA: expected 0.1763643600000.2, found 0.1763643600000.9",
     "key": "UA", "expected": "0.1763643600000.2", "actual": "0.1763643600000.9", "row": 0}

``reason`` and the members after ``detail`` are the fields of :mod:`cortado.errors`, as in gRPC's status details. Errors
that only HTTP has (a method, a media type) belong to the same tree, with a status of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response

from cortado.errors import (
    AlreadyExists,
    ConditionFailed,
    Conflict,
    CortadoError,
    DeadlineExceeded,
    HoldExpired,
    IncompatibleSchema,
    IndexNotReady,
    Internal,
    InvalidArgument,
    NotFound,
    OutcomeUnknown,
    OutOfBounds,
    PermissionDenied,
    ResourceExhausted,
    Restoring,
    SnapshotTooOld,
    TooLarge,
    TryAgain,
    Unauthenticated,
    Unsupported,
)
from cortado.schema.json_text import json_text
from cortado.store.clock.timestamp import Timestamp

MEDIA_TYPE: Final = "application/problem+json"
CHALLENGES: Final = ("Bearer", 'Basic realm="Cortado: any name, and a token as the password", charset="UTF-8"')
"""For the second one a browser asks its user, if it stands by itself."""

STATUS_OF: Final[tuple[tuple[type[CortadoError], int], ...]] = (
    (TooLarge, 413),
    (InvalidArgument, 400),
    (Unauthenticated, 401),
    (PermissionDenied, 403),
    (NotFound, 404),
    (AlreadyExists, 409),
    (IncompatibleSchema, 409),
    (IndexNotReady, 409),
    (SnapshotTooOld, 410),
    (HoldExpired, 410),
    (Restoring, 503),
    (Unsupported, 501),
    (OutOfBounds, 409),
    (ConditionFailed, 412),
    (Conflict, 409),
    (ResourceExhausted, 429),
    (TryAgain, 503),
    (OutcomeUnknown, 504),
    (DeadlineExceeded, 504),
    (CortadoError, 500),
)
"""The first class that an error is of decides."""


class Refused(Exception):
    """An error that only HTTP has: an ``error`` of the tree under another ``status`` than its class has."""

    def __init__(self, status: int, error: CortadoError, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, error)
        self.status = status
        self.error = error
        self.headers = dict(headers or {})


def status_of(error: CortadoError) -> int:
    """Return the status of the error's class."""
    return next(status for kind, status in STATUS_OF if isinstance(error, kind))


def problem(error: CortadoError, status: int = 0) -> dict[str, Any]:
    """Return the error as a problem detail. ``status`` is that of the answer, if it is not its class's."""
    status = status or status_of(error)
    found: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "reason": error.reason,
        "detail": error.message(),
    }
    if isinstance(error, OutcomeUnknown):
        # A client that gives up at a 504 shall not take it for a failure.
        found["outcome"] = "unknown"
    return {**error.fields(), **found}


def problem_response(error: CortadoError | Refused) -> Response:
    """Return the answer to a call that ended with ``error``."""
    headers: dict[str, str] = {}
    status = 0
    if isinstance(error, Refused):
        status, headers, error = error.status, error.headers, error.error
    if isinstance(error, TryAgain):
        # In whole seconds, as HTTP has it, and never "at once".
        headers["Retry-After"] = str(max(1, -(-error.retry_delay_ms // 1000)))
    if isinstance(error, ConditionFailed) and _is_etag(error.actual):
        headers["ETag"] = f'"{error.actual}"'
    body = problem(error, status)
    response = Response(_encoded(body), body["status"], {**headers, "Cache-Control": "no-store"}, MEDIA_TYPE)
    challenge(response, error)
    return response


def challenge(response: Response, error: CortadoError) -> None:
    """Tell how to authenticate, if the error asks for that."""
    if isinstance(error, Unauthenticated):
        for each in CHALLENGES:
            response.headers.append("WWW-Authenticate", each)


def unexpected(error: Exception) -> CortadoError:
    """Return a defect as its caller sees it: the error's type, and nothing that the error may quote."""
    return Internal(problem=f"the gateway failed with {type(error).__name__}; its log says where")


def _is_etag(text: str) -> bool:
    try:
        Timestamp.parse(text)
    except InvalidArgument:
        return False
    return True


def _encoded(body: dict[str, Any]) -> bytes:
    # An error may quote half a character of the wrong value.
    return json_text(body).encode("utf-8", "replace")
