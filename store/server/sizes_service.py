"""The stored sizes of tables and databases at this node, read from the pages of the engine's tree.

::

    a range of keys ──► some pages of the tree, on the scan thread ──► items, bytes, and the keys that live
                        (all of about a megabyte or less)              exact, or estimated

A key lives if its newest version is no delete. Expiring versions may have expired, and committed rows of a large
transaction may not be in their place: then the count is called an estimate, even of few pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from google.protobuf.message import Message

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2
from cortado.proto.v1 import tables_pb2 as pb
from cortado.store.auth.caller import CALLER, seen_by
from cortado.store.auth.roles import Demand, Permission, database_resource, table_resource
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.engine.interface import Page, Space
from cortado.store.engine.tree_sizes import RangeUse, range_use
from cortado.store.host.host import Host
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.keyspace import (
    KeyRange,
    database_range,
    index_prefix,
    is_of_rows,
    prefix_range,
    row_prefix,
)
from cortado.store.mvcc.versions import DELETE_KIND, EXPIRING_KIND
from cortado.store.server.listing import behind, next_page
from cortado.store.server.service import Service

BRANCHES_MAX: Final = 64
LEAVES_MAX: Final = 256
"""The pages of a range that are read: about a megabyte, in a few milliseconds."""
PAGE_ITEMS_MAX: Final = 100
"""The tables, or databases, of one reply."""
_SLICE_ITEMS: Final = 1_000


class SizesService(Service):
    """The part of ``cortado.v1.Tables`` that returns sizes of the state applied here, page by page."""

    async def table_sizes(self, request: pb.TableSizesRequest) -> Message:
        """Return the sizes of one table, or of those that the caller may read. Raises NotFound, Unavailable."""
        replica, rights = self.host.meta, seen_by(CALLER.get())
        newest = await self.scan_ts(replica, common_pb2.ReadAt())
        if request.name:
            if not request.database:
                raise InvalidArgument("database", "must be given with a name")
            table = self.catalog(self.host.meta, newest).table(request.database, request.name)
            return pb.TableSizesResponse(header=self.header(newest), tables=[await self._table_size(table)])
        request.page_size = min(request.page_size or PAGE_ITEMS_MAX, PAGE_ITEMS_MAX)

        def readable(ts: Timestamp, after: str) -> Iterator[TableDescriptor]:
            tables = Catalog(replica.store.snapshot(ts)).tables_behind(after, request.database or None)
            demands = ((each, Demand(Permission.READ, table_resource(each.database, each.name))) for each in tables)
            return (each for each, demand in demands if rights is None or rights.allow(demand))

        with self.host.process.reads.place():
            read_ts, tables, token = await self.host.process.scan(
                lambda: next_page(
                    request,
                    newest=newest,
                    items=readable,
                    name=lambda table: table.full_name,
                    shape=[request.database],
                )
            )
            sizes = [await self._table_size(each) for each in tables]
        return pb.TableSizesResponse(header=self.header(read_ts), tables=sizes, next_page_token=token)

    async def database_sizes(self, request: pb.DatabaseSizesRequest) -> Message:
        """Return the sizes of the databases that the caller may read as a whole. Raises Unavailable."""
        rights = seen_by(CALLER.get())
        newest = await self.scan_ts(self.host.meta, common_pb2.ReadAt())
        request.page_size = min(request.page_size or PAGE_ITEMS_MAX, PAGE_ITEMS_MAX)

        def readable(ts: Timestamp, after: str) -> list[str]:
            names = behind(after, self.catalog(self.host.meta, ts).databases(), str)
            demands = ((each, Demand(Permission.READ, database_resource(each))) for each in names)
            return [each for each, demand in demands if rights is None or rights.allow(demand)]

        with self.host.process.reads.place():
            read_ts, names, token = next_page(request, newest=newest, items=readable, name=str)
            catalog = Catalog(self.host.meta.store.snapshot(read_ts))
            sizes = [await self._database_size(catalog, each) for each in names]
        return pb.DatabaseSizesResponse(header=self.header(read_ts), databases=sizes, next_page_token=token)

    async def _table_size(self, table: TableDescriptor) -> pb.TableSize:
        rows = await size_of(self.host, prefix_range(row_prefix(table.table_id)))
        size = pb.TableSize(database=table.database, name=table.name, rows=rows)
        for index in table.indexes:
            entries = await size_of(self.host, prefix_range(index_prefix(table.table_id, index.index_id)))
            size.indexes.add(name=index.name, size=entries)
        return size

    async def _database_size(self, catalog: Catalog, name: str) -> pb.DatabaseSize:
        tables = await self.host.process.scan(lambda: catalog.count_tables(name))
        rows = await size_of(self.host, database_range(catalog.database(name).number), of_rows=True)
        return pb.DatabaseSize(name=name, tables=tables, rows=rows)


async def size_of(host: Host, within: KeyRange, *, of_rows: bool = False) -> pb.Size:
    """Return the stored size of a range of keys; with ``of_rows``, keys of rows alone count. Raises Unavailable."""
    mapped, living = host.process.engine.mapped, _Living(of_rows=of_rows)
    found: RangeUse | None = None
    if not isinstance(mapped, str):
        found = await host.process.scan(
            lambda: range_use(mapped, *within, branches_max=BRANCHES_MAX, leaves_max=LEAVES_MAX, counts=living.counts)
        )
    if found is None:
        living = _Living(of_rows=of_rows)
        found = await _item_by_item(host, *within, living)
    is_moving = host.meta.store.unresolved.seen_at(host.meta.applied.last_ts, *within)
    is_estimated = living.expires or is_moving or not found.is_exact
    return pb.Size(count=found.counted, is_estimated=is_estimated, bytes=found.bytes)


class _Living:
    """Counts keys by their newest versions, which come first."""

    def __init__(self, *, of_rows: bool = False) -> None:
        self._of_rows = of_rows
        self._key = b""
        self.expires = False
        """Whether some of the counted keys may have expired."""

    def counts(self, key: bytes, first: int) -> bool:
        logical = key[:-TIMESTAMP_BYTES]
        if logical == self._key:
            return False
        self._key = logical
        if first == DELETE_KIND or (self._of_rows and not is_of_rows(key)):
            return False
        self.expires = self.expires or first == EXPIRING_KIND
        return True


async def _item_by_item(host: Host, start: bytes, end: bytes, living: _Living) -> RangeUse:
    """Return the use of a range by reading every item, if the tree's pages cannot be read: slower by far."""

    def read(begin: bytes) -> Page:
        with host.process.engine.read() as transaction:
            return transaction.page(Space.DATA, begin, end, max_items=_SLICE_ITEMS)

    items = counted = size_bytes = 0
    while True:
        page = await host.process.scan(partial(read, start))
        items += len(page.keys)
        size_bytes += sum(map(len, page.keys)) + sum(map(len, page.values))
        counted += sum(living.counts(key, value[0]) for key, value in zip(page.keys, page.values, strict=True))
        if page.exhausted:
            return RangeUse(items, counted, size_bytes)
        start = successor_of_prefix(page.keys[-1])
