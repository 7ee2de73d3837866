"""Tables as Arrow tables and data frames, through both faces, against a node: types, bounds, times, missing values."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from cortado.errors import InvalidArgument, NotFound
from cortado.store.client import Client
from support.faces import FACES, open_client
from support.memory_engine import MemoryEngine
from support.served_node import Served, served_node

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

PLACE = {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}
TRIP: dict[str, Any] = {
    "type": "record",
    "name": "Trip",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "meters", "type": ["null", "long"]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "fare", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}]},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "share", "type": ["null", "double"]},
        {"name": "place", "type": ["null", PLACE]},
        {"name": "stops", "type": {"type": "array", "items": "Place"}},
        {"name": "counts", "type": {"type": "map", "values": ["null", "long"]}},
    ],
}
NOTED = {**TRIP, "fields": [*TRIP["fields"], {"name": "note", "type": "string", "default": "-"}]}
LONG = 2**53 + 1
"""Which a double cannot hold."""
FARE = Decimal("9" * 36 + ".99")
FIRST: dict[str, Any] = {
    "id": 1,
    "meters": LONG,
    "at": datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
    "fare": FARE,
    "day": date(1, 1, 1),
    "share": float("inf"),
    "place": {"city": "Oslo"},
    "stops": [{"city": "Rome"}, {"city": "Bonn"}],
    "counts": {"a": 1, "b": None},
}
SECOND = dict.fromkeys(FIRST) | {"id": 2, "stops": [], "counts": {}}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with served_node(MemoryEngine()) as node:
        with Client(node.endpoint) as client:
            client.create_database("d")
            for name in ("d.trips", "d.none"):
                client.schemas.register(name, TRIP)
                client.create_table(name, ["id"])
            client.table("d.trips").put_many([FIRST, SECOND])
        yield node


@pytest.fixture(params=FACES)
def client(served: Served, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, served.endpoint, timeout_s=10) as opened:
        yield opened


def documents(table: Any) -> list[dict[str, Any]]:
    """Return the rows of an Arrow table; a map is a list of pairs there."""
    return [{**row, "counts": dict(row["counts"])} for row in table.to_pylist()]


def test_an_arrow_table_has_what_a_scan_has(client: Client) -> None:
    table = client.table("d.trips").to_arrow()
    assert documents(table) == [FIRST, SECOND]
    assert table.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert table.schema.field("fare").type == pa.decimal128(38, 2)


@pytest.mark.parametrize("columns", [None, ["fare", "id", "counts"]])
def test_a_table_without_rows_has_the_schema_of_one_with_rows(client: Client, columns: list[str] | None) -> None:
    none, some = (client.table(name) for name in ("d.none", "d.trips"))
    assert none.to_arrow(columns=columns).schema == some.to_arrow(columns=columns).schema
    assert none.to_arrow(columns=columns).num_rows == some.to_arrow(columns=columns, limit=0).num_rows == 0
    assert dict(none.to_pandas(columns=columns).dtypes) == dict(some.to_pandas(columns=columns).dtypes)
    assert none.to_polars(columns=columns).schema == some.to_polars(columns=columns).schema


def test_a_frame_of_pandas_keeps_types_nulls_and_large_numbers(client: Client) -> None:
    frame = client.table("d.trips").to_pandas()
    assert frame["meters"].dtype == pd.ArrowDtype(pa.int64())
    assert frame["meters"].sum() == LONG
    assert frame["at"].dt.tz is not None
    assert frame["fare"].sum() == FARE
    assert frame["share"][0] == float("inf")
    assert frame.iloc[1].drop(["id", "stops", "counts"]).isna().all()
    assert documents(pa.Table.from_pandas(frame, preserve_index=False)) == [FIRST, SECOND]


def test_a_frame_of_polars_keeps_types_nulls_and_large_numbers(client: Client) -> None:
    frame = client.table("d.trips").to_polars()
    assert frame.schema["meters"] == pl.Int64
    assert frame.schema["at"] == pl.Datetime("us", "UTC")
    assert frame.schema["fare"] == pl.Decimal(38, 2)
    assert frame.to_dicts() == [FIRST, SECOND]


@pytest.mark.parametrize("way", ["to_arrow", "to_pandas", "to_polars"])
def test_rows_and_columns_are_chosen_as_in_a_scan(client: Client, way: str) -> None:
    read = getattr(client.table("d.trips"), way)
    assert read(columns=["meters", "id"]).shape == (2, 2)
    assert read(2).shape[0] == read(end=2).shape[0] == read(prefix=2).shape[0] == read(limit=1).shape[0] == 1
    assert list(read(filter="meters is null", columns=["id"])["id"]) in ([2], [pa.scalar(2)])
    assert [int(str(each)) for each in read(reverse=True, columns=["id"])["id"]] == [2, 1]
    with pytest.raises(NotFound, match="speed"):
        read(columns=["speed"])
    with pytest.raises(InvalidArgument, match="limit"):
        read(limit=-1)


def test_a_table_is_read_as_it_was_and_in_the_schema_of_today(served: Served, client: Client) -> None:
    with Client(served.endpoint) as writer:
        writer.schemas.register("d.moved", TRIP)
        writer.create_table("d.moved", ["id"])
        table = writer.table("d.moved")
        table.put(FIRST)
        before = writer.now()
        writer.schemas.register("d.moved", NOTED)
        table.put({**FIRST, "id": 3, "note": "new"})
        try:
            read = client.table("d.moved")
            assert read.to_arrow().column("note").to_pylist() == ["-", "new"]
            assert documents(read.to_arrow(at=before)) == [FIRST | {"note": "-"}]
            assert client.at(before).table("d.moved").to_polars().shape == (1, len(NOTED["fields"]))
            assert client.table("d.moved", schema_version=1).to_pandas().shape == (2, len(TRIP["fields"]))
        finally:
            writer.drop_table("d.moved")


def test_a_transaction_sees_its_own_writes_in_a_frame(served: Served) -> None:
    with Client(served.endpoint) as client, client.transaction() as txn:
        txn.table("d.none").put(FIRST)
        assert txn.table("d.none").to_polars()["meters"].to_list() == [LONG]
        txn.table("d.none").delete(1)


@pytest.mark.parametrize(
    ("kind", "missing"), [("pandas", "pandas"), ("pandas", "pyarrow"), ("polars", "polars"), ("polars", "pyarrow")]
)
def test_what_is_missing_is_named_before_anything_is_asked(kind: str, missing: str) -> None:
    code = (
        f"import sys; sys.modules['{missing}'] = None\n"
        "from cortado import Client\nfrom cortado.errors import Unsupported\n"
        f"try:\n    Client('127.0.0.1:1').table('d.t').to_{kind}()\nexcept Unsupported as error:\n    print(error)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/").stdout
    assert shown == f"to_{kind} without the extra [{kind}] is not supported: pip install 'cortadodb[{kind}]'\n"
