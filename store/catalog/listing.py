"""Tables and subjects in pages, all of one listing at one time.

A listing begins at the newest state, or goes on with a page token, which says at which time to read::

    listing = Listing("tables", "air")                 or Listing("subjects")
    token = listing.read_token(request.page_token)     None for the first page; token.read_ts for any other
    page = tables_page(Catalog(reader at that time), listing, token, page_size)
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import SubjectState, TableDescriptor
from cortado.store.keys.keyspace import meta_range
from cortado.store.keys.types import LogicalKey
from cortado.store.names import check_database
from cortado.store.paging import PageToken, decode_token, encode_token, request_shape

PAGE_SIZE_MAX: Final = 1_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing:
    """What is listed; tables of one ``database``, or of all where it is empty."""

    what: Literal["tables", "subjects"]
    database: str = ""

    def shape(self) -> bytes:
        return request_shape("list", self.what, self.database)

    def read_token(self, page_token: bytes) -> PageToken | None:
        """None for the first page. Raises InvalidPageToken."""
        return decode_token(page_token, self.shape()) if page_token else None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """``items`` in the order of their names; ``next_page_token`` is empty on the last page."""

    items: list[T]
    next_page_token: bytes


@dataclass(frozen=True, slots=True)
class SubjectSummary:
    """A subject, and the full names of the tables whose documents follow it."""

    state: SubjectState
    tables: tuple[str, ...]


def tables_page(
    catalog: Catalog, listing: Listing, token: PageToken | None, page_size: int = 0
) -> Page[TableDescriptor]:
    """A page of at most ``page_size`` tables (0: as many as a page may hold). Raises NotFound, InvalidPageToken."""
    path: tuple[str, ...] = ("table",)
    if listing.database:
        catalog.require_database(check_database(listing.database))
        path = ("table", listing.database)
    page = _payloads_page(catalog, listing, path, token, page_size)
    return Page([stored.decode_table(payload) for payload in page.items], page.next_page_token)


def subjects_page(
    catalog: Catalog, listing: Listing, token: PageToken | None, page_size: int = 0
) -> Page[SubjectSummary]:
    """A page of at most ``page_size`` subjects (0: as many as a page may hold). Raises InvalidPageToken."""
    page = _payloads_page(catalog, listing, ("subject",), token, page_size)
    tables: dict[str, list[str]] = defaultdict(list)
    for table in catalog.tables():
        tables[table.subject].append(table.full_name)
    states = [stored.decode_subject(payload) for payload in page.items]
    return Page([SubjectSummary(each, tuple(tables[each.subject])) for each in states], page.next_page_token)


def _payloads_page(
    catalog: Catalog, listing: Listing, path: tuple[str, ...], token: PageToken | None, page_size: int
) -> Page[bytes]:
    start, end = meta_range(*path)
    if token is not None:
        start = LogicalKey(token.resume_within(start, end))
    size = min(page_size, PAGE_SIZE_MAX) if page_size else PAGE_SIZE_MAX
    found = list(catalog.reader.scan(start, end, limit=size + 1))
    following = b""
    if len(found) > size:
        following = encode_token(PageToken(catalog.reader.read_ts, found[size][0]), listing.shape())
    return Page([version.payload for _, version in found[:size]], following)
