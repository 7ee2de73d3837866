"""Pages of names.

All pages show one state: the token carries the timestamp of the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, Protocol, TypeVar

from cortado.errors import InvalidPageToken
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.paging import PageToken, decode_token, encode_token, request_shape

T = TypeVar("T")

PAGE_ITEMS_MAX: Final = 1_000
PAGE_BYTES_MAX: Final = 1 << 20
"""So that a page fits into one message."""


class ListRequest(Protocol):
    """A request for a page. ``page_size`` 0 asks for as many as a page may hold."""

    @property
    def page_size(self) -> int: ...

    @property
    def page_token(self) -> bytes: ...


def next_page(
    request: ListRequest,
    *,
    newest: Timestamp,
    items: Callable[[Timestamp, str], Iterable[T]],
    name: Callable[[T], str],
    shape: Sequence[str] = (),
    size_bytes: Callable[[T], int] | None = None,
) -> tuple[Timestamp, Sequence[T], bytes]:
    """Return the timestamp of the read, the page's items, and the token of the next page (empty at the end).

    ``items`` gives those of a timestamp that come behind a name, which is empty for the first page; no more of them are
    taken than a page needs. Each has a ``name`` of its own. ``shape`` holds the other parts of the request that a token
    is bound to. If items may be large, ``size_bytes`` gives the size of one: a page of more than one ends before it is
    over its bound. Raises InvalidPageToken.
    """
    digest = request_shape("listing", type(request).__name__, *shape)
    after = ""
    read_ts = newest
    if request.page_token:
        token = decode_token(request.page_token, digest)
        if token.read_ts > newest:
            raise InvalidPageToken("page_token", "is of a time that this server has not reached", str(token.read_ts))
        read_ts, after = token.read_ts, token.resume.decode(errors="replace")
    size = min(request.page_size or PAGE_ITEMS_MAX, PAGE_ITEMS_MAX)
    found = list(islice(items(read_ts, after), size + 1))
    if size_bytes is not None:
        size = max(1, _fitting(found[:size], size_bytes))
    if len(found) <= size:
        return read_ts, found, b""
    page = found[:size]
    return read_ts, page, encode_token(PageToken(read_ts, name(page[-1]).encode()), digest)


def behind(after: str, items: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """Return the items with greater names, in their order. The list must be small enough to be read whole for each
    page."""
    return sorted((item for item in items if name(item) > after), key=name)


def _fitting(items: Sequence[T], size_bytes: Callable[[T], int]) -> int:
    """Return how many of the first items one page holds."""
    total = 0
    for place, item in enumerate(items):
        total += size_bytes(item)
        if total > PAGE_BYTES_MAX:
            return place
    return len(items)
