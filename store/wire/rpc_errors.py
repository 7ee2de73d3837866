"""How an error travels: :mod:`cortado.errors` to a gRPC status with details, and back.

The server ends a call with the canonical code, one sentence, and in the trailing metadata ``grpc-status-details-bin`` a
``google.rpc.Status`` with these details::

    ErrorInfo   always: reason, domain "cortado.v1", and the error's fields as text
    BadRequest  for bad input: the field and what is wrong with it
    RetryInfo   where the same request may work later: when

A client in any language needs nothing of ours to read them. This module imports no server code, since the Python client
reads errors through it, and one table serves both directions.

Caveat: gRPC peers refuse metadata over 8 KiB by default, and then the caller would see a broken call instead of the
error. So long values are cut, and a long list of incompatibilities ends with how many more there are (the
test of compatibility returns all of them, in its body).
"""

from __future__ import annotations

import json
from typing import Any, Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc import code_pb2, error_details_pb2, status_pb2

from cortado.error_metadata import from_metadata, to_metadata
from cortado.errors import (
    CortadoError,
    Internal,
    InvalidArgument,
    TryAgain,
)
from cortado.proto.v1 import common_pb2

DOMAIN: Final = "cortado.v1"
DETAILS_KEY: Final = "grpc-status-details-bin"

# Together, details as base64 and the message percent-encoded, they stay below the 8 KiB that a peer takes by default.
MESSAGE_BYTES_MAX: Final = 700
VALUE_BYTES_MAX: Final = 400
LIST_BYTES_MAX: Final = 2600


def status_message(error: CortadoError) -> str:
    """Return one sentence for the status, cut to a header's bound."""
    message = error.message()
    # Each byte that is not ASCII travels as three.
    return _cut(message, MESSAGE_BYTES_MAX if message.isascii() else MESSAGE_BYTES_MAX // 3)


def trailing_metadata(error: CortadoError) -> tuple[tuple[str, bytes], ...]:
    """Return the details of a call that ends with ``error``, ready to be sent as trailing metadata."""
    return ((DETAILS_KEY, rpc_status(error).SerializeToString()),)


def rpc_status(error: CortadoError) -> status_pb2.Status:
    """Return the error as ``google.rpc.Status`` with its details."""
    status = status_pb2.Status(code=code_pb2.Code.Value(error.code), message=status_message(error))
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=bounded_metadata(error))
    status.details.add().Pack(info)
    if isinstance(error, InvalidArgument):
        bad_request = error_details_pb2.BadRequest()
        bad_request.field_violations.add(
            field=_cut(error.field, VALUE_BYTES_MAX), description=_cut(error.problem, VALUE_BYTES_MAX)
        )
        status.details.add().Pack(bad_request)
    if isinstance(error, TryAgain) and error.retry_delay_ms > 0:
        seconds, millis = divmod(error.retry_delay_ms, 1000)
        delay = Duration(seconds=seconds, nanos=millis * 1_000_000)
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return status


def bounded_metadata(error: CortadoError) -> dict[str, str]:
    """Return the fields of :func:`cortado.error_metadata.to_metadata`, cut so that they fit into a header."""
    metadata, fields = to_metadata(error), error.fields()
    for name in metadata:
        value = fields[name]
        if isinstance(value, str):
            metadata[name] = _cut(value, VALUE_BYTES_MAX)
        elif isinstance(value, list):
            metadata[name] = _bounded_list(value)
    return metadata


def from_status(encoded: bytes) -> CortadoError:
    """Return the error of a serialized ``google.rpc.Status``, as :func:`rpc_status` makes it."""
    try:
        status = status_pb2.Status.FromString(encoded)
    except DecodeError:
        return Internal(problem="the server sent a status that cannot be read")
    info = _info_of(status)
    return Internal(problem=status.message) if info is None else _rebuilt(info.reason, dict(info.metadata))


def error_in(encoded: bytes) -> CortadoError | None:
    """Return the error of a serialized ``google.rpc.Status``; None if it holds none of ours."""
    try:
        info = _info_of(status_pb2.Status.FromString(encoded))
    except DecodeError:
        return None
    return None if info is None else _rebuilt(info.reason, dict(info.metadata))


def to_row_error(row: int, error: CortadoError) -> common_pb2.RowError:
    """One refused row of many, with the same reason and fields that a unary call would carry."""
    return common_pb2.RowError(
        row=row, reason=error.reason, message=status_message(error), metadata=bounded_metadata(error)
    )


def from_row_error(row_error: common_pb2.RowError) -> CortadoError:
    """Return the error of one row; its ``row``, where it has one, is the row's place in the request."""
    error = _rebuilt(row_error.reason, dict(row_error.metadata))
    if "row" in error.fields():
        setattr(error, "row", row_error.row)  # noqa: B010 - only some classes have it
    return error


def _info_of(status: status_pb2.Status) -> error_details_pb2.ErrorInfo | None:
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN:
            return info
    return None


def _rebuilt(reason: str, metadata: dict[str, str]) -> CortadoError:
    try:
        return from_metadata(reason, metadata)
    except ValueError:
        return Internal(problem=f"{reason}: {metadata}")


def _cut(text: str, bytes_max: int) -> str:
    """Text that protobuf takes (a lone surrogate becomes a question mark), of at most about ``bytes_max`` bytes."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= bytes_max:
        return encoded.decode()
    return f"{encoded[: bytes_max - 24].decode(errors='ignore')}... ({len(text)} characters)"


def _bounded_list(items: list[Any]) -> str:
    kept: list[Any] = []
    used = 0
    for item in items:
        if isinstance(item, dict):
            item = {name: _cut(v, VALUE_BYTES_MAX) if isinstance(v, str) else v for name, v in item.items()}
        used += len(json.dumps(item))
        if used > LIST_BYTES_MAX:
            kept.append({"path": "", "kind": "MORE", "message": f"and {len(items) - len(kept)} more", "version": 0})
            break
        kept.append(item)
    return json.dumps(kept)
