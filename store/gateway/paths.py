"""Strict decoding of URLs: each part is decoded once, and a part that does not decode is refused.

A path is split at its unescaped slashes before each segment is decoded: ``%2F`` is a slash within a key, ``%252F`` is
the text ``%2F``. Nothing is normalized. Clients and proxies remove ``.`` and ``..`` as they please, so such segments
are refused; ``%2E`` and ``%2E%2E`` are data.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from cortado.errors import InvalidArgument
from cortado.store.keys.names import shown

PARAMETERS_MAX: Final = 64

# RFC 3986: pchar.
_SEGMENT: Final = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*")
_WRONG_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def segment_bytes(segment: str, field: str) -> bytes:
    """Return the bytes that a segment of a path encodes. Raises InvalidArgument naming ``field``."""
    if segment in (".", ".."):
        encoded = segment.replace(".", "%2E")
        raise InvalidArgument(field, f"must not be a segment that is taken away on the way: write {encoded}", segment)
    if _SEGMENT.fullmatch(segment) is None:
        problem = "must be percent-encoded: letters, digits and -._~!$&'()*+,;=:@ as they are, other bytes as %XX"
        raise InvalidArgument(field, problem, shown(segment))
    return unquote_to_bytes(segment) if "%" in segment else segment.encode()


def segment_text(segment: str, field: str) -> str:
    """Return :func:`segment_bytes` as text."""
    try:
        return segment_bytes(segment, field).decode()
    except UnicodeDecodeError as error:
        problem = f"must be percent-encoded UTF-8: {error.reason} at byte {error.start}"
        raise InvalidArgument(field, problem, shown(segment)) from None


def segment_of(text: str | bytes) -> str:
    """Return a segment of a path that stands for this, its slashes too. Clients take away segments that are just
    dots."""
    segment = quote(text, safe="")
    return segment.replace(".", "%2E") if segment in (".", "..") else segment


def is_kept(segment: str | bytes) -> bool:
    """Return whether a browser leaves this segment in a path: it removes segments of just dots, and the segment
    before them, in every spelling."""
    return segment not in (".", "..", b".", b"..")


def key_segments(path: str, field: str = "key") -> list[str]:
    """Return the parts of a key that the rest of a path holds; a last empty segment is an empty part."""
    return [segment_text(each, field) for each in path.split("/")]


def parameters(query: bytes) -> dict[str, str]:
    """Return the parameters of a query, each once. Raises InvalidArgument."""
    if not query:
        return {}
    text = query.decode("latin-1")
    if not text.isascii() or _WRONG_ESCAPE.search(text):
        raise InvalidArgument("query", "must be percent-encoded: ASCII, other bytes as %XX", shown(text))
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=PARAMETERS_MAX
        )
    except UnicodeDecodeError as error:
        problem = f"must be percent-encoded UTF-8: {error.reason} at byte {error.start}"
        raise InvalidArgument("query", problem, shown(text)) from None
    except ValueError:
        problem = f"must be at most {PARAMETERS_MAX} parameters name=value, with & between them"
        raise InvalidArgument("query", problem, shown(text)) from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidArgument(shown(name), "must be given once", shown(value))
        found[name] = value
    return found
