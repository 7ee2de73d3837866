"""Reads of one table: documents by key, in ranges, as they change. :mod:`cortado.store.client.table` writes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Generic, Self, Unpack

from cortado.errors import InvalidArgument, InvalidDocument, NotFound
from cortado.proto.v1 import common_pb2, documents_pb2, watch_pb2
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client.aggregate_text import parse_aggregates
from cortado.store.client.aggregates import GROUPS_MAX, GROUPS_MAX_MOST, Groups, aggregates_to_proto
from cortado.store.client.arguments import sequence, whole
from cortado.store.client.connection import Connection
from cortado.store.client.documents import AsyncDocumentCodec, D, Document, RowBatch, decoded
from cortado.store.client.known_schemas import KnownSchemas
from cortado.store.client.public_faces import public_face
from cortado.store.client.row_batches import each_batch, one_page, row_batches
from cortado.store.client.scans import AggregateOptions, KeyRange, Scan, ScanOptions, key_ranges
from cortado.store.client.streams import items, opened
from cortado.store.client.tables import AsyncTables
from cortado.store.client.values import (
    At,
    Key,
    KeyLike,
    at_to_proto,
    key_to_proto,
    range_to_proto,
    timestamp_of,
)
from cortado.store.client.watch import AsyncWatch, WatchOptions
from cortado.store.client.watch_sources import DocumentSource
from cortado.store.client.windows import ChangeWindow, WindowOptions, window_of_table
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.names import split_table_name
from cortado.store.keys.types import KeyPart

if TYPE_CHECKING:
    import pyarrow as pa

KEYS_MAX: Final = 1_000
"""That one request names: about as many as one reply holds. The others would be sent, and read, to be asked again."""

_UINT32_MAX: Final = (1 << 32) - 1
_UINT64_MAX: Final = (1 << 64) - 1


@public_face
class TableReads(Generic[D]):
    """The reads of :class:`~cortado.store.client.table.AsyncTable`."""

    def __init__(
        self,
        connection: Connection,
        tables: AsyncTables,
        schemas: KnownSchemas,
        full_name: str,
        *,
        timeout_s: float,
        schema_version: int | None = None,
        document_type: type[D] | None = None,
    ) -> None:
        database, name = split_table_name(full_name)
        self.full_name = full_name
        self._name = documents_pb2.TableName(database=database, table=name)
        self._connection = connection
        self._stub = connection.stubs.documents
        self._tables = tables
        self._schemas = schemas
        self._timeout_s = timeout_s
        self._schema_version = (
            None if schema_version is None else whole(schema_version, "schema_version", 1, _UINT32_MAX)
        )
        self._document_type = document_type
        self._is_type_checked = document_type is None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.full_name!r})"

    async def descriptor(self) -> TableDescriptor:
        """Return the table's key, subject and indexes, as this client last saw them. Raises NotFound."""
        return await self._tables.known(self.full_name)

    @property
    def codec(self) -> AsyncDocumentCodec:
        """How documents of this table become bytes."""
        return self._codec_of(self._subject)

    def _codec_of(self, subject: Callable[[], Awaitable[str]]) -> AsyncDocumentCodec:
        return AsyncDocumentCodec(
            self._schemas,
            subject,
            self._schema_version,
            self._document_type,
            truncates=self._connection.truncates,
        )

    async def _as_of(self, at: At) -> Self:
        """Return this table as it was then: its name may have meant another one."""
        tables = await self._tables.as_of(at, self.full_name)
        if tables is self._tables:
            return self
        then = copy(self)
        then._tables = tables
        return then

    async def _kept(self, at: At) -> Self:
        """Return the table of :meth:`_as_of`, kept for a scan's life, even if the name changes meanwhile."""
        table = await self._as_of(at)
        kept = copy(table)
        kept._tables = table._tables.keeping(await table.descriptor())
        return kept

    async def _subject(self) -> str:
        return (await self.descriptor()).subject

    async def _check_type(self) -> None:
        """Check the class once for each handle: a misfit does not depend on the stored documents."""
        if not self._is_type_checked:
            await self.codec._check_type()
            self._is_type_checked = True

    # --- by key ----------------------------------------------------------------------------------------------

    async def get(self, key: KeyLike, *, at: At = None, validate: bool = False) -> Document[D] | None:
        """Return the document of ``key``, or None.

        In a transaction with ``validate`` a change of it before the commit is a conflict, under any isolation.
        """
        read_at = self._connection.read_at(at, validate=validate)
        table = await self._as_of(at)
        await table._check_type()

        async def attempt() -> Any:
            request = documents_pb2.GetDocumentRequest(table=self._name, key=await table._key(key), at=read_at)
            return await self._call(self._stub.Get, request)

        reply = await table._with_descriptor(attempt)
        return await table._document(reply.found) if reply.HasField("found") else None

    async def get_many(self, keys: Sequence[KeyLike], *, at: At = None) -> list[Document[D] | None]:
        """Return the documents of ``keys``, in their order, None for a missing one; all as of one timestamp.

        Their number and size are not bounded: they come in as many replies as needed.
        """
        table = await self._as_of(at)
        await table._check_type()
        listed = sequence(keys, "keys")
        documents: list[Document[D] | None] = []
        read_at = at_to_proto(at)

        async def attempt() -> Any:
            parts = await table._parts_of(None)
            asked = listed[len(documents) : len(documents) + KEYS_MAX]
            request = documents_pb2.MultiGetRequest(
                table=self._name, keys=[key_to_proto(key, parts) for key in asked], at=read_at, may_stop_early=True
            )
            return await self._call(self._stub.MultiGet, request)

        while True:
            reply = await table._with_descriptor(attempt)
            documents += [await table._document(found) if found.HasField("document") else None for found in reply.found]
            if len(documents) >= len(listed) or not reply.found:
                return documents
            read_at = common_pb2.ReadAt(timestamp=reply.header.timestamp)

    # --- in ranges -------------------------------------------------------------------------------------------

    def scan(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        **options: Unpack[ScanOptions],
    ) -> AsyncIterator[Document[D]]:
        """Yield documents in key order, all as of one timestamp.

        ``start`` and ``end`` bound the primary key, or the ``index``, to ``[start, end)``; a bound may leave
        trailing parts away. The options are those of :class:`ScanOptions`: ``prefix``, ``index``, ``filter``,
        ``columns``, ``limit``, ``reverse`` and ``at``. Closing the iterator stops the server's work.

        A table with a document type takes no ``columns``: parts of documents make no instances.
        """
        scan = Scan(start, end, **options, with_versions=True)
        return items(opened(lambda: self._open_scan(scan)))

    def scan_batches(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        with_versions: bool = False,
        **options: Unpack[ScanOptions],
    ) -> AsyncIterator[RowBatch]:
        """Yield many rows at a time as raw Avro, each batch of one schema; otherwise as :meth:`scan`."""
        scan = Scan(start, end, **options, with_versions=with_versions)
        return opened(lambda: self._open_batches(scan))

    async def _open_scan(self, scan: Scan) -> AsyncGenerator[Iterable[Document[D]], None]:
        """Yield the documents of a scan, many at a time, as they come."""
        if scan.columns is not None and self._document_type is not None:
            problem = "must not be given if documents are instances of a class"
            raise InvalidArgument("columns", problem, self._document_type.__name__)
        table = await self._kept(scan.at)
        await table._check_type()
        return table._documents(await table._open_batches(scan))

    async def _open_batches(self, scan: Scan) -> AsyncGenerator[RowBatch, None]:
        """Return the rows of a scan. Raises NotFound, InvalidArgument for bounds that do not fit the key or index."""
        table = await self._as_of(scan.at)
        return each_batch(table._replies(await table._scan_request(scan)), is_empty=scan.is_empty)

    async def _open_page(
        self, scan: Scan, token: bytes, *, rows_max: int, bytes_max: int
    ) -> tuple[list[Document[D]], bytes]:
        """Return up to ``rows_max`` documents of a scan, fewer if they have ``bytes_max`` bytes or more, and the token
        from which the same scan goes on, as of the same timestamp; empty at the end. The first page has an empty
        token."""
        table = await self._as_of(scan.at)
        request = await table._scan_request(scan)
        request.page_token, request.page_size = token, rows_max
        batches, rest = await one_page(table._replies(request), request, bytes_max)
        return [document for each in batches for document in await table._of_batch(each)], rest

    async def _open_sample(
        self, rows_max: int, within_s: float
    ) -> tuple[TableDescriptor, list[Document[D]], bool] | None:
        """Return the table as it is now, its first documents, up to ``rows_max`` and as many as come in time, and
        whether more may follow. Each call is waited for no longer than ``within_s`` seconds, and the rows together not
        much longer.

        None in a transaction: a mere look should not begin it, nor count as one of its reads."""
        if self._connection.commits:
            return None
        table = copy(self)
        table._timeout_s = min(within_s, self._timeout_s)
        table._tables, table._schemas = self._tables.within(within_s), self._schemas.within(within_s)
        descriptor = await table._tables.describe(self.full_name)
        request = await table._scan_request(Scan())
        request.page_size = rows_max
        now_s = self._connection.environment.monotonic_s
        deadline_s = now_s() + within_s
        documents: list[Document[D]] = []
        token = b""
        async with aclosing(table._replies(request)) as replies:
            async for batches, token in replies:
                documents += [document for each in batches for document in await table._of_batch(each)]
                if not token or len(documents) >= rows_max or now_s() >= deadline_s:
                    break
        return descriptor, documents[:rows_max], bool(token)

    async def _scan_request(self, scan: Scan) -> documents_pb2.ScanRequest:
        schema_id = 0 if scan.columns is None else (await self.codec.schema())[0].schema_id
        return scan.to_proto(self._name, await self._parts_of(scan.index), schema_id)

    async def aggregate(
        self,
        aggregates: str,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        group_by: str | Sequence[str] | None = None,
        **options: Unpack[AggregateOptions],
    ) -> list[dict[str, Any]]:
        """Compute ``aggregates`` at the server, such as "count(*) as n, sum(price) as total", for each group of rows
        with equal values in ``group_by`` ("shop, address.city as city"); all as of one timestamp.

        One dict for each group, in the order of the groups; without ``group_by`` one in all. ``start``, ``end`` and
        the options, :class:`AggregateOptions`, choose the rows as in :meth:`scan`. Raises InvalidArgument for a text
        that does not parse, a field that is not there or of a type that does not fit, a sum that overflows; TooLarge
        for more than a million groups.
        """
        return (await self.aggregate_groups(aggregates, start, end, group_by=group_by, **options)).rows()

    async def aggregate_arrow(
        self,
        aggregates: str,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        group_by: str | Sequence[str] | None = None,
        **options: Unpack[AggregateOptions],
    ) -> pa.Table:
        """Compute :meth:`aggregate` as an Arrow table. Needs pyarrow and numpy."""
        return (await self.aggregate_groups(aggregates, start, end, group_by=group_by, **options)).arrow()

    async def count(self, start: KeyLike = None, end: KeyLike = None, **options: Unpack[AggregateOptions]) -> int:
        """Count the rows of a range, or those that a filter is true of: ``count(*)`` of :meth:`aggregate`."""
        [row] = await self.aggregate("count(*) as rows", start, end, **options)
        rows: int = row["rows"]
        return rows

    async def aggregate_groups(
        self,
        aggregates: str,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        group_by: str | Sequence[str] | None = None,
        groups_max: int = GROUPS_MAX,
        **options: Unpack[AggregateOptions],
    ) -> Groups:
        """Return unfinished groups of :meth:`aggregate`, for callers that ask several ranges at one ``at`` and merge
        the results (:meth:`Groups.merge`). Raises TooLarge if there are more groups than ``groups_max``."""
        query = parse_aggregates(aggregates, group_by)
        groups = Groups(query, groups_max=whole(groups_max, "groups_max", 1, GROUPS_MAX_MOST))
        scan = Scan(start, end, **options)
        table = await self._kept(scan.at)
        request = documents_pb2.AggregateRequest(
            table=self._name,
            index=scan.index or "",
            range=range_to_proto(start, end, scan.prefix, await table._parts_of(scan.index)),
            filter=scan.filter or "",
            group_by=[each.field for each in query.group_by],
            aggregates=aggregates_to_proto(query),
            at=at_to_proto(scan.at),
            schema_id=0 if self._schema_version is None else (await table.codec.schema())[0].schema_id,
        )
        replies = self._connection.replies(self._stub.Aggregate, request, timeout_s=self._timeout_s)
        async with aclosing(replies):
            async for reply in replies:
                groups._add(reply)
        return groups

    def watch(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        prefix: KeyLike = None,
        after: At = None,
        until: At = None,
        initial_state: bool = False,
        with_previous: bool = False,
        resolved_ms: int = 1_000,
    ) -> AsyncWatch[Key, Document[D]]:
        """Watch a range of the primary key: an iterator of Changed, Deleted and Resolved, in the order of the commits,
        which resumes by itself.

        Changes come ``after`` a timestamp (or its text, or a datetime with a zone), by default from now on. With
        ``initial_state`` the documents as they are then come first. ``until`` ends it, or a state that is newer than
        that; otherwise it has no end.
        ``with_previous`` adds the replaced document to each change. At least every ``resolved_ms`` there is an event.
        """
        return self._watch((start, end, prefix), WatchOptions(after, until, initial_state, with_previous, resolved_ms))

    def progress(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        prefix: KeyLike = None,
        after: At = None,
        until: At = None,
        resolved_ms: int = 1_000,
    ) -> AsyncWatch[Key, Document[D]]:
        """Watch without the changes: Resolved alone, when the range has changed, and at least every ``resolved_ms``.
        Otherwise as :meth:`watch`. For callers that read the changes in :meth:`windows <window>`."""
        options = WatchOptions(after, until, resolved_ms=resolved_ms, progress_only=True)
        return self._watch((start, end, prefix), options)

    def _watch(self, bounds: tuple[KeyLike, KeyLike, KeyLike], options: WatchOptions) -> AsyncWatch[Key, Document[D]]:
        self._connection.check_present("watching")
        began_with, codec = self._watched(options.after)
        source = DocumentSource(self._name, bounds, began_with, codec)
        return AsyncWatch(self._connection, source, options, timeout_s=self._timeout_s)

    def _watched(self, after: At) -> tuple[Callable[[], Awaitable[TableDescriptor]], AsyncDocumentCodec]:
        """Return the table that a watch begins with, and how its documents are read."""
        kept: list[TableDescriptor] = []

        async def began_with() -> TableDescriptor:
            if not kept:
                kept.append(await self._tables.described_at(after, self.full_name))
            return kept[0]

        async def subject() -> str:
            return (await began_with()).subject

        return began_with, self._codec_of(subject)

    async def window(
        self,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        after: At,
        until: At = None,
        changes_max: int | None = None,
        bytes_max: int | None = None,
        parts: int = 1,
    ) -> ChangeWindow[Key]:
        """Return the window of the next changes of a range ``after`` a timestamp: its end, and up to ``parts`` ranges
        with about equally many changes. Read each by a :meth:`watch` up to the end.

        It ends with a whole commit: at ``until`` (by default the newest), or before the first commit that would make
        it more than ``changes_max`` changes, or than ``bytes_max`` bytes of stored keys and documents. The node
        counts no more than 65,536, or one commit. With the ``until`` that it returned, the same window comes again.
        Raises SnapshotTooOld, NotFound.
        """
        self._connection.check_present("watching")
        options = WindowOptions(after, until, changes_max, bytes_max, parts)
        key_parts = await self.codec._timed((await self._tables.described_at(after, self.full_name)).key)
        of = watch_pb2.WindowOfTable(table=self._name, range=range_to_proto(start, end, None, key_parts))
        return await window_of_table(self._connection, of, options, self._timeout_s)

    async def split(
        self,
        parts: int,
        start: KeyLike = None,
        end: KeyLike = None,
        *,
        part_bytes: int | None = None,
        at: At = None,
    ) -> tuple[Timestamp, list[KeyRange]]:
        """Return up to ``parts`` adjacent ranges with about equally many rows, and the timestamp to read them all at.
        With ``part_bytes`` ranges have about so many stored bytes each, and there are at most 1,024."""
        key_parts = await (await self._as_of(at))._parts_of(None)
        request = documents_pb2.SplitRequest(
            table=self._name,
            range=range_to_proto(start, end, None, key_parts),
            parts=whole(parts, "parts", 1, _UINT32_MAX),
            part_bytes=None if part_bytes is None else whole(part_bytes, "part_bytes", 1, _UINT64_MAX),
            at=at_to_proto(at),
        )
        reply = await self._call(self._stub.Split, request)
        return timestamp_of(reply.header.timestamp), key_ranges(reply)

    # --- messages --------------------------------------------------------------------------------------------

    async def _key(self, key: KeyLike) -> common_pb2.Key:
        """Return a primary key as a message. Raises InvalidArgument naming the part."""
        return key_to_proto(key, await self._parts_of(None))

    async def _document(self, found: documents_pb2.FoundDocument) -> Document[D]:
        writer, reader = await self.codec.reader_of(found.document.schema_id)
        decode, shape = self.codec._decoder(writer, reader)
        return Document(decode(found.document.avro), found.etag, shape, writer, found.expires_ms)

    async def _documents(self, batches: AsyncGenerator[RowBatch, None]) -> AsyncGenerator[Iterable[Document[D]], None]:
        async with aclosing(batches):
            async for batch in batches:
                yield await self._of_batch(batch)

    async def _of_batch(self, batch: RowBatch) -> Iterable[Document[D]]:
        codec = self.codec
        if batch.schema_id:
            writer, reader = await codec.reader_of(batch.schema_id)
        else:
            writer, reader = batch.schema, None
        return decoded(batch, *codec._decoder(writer, reader), writer)

    def _replies(self, request: documents_pb2.ScanRequest) -> AsyncGenerator[tuple[list[RowBatch], bytes], None]:
        return row_batches(self._connection.replies(self._stub.Scan, request, timeout_s=self._timeout_s), self._schemas)

    async def _call(self, method: Any, request: Any) -> Any:
        return await self._connection.call(method, request, timeout_s=self._timeout_s)

    async def _with_descriptor(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        """Run ``attempt``; once more if it was refused and the table turns out to have been made anew."""
        before = await self.descriptor()
        try:
            return await attempt()
        except InvalidDocument:
            raise
        except InvalidArgument:
            if await self._tables.describe(self.full_name) == before:
                raise
        except NotFound:
            self._tables.forget(self.full_name)
            raise
        return await attempt()

    async def _parts_of(self, index: str | None) -> Sequence[KeyPart]:
        if not index:
            return await self.codec._timed((await self.descriptor()).key)
        found = (await self.descriptor()).index(index)
        if found is None:
            table = await self._tables.describe(self.full_name)
            found = table.index(index)
            if found is None:
                raise await self._tables.no_index(table, index)
        return await self.codec._timed(found.parts)
