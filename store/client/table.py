"""One table in the hands of an application: documents by key, in ranges, in batches and in bulk."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

from cortado.errors import CortadoError, InvalidArgument, InvalidDocument, NotFound, OutcomeUnknown, Unsupported
from cortado.proto.v1 import common_pb2, documents_pb2, transactions_pb2
from cortado.schema.fields import select_fields
from cortado.store.client.arguments import callback, flag, iterable, text, texts
from cortado.store.client.arrow_reads import ArrowReads
from cortado.store.client.bulk import BulkLoad, BulkResult
from cortado.store.client.chunks import chunk_limits, chunks_of_batches, chunks_of_documents
from cortado.store.client.documents import D, Document, RowBatch
from cortado.store.client.kv import condition
from cortado.store.client.operations import addition, required
from cortado.store.client.public_faces import public_face
from cortado.store.client.put_mode import BulkMode, PutMode, bulk_mode, whole_rows
from cortado.store.client.retry import before_a_write
from cortado.store.client.streams import ArrowStream, Rows
from cortado.store.client.values import (
    Expires,
    KeyLike,
    etag_condition,
    expiry_to_proto,
    parts_of,
    timestamp_to_proto,
)
from cortado.store.clock.timestamp import Timestamp

if TYPE_CHECKING:
    import pyarrow as pa

_UINT32_MAX: Final = (1 << 32) - 1


@public_face
class AsyncTable(ArrowReads[D]):
    """A table. Made by ``client.table("database.table")``; holds no state but caches, and may be shared by threads.

    Keys are a tuple of parts, or a single value if the key has one part. ``at`` reads in the past: a
    :class:`Timestamp`, its text, or a ``datetime`` with a time zone. Documents are dicts, or instances of the document
    type that the handle was made for (:mod:`cortado.store.client.document_types`).

    The table of a transaction is this, too. Its writes wait for the commit, and return None.
    """

    # --- by key ----------------------------------------------------------------------------------------------

    @overload
    async def put(
        self: AsyncTable,
        document: Mapping[str, Any],
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_etag: str | None = None,
        expires: Expires = None,
    ) -> str: ...

    @overload
    async def put(
        self,
        document: D,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_etag: str | None = None,
        expires: Expires = None,
    ) -> str: ...

    async def put(
        self,
        document: Any,
        *,
        if_absent: bool = False,
        if_present: bool = False,
        if_etag: str | None = None,
        expires: Expires = None,
    ) -> str:
        """Store a whole document durably, under the key that it holds; return its etag.

        It ``expires`` after a timedelta, at a datetime, "never", or by default as the table does. Raises
        InvalidDocument with the field's path, UniqueViolation, and ConditionFailed if the condition does not hold: no
        document is there, one is, or its etag is ``if_etag``.
        """
        with before_a_write():
            request = documents_pb2.PutDocumentRequest(
                table=self._name,
                document=await self._document_to_proto(document),
                condition=condition(if_absent=if_absent, if_present=if_present, if_etag=if_etag),
                expiry=expiry_to_proto(expires),
            )
        etag: str = (await self._write(self._stub.Put, request)).etag
        return etag

    async def update(
        self, key: KeyLike, changes: Mapping[str, Any], *, if_etag: str | None = None, expires: Expires = None
    ) -> Document[D]:
        """Set the fields at these paths (``a`` or ``a.b``) and no others; return the document after it. Without
        ``expires`` it expires when it did before. With it ``changes`` may be empty.

        Raises NotFound if there is no document, InvalidDocument, ConditionFailed, UniqueViolation.
        """
        expiry = expiry_to_proto(expires)
        await self._check_type()

        async def request() -> documents_pb2.UpdateDocumentRequest:
            return documents_pb2.UpdateDocumentRequest(
                table=self._name,
                key=await self._key(key),
                changes_json=await self._changes_to_json(changes),
                condition=etag_condition(if_etag),
                expiry=expiry,
            )

        updated: Document[D] = await self._written((await self._write_by_key(self._stub.Update, request)).found)
        return updated

    async def delete(self, key: KeyLike, *, if_etag: str | None = None) -> bool:
        """Delete the document of ``key`` durably; True if there was one. Raises ConditionFailed."""

        async def request() -> documents_pb2.DeleteDocumentRequest:
            return documents_pb2.DeleteDocumentRequest(
                table=self._name, key=await self._key(key), condition=etag_condition(if_etag)
            )

        existed: bool = (await self._write_by_key(self._stub.Delete, request)).existed
        return existed

    async def add(self, key: KeyLike, field: str, delta: int, *, min: int | None = None, max: int | None = None) -> int:
        """Add to the int or long at this path of the document's newest version; return the sum.

        It conflicts with no other add. Raises OutOfBounds if the sum would leave ``[min, max]`` or the type's range,
        NotFound if there is no document, InvalidArgument if the field is null or no whole number.
        """
        path, asked = text(field, "field"), addition(delta, min, max)

        async def request() -> transactions_pb2.CommitRequest:
            add = common_pb2.DocumentAdd(
                database=self._name.database, table=self._name.table, key=await self._key(key), field=path, **asked
            )
            return transactions_pb2.CommitRequest(operations=[common_pb2.Operation(add=add)])

        total: int = (await self._write_by_key(self._connection.stubs.transactions.Commit, request)).sums[0]
        return total

    async def require(
        self, key: KeyLike, *, if_absent: bool = False, if_present: bool = False, if_etag: str | None = None
    ) -> None:
        """Change nothing; raise ConditionFailed if the condition does not hold: no document is there, one is, or its
        etag is ``if_etag``. In a transaction, it must hold at the commit."""
        asked = condition(if_absent=if_absent, if_present=if_present, if_etag=if_etag)
        wanted = required(asked, "if_absent, if_present and if_etag")

        async def request() -> transactions_pb2.CommitRequest:
            check = common_pb2.DocumentCheck(
                database=self._name.database, table=self._name.table, key=await self._key(key), condition=wanted
            )
            return transactions_pb2.CommitRequest(operations=[common_pb2.Operation(check=check)])

        await self._write_by_key(self._connection.stubs.transactions.Commit, request)

    # --- in bulk ---------------------------------------------------------------------------------------------

    @overload
    async def put_many(
        self: AsyncTable,
        documents: Rows[Mapping[str, Any]],
        *,
        mode: PutMode = "upsert",
        parse: bool = False,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult: ...

    @overload
    async def put_many(
        self,
        documents: Rows[D],
        *,
        mode: PutMode = "upsert",
        parse: bool = False,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult: ...

    async def put_many(
        self,
        documents: Rows[Any],
        *,
        mode: PutMode = "upsert",
        parse: bool = False,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        """Store many documents, each chunk one commit; a bad document is refused by itself, with its place.

        ``parse`` reads texts by the types of their fields: rows of Python's ``csv.DictReader``. ``progress`` is called
        with the number of rows that are done. They expire as with :meth:`put`, a timedelta after their chunk's commit.
        With ``unchanged_since`` a row is refused if its stored version is newer than that and differs. Raises
        OutcomeUnknown if no answer came in time.
        """
        load = self._bulk_load(whole_rows(mode), unchanged_since, expires, progress)
        rows_max = chunk_limits(chunk_rows)
        source = iterable(documents, "documents")
        encode: Callable[[Any], Awaitable[tuple[int, bytes]]] = self.codec.encode
        if flag(parse, "parse"):
            if self._document_type is not None:
                problem = "is for rows of texts, and this handle has a document type"
                raise InvalidArgument("parse", problem, self._document_type.__name__)
            encode = self.codec.encode_texts
        await self._check_type()
        return await load.run(chunks_of_documents(source, encode, rows_max, load.result._refuse))

    async def put_json(
        self,
        values: Rows[Any],
        *,
        mode: PutMode = "upsert",
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        """Store documents in their JSON form, as :meth:`Document.to_json` gives them; otherwise as :meth:`put_many`."""
        load = self._bulk_load(whole_rows(mode), unchanged_since, expires, progress)
        rows_max = chunk_limits(chunk_rows)
        source = iterable(values, "documents")
        return await load.run(chunks_of_documents(source, self.codec.encode_json, rows_max, load.result._refuse))

    async def put_batches(
        self,
        batches: Rows[tuple[int, bytes, bytes] | RowBatch],
        *,
        mode: PutMode = "upsert",
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        """Store rows that are Avro already: (schema id, bodies end to end, lengths as 4 bytes each); as
        :meth:`put_many`."""
        load = self._bulk_load(whole_rows(mode), unchanged_since, expires, progress)
        return await load.run(chunks_of_batches(iterable(batches, "batches")))

    async def update_many(
        self,
        documents: Rows[Mapping[str, Any]],
        columns: Sequence[str],
        *,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        """Change the fields ``columns`` of existing documents, as :meth:`put_many`; all other fields stay.

        Each of ``documents`` has these fields and no others, those of the primary key among them. One that is not there
        is refused (ConditionFailed). They go on to expire when they did, unless ``expires`` says something else.
        """
        names = await self._to_update(columns)
        load = self._bulk_load(bulk_mode("update"), unchanged_since, expires, progress, names)
        rows_max = chunk_limits(chunk_rows)
        source = iterable(documents, "documents")

        async def encode(document: Mapping[str, Any]) -> tuple[int, bytes]:
            return await self.codec.encode_fields(document, names, self.full_name)

        return await load.run(chunks_of_documents(source, encode, rows_max, load.result._refuse))

    async def delete_many(
        self,
        keys: Rows[KeyLike],
        *,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        """Delete the documents of many keys, each chunk one commit. A missing key counts as deleted.

        Raises Unsupported if the key is of fields inside of records; :meth:`put_arrow` deletes those.
        """
        names = await self._key_columns()
        if names != tuple(part.path for part in (await self.descriptor()).key):
            raise Unsupported(f"delete_many in {self.full_name}, whose key is inside of a record", "put_arrow")
        load = self._bulk_load(bulk_mode("delete"), unchanged_since, None, progress, names)
        rows_max = chunk_limits(chunk_rows)
        source = iterable(keys, "keys")

        async def encode(key: KeyLike) -> tuple[int, bytes]:
            parts = parts_of(key)
            if len(parts) != len(names):
                raise InvalidDocument(
                    "key", f"must have {len(names)} parts ({', '.join(names)})", f"{len(parts)} parts"
                )
            return await self.codec.encode_fields(dict(zip(names, parts, strict=True)), names, self.full_name)

        return await load.run(chunks_of_documents(source, encode, rows_max, load.result._refuse))

    async def _to_update(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns. Raises NotFound for one that the schema lacks, InvalidArgument without those of the
        key."""
        names, of_key = tuple(texts(columns, "columns")), await self._key_columns()
        try:
            select_fields((await self.codec.schema())[1], names, self.full_name)
        except NotFound:
            if not await self.codec.refresh():
                raise
            select_fields((await self.codec.schema())[1], names, self.full_name)
        if not set(of_key) <= set(names):
            problem = f"must have the fields of the primary key of table {self.full_name}: {', '.join(of_key)}"
            raise InvalidArgument("columns", problem, ", ".join(names))
        return names

    async def _key_columns(self) -> tuple[str, ...]:
        """Return the fields of the document that the primary key is in."""
        return tuple(dict.fromkeys(part.path.partition(".")[0] for part in (await self.descriptor()).key))

    # --- as Arrow --------------------------------------------------------------------------------------------

    async def put_arrow(
        self,
        batches: Rows[pa.RecordBatch] | pa.RecordBatch | ArrowStream,
        *,
        mode: BulkMode = "upsert",
        columns: Sequence[str] | None = None,
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        expires: Expires = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        """Store rows of Arrow, as :meth:`put_many`: a table, a record batch, or several; or a data frame of pandas or
        polars, and any other source of an Arrow stream. Needs pyarrow and numpy.

        A field without a column gets its default, and levels of a pandas index are columns if they have names. With
        the mode "update" the fields ``columns`` of existing rows are changed, and all others stay; with "delete"
        only the primary key's columns are read.

        Errors are raised before any row of their record batch is sent: NotFound for a column that the schema lacks,
        InvalidArgument for one that is missing or of another type, and InvalidDocument, with path and row, for a value
        that the schema does not admit. A table or a frame is sent in record batches of 20,000 rows.
        """
        from cortado.store.client.arrow import record_batches_of, rows_of_arrow

        chunk_limits(chunk_rows)
        known = bulk_mode(mode)
        if (columns is not None) != (mode == "update"):
            must = "must name the fields to change" if mode == "update" else "goes with the mode update"
            raise InvalidArgument("columns", must)
        names = () if columns is None else await self._to_update(columns)
        if mode == "delete":
            names = await self._key_columns()
        load = self._bulk_load(known, unchanged_since, expires, progress, names)
        version, schema = await self.codec.schema()
        source = record_batches_of(batches)
        rows = rows_of_arrow(
            source,
            version.schema_id,
            schema,
            self.full_name,
            chunk_rows,
            names,
            truncates=self._connection.truncates,
        )
        return await load.run(chunks_of_batches(rows))

    # --- messages --------------------------------------------------------------------------------------------

    async def _document_to_proto(self, document: Any) -> common_pb2.Document:
        """Return a document as a message. Raises InvalidDocument naming the field."""
        schema_id, body = await self.codec.encode(document)
        return common_pb2.Document(schema_id=schema_id, avro=body)

    async def _changes_to_json(self, changes: Mapping[str, Any]) -> str:
        """Return new values at field paths, as the API carries them. Raises InvalidDocument naming the path."""
        return json.dumps(await self.codec.changes_to_json(changes))

    async def _write(self, method: Any, request: Any) -> Any:
        return await self._connection.write(method, request, timeout_s=self._timeout_s)

    async def _write_by_key(self, method: Any, request: Callable[[], Awaitable[Any]]) -> Any:
        async def attempt() -> Any:
            return await self._write(method, await request())

        with before_a_write():
            return await self._with_descriptor(attempt)

    async def _written(self, found: documents_pb2.FoundDocument | None) -> Any:
        """Return the written document; None if the write waits for a commit. It may have to ask for a schema, and that
        may fail."""
        if found is None:
            return None
        try:
            return await self._document(found)
        except CortadoError as error:
            raise OutcomeUnknown(f"it was written, as {found.etag}, but can't be shown: {error}") from error

    def _bulk_load(
        self,
        mode: documents_pb2.BulkMode,
        unchanged_since: Timestamp | None,
        expires: Expires,
        progress: Callable[[int], None] | None,
        columns: Sequence[str] = (),
    ) -> BulkLoad:
        if not isinstance(unchanged_since, Timestamp | None):
            raise InvalidArgument("unchanged_since", "must be a Timestamp", type(unchanged_since).__name__)
        callback(progress, "progress")
        start = documents_pb2.BulkStart(
            table=self._name,
            mode=mode,
            columns=columns,
            unchanged_since=None if unchanged_since is None else timestamp_to_proto(unchanged_since),
            expiry=expiry_to_proto(expires),
        )
        return BulkLoad(self._connection, start, timeout_s=self._timeout_s, progress=progress)
