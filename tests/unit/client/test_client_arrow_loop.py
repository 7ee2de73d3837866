"""The loop between raw rows and record batches: versions interleaved, batches of a size, defaults on the way in."""

from __future__ import annotations

import json
import struct
from itertools import groupby
from typing import Any

import pytest

from cortado.errors import InvalidArgument, InvalidDocument, NotFound
from cortado.schema.columnar.arrow import arrow_schema
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.fields import select_fields
from cortado.schema.model import Schema
from cortado.schema.parse import parse_document_schema
from cortado.store.client import arrow
from cortado.store.client.blocking.drive import steps
from cortado.store.client.documents import RowBatch
from cortado.store.client.streams import any_of

pa = pytest.importorskip("pyarrow")


def _schema(*fields: dict[str, Any]) -> Schema:
    return parse_document_schema(json.dumps({"type": "record", "name": "Row", "fields": list(fields)}))


ID = {"name": "id", "type": "long"}
OLD = _schema(ID, {"name": "name", "type": "string"}, {"name": "size", "type": "int"})
NEW = _schema(ID, {"name": "size", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None})
OF_VERSION = {1: OLD, 2: NEW}


def _document(number: int, version: int) -> dict[str, Any]:
    if version == 1:
        return {"id": number, "name": f"n{number}", "size": number}
    return {"id": number, "size": number + 2**40, "note": f"note {number}"}


def _runs(versions: list[int]) -> list[RowBatch]:
    """Return rows numbered in their order, each of the version that is given, as a scan sends them."""
    runs = []
    for version, numbered in groupby(enumerate(versions), key=lambda each: each[1]):
        schema = OF_VERSION[version]
        bodies = [encode_document(schema, _document(number, version)) for number, _ in numbered]
        lengths = struct.pack(f"<{len(bodies)}I", *map(len, bodies))
        runs.append(RowBatch(version, b"".join(bodies), lengths, b"", schema))
    return runs


def _read(versions: list[int], reader: Schema, batch_rows: int = 1_000) -> list[Any]:
    return list(steps(arrow.record_batches(any_of(_runs(versions)), reader, batch_rows)))


def test_rows_of_interleaved_versions_keep_their_order() -> None:
    versions = [1 + (number * number % 7 > 2) for number in range(500)]
    [batch] = _read(versions, NEW)
    assert batch.column("id").to_pylist() == list(range(500))
    expected = [number if version == 1 else number + 2**40 for number, version in enumerate(versions)]
    assert batch.column("size").to_pylist() == expected
    assert batch.column("note").to_pylist() == [
        None if version == 1 else f"note {number}" for number, version in enumerate(versions)
    ]


def test_batches_end_at_the_first_run_that_fills_them() -> None:
    batches = _read([1, 2] * 25, NEW, batch_rows=20)
    assert [batch.num_rows for batch in batches] == [20, 20, 10]
    assert {batch.schema for batch in batches} == {arrow_schema(NEW)}
    assert [number for batch in batches for number in batch.column("id").to_pylist()] == list(range(50))


def test_a_batch_is_cut_where_documents_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "BYTES_PER_BATCH", 40)
    assert [batch.num_rows for batch in _read([1, 2] * 4, NEW)] == [4, 4]


def test_no_rows_make_no_batch() -> None:
    assert _read([], NEW) == []


def test_chosen_fields_come_in_their_order_and_others_are_not_decoded() -> None:
    reader = select_fields(NEW, ("note", "id"), "d.t")
    [batch] = _read([1, 2, 1], reader)
    assert batch.to_pylist() == [{"note": None, "id": 0}, {"note": "note 1", "id": 1}, {"note": None, "id": 2}]


def test_a_field_that_old_rows_lack_can_be_the_only_one() -> None:
    [batch] = _read([1, 1, 2], select_fields(NEW, ("note",), "d.t"))
    assert batch.column("note").to_pylist() == [None, None, "note 2"]


def test_a_malformed_stored_row_is_refused() -> None:
    damaged = RowBatch(1, b"\x02\x08ab", struct.pack("<I", 4), b"", OLD)
    with pytest.raises(InvalidDocument):
        list(steps(arrow.record_batches(any_of([damaged]), OLD, 10)))


@pytest.mark.parametrize(
    ("names", "kind"), [(("id", "absent"), NotFound), (("id", "id"), InvalidArgument), ((), InvalidArgument)]
)
def test_fields_that_cannot_be_chosen_are_refused(names: tuple[str, ...], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        select_fields(NEW, names, "d.t")


# --- on the way in -------------------------------------------------------------------------------------------------


def _written(schema: Schema, batch: Any) -> list[dict[str, Any]]:
    bodies, lengths = arrow.encode_batch(batch, schema, "d.t")
    documents, start = [], 0
    for length in lengths.tolist():
        documents.append(decode_document(schema, bodies[start : start + length]))
        start += length
    return documents


def test_columns_may_come_in_any_order_and_missing_ones_are_defaults() -> None:
    batch = pa.RecordBatch.from_pydict({"size": [5, 6], "id": [1, 2]})
    assert _written(NEW, batch) == [{"id": 1, "size": 5, "note": None}, {"id": 2, "size": 6, "note": None}]


def test_a_missing_column_without_a_default_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match=r"column size: is required by d\.t: it has no default"):
        arrow.encode_batch(pa.RecordBatch.from_pydict({"id": [1]}), NEW, "d.t")


def test_a_refused_value_is_told_by_its_place_among_all_rows() -> None:
    batches = [pa.RecordBatch.from_pydict({"id": ids, "size": [1] * len(ids)}) for ids in ([1, 2, 3], [], [4, None])]
    with pytest.raises(InvalidDocument) as refused:
        list(steps(arrow.rows_of_arrow(batches, 1, NEW, "d.t", 10)))
    assert (refused.value.field, refused.value.row) == ("id", 4)


@pytest.mark.parametrize("chunk_rows", [1, 3, 10, 11, 10_000])
def test_chunks_are_whole_rows_in_order(chunk_rows: int) -> None:
    ids = list(range(10))
    bodies, lengths = arrow.encode_batch(pa.RecordBatch.from_pydict({"id": ids, "size": ids}), NEW, "d.t")
    chunks = list(arrow._pieces(bodies, lengths, chunk_rows))
    assert b"".join(chunk for chunk, _ in chunks) == bodies
    assert b"".join(sizes for _, sizes in chunks) == lengths.astype("<u4").tobytes()
    counts = [len(sizes) // 4 for _, sizes in chunks]
    assert max(counts) <= chunk_rows
    assert max(counts) - min(counts) <= 1
    assert all(sum(struct.unpack(f"<{len(sizes) // 4}I", sizes)) == len(chunk) for chunk, sizes in chunks)
