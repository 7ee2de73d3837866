"""Avro containers as rows of a table: with any writer's schema that the table's schema can read.

::

    the file's schema is a version of the table's ── bodies go through as they are; the server checks them
    any other that the table's schema can read ───── decoded, resolved as Avro says, encoded again
    one that it cannot read ──────────────────────── refused, with every reason and its path

The file's root record may have another name than the table's: Spark calls every one ``topLevelRecord``.

Bodies stand end to end. Their ends are found without a look at their values, so a row with a wrong value, such as a
date outside of the calendar, is bad by itself. A row that does not end where it may hides the beginning of the next,
and ends the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO, Final

from cortado.errors import CortadoError, IncompatibleSchema, InvalidArgument, InvalidDocument
from cortado.schema.compatibility import check_reader_writer
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.limits import READ_BYTES_MAX
from cortado.schema.model import Array, AvroType, Field, Fixed, Map, Primitive, Record, Schema, Union
from cortado.schema.skipping import ends_of
from cortado.store.transfer.avro_file import Block, Container
from cortado.store.transfer.rows import BadRow, RowChunk, Target, packed_lengths

_CHUNK_ROWS: Final = 2_000


def avro_chunks(file: BinaryIO, name: str, target: Target, rows_skipped: int = 0) -> Iterator[RowChunk]:
    """Yield the rows of a container behind the first ``rows_skipped``.

    Raises InvalidArgument if it is no container or is damaged, IncompatibleSchema, Unsupported for a codec.
    """
    container = Container(file, name)
    cut = _Cut(container, name, target)
    for block in container.blocks(rows_skipped):
        yield from cut.chunks(block, rows_skipped)


def reader_for(writer: Schema, target: Target) -> Schema:
    """Return the table's schema, ready to read what ``writer`` wrote. Raises IncompatibleSchema with every reason."""
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
        self._raw_id = target.version_ids.get(self._writer.fingerprint, 0)
        self._reader = None if self._raw_id else reader_for(self._writer, target)

    def chunks(self, block: Block, rows_skipped: int) -> Iterator[RowChunk]:
        ends = self._ends(block)
        skipped = max(0, rows_skipped - block.first + 1)
        begin = ends[skipped - 1] if skipped else 0
        for first in range(skipped, block.rows, _CHUNK_ROWS):
            chunk_ends = ends[first : first + _CHUNK_ROWS]
            yield self._chunk(block.data, begin, chunk_ends, block.first + first)
            begin = chunk_ends[-1]

    def _ends(self, block: Block) -> list[int]:
        try:
            ends = ends_of(self._writer, block.data, 0, block.rows)
        except InvalidDocument as error:
            raise self._damaged(block.first + error.row, error.problem) from None
        left = len(block.data) - (ends[-1] if ends else 0)
        if left:
            raise self._damaged(block.first + block.rows - 1, f"its block has {left} bytes more")
        return ends

    def _damaged(self, place: int, problem: str) -> InvalidArgument:
        return InvalidArgument("file", f"is damaged at row {place}: {problem}", self._name)

    def _chunk(self, data: bytes, begin: int, ends: list[int], first: int) -> RowChunk:
        last = first + len(ends) - 1
        if self._reader is None:
            lengths = packed_lengths([end - start for start, end in zip([begin, *ends], ends, strict=False)])
            places = range(first, last + 1)
            return RowChunk(self._raw_id, data[begin : ends[-1]], lengths, places, last, self._text_of_raw)
        bodies: list[bytes] = []
        good: list[int] = []
        refused: list[BadRow] = []
        for place, (start, end) in enumerate(zip([begin, *ends], ends, strict=False), first):
            try:
                row = decode_document(self._writer, data[start:end], self._reader)
                bodies.append(encode_document(self._target.schema, row, bytes_max=READ_BYTES_MAX))
                good.append(place)
            except CortadoError as error:
                refused.append(BadRow(self._name, place, error, self._plain_text(data[start:end])))
        return RowChunk(
            self._target.schema_id,
            b"".join(bodies),
            packed_lengths([len(body) for body in bodies]),
            good,
            last,
            self._text_of_resolved,
            refused,
        )

    def _text_of_raw(self, _row: int, body: bytes) -> str | None:
        return self._plain_text(body)

    def _text_of_resolved(self, _row: int, body: bytes) -> str:
        return self._target.text_of(self._target.schema, body)

    def _plain_text(self, body: bytes) -> str | None:
        """Return a row that may be wrong as JSON: by its logical types, or else by the types below, or None."""
        for schema in (self._writer, plain_schema(self._writer)):
            with suppress(CortadoError):
                return self._target.text_of(schema, body)
        return None


def plain_schema(schema: Schema) -> Schema:
    """``schema`` without its logical types: the same bytes, with values that can hardly be wrong."""
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
