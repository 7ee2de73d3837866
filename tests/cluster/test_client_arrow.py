"""Arrow record batches through the client, both ways, against a real server."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from cortado.errors import InvalidArgument, NotFound
from cortado.store.client import Client, Table

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.process

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "fare", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}]},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
]


@pytest.fixture
def rows(client: Client, database: str) -> Table:
    name = f"{database}.rows"
    client.schemas.register(name, {"type": "record", "name": "Row", "fields": FIELDS})
    client.create_table(name, ["id"])
    return client.table(name)


def row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": None if number % 3 == 0 else f"name {number}",
        "at": datetime(2013, 1, 1, tzinfo=UTC),
        "fare": Decimal(number).scaleb(-2) if number % 2 else None,
        "tags": ["x"] * (number % 3),
    }


def test_rows_come_as_record_batches_of_one_schema_and_go_back(client: Client, rows: Table) -> None:
    assert rows.put_many(row(number) for number in range(3_000)).written == 3_000
    batches = list(rows.scan_arrow())
    assert len({batch.schema for batch in batches}) == 1
    found = pa.Table.from_batches(batches)
    assert found.num_rows == 3_000
    assert found.column("name").null_count == 1_000
    assert found.to_pylist()[1] == row(1)
    client.create_table(f"{rows.full_name}_copy", ["id"], subject=rows.full_name)
    copy = client.table(f"{rows.full_name}_copy")
    result = copy.put_arrow(batches, mode="insert")
    assert (result.written, result.refused) == (3_000, 0)
    assert [document.value for document in copy.scan()] == [document.value for document in rows.scan()]


def test_whatever_is_arrow_is_loaded(rows: Table) -> None:
    table = pa.Table.from_pylist([{**row(number), "fare": None} for number in range(1, 4)])
    table = table.set_column(3, "fare", pa.nulls(3, pa.decimal128(8, 2)))
    (batch,) = table.to_batches()

    class OfStream:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return table.__arrow_c_stream__(requested_schema)

    for source in (table, batch, [batch], iter([batch]), table.to_reader(), OfStream()):
        assert rows.put_arrow(source).written == 3
    assert rows.put_arrow(table.slice(0, 0)).written == 0
    assert [document.value["name"] for document in rows.scan()] == ["name 1", "name 2", None]


def test_frames_of_pandas_are_loaded_with_the_parts_of_their_index_that_have_names(rows: Table) -> None:
    pandas = pytest.importorskip("pandas")
    columns = {"at": pandas.to_datetime(["2013-01-01"] * 3, utc=True), "fare": [None] * 3, "tags": [["x"]] * 3}
    frame = pandas.DataFrame({"id": [1, 2, 3], "name": ["a", None, "c"], **columns})
    assert rows.put_arrow(frame).written == 3
    assert rows.put_arrow(frame[frame.id > 1], mode="replace").written == 2
    assert rows.put_arrow(frame.set_index("id"), mode="replace").written == 3
    assert [document.value["name"] for document in rows.scan()] == ["a", None, "c"]
    with pytest.raises(InvalidArgument, match=r"batches: must be a frame that Arrow can hold: .*column name"):
        rows.put_arrow(frame.assign(name=["a", 5, "c"]))


def test_frames_of_polars_are_loaded(rows: Table) -> None:
    polars = pytest.importorskip("polars")
    at = datetime(2013, 1, 1, tzinfo=UTC)
    frame = polars.DataFrame(
        {"id": [1, 2], "name": ["a", None], "at": [at, at], "fare": [None] * 2, "tags": [["x"], []]}
    )
    assert rows.put_arrow(frame).written == 2
    assert [document.value["tags"] for document in rows.scan()] == [["x"], []]
    for wrong in (frame.lazy(), frame["id"]):
        with pytest.raises(InvalidArgument, match="batches"):
            rows.put_arrow(wrong)


def test_old_and_new_rows_come_alike_and_columns_can_be_chosen(client: Client, rows: Table) -> None:
    rows.put(row(1))
    added = {"name": "gate", "type": "string", "default": "?"}
    client.schemas.register(rows.full_name, {"type": "record", "name": "Row", "fields": [*FIELDS, added]})
    rows.put({**row(2), "gate": "C7"})
    assert pa.Table.from_batches(rows.scan_arrow()).column("gate").to_pylist() == ["?", "C7"]
    chosen = pa.Table.from_batches(rows.scan_arrow((2,), columns=["gate", "id"]))
    assert chosen.to_pylist() == [{"gate": "C7", "id": 2}]


def test_a_column_that_the_schema_lacks_is_refused_by_name(rows: Table) -> None:
    with pytest.raises(NotFound, match="gate"):
        rows.put_arrow([pa.RecordBatch.from_pydict({"id": [1], "gate": ["C7"]})])
    assert list(rows.scan()) == []


def test_without_pyarrow_the_command_that_installs_it_is_named() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from cortado import Client\nfrom cortado.errors import Unsupported\n"
        "try:\n    Client().table('d.t').scan_arrow()\nexcept Unsupported as error:\n    print(error)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert shown.stdout == "Arrow without the extra [arrow] is not supported: pip install 'cortadodb[arrow]'\n"
