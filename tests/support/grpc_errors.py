"""Errors of calls that tests make through the grpc library, as a program without our client makes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import grpc

from cortado.errors import (
    Cancelled,
    CortadoError,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    ResourceExhausted,
    Unavailable,
    Unsupported,
)
from cortado.store.wire.rpc_errors import DETAILS_KEY, error_in


def status_code(error: CortadoError) -> grpc.StatusCode:
    """Return gRPC's code of the error's class."""
    return grpc.StatusCode[error.code]


def from_rpc_error(error: grpc.RpcError) -> CortadoError:
    """Return the error that the server sent, or for a call that ended without an answer of ours, the nearest one.

    Whether a write that ended so has happened is not decided here: see :func:`was_answered`.
    """
    found = _details(error)
    if found is not None:
        return found
    code = error.code()
    problem = str(error.details() or code.name)
    match code:
        case grpc.StatusCode.UNAVAILABLE:
            return Unavailable(problem=problem)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return DeadlineExceeded(problem="no answer within the deadline")
        case grpc.StatusCode.CANCELLED:
            return Cancelled(problem=problem)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return ResourceExhausted(problem=problem)
        case grpc.StatusCode.INVALID_ARGUMENT | grpc.StatusCode.OUT_OF_RANGE:
            return InvalidArgument("", problem)
        case grpc.StatusCode.UNIMPLEMENTED:
            return Unsupported(feature="this call", problem=problem)
        case _:
            return Internal(problem=f"{code.name}: {problem}")


def was_answered(error: grpc.RpcError) -> bool:
    """Return whether a Cortado server itself ended the call: the error's class says then what happened to a write."""
    return _details(error) is not None


def _details(error: grpc.RpcError) -> CortadoError | None:
    # The stubs call an item something that does not unpack; it is a pair.
    trailing = cast("Iterable[tuple[str, bytes]]", error.trailing_metadata() or ())
    return next((error_in(value) for key, value in trailing if key == DETAILS_KEY), None)
