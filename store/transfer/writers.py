"""Rows and pairs into a file, in each format. Every writer yields how many rows it has just written.

==========  =======================================================================================
jsonl       each row decoded, and written as :mod:`cortado.schema.json_format` has it
csv         each row decoded, and its fields written as :mod:`cortado.schema.text_format` has them
avro        rows go through as the bytes they are stored as; only those of an older schema version
            are decoded, and written as the newest one has them
parquet     whole columns, by way of Arrow
==========  =======================================================================================
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, cast

from cortado.schema.documents import decode_document, encode_document
from cortado.schema.fields import select_fields
from cortado.schema.json_format import to_json_value
from cortado.schema.json_text import json_text
from cortado.schema.limits import READ_BYTES_MAX
from cortado.schema.model import Schema
from cortado.schema.text_format import to_texts
from cortado.store.client import Table
from cortado.store.client.documents import RowBatch
from cortado.store.client.kv import KvPair
from cortado.store.client.values import At, Key
from cortado.store.transfer.avro_file import ContainerWriter
from cortado.store.transfer.csv_text import line_of
from cortado.store.transfer.files import Sink
from cortado.store.transfer.formats import Compression, Encoding, Format, pyarrow_for
from cortado.store.transfer.pairs import PAIR_SCHEMA, PAIR_SCHEMA_TEXT, pair_body, pair_to_json

SCHEMA_KEY: Final = "cortado.avro.schema"
"""In a Parquet file's metadata: the Avro schema of the rows, from which a table can be made again."""

_GZIP_LEVEL: Final = 6
_PARQUET_ROWS: Final = 100_000
"""The rows of a row group."""
_PAIRS: Final = 1_000
"""Written at a time."""


@dataclass(frozen=True, slots=True)
class RowScan:
    """The rows to write: ``[lower, upper)`` of a table, as ``schema`` has them, or of ``columns`` of it."""

    table: Table
    schema: Schema
    lower: Key | None = None
    upper: Key | None = None
    filter: str | None = None
    columns: tuple[str, ...] | None = None
    at: At = None

    def batches(self) -> Iterator[RowBatch]:
        return self.table.scan_batches(self.lower, self.upper, filter=self.filter, columns=self.columns, at=self.at)

    @property
    def selected(self) -> Schema:
        """The schema of the rows that come, with their columns alone."""
        return self.schema if self.columns is None else select_fields(self.schema, self.columns, self.table.full_name)

    def reader_of(self, batch: RowBatch) -> Schema:
        """Return the schema that a batch's rows are written with. A selection of columns has it already."""
        return self.schema if batch.schema_id else batch.schema


def write_rows(
    scan: RowScan, encoding: Encoding, sink: Sink, *, name: str, metadata: Mapping[str, str]
) -> Iterator[int]:
    """Write a scan's rows; ``name`` and ``metadata`` describe the file, within it."""
    match encoding.format:
        case Format.JSONL:
            yield from _write_lines((_document_lines(batch, scan) for batch in scan.batches()), encoding, sink)
        case Format.CSV:
            yield from _write_csv(scan, encoding, sink)
        case Format.AVRO:
            yield from _write_avro(scan, encoding, sink, name, metadata)
        case Format.PARQUET:
            yield from _write_parquet(scan, encoding, sink, metadata)


def write_pairs(
    pairs: Iterator[KvPair], encoding: Encoding, sink: Sink, *, name: str, metadata: Mapping[str, str]
) -> Iterator[int]:
    """Writes pairs, as :func:`write_rows` does."""
    pieces = iter(lambda: list(islice(pairs, _PAIRS)), [])
    match encoding.format:
        case Format.JSONL:
            yield from _write_lines(map(_pair_lines, pieces), encoding, sink)
        case Format.CSV:
            names = [each.name for each in PAIR_SCHEMA.record.fields]
            lines = (_pair_records(piece, encoding.null_text) for piece in pieces)
            yield from _write_lines(lines, encoding, sink, ",".join(names))
        case Format.AVRO:
            writer = ContainerWriter(sink, PAIR_SCHEMA_TEXT, encoding.compression, name=name, metadata=metadata)
            for piece in pieces:
                bodies = [pair_body(pair.key, pair.value) for pair in piece]
                writer.add(b"".join(bodies), len(bodies))
                yield len(piece)
            writer.close()
        case Format.PARQUET:
            arrow = pyarrow_for("Parquet")
            binary = [arrow.field(each, arrow.binary(), nullable=False) for each in ("key", "value")]
            schema = arrow.schema(binary, metadata=dict(metadata))
            with _parquet_writer(sink, schema, encoding) as writer:
                while piece := list(islice(pairs, _PARQUET_ROWS)):
                    columns = [[pair.key for pair in piece], [pair.value for pair in piece]]
                    writer.write_batch(arrow.record_batch(columns, schema=schema))
                    yield len(piece)


