"""Parquet files as rows of a table, whole columns at a time, by way of Arrow.

A column must be a field of the table's schema, of its Arrow type or of one that goes into it without loss; a field
without a column takes its default. If a value of a batch does not fit, the batch is halved until the bad row is alone:
the others go in. A batch has no more rows than fit in its memory (:mod:`.parquet_pages`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import date, datetime, time
from functools import partial
from typing import Any, BinaryIO, Final

from cortado.errors import CortadoError, InvalidArgument, InvalidDocument, TooLarge
from cortado.schema.limits import DOCUMENT_BYTES_MAX
from cortado.store.transfer.formats import pyarrow_for
from cortado.store.transfer.parquet_pages import BATCH_BYTES, batch_rows
from cortado.store.transfer.rows import BadRow, RowChunk, Target

_ROW_BYTES_MAX: Final = 16 << 20
"""As Arrow holds it. No document of the largest size takes so much."""


def parquet_file(file: BinaryIO, name: str) -> Any:
    """Return the file, opened by pyarrow. Raises InvalidArgument for a file that is no Parquet, Unsupported without
    pyarrow."""
    arrow = pyarrow_for("Parquet")
    from pyarrow import parquet

    if not file.seekable():
        raise InvalidArgument("file", "must be a file: Parquet has its directory at the end", name)
    try:
        return parquet.ParquetFile(file)
    except (arrow.ArrowException, OSError) as error:
        raise InvalidArgument("file", f"cannot be read as Parquet: {error}", name) from None


def parquet_batches(file: BinaryIO, name: str, rows_skipped: int = 0) -> Iterator[tuple[int, Any]]:
    """(rows before it, record batch) behind the first ``rows_skipped`` rows."""
    arrow = pyarrow_for("Parquet")
    opened = parquet_file(file, name)
    before = 0
    try:
        for group in range(opened.metadata.num_row_groups):
            rows = batch_rows(opened, group, file, name)
            for batch in opened.iter_batches(batch_size=rows, row_groups=[group]):
                if before + batch.num_rows > rows_skipped:
                    cut = max(0, rows_skipped - before)
                    yield before + cut, batch.slice(cut)
                before += batch.num_rows
    except (arrow.ArrowException, OSError) as error:
        raise InvalidArgument("file", f"is damaged behind row {before}: {error}", name) from None


def parquet_chunks(file: BinaryIO, name: str, target: Target, rows_skipped: int = 0) -> Iterator[RowChunk]:
    """Yield the rows behind the first ``rows_skipped``. Raises InvalidArgument, NotFound for a column that does not
    fit."""
    for before, batch in parquet_batches(file, name, rows_skipped):
        yield from _chunks(batch, before, name, target)


def _chunks(batch: Any, before: int, name: str, target: Target) -> Iterator[RowChunk]:
    from cortado.store.client.arrow import encode_batch

    rows, size_bytes = batch.num_rows, batch.nbytes
    if rows == 1 and size_bytes > _ROW_BYTES_MAX:
        problem = f"takes {size_bytes} bytes; a document has at most {DOCUMENT_BYTES_MAX}"
        error = TooLarge("row", problem, length=size_bytes, limit=DOCUMENT_BYTES_MAX)
        refused = [BadRow(name, before + 1, error, None)]
        yield RowChunk(target.schema_id, b"", b"", [], before + 1, partial(_text_of_body, target), refused)
        return
    if rows > 1 and size_bytes > BATCH_BYTES:
        yield from _halves(batch, before, name, target)
        return
    try:
        data, lengths = encode_batch(batch, target.schema, target.name)
    except InvalidDocument as error:
        if rows == 1:
            error.row = 0
            refused = [BadRow(name, before + 1, error, _text_of(batch))]
            yield RowChunk(target.schema_id, b"", b"", [], before + 1, partial(_text_of_body, target), refused)
            return
        yield from _halves(batch, before, name, target)
        return
    except CortadoError as error:
        raise InvalidArgument("file", error.message(), name) from None
    places = range(before + 1, before + rows + 1)
    packed = lengths.astype("<u4").tobytes()
    yield RowChunk(target.schema_id, data, packed, places, before + rows, partial(_text_of_body, target))


def _halves(batch: Any, before: int, name: str, target: Target) -> Iterator[RowChunk]:
    half = batch.num_rows // 2
    yield from _chunks(batch.slice(0, half), before, name, target)
    yield from _chunks(batch.slice(half), before + half, name, target)


def _text_of_body(target: Target, _row: int, body: bytes) -> str:
    return target.text_of(target.schema, body)


def _text_of(batch: Any) -> str:
    """Return a row that does not fit, about as it would stand in JSON."""
    row = {name: _value_of(batch.column(name)[0]) for name in batch.schema.names}
    return json.dumps(row, ensure_ascii=False, default=_plain)


def _value_of(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):  # A date beyond Python's range, which may be the row's problem.
        return scalar.value if hasattr(scalar, "value") else repr(scalar)


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() if value.tzinfo is not None:
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)
