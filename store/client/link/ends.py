"""The ends of calls, as failures: by a server's status, by a reset, by the connection; and in words for people.

A call that a Cortado server ends carries the error itself. A status without one comes of gRPC's own server, or of
something else that speaks HTTP/2, and is told by its code.
"""

from __future__ import annotations

import base64
import binascii
import errno
import re
import socket
import ssl
from typing import Final
from urllib.parse import unquote_to_bytes

from cortado.errors import (
    CortadoError,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    ResourceExhausted,
    TooLarge,
    Unavailable,
    Unsupported,
)
from cortado.store.client.retry import Failure
from cortado.store.h2.grpc import Code
from cortado.store.h2.limits import ErrorCode
from cortado.store.wire.rpc_errors import error_in

CLOSED: Final = "it closed the connection: it stops, wants TLS, or does not accept the client's certificate"
ENDED: Final = "it ended the connection"
LATE: Final = "no answer within the deadline"
SILENT: Final = "it took the connection, and says nothing"
NO_ANSWER: Final = "its host does not answer"
STRANGER: Final = "what answers there is no Cortado server"
BROKEN: Final = "the connection broke"
_NOT_FOUND: Final = 404
_DROPPED: Final = "the server dropped the call"
_NO_TLS: Final = "it does not speak TLS"

# gRPC's own server says so, with no error of ours: that it did not begin the call,
_NEVER_BEGUN: Final = "Too many pending requests"
# and that the request was over its bound.
_REQUEST_TOO_LARGE: Final = re.compile(r"Received message larger than max(?: \((\d+) vs\.? (\d+)\))?")

_OF_CODE: Final = {
    Code.UNAVAILABLE: BROKEN,
    Code.CANCELLED: _DROPPED,
    Code.RESOURCE_EXHAUSTED: "the call was too much for the connection",
    Code.UNIMPLEMENTED: "it has no such method: it is of another version, or no Cortado server",
    Code.INVALID_ARGUMENT: "the request was not taken",
    Code.OUT_OF_RANGE: "the request was not taken",
}
_OF_ERRNO: Final = {
    errno.ECONNREFUSED: "nothing listens there",
    errno.ENETUNREACH: "its network cannot be reached from here",
    errno.EHOSTUNREACH: "its host cannot be reached from here",
    errno.ETIMEDOUT: NO_ANSWER,
    errno.ECONNRESET: CLOSED,
    errno.ECONNABORTED: CLOSED,
    errno.EPIPE: CLOSED,
}
# OpenSSL's X509_V_ERR_*.
_OF_VERIFY_CODE: Final = {
    10: "its certificate has expired",
    62: "its certificate is not for that host",
    64: "its certificate is not for that host",
}


def unreached(error: Exception) -> str:
    """Return why an address cannot be connected to, or why a connection broke, in our words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        unknown = "its certificate does not come from the authority in tls-ca, or has expired"
        return _OF_VERIFY_CODE.get(error.verify_code, unknown)
    if isinstance(error, ssl.SSLEOFError):
        return CLOSED
    if isinstance(error, ssl.SSLError):
        return CLOSED if "ALERT" in error.reason or "EOF" in error.reason else _NO_TLS
    if isinstance(error, socket.gaierror):
        is_unknown = error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
        return "there is no such host" if is_unknown else "its host's name cannot be looked up"
    if isinstance(error, TimeoutError) and error.errno is None:
        return NO_ANSWER
    return _OF_ERRNO.get(error.errno or 0, BROKEN) if isinstance(error, OSError) else BROKEN


def of_trailers(fields: dict[bytes, bytes]) -> Failure | None:
    """Return the failure of a call with these trailers; None if it succeeded."""
    said = fields.get(b"grpc-status", b"")
    if said == b"0":
        return None
    if not said.isdigit() or len(said) > 3:
        return Failure(Unavailable(STRANGER), answered=False, sent=True)
    error = error_in(_decoded(fields.get(b"grpc-status-details-bin", b"")))
    if error is not None:
        return Failure(error, answered=True, sent=True)
    return _of_status(int(said), unquote_to_bytes(fields.get(b"grpc-message", b"")).decode(errors="replace"))


def _decoded(value: bytes) -> bytes:
    try:
        return base64.b64decode(value + b"=" * (-len(value) % 4))
    except binascii.Error:
        return b""


def _of_status(code: int, message: str) -> Failure:
    known = Code(code) if code in Code.__members__.values() else None
    why = _OF_CODE.get(known, "") if known is not None else ""
    error: CortadoError
    match known:
        case Code.UNIMPLEMENTED:
            # There is no such method, so nothing ran.
            return Failure(Unsupported("this call", why), answered=False, sent=False)
        case Code.RESOURCE_EXHAUSTED:
            if _NEVER_BEGUN in message:
                return Failure(ResourceExhausted("it has too many calls already"), answered=False, sent=False)
            found = _REQUEST_TOO_LARGE.search(message)
            if found is not None:
                # No retry gets under it.
                return Failure(_too_large(found), answered=True, sent=True)
            error = ResourceExhausted(why)
        case Code.DEADLINE_EXCEEDED:
            error = DeadlineExceeded(problem=LATE)
        case Code.INVALID_ARGUMENT | Code.OUT_OF_RANGE:
            error = InvalidArgument("", why)
        # Our caller did not cancel it, since cancelled callers are told elsewhere: a server that ends cancels the calls
        # that it has begun.
        case Code.UNAVAILABLE | Code.CANCELLED:
            error = Unavailable(why)
        case _:
            name = code if known is None else known.name
            error = Internal(f"the call ended with {name}, and no reason of Cortado's")
    return Failure(error, answered=False, sent=True)


def _too_large(found: re.Match[str]) -> TooLarge:
    length, limit = (int(number or 0) for number in found.groups())
    problem = f"has {length} bytes, a message may have {limit}" if length else "is larger than a message may be"
    return TooLarge("request", f"{problem}: send less at a time", length=length, limit=limit)


def of_http(status: int) -> CortadoError:
    """Return the error of a call that was answered by another kind of server. It did nothing if it has no such path."""
    return Unsupported("this call", STRANGER) if status == _NOT_FOUND else Unavailable(STRANGER)


def of_reset(code: int) -> Failure:
    """Return the failure of a call whose stream was reset: by the server, or for its fault."""
    if code == ErrorCode.REFUSED_STREAM:
        return Failure(Unavailable("the server did not begin the call"), answered=False, sent=False)
    if code == ErrorCode.ENHANCE_YOUR_CALM:
        return Failure(ResourceExhausted(_OF_CODE[Code.RESOURCE_EXHAUSTED]), answered=False, sent=True)
    return Failure(Unavailable(_DROPPED), answered=False, sent=True)
