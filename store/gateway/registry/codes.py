"""Error codes of the registry's API: ``{"error_code": 40401, "message": "no subject flights-value"}``.

A code of five digits is an HTTP status and a reason; a code of three digits is the status alone. Clients act on the
code: 40403, for one, tells a serializer that looked a schema up to register it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from starlette.responses import Response

from cortado.errors import (
    Broken,
    CortadoError,
    DeadlineExceeded,
    InvalidArgument,
    InvalidSchema,
    NotFound,
    OutcomeUnknown,
)
from cortado.schema.json_text import json_text
from cortado.store.gateway.problems import Refused, problem_response

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"

NO_SUBJECT: Final = 40401
NO_VERSION: Final = 40402
NO_SCHEMA: Final = 40403
SUBJECT_DELETED: Final = 40404
SUBJECT_NOT_DELETED: Final = 40405
VERSION_DELETED: Final = 40406
VERSION_NOT_DELETED: Final = 40407
NO_OWN_LEVEL: Final = 40408
INVALID_SCHEMA: Final = 42201
INVALID_VERSION: Final = 42202
INVALID_LEVEL: Final = 42203
INVALID_MODE: Final = 42204
NOT_PERMITTED: Final = 42205
IN_USE: Final = 42206
INVALID_SUBJECT: Final = 42208
SCHEMA_TOO_LARGE: Final = 42209
STORE_FAILED: Final = 50001
TIMED_OUT: Final = 50002

_STATUS_DIGITS: Final = 1_000
_OF_KIND: Final = {"subject": NO_SUBJECT, "schema": NO_SCHEMA}


class Coded(Refused):
    """An ``error`` under a ``code`` that its class does not tell."""

    def __init__(self, code: int, error: CortadoError) -> None:
        super().__init__(code if code < _STATUS_DIGITS else code // 100, error)
        self.code = code


@contextmanager
def missing_schema_is(code: int) -> Iterator[None]:
    """Around a call by which a schema that is not there means something else."""
    try:
        yield
    except NotFound as error:
        if error.kind != "schema":
            raise
        raise Coded(code, error) from None


@contextmanager
def invalid_is(code: int, field: str) -> Iterator[None]:
    """Around a call that refuses ``field`` for one reason alone."""
    try:
        yield
    except InvalidArgument as error:
        if error.field != field:
            raise
        raise Coded(code, error) from None


def failed(failure: CortadoError | Refused) -> Response:
    """Return the answer to a call that ended with ``failure``, with the status and headers that all the gateway's
    have."""
    if isinstance(failure, InvalidSchema):
        failure = Coded(INVALID_SCHEMA, failure)
    answer = problem_response(failure)
    error = failure.error if isinstance(failure, Refused) else failure
    code = failure.code if isinstance(failure, Coded) else _code_of(error, answer.status_code)
    text = json_text({"error_code": code, "message": error.message()})
    # An error may quote half a character of the wrong value.
    kept = {name: value for name, value in answer.headers.items() if name not in ("content-length", "content-type")}
    return Response(text.encode("utf-8", "replace"), answer.status_code, kept, MEDIA_TYPE)


def _code_of(error: CortadoError, status: int) -> int:
    if isinstance(error, NotFound):
        return _OF_KIND.get(error.kind, status)
    if isinstance(error, OutcomeUnknown | DeadlineExceeded) and status >= 500:
        return TIMED_OUT
    return STORE_FAILED if isinstance(error, Broken) else status
