"""The fields of a request or a response (RFC 9113 §8.2 and §8.3): checked once, and kept for calls that repeat them.

A malformed one resets its stream, and nothing of it is handed on. Names are as HTTP has them, in lower case; values
have no NUL, CR or LF.

Blanks at the ends of a value are removed, as gRPC's protocol allows: the gRPC libraries send the values of applications
as they are, such as ``Bearer`` with a blank and no token. By RFC 9113 §8.2.1 the stream would be reset, and its caller
would not learn why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from cortado.store.h2.limits import ErrorCode, StreamFault

Field: TypeAlias = "tuple[bytes, bytes]"

_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE: Final = re.compile(rb"(?![ \t])[^\x00\r\n]*(?<![ \t])")
_STATUS: Final = re.compile(rb"[1-5][0-9][0-9]")
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")
_PSEUDO: Final = frozenset({b":method", b":scheme", b":path", b":authority"})
_REQUIRED: Final = (b":method", b":scheme", b":path")
_OF_CONNECTIONS: Final = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"}
)
_ONCE: Final = frozenset({b"content-length", b"host"})


class Head:
    """The fields of a request. ``metadata`` are those that are no pseudo-fields, in their order, as text if they are
    ASCII."""

    __slots__ = ("content_length", "fields", "list_bytes", "metadata", "method", "path", "plan")

    def __init__(self, fields: Sequence[Field], list_bytes: int) -> None:
        """Raises StreamFault for a request that is malformed."""
        pseudo, regular = _divided(fields)
        self.method = pseudo[b":method"]
        self.path = pseudo[b":path"]
        self.metadata = tuple((name.decode(), value.decode() if value.isascii() else value) for name, value in regular)
        self.fields = dict(regular)
        """The last one of each name."""
        self.list_bytes = list_bytes
        self.plan: object = None
        """A value that the server derives from these fields, for the calls that repeat them."""
        self.content_length = _content_length(self.fields)
        if not self.path.startswith(b"/"):
            raise _malformed(f":path {self.path[:100]!r}, which does not begin with a slash")
        authority, host = pseudo.get(b":authority"), self.fields.get(b"host")
        if authority is not None and host is not None and authority != host:
            raise _malformed("a host that is not the :authority")


class ResponseFields:
    """The fields of a response, or its trailers, which have no ``status``. Of each name the last one."""

    __slots__ = ("content_length", "fields", "status")

    def __init__(self, fields: Sequence[Field], _list_bytes: int) -> None:
        """Raises StreamFault for fields that are malformed."""
        self.status: int | None = None
        self.fields: dict[bytes, bytes] = {}
        for name, value in fields:
            if not name.startswith(b":"):
                self.fields[name] = _checked(name, value)
            elif name != b":status" or self.status is not None or self.fields or _STATUS.fullmatch(value) is None:
                raise _malformed(f"{name[:100]!r} with {value[:100]!r}, which no response has, or not here")
            else:
                self.status = int(value)
        self.content_length = _content_length(self.fields)


def _divided(fields: Sequence[Field]) -> tuple[dict[bytes, bytes], list[Field]]:
    pseudo: dict[bytes, bytes] = {}
    regular: list[Field] = []
    once: set[bytes] = set()
    for name, value in fields:
        if name.startswith(b":"):
            if regular:
                raise _malformed(f"{name[:100]!r} behind fields that are no pseudo-fields")
            if name not in _PSEUDO or name in pseudo:
                raise _malformed(f"{name[:100]!r}, which no request has, or not twice")
            _check_value(name, value)
            pseudo[name] = value
        else:
            value = _checked(name, value)
            if name in _ONCE:
                if name in once:
                    raise _malformed(f"{name!r} twice")
                once.add(name)
            regular.append((name, value))
    missing = [name for name in _REQUIRED if not pseudo.get(name)]
    if missing:
        raise _malformed(f"no {missing[0]!r}")
    return pseudo, regular


def check_trailers(fields: Sequence[Field]) -> None:
    """Check the fields of trailers. Raises StreamFault for those that are malformed."""
    for name, value in fields:
        if name.startswith(b":"):
            raise _malformed(f"{name[:100]!r} in trailers")
        _checked(name, value)


def _checked(name: bytes, value: bytes) -> bytes:
    """Return the value without blanks at its ends. Raises StreamFault."""
    value = value.strip(b" \t")
    if _NAME.fullmatch(name) is None:
        raise _malformed(f"a field of the name {name[:100]!r}")
    if name in _OF_CONNECTIONS or (name == b"te" and value != b"trailers"):
        raise _malformed(f"{name!r}, which belongs to a connection of HTTP/1.1")
    _check_value(name, value)
    return value


def _check_value(name: bytes, value: bytes) -> None:
    if _VALUE.fullmatch(value) is None:
        raise _malformed(f"a value of {name[:100]!r} with NUL, CR, LF, or a blank at an end")


def _content_length(fields: dict[bytes, bytes]) -> int | None:
    said = fields.get(b"content-length")
    if said is None:
        return None
    if _LENGTH.fullmatch(said) is None:
        raise _malformed(f"content-length {said[:100]!r}, which is no length")
    return int(said)


def _malformed(problem: str) -> StreamFault:
    return StreamFault(ErrorCode.PROTOCOL_ERROR, problem)
