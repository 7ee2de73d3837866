"""Strict checks of a request's head, before anything parses it.

A proxy and the gateway behind it must find the same requests in the same bytes (request smuggling lives off the
difference). So a head must have the canonical form of HTTP/1.1 (RFC 9112). Forms that parsers tolerate in different
ways are refused: lines that end without CRLF, folded lines, more than one space, a target that is another server's or
has a fragment. So are a length given twice or with a sign, and codings beside ``chunked`` or before HTTP/1.1.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

END: Final = b"\r\n\r\n"

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_HEAD: Final = re.compile(
    _TOKEN + rb" (?:/[!-\"$-~]*|\*) HTTP/1\.([01])\r\n(?:" + _TOKEN + rb":[^\x00-\x08\x0a-\x1f\x7f]*\r\n)+\r\n"
)
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n")
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n")


class Framing(Enum):
    """How a body ends that does not say its length."""

    CHUNKED = "chunked"


def body_of(head: bytes) -> int | Framing | None:
    """Return the length of the body that follows ``head``, which ends with an empty line; None for a malformed head."""
    form = _HEAD.fullmatch(head)
    if form is None:
        return None
    lower = head.lower()
    lengths, codings = lower.count(b"\r\ncontent-length:"), lower.count(b"\r\ntransfer-encoding:")
    if lower.count(b"\r\nhost:") != 1 or lengths + codings > 1 or (codings and form[1] == b"0"):
        return None
    if lengths:
        found = _LENGTH.search(lower)
        return None if found is None else int(found[1])
    if codings:
        return None if _CHUNKED.search(lower) is None else Framing.CHUNKED
    return 0
