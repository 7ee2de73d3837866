"""Documents and their bytes: dicts or instances of a class in the hands of the application, Avro on the wire.

A document is written with the newest version of its table's subject. A read resolves the version that wrote it to the
newest one, so that old and new rows look alike. A table handle that was made for one version
(``client.table("db.t", schema_version=2)``) writes and reads with that one.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from cortado.errors import InvalidDocument, NotFound
from cortado.proto.v1 import common_pb2
from cortado.schema.documents import decode_document, encode_document, truncated_value
from cortado.schema.fields import select_fields
from cortado.schema.json_format import from_json_value, to_json_value
from cortado.schema.model import AvroType, LogicalKind, Primitive, Record, Schema, Union
from cortado.schema.parse import parse_schema
from cortado.schema.text_format import from_texts
from cortado.store.client.arguments import text
from cortado.store.client.document_types import document_type, to_mapping, to_plain
from cortado.store.client.known_schemas import KnownSchemas, SchemaVersion
from cortado.store.client.notebook import grid
from cortado.store.client.values import TruncatedPart
from cortado.store.clock.timestamp import WALL_MS_MAX, Timestamp
from cortado.store.keys.types import KeyPart, KeyType

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    # Without a document type a table has dicts; at run time nothing reads this default.
    D = DefaultTypeVar("D", default=dict[str, Any])
else:
    D = TypeVar("D")

T = TypeVar("T")

_IN_MILLIS: Final = (LogicalKind.TIMESTAMP_MILLIS, LogicalKind.LOCAL_TIMESTAMP_MILLIS)


@dataclass(frozen=True, slots=True)
class Document(Generic[D]):
    """One document as of one commit. ``etag`` names that commit, for a conditional write.

    ``value`` is a dict, or an instance of the table's document type. It expires at the wall time ``expires_ms``, in
    milliseconds since 1970; 0 for never, and in a scan's documents. ``schema`` shapes it; ``writer`` wrote it, and
    may lack fields that have their defaults here.
    """

    value: D
    etag: str
    schema: Schema = field(repr=False, compare=False)
    writer: Schema = field(repr=False, compare=False)
    expires_ms: int = 0

    @property
    def ts(self) -> Timestamp:
        """The timestamp of the commit that wrote it."""
        return Timestamp.parse(self.etag)

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON can carry it: bytes as base64, decimals as text, timestamps as RFC 3339."""
        json_value: dict[str, Any] = to_json_value(self.schema.root, to_mapping(self.value, self.schema))
        return json_value

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: its fields, each in a line."""
        fields = list(to_mapping(self.value, self.schema).items())
        return grid(f"document {self.etag}".rstrip(), ("field", "value"), fields)


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Many rows of one schema, as they travel: ``bodies`` end to end, ``lengths`` 4 bytes a row (little-endian).

    ``versions`` holds 12 bytes a row, the commit timestamps, or nothing. ``schema_id`` is 0 if a scan selected
    columns: then ``schema`` is that of the selection.
    """

    schema_id: int
    bodies: bytes
    lengths: bytes
    versions: bytes
    schema: Schema = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.lengths) // 4

    def each_body(self) -> Iterator[bytes]:
        """Yield the rows' Avro bodies."""
        start = 0
        for (length,) in struct.iter_unpack("<I", self.lengths):
            yield self.bodies[start : start + length]
            start += length

    def etags(self) -> Iterator[str]:
        """Return the rows' etags; empty texts if versions were not asked for."""
        if not self.versions:
            return iter([""] * len(self))
        return (
            f"{high >> 48}.{high & WALL_MS_MAX}.{logical}" for high, logical in struct.iter_unpack(">QI", self.versions)
        )


