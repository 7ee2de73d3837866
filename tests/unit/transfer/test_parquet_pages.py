"""A small Parquet file that becomes large is refused, or read few rows at a time, to keep within the memory."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest

from cortado.errors import InvalidArgument, TooLarge
from cortado.schema.parse import parse_schema
from cortado.store.transfer import parquet_pages, parquet_source
from cortado.store.transfer.parquet_pages import BATCH_ROWS, batch_rows
from cortado.store.transfer.parquet_source import parquet_chunks
from cortado.store.transfer.rows import RowChunk, Target

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FIELDS = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
SCHEMA = parse_schema(json.dumps({"type": "record", "name": "R", "fields": FIELDS}))
TARGET = Target("shop.rows", 1, SCHEMA, {})
SMALL = 1 << 20


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set bounds that a test can go beyond."""
    for module, name in (
        (parquet_pages, "PAGE_BYTES_MAX"),
        (parquet_pages, "BATCH_BYTES"),
        (parquet_source, "BATCH_BYTES"),
    ):
        monkeypatch.setattr(module, name, SMALL)
    monkeypatch.setattr(parquet_source, "_ROW_BYTES_MAX", SMALL // 4)


def written(columns: dict[str, Any], **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file, **({"compression": "zstd"} | options))
    return file


def chunks(file: io.BytesIO) -> list[RowChunk]:
    return list(parquet_chunks(file, "rows.parquet", TARGET))


def most_rows(file: io.BytesIO) -> list[int]:
    opened = parquet.ParquetFile(file)
    return [batch_rows(opened, group, file, "rows.parquet") for group in range(opened.metadata.num_row_groups)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"compression": "gzip"}]
)
def test_a_text_that_becomes_large_is_refused_before_it_does(options: dict[str, Any]) -> None:
    file = written({"id": [1], "text": ["x" * (8 * SMALL)]}, **options)
    assert len(file.getvalue()) < SMALL // 16
    before = pyarrow.total_allocated_bytes()
    with pytest.raises(InvalidArgument, match=f"a page of the column text that becomes 83.* the limit is {SMALL}"):
        chunks(file)
    assert pyarrow.total_allocated_bytes() - before < SMALL


@pytest.mark.usefixtures("small")
def test_a_text_that_all_rows_refer_to_is_read_some_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    file = written({"id": list(range(400)), "text": ["x" * (SMALL // 8)] * 400})
    assert len(file.getvalue()) < SMALL // 16
    assert most_rows(file) == [7]
    read = list[int]()
    encode = parquet_source._chunks
    monkeypatch.setattr(
        parquet_source, "_chunks", lambda batch, *more: (read.append(batch.nbytes), encode(batch, *more))[1]
    )
    found = chunks(file)
    assert sum(map(len, found)) == 400
    assert max(read) <= SMALL


@pytest.mark.usefixtures("small")
def test_a_row_that_no_document_can_hold_is_bad_by_itself() -> None:
    file = written({"id": [1, 2, 3], "text": ["a", "x" * (SMALL // 2), "b"]})
    found = chunks(file)
    [bad] = [bad for chunk in found for bad in chunk.refused]
    assert (bad.place, bad.text, type(bad.error)) == (2, None, TooLarge)
    assert "a document has at most 1048576" in bad.error.message()
    assert [place for chunk in found for place in chunk.places] == [1, 3]


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_usual_files_are_read_many_rows_at_a_time(compression: str, version: str) -> None:
    numbers = random.Random(5)
    rows = 30_000
    columns = {
        "id": list(range(rows)),
        "name": [f"name-{numbers.randrange(2_000)}" for _ in range(rows)],
        "text": [numbers.randbytes(30).hex() for _ in range(rows)],
        "tags": [[f"t{numbers.randrange(100)}" for _ in range(numbers.randrange(5))] for _ in range(rows)],
        "deep": [[[place % 7] * numbers.randrange(3)] for place in range(rows)],
        "none": pyarrow.nulls(rows, pyarrow.int32()),
    }
    file = written(columns, compression=compression, data_page_version=version, row_group_size=20_000)
    assert most_rows(file) == [BATCH_ROWS, BATCH_ROWS]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_lists_count_by_the_rows_that_their_pages_hold(version: str) -> None:
    rows = [["x" * 100] * 1_000] * 20
    file = written({"id": list(range(20)), "tags": rows}, data_page_version=version)
    [found] = most_rows(file)
    assert 1 <= found <= 10


def test_damage_of_headers_is_an_error_of_ours_or_found_by_pyarrow() -> None:
    numbers = random.Random(7)
    whole = written({"id": list(range(2_000)), "text": [f"text {each % 300}" for each in range(2_000)]}).getvalue()
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(numbers.randrange(1, 4)):
            data[numbers.randrange(4, len(data) - 8)] = numbers.randrange(256)
        try:
            chunks(io.BytesIO(bytes(data)))
        except InvalidArgument as error:
            assert error.value == "rows.parquet"
