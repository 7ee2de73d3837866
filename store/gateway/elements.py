"""Many documents or pairs: a page as ``{"elements": [...], "next": ...}``, or all of them as lines of JSON.

``next`` is the parameter ``page`` of the call for the next page, at the same timestamp; it is null on the last page.
Lines are sent as they arrive from the cluster: the range need not fit into memory. If a stream of lines fails after it
has begun, its last line is ``{"problem": ...}`` and the connection is cut, so that no reader takes that for the end.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Any, Final

from starlette.responses import Response

from cortado.errors import CortadoError, InvalidPageToken
from cortado.schema.json_text import json_text
from cortado.store.gateway.calls import Call, Parameter, json_response
from cortado.store.gateway.problems import problem
from cortado.store.gateway.streams import Stream, StreamCut, begun, check_stream
from cortado.store.keys.names import shown

_LOG: Final = logging.getLogger(__name__)

LINES: Final = "application/x-ndjson"
LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100
PAGE_BYTES_MAX: Final = 4 << 20
"""A page that has so many bytes ends, however few elements it has."""
PIECE_BYTES: Final = 64 << 10
"""So many bytes of lines are sent at a time, or one line."""

LIMIT: Final = Parameter("limit", f"Elements of a page, at most {LIMIT_MAX}; default {LIMIT_DEFAULT}.", kind="integer")
PAGE: Final = Parameter("page", "Continue after a page: its next.", field="page_token")
START: Final = Parameter("start", "From this key on: a part, or a JSON array of parts.", field="range.start")
END: Final = Parameter("end", "Up to this key, without it.", field="range.end")
REVERSE: Final = Parameter("reverse", "From the last key to the first.", kind="boolean")


def limit_of(call: Call) -> int:
    """Return how many elements a page may have."""
    return call.number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT


def token_of(call: Call) -> bytes:
    """Return the token of the page; empty for the first one. Raises InvalidPageToken."""
    given = call.text("page") or ""
    try:
        return base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidPageToken("page", "must be the next of an earlier page", shown(given)) from None


def page_response(elements: list[Any], token: bytes) -> Response:
    """Return one page; an empty ``token`` is that of the last one."""
    return json_response({"elements": elements, "next": next_of(token)}, headers={"Vary": "Accept"})


def next_of(token: bytes) -> str | None:
    """Return a token as what :func:`token_of` reads; None for that of the last page."""
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode() if token else None


async def lines_response(call: Call, pages: AsyncGenerator[Iterable[Any], None]) -> Response:
    """Return all elements, a line each. Waits for the first page, so that an immediate refusal gets a problem."""
    check_stream(call)
    return Stream(call.bounds, _lines(call, await begun(pages)), LINES)


async def _lines(call: Call, pages: AsyncGenerator[Iterable[Any], None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pages):
        try:
            async for page in pages:
                for piece in _pieces(page):
                    yield piece
        except CortadoError as error:
            call.bounds.measures.upstream(error)
            _LOG.warning("a stream of %s ended early: %s", call.operation.path, error)
            yield _line({"problem": problem(error)})
            raise StreamCut from error


def _pieces(elements: Iterable[Any]) -> Iterator[bytes]:
    """Yield the lines, some at a time: the text of a page with large elements is never whole in memory."""
    lines: list[bytes] = []
    size = 0
    # By map, so that no frame keeps an element while a piece waits to be sent.
    for line in map(_line, elements):
        lines.append(line)
        size += len(line)
        if size >= PIECE_BYTES:
            piece = b"".join(lines)
            lines, size = [], 0
            yield piece
    yield b"".join(lines)


def _line(element: Any) -> bytes:
    return json_text(element).encode() + b"\n"
