"""One table in the hands of an application: documents by key, in ranges, in batches and in bulk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from cortado.errors import CortadoError, InvalidArgument, InvalidDocument, NotFound, OutcomeUnknown
from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client.arguments import iterable, optional_text, sequence, texts, whole
from cortado.store.client.bulk import BulkLoad, BulkResult
from cortado.store.client.chunks import chunk_limits, chunks_of_batches, chunks_of_documents
from cortado.store.client.connection import Connection
from cortado.store.client.documents import Document, DocumentCodec, RowBatch, decoder_of
from cortado.store.client.kv import check_limit
from cortado.store.client.retry import before_a_write
from cortado.store.client.schemas import Schemas
from cortado.store.client.tables import Tables
from cortado.store.client.values import (
    At,
    Key,
    KeyLike,
    at_to_proto,
    etag_condition,
    key_from_proto,
    key_to_proto,
    range_to_proto,
    timestamp_of,
    timestamp_to_proto,
)
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import KeyPart
from cortado.store.names import split_table_name

if TYPE_CHECKING:
    import pyarrow as pa

PutMode: TypeAlias = Literal["upsert", "insert", "replace"]

_UINT32_MAX: Final = (1 << 32) - 1
_MODES: Final[dict[str, documents_pb2.PutMode]] = {
    "upsert": documents_pb2.PUT_MODE_UPSERT,
    "insert": documents_pb2.PUT_MODE_INSERT,
    "replace": documents_pb2.PUT_MODE_REPLACE,
}


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The half-open range ``[lower, upper)`` of a table; None is open. ``rows`` is about how many it holds."""

    lower: Key | None
    upper: Key | None
    rows: int