class AsyncDocumentCodec:
    """Encodes and decodes documents of one subject, with its newest version or with a chosen one.

    With ``instances_of`` they are instances of that class: see :mod:`cortado.store.client.document_types`. It
    ``truncates`` times that are finer than their field.
    """

    def __init__(
        self,
        schemas: KnownSchemas,
        subject: Callable[[], Awaitable[str]],
        version: int | None,
        instances_of: type[Any] | None = None,
        *,
        truncates: bool = False,
    ) -> None:
        self._schemas = schemas
        self._subject = subject
        self._version = version
        self._instances_of = instances_of
        self._truncates = truncates

    async def schema(self) -> tuple[SchemaVersion, Schema]:
        """Return the version and schema that documents are written and read with now."""
        if self._version is not None:
            return await self._schemas.version(await self._subject(), self._version)
        return await self._schemas.newest(await self._subject())

    async def refresh(self) -> bool:
        """Ask for the newest version again; True if there is a newer one than was known."""
        if self._version is not None:
            return False
        before = (await self.schema())[0].schema_id
        self._schemas.forget_newest(await self._subject())
        return (await self.schema())[0].schema_id != before

    async def _check_type(self) -> None:
        """Raise InvalidArgument if instances of the document type cannot be documents of the schema."""
        if self._instances_of is not None:
            document_type(self._instances_of, (await self.schema())[1])

    async def encode(self, document: Any) -> tuple[int, bytes]:
        """Return the schema id and Avro body of a dict, or an instance. Raises InvalidDocument with the field's
        path."""

        def attempt(version: SchemaVersion, schema: Schema) -> tuple[int, bytes]:
            if self._instances_of is None:
                mapping = to_mapping(document, schema)
            else:
                mapping = document_type(self._instances_of, schema).to_document(document)
            return version.schema_id, self._body(schema, mapping)

        return await self._with_newest(attempt)

    async def reader_of(self, writer_id: int) -> tuple[Schema, Schema | None]:
        """Return the schemas to read a body with: its writer, and the reader if it is another one."""
        reader_version, reader = await self.schema()
        if reader_version.schema_id == writer_id:
            return reader, None
        try:
            writer_version, writer = await self._schemas.version_with_id(await self._subject(), writer_id)
        except NotFound:
            # An id names a schema whichever subject has it; this one does not have it any more.
            return await self._schemas.by_id(writer_id), reader
        if writer_version.version > reader_version.version and await self.refresh():
            reader = (await self.schema())[1]
        return writer, None if reader is writer else reader

    async def decode(self, schema_id: int, body: bytes) -> tuple[Any, Schema]:
        """Return the document and the schema it is shaped by. Raises InvalidDocument for bytes that do not fit."""
        decode, shape = self._decoder(*await self.reader_of(schema_id))
        return decode(body), shape

    def _decoder(self, writer: Schema, reader: Schema | None) -> tuple[Callable[[bytes], Any], Schema]:
        """Return a decoder of single bodies that ``writer`` wrote, as ``reader`` sees them, and the result's schema.

        Raises InvalidArgument if the results cannot be instances of the document type.
        """
        shape = reader or writer
        decode = decoder_of(writer, reader)
        if self._instances_of is None:
            return decode, shape
        instance_of = self._instances(shape)
        return lambda body: instance_of(decode(body)), shape

    def _instances(self, shape: Schema) -> Callable[[dict[str, Any]], Any]:
        """Return a function from a dict of that schema to the document type's instance; without a type, to the dict."""
        return _same if self._instances_of is None else document_type(self._instances_of, shape).from_document

    async def encode_json(self, value: Any) -> tuple[int, bytes]:
        """Encode a document in its JSON form, as :meth:`encode`."""

        def attempt(version: SchemaVersion, schema: Schema) -> tuple[int, bytes]:
            return version.schema_id, self._body(schema, _from_json(schema, value))

        return await self._with_newest(attempt)

    async def encode_texts(self, row: Any) -> tuple[int, bytes]:
        """Encode a dict whose texts are read by the types of their fields; otherwise as :meth:`encode`.

        An empty text is null if the field may be null.
        """

        def attempt(version: SchemaVersion, schema: Schema) -> tuple[int, bytes]:
            if not isinstance(row, Mapping):
                raise InvalidDocument("", "must be a dict of texts", type(row).__name__)
            return version.schema_id, self._body(schema, from_texts(schema, row, empty_is_null=True))

        return await self._with_newest(attempt)

    async def encode_fields(
        self, document: Mapping[str, Any], columns: tuple[str, ...], table_name: str
    ) -> tuple[int, bytes]:
        """Encode the fields ``columns`` alone, as :meth:`encode`: ``document`` has each of them, and no others."""

        def attempt(version: SchemaVersion, schema: Schema) -> tuple[int, bytes]:
            if not isinstance(document, Mapping):
                raise InvalidDocument("document", "must be a dict", type(document).__name__)
            for name in columns:
                if name not in document:
                    raise InvalidDocument(name, "is missing: an update has all of its columns")
            return version.schema_id, self._body(select_fields(schema, columns, table_name), document)

        return await self._with_newest(attempt)

    async def from_json(self, value: Any) -> dict[str, Any]:
        """Return a document out of its JSON form. Raises InvalidDocument with the field's path."""
        return await self._with_newest(lambda _, schema: _from_json(schema, value))

    async def changes_from_json(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return values at field paths out of their JSON form. Raises InvalidDocument with the path."""
        return await self._with_newest(lambda _, schema: _changes_from_json(schema, changes))

    async def changes_to_json(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return new values at field paths, as JSON. Raises InvalidDocument for a path that the schema lacks."""
        return await self._with_newest(lambda _, schema: _changes_to_json(schema, changes, self._truncates))

    async def _timed(self, parts: Sequence[KeyPart]) -> Sequence[KeyPart]:
        """Return the parts of a key, which take times as documents of this codec do."""
        if not self._truncates or all(part.type is not KeyType.TIMESTAMP for part in parts):
            return parts
        root = (await self.schema())[1].root
        return tuple(TruncatedPart.of(part, unit_micros(type_at(root, part.path))) for part in parts)

    def _body(self, schema: Schema, document: Mapping[str, Any]) -> bytes:
        return encode_document(schema, document, truncates=self._truncates)

    async def _with_newest(self, attempt: Callable[[SchemaVersion, Schema], T]) -> T:
        """Return the result of ``attempt`` with the schema. If the document does not fit, try a schema registered
        since."""
        try:
            return attempt(*await self.schema())
        except InvalidDocument:
            if not await self.refresh():
                raise
        return attempt(*await self.schema())


def _same(document: dict[str, Any]) -> dict[str, Any]:
    return document


def type_at(root: AvroType, path: str) -> AvroType:
    """Return the type at ``a.b``, through records and nullable records. Raises InvalidDocument naming the path."""
    found = root
    for name in text(path, "changes").split("."):
        record = found.nullable if isinstance(found, Union) else found
        member = record.field(name) if isinstance(record, Record) else None
        if member is None:
            raise InvalidDocument(path, "is not a field of the schema")
        found = member.type
    return found


def unit_micros(type_: AvroType) -> int:
    """Return the microseconds in the unit of a timestamp's type; 1 for another type."""
    inner = type_.nullable if isinstance(type_, Union) else type_
    logical = inner.logical if isinstance(inner, Primitive) else None
    return 1_000 if logical is not None and logical.kind in _IN_MILLIS else 1


def _changes_to_json(schema: Schema, changes: Mapping[str, Any], truncates: bool) -> dict[str, Any]:
    if not isinstance(changes, Mapping):
        raise InvalidDocument("changes", "must be a dict of field paths and values", type(changes).__name__)
    return {path: _change_to_json(schema, path, value, truncates) for path, value in changes.items()}


def _change_to_json(schema: Schema, path: str, value: Any, truncates: bool) -> Any:
    try:
        type_, plain = type_at(schema.root, path), to_plain(value)
        return to_json_value(type_, truncated_value(type_, plain) if truncates else plain)
    except InvalidDocument as error:
        below = error.field.removeprefix(path)
        raise InvalidDocument(f"{path}.{below}" if below else path, error.problem, error.value) from None


def _from_json(schema: Schema, value: Any) -> dict[str, Any]:
    document: dict[str, Any] = from_json_value(schema.root, value)
    return document


def _changes_from_json(schema: Schema, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {path: from_json_value(type_at(schema.root, path), value, path) for path, value in changes.items()}


def decoder_of(writer: Schema, reader: Schema | None) -> Callable[[bytes], dict[str, Any]]:
    """Return a decoder of single bodies that ``writer`` wrote, as ``reader`` sees them."""
    return lambda body: decode_document(writer, body, reader)


def row_batch(schema_id: int, bodies: Sequence[bytes]) -> common_pb2.RowBatch:
    """Return bodies of one schema as a message."""
    lengths = struct.pack(f"<{len(bodies)}I", *map(len, bodies))
    return common_pb2.RowBatch(schema_id=schema_id, bodies=b"".join(bodies), lengths=lengths)


def decoded(batch: RowBatch, decode: Callable[[bytes], Any], shape: Schema, writer: Schema) -> Iterator[Document[Any]]:
    """Yield the documents of a batch, each with its etag."""
    for body, etag in zip(batch.each_body(), batch.etags(), strict=True):
        yield Document(decode(body), etag, shape, writer)


@lru_cache(256)
def projection(text: str) -> Schema:
    """Return the schema of selected columns. It is kept, since decoders compile a schema once per object."""
    return parse_schema(text)