# --- texts ---------------------------------------------------------------------------------------------------------


def _document_lines(batch: RowBatch, scan: RowScan) -> list[str]:
    writer, reader = batch.schema, scan.reader_of(batch)
    root = reader.root
    return [json_text(to_json_value(root, decode_document(writer, body, reader))) for body in batch.each_body()]


def _pair_lines(piece: list[KvPair]) -> list[str]:
    return [json_text(pair_to_json(pair.key, pair.value)) for pair in piece]


def _write_csv(scan: RowScan, encoding: Encoding, sink: Sink) -> Iterator[int]:
    names = [each.name for each in scan.selected.record.fields]
    pieces = (_document_records(batch, scan, names, encoding.null_text) for batch in scan.batches())
    yield from _write_lines(pieces, encoding, sink, ",".join(names))


def _document_records(batch: RowBatch, scan: RowScan, names: list[str], null_text: str) -> list[str]:
    writer, reader = batch.schema, scan.reader_of(batch)
    rows = (to_texts(reader, decode_document(writer, body, reader)) for body in batch.each_body())
    return [line_of([row[name] for name in names], null_text) for row in rows]


def _pair_records(piece: list[KvPair], null_text: str) -> list[str]:
    return [line_of(pair_to_json(pair.key, pair.value).values(), null_text) for pair in piece]


def _write_lines(pieces: Iterable[list[str]], encoding: Encoding, sink: Sink, header: str = "") -> Iterator[int]:
    with ExitStack() as stack:
        if encoding.compression is Compression.GZIP:
            # Without a time, so that the same rows are the same bytes.
            file = gzip.GzipFile("", "wb", _GZIP_LEVEL, cast("Any", sink), mtime=0)
            sink = cast(Sink, stack.enter_context(file))
        if header:
            sink.write(f"{header}\n".encode())
        for lines in pieces:
            if lines:
                sink.write(("\n".join(lines) + "\n").encode())
            yield len(lines)


# --- Avro ----------------------------------------------------------------------------------------------------------


def _write_avro(scan: RowScan, encoding: Encoding, sink: Sink, name: str, metadata: Mapping[str, str]) -> Iterator[int]:
    writer: ContainerWriter | None = None
    for batch in scan.batches():
        reader = scan.reader_of(batch)
        # A selection's schema is known only when its first rows come.
        writer = writer or ContainerWriter(sink, reader.text, encoding.compression, name=name, metadata=metadata)
        if batch.schema.fingerprint == reader.fingerprint:
            writer.add(batch.bodies, len(batch))
        else:
            bodies = [
                encode_document(reader, decode_document(batch.schema, body, reader), bytes_max=READ_BYTES_MAX)
                for body in batch.each_body()
            ]
            writer.add(b"".join(bodies), len(bodies))
        yield len(batch)
    writer = writer or ContainerWriter(sink, scan.schema.text, encoding.compression, name=name, metadata=metadata)
    writer.close()


# --- Parquet -------------------------------------------------------------------------------------------------------


def _write_parquet(scan: RowScan, encoding: Encoding, sink: Sink, metadata: Mapping[str, str]) -> Iterator[int]:
    pyarrow_for("Parquet")
    from cortado.schema.columnar.arrow import arrow_schema

    described = {**metadata, SCHEMA_KEY: scan.schema.text}
    with _parquet_writer(sink, arrow_schema(scan.selected).with_metadata(described), encoding) as writer:
        batches = scan.table.scan_arrow(
            scan.lower,
            scan.upper,
            filter=scan.filter,
            columns=scan.columns,
            at=scan.at,
            batch_rows=_PARQUET_ROWS,
        )
        for batch in batches:
            writer.write_batch(batch)
            yield batch.num_rows


def _parquet_writer(sink: Sink, schema: Any, encoding: Encoding) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(sink, schema, compression=encoding.compression.value)