class Table:
    """A table. Made by ``client.table("database.table")``; holds no state but caches, and may be shared by threads.

    Keys are a tuple of parts, or a single value where the key has one part. ``at`` reads in the past: a
    :class:`Timestamp`, its text, or a ``datetime`` with a time zone.
    """

    def __init__(
        self,
        connection: Connection,
        tables: Tables,
        schemas: Schemas,
        full_name: str,
        *,
        timeout_s: float,
        schema_version: int | None = None,
    ) -> None:
        database, name = split_table_name(full_name)
        self.full_name = full_name
        self._name = documents_pb2.TableName(database=database, table=name)
        self._connection = connection
        self._stub = connection.stubs.documents
        self._tables = tables
        self._schemas = schemas
        self._timeout_s = timeout_s
        self._schema_version = schema_version

    @property
    def descriptor(self) -> TableDescriptor:
        """The table's key, subject and indexes, as this client last saw them. Raises NotFound."""
        return self._tables.known(self.full_name)

    @property
    def codec(self) -> DocumentCodec:
        """How documents of this table become bytes."""
        return DocumentCodec(self._schemas, self.descriptor.subject, self._schema_version)

    # --- by key ----------------------------------------------------------------------------------------------

    def get(self, key: KeyLike, *, at: At = None) -> Document | None:
        """The document of ``key``, or None."""

        def request() -> documents_pb2.GetDocumentRequest:
            return documents_pb2.GetDocumentRequest(table=self._name, key=self.key(key), at=at_to_proto(at))

        reply = self._with_descriptor(lambda: self._call(self._stub.Get, request()))
        return self._document(reply.found) if reply.HasField("found") else None

    def get_many(self, keys: Sequence[KeyLike], *, at: At = None) -> list[Document | None]:
        """The documents of ``keys``, in their order, None where there is none; all as of one timestamp."""
        listed = sequence(keys, "keys")

        def request() -> documents_pb2.MultiGetRequest:
            return documents_pb2.MultiGetRequest(
                table=self._name, keys=[self.key(key) for key in listed], at=at_to_proto(at)
            )

        reply = self._with_descriptor(lambda: self._call(self._stub.MultiGet, request()))
        return [self._document(found) if found.HasField("document") else None for found in reply.found]

    def put(self, document: Mapping[str, Any], *, mode: PutMode = "upsert", if_match: str | None = None) -> str:
        """Stores a whole document durably, under the key that it holds; returns its etag.

        ``mode`` "insert" wants no document there, "replace" wants one. Raises InvalidDocument with the field's path,
        ConditionFailed, UniqueViolation.
        """
        with before_a_write():
            request = documents_pb2.PutDocumentRequest(
                table=self._name,
                document=self.document_to_proto(document),
                mode=put_mode(mode),
                condition=etag_condition(if_match),
            )
        etag: str = self._write(self._stub.Put, request).etag
        return etag

    def update(self, key: KeyLike, changes: Mapping[str, Any], *, if_match: str | None = None) -> Document:
        """Sets the fields at these paths (``a`` or ``a.b``) and no others; returns the document after it.

        Raises NotFound where there is no document, InvalidDocument, ConditionFailed, UniqueViolation.
        """

        def request() -> documents_pb2.UpdateDocumentRequest:
            return documents_pb2.UpdateDocumentRequest(
                table=self._name,
                key=self.key(key),
                changes_json=self.changes_to_json(changes),
                condition=etag_condition(if_match),
            )

        return self._written(self._write_by_key(self._stub.Update, request).found)

    def delete(self, key: KeyLike, *, if_match: str | None = None) -> bool:
        """Deletes the document of ``key`` durably; True where there was one. Raises ConditionFailed."""

        def request() -> documents_pb2.DeleteDocumentRequest:
            return documents_pb2.DeleteDocumentRequest(
                table=self._name, key=self.key(key), condition=etag_condition(if_match)
            )

        existed: bool = self._write_by_key(self._stub.Delete, request).existed
        return existed

    # --- in ranges -------------------------------------------------------------------------------------------

    def scan(
        self,
        lower: KeyLike = None,
        upper: KeyLike = None,
        *,
        prefix: KeyLike = None,
        index: str | None = None,
        filter: str | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        reverse: bool = False,
        at: At = None,
    ) -> Iterator[Document]:
        """Documents in key order, all as of one timestamp.

        ``lower`` and ``upper`` bound the primary key, or the ``index``, to ``[lower, upper)``; a bound may leave
        trailing parts away. ``prefix`` asks for every key that begins with these parts: the way to look something up
        by an index. ``columns`` are field paths, and ``filter`` follows the filter grammar. Closing the iterator
        stops the server's work.
        """
        batches = self.scan_batches(
            lower,
            upper,
            prefix=prefix,
            index=index,
            filter=filter,
            columns=columns,
            limit=limit,
            reverse=reverse,
            at=at,
            with_versions=True,
        )
        return self._documents(batches)

    def scan_batches(
        self,
        lower: KeyLike = None,
        upper: KeyLike = None,
        *,
        prefix: KeyLike = None,
        index: str | None = None,
        filter: str | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        reverse: bool = False,
        at: At = None,
        with_versions: bool = False,
    ) -> Iterator[RowBatch]:
        """As :meth:`scan`, but many rows at a time as raw Avro, each batch of one schema."""
        limit_rows = check_limit(limit)
        paths = [] if columns is None else texts(columns, "columns")
        request = documents_pb2.ScanRequest(
            table=self._name,
            index=optional_text(index, "index"),
            range=range_to_proto(lower, upper, prefix, self._parts_of(index)),
            reverse=reverse,
            filter=optional_text(filter, "filter"),
            columns=paths,
            limit=limit_rows,
            at=at_to_proto(at),
            schema_id=self.codec.schema()[0].schema_id if paths else 0,
            with_versions=with_versions,
        )
        return iter(()) if limit == 0 else self._batches(request)

    def split(
        self, parts: int, lower: KeyLike = None, upper: KeyLike = None, *, at: At = None
    ) -> tuple[Timestamp, list[KeyRange]]:
        """Up to ``parts`` adjacent ranges with about equal amounts of data, and the timestamp to read them all at."""
        key_parts = self.descriptor.key
        request = documents_pb2.SplitRequest(
            table=self._name,
            range=range_to_proto(lower, upper, None, key_parts),
            parts=whole(parts, "parts", 1, _UINT32_MAX),
            at=at_to_proto(at),
        )
        reply = self._call(self._stub.Split, request)
        ranges = [
            KeyRange(
                key_from_proto(each.lower) if each.HasField("lower") else None,
                key_from_proto(each.upper) if each.HasField("upper") else None,
                rows,
            )
            for each, rows in zip(reply.ranges, reply.rows, strict=True)
        ]
        return timestamp_of(reply.header.timestamp), ranges

    # --- in bulk ---------------------------------------------------------------------------------------------

    def bulk(
        self,
        documents: Iterable[Mapping[str, Any]],
        *,
        mode: PutMode = "upsert",
        chunk_rows: int = 1_000,
        unchanged_since: Timestamp | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        """Stores many documents, each chunk one commit; a bad document is refused by itself, with its place.

        ``progress`` is called with the number of rows that are done. With ``unchanged_since`` a row is refused whose
        stored version is newer than that and differs. Raises OutcomeUnknown where no answer came in time.
        """
        load = self._bulk_load(mode, unchanged_since, progress)
        rows_max = chunk_limits(chunk_rows)
        return load.run(
            chunks_of_documents(iterable(documents, "documents"), self.codec.encode, rows_max, load.result.refuse)
        )

    def bulk_json(
        self,
        values: Iterable[Any],
        *,
        mode: PutMode = "upsert",
        chunk_rows: int = 1_000,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        """As :meth:`bulk`, for documents in their JSON form (as :meth:`Document.to_json` gives them)."""
        load = self._bulk_load(mode, None, progress)
        rows_max = chunk_limits(chunk_rows)
        return load.run(
            chunks_of_documents(iterable(values, "documents"), self.codec.encode_json, rows_max, load.result.refuse)
        )

    def bulk_batches(
        self,
        batches: Iterable[tuple[int, bytes, bytes] | RowBatch],
        *,
        mode: PutMode = "upsert",
        unchanged_since: Timestamp | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> BulkResult:
        """As :meth:`bulk`, for rows that are Avro already: (schema id, bodies end to end, lengths as 4 bytes each)."""
        load = self._bulk_load(mode, unchanged_since, progress)
        return load.run(chunks_of_batches(iterable(batches, "batches")))

    # --- as Arrow --------------------------------------------------------------------------------------------

    def scan_arrow(self, *args: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """As :meth:`scan`, as Arrow record batches of one schema. Needs pyarrow and numpy."""
        from cortado.store.client.arrow import scan_arrow

        return scan_arrow(self, *args, **options)

    def bulk_arrow(self, batches: Iterable[pa.RecordBatch], **options: Any) -> BulkResult:
        """As :meth:`bulk`, from Arrow record batches. Needs pyarrow and numpy."""
        from cortado.store.client.arrow import bulk_arrow

        return bulk_arrow(self, batches, **options)

    # --- messages --------------------------------------------------------------------------------------------

    def key(self, key: KeyLike) -> common_pb2.Key:
        """A primary key as a message. Raises InvalidArgument naming the part."""
        return key_to_proto(key, self.descriptor.key)

    def document_to_proto(self, document: Mapping[str, Any]) -> common_pb2.Document:
        """A document as a message. Raises InvalidDocument naming the field."""
        schema_id, body = self.codec.encode(document)
        return common_pb2.Document(schema_id=schema_id, avro=body)

    def changes_to_json(self, changes: Mapping[str, Any]) -> str:
        """New values at field paths, as the API carries them. Raises InvalidDocument naming the path."""
        return json.dumps(self.codec.changes_to_json(changes))

    def _document(self, found: documents_pb2.FoundDocument) -> Document:
        value, schema = self.codec.decode(found.document.schema_id, found.document.avro)
        return Document(value, found.etag, schema)

    def _documents(self, batches: Iterator[RowBatch]) -> Iterator[Document]:
        codec = self.codec
        for batch in batches:
            if batch.schema_id:
                writer, reader = codec.reader_of(batch.schema_id)
            else:
                writer, reader = batch.schema, None
            shape = reader or writer
            decode = decoder_of(writer, reader)
            for body, etag in zip(batch.each_body(), batch.etags(), strict=True):
                yield Document(decode(body), etag, shape)

    def _batches(self, request: documents_pb2.ScanRequest) -> Iterator[RowBatch]:
        projected, projected_text = None, ""
        for reply in self._connection.replies(self._stub.Scan, request, timeout_s=self._timeout_s):
            if reply.projected_schema and reply.projected_schema != projected_text:
                projected_text = reply.projected_schema
                projected = _projection(projected_text)
            for batch in reply.batches:
                schema = self._schemas.by_id(batch.schema_id) if batch.schema_id else projected
                if schema is None:
                    raise NotFound("schema", "of the selected columns")
                yield RowBatch(batch.schema_id, batch.bodies, batch.lengths, batch.versions, schema)

    # --- calls -----------------------------------------------------------------------------------------------

    def _call(self, method: Any, request: Any) -> Any:
        return self._connection.call(method, request, timeout_s=self._timeout_s)

    def _write(self, method: Any, request: Any) -> Any:
        return self._connection.write(method, request, timeout_s=self._timeout_s)

    def _write_by_key(self, method: Any, request: Callable[[], Any]) -> Any:
        with before_a_write():
            return self._with_descriptor(lambda: self._write(method, request()))

    def _written(self, found: documents_pb2.FoundDocument) -> Document:
        """What a write answered. To show it a schema may have to be asked for, and that may fail."""
        try:
            return self._document(found)
        except CortadoError as error:
            raise OutcomeUnknown(f"it was written, as {found.etag}, but can't be shown: {error}") from error

    def _with_descriptor(self, attempt: Callable[[], Any]) -> Any:
        """Runs ``attempt``; once more where it was refused and the table turns out to have been made anew."""
        before = self.descriptor
        try:
            return attempt()
        except InvalidDocument:
            raise
        except InvalidArgument:
            if self._tables.describe(self.full_name) == before:
                raise
        except NotFound:
            self._tables.forget(self.full_name)
            raise
        return attempt()

    def _parts_of(self, index: str | None) -> Sequence[KeyPart]:
        if not index:
            return self.descriptor.key
        found = self.descriptor.index(index) or self._tables.describe(self.full_name).index(index)
        if found is None:
            raise NotFound("index", f"{index} of table {self.full_name}")
        return found.parts

    def _bulk_load(
        self, mode: PutMode, unchanged_since: Timestamp | None, progress: Callable[[int], None] | None
    ) -> BulkLoad:
        start = documents_pb2.BulkStart(
            table=self._name,
            mode=put_mode(mode),
            unchanged_since=None if unchanged_since is None else timestamp_to_proto(unchanged_since),
        )
        return BulkLoad(self._connection, start, timeout_s=self._timeout_s, progress=progress)


def put_mode(mode: str) -> documents_pb2.PutMode:
    """A mode's number. Raises InvalidArgument naming the modes there are."""
    known = _MODES.get(mode) if isinstance(mode, str) else None
    if known is None:
        raise InvalidArgument("mode", f"must be one of {', '.join(_MODES)}", repr(mode))
    return known


@lru_cache(256)
def _projection(text: str) -> Schema:
    # Kept, since whoever decodes compiles a schema once per object.
    return parse_schema(text)
