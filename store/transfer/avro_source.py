"""Avro containers as rows of a table: of any writer's schema that the table's schema can read.

::

    the file's schema is a version of the table's ── bodies go through as they are; the server checks them
    any other that the table's schema can read ───── decoded, resolved as Avro says, encoded again
    one that it cannot read ──────────────────────── refused, with every reason and its path

The file's root record may have another name than the table's: Spark calls every one ``topLevelRecord``.

Bodies stand end to end, so to find the next row this one is read by a *plain* schema, without logical types: a row
whose date lies outside of the calendar is bad by itself, and the rows behind it are found. A row that is not even of
its plain types leaves nothing to go on from, and ends the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO, Final

from cortado.errors import CortadoError, IncompatibleSchema, InvalidArgument
from cortado.schema.compatibility import check_reader_writer
from cortado.schema.documents import decode_next, encode_document
from cortado.schema.json_format import to_json_value
from cortado.schema.model import Array, AvroType, Field, Fixed, Map, Primitive, Record, Schema, Union
from cortado.store.transfer.avro_file import Block, Container
from cortado.store.transfer.rows import BadRow, RowChunk, Target
from cortado.store.transfer.strict_json import json_line

_CHUNK_ROWS: Final = 2_000
_CHUNK_BYTES: Final = 1 << 20


def avro_chunks(file: BinaryIO, name: str, target: Target, rows_skipped: int = 0) -> Iterator[RowChunk]:
    """The rows of a container behind the first ``rows_skipped``.

    Raises InvalidArgument where it is none or is damaged, IncompatibleSchema, Unsupported for a codec.
    """
    container = Container(file, name)
    cut = _Cut(container, name, target)
    for block in container.blocks(rows_skipped):
        yield from cut.chunks(block, rows_skipped)


def reader_for(writer: Schema, target: Target) -> Schema:
    """The table's schema, ready to read what ``writer`` wrote. Raises IncompatibleSchema with every reason."""
    if not isinstance(writer.root, Record):
        raise InvalidArgument("file", "must have records in it", type(writer.root).__name__.lower())
    record = target.schema.record
    renamed = Record(record.name, (*record.aliases, writer.root.name), record.doc, record.fields)
    reader = replace(target.schema, root=renamed)
    found = check_reader_writer(reader, writer)
    if found:
        reasons = [{"path": each.path, "kind": each.kind, "message": each.message, "version": 0} for each in found]
        raise IncompatibleSchema(target.name, "reader", reasons)
    return reader


class _Cut:
    """Cuts blocks into chunks of rows."""

    def __init__(self, container: Container, name: str, target: Target) -> None:
        self._name = name
        self._target = target
        self._writer = container.schema
        self._plain = plain_schema(self._writer)
        self._raw_id = target.version_ids.get(self._writer.fingerprint, 0)
        self._reader = None if self._raw_id else reader_for(self._writer, target)

    def chunks(self, block: Block, rows_skipped: int) -> Iterator[RowChunk]:
        position = 0
        place, behind = block.first, block.first + block.rows
        while place <= rows_skipped and place < behind:
            position = self._end_of(block.data, position, place)
            place += 1
        while place < behind:
            chunk, place, position = self._chunk(block.data, position, place, behind)
            yield chunk
        if position != len(block.data):
            problem = (
                f"is damaged: the block that ends with row {behind - 1} has {len(block.data) - position} bytes more"
            )
            raise InvalidArgument("file", problem, self._name)

    def _chunk(self, data: bytes, position: int, place: int, behind: int) -> tuple[RowChunk, int, int]:
        bodies: list[bytes] = []
        places: list[int] = []
        refused: list[BadRow] = []
        begin = position
        while place < behind and len(places) + len(refused) < _CHUNK_ROWS and position - begin < _CHUNK_BYTES:
            start, position = position, self._end_of(data, position, place)
            try:
                bodies.append(self._body(data, start, position))
                places.append(place)
            except CortadoError as error:
                refused.append(BadRow(self._name, place, error, self._plain_text(data, start)))
            place += 1
        schema = self._writer if self._raw_id else self._target.schema
        schema_id = self._raw_id or self._target.schema_id
        chunk = RowChunk(schema_id, bodies, places, place - 1, self._target.texts(schema, bodies), refused)
        return chunk, place, position

    def _body(self, data: bytes, start: int, end: int) -> bytes:
        if self._reader is None:
            return data[start:end]
        return encode_document(self._target.schema, decode_next(self._writer, data, start, self._reader)[0])

    def _end_of(self, data: bytes, position: int, place: int) -> int:
        try:
            return decode_next(self._plain, data, position)[1]
        except InvalidArgument as error:
            problem = f"is damaged at row {place}: {error.message()}"
            raise InvalidArgument("file", problem, self._name) from None

    def _plain_text(self, data: bytes, start: int) -> str:
        return json_line(to_json_value(self._plain, decode_next(self._plain, data, start)[0]))


def plain_schema(schema: Schema) -> Schema:
    """``schema`` without its logical types: the same bytes, whose values can hardly be wrong."""
    records: dict[str, Record] = {}

    def plain(type_: AvroType) -> AvroType:
        match type_:
            case Primitive() | Fixed():
                return replace(type_, logical=None)
            case Array(items=items):
                return Array(plain(items))
            case Map(values=values):
                return Map(plain(values))
            case Union(branches=branches):
                return Union(tuple(plain(branch) for branch in branches))
            case Record():
                if type_.name not in records:
                    record = records[type_.name] = Record(type_.name)
                    record.fields = tuple(Field(each.name, plain(each.type)) for each in type_.fields)
                return records[type_.name]
            case _:
                return type_

    return replace(schema, root=plain(schema.root))
