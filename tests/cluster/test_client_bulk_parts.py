"""Updates and deletes of many rows through the client, against a real server."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from cortado.errors import ConditionFailed, InvalidArgument, InvalidDocument, NotFound, Unsupported
from cortado.store.client import Client, Index, Table
from support.faces import FACES, open_client
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"], "default": None},
    {"name": "stock", "type": "int"},
]
ROWS = 2_500


@pytest.fixture(params=FACES)
def items(server: ServerProcess, database: str, request: pytest.FixtureRequest) -> Any:
    with open_client(request.param, server.endpoint, timeout_s=10) as client:
        yield made(client, f"{database}.items")


def made(client: Client, name: str) -> Table:
    """Rows 0 to ``ROWS``, each with its number for a stock."""
    client.schemas.register(name, {"type": "record", "name": "Item", "fields": FIELDS})
    client.create_table(name, ["id"], indexes=[Index("by_stock", ["stock"])])
    table = client.table(name)
    table.put_many({"id": n, "name": f"item {n}", "stock": n} for n in range(ROWS))
    return table


def test_an_update_changes_its_columns_and_no_others(items: Table) -> None:
    result = items.update_many(({"stock": 7, "id": n} for n in range(0, ROWS, 2)), ["id", "stock"])
    assert (result.written, result.refused) == (ROWS // 2, 0)
    found = [(each.value["name"], each.value["stock"]) for each in items.scan()]
    assert found == [(f"item {n}", n if n % 2 else 7) for n in range(ROWS)]
    assert sum(1 for _ in items.scan(filter="stock = 7", index="by_stock")) == ROWS // 2 + 1


def test_rows_that_are_not_there_or_do_not_fit_are_refused_by_themselves(items: Table) -> None:
    rows: list[Any] = [
        {"id": 1, "stock": 9},
        {"id": -1, "stock": 9},
        {"id": 2},
        {"id": 3, "stock": "many"},
        {"id": 4, "stock": 9, "colour": 1},
        5,
    ]
    result = items.update_many(rows, ["id", "stock"])
    assert (result.written, result.refused) == (1, 5)
    kinds = {each.row: type(each.error) for each in result.errors}
    assert kinds == {1: ConditionFailed, **dict.fromkeys((2, 3, 4, 5), InvalidDocument)}
    missing = next(each.error for each in result.errors if each.row == 2)
    assert str(missing) == "stock: is missing: an update has all of its columns"


def test_keys_are_deleted_and_what_is_not_there_counts(items: Table) -> None:
    result = items.delete_many(n for n in range(-5, ROWS) if n % 5)
    assert (result.refused, result.written) == (0, 4 * (ROWS + 5) // 5)
    assert [each.value["id"] for each in items.scan()] == list(range(0, ROWS, 5))
    assert sum(1 for _ in items.scan(index="by_stock")) == ROWS // 5


@pytest.mark.parametrize("columns", [["id", "color"], ["stock"], ["id", "id"]])
def test_columns_that_cannot_be_are_refused_before_a_row_is(items: Table, columns: list[str]) -> None:
    with pytest.raises((NotFound, InvalidArgument), match=r"color|primary key|twice"):
        items.update_many([dict.fromkeys(columns, 1)], columns)


def test_an_update_keeps_when_a_row_expires_unless_it_says_otherwise(items: Table) -> None:
    items.put_many([{"id": n, "stock": n} for n in range(2)], expires=timedelta(hours=1))
    before = items.get(0)
    assert before is not None
    assert before.expires_ms
    items.update_many([{"id": 0, "stock": 50}, {"id": 2, "stock": 50}], ["id", "stock"])
    kept, never = items.get(0), items.get(2)
    assert kept is not None
    assert never is not None
    assert (kept.expires_ms, never.expires_ms) == (before.expires_ms, 0)
    items.update_many([{"id": 1, "stock": 50}], ["id", "stock"], expires="never")
    lasting = items.get(1)
    assert lasting is not None
    assert lasting.expires_ms == 0


def test_arrow_updates_and_deletes_by_its_columns(items: Table) -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.RecordBatch.from_pylist([{"name": "new", "id": n, "stock": -1} for n in range(100)])
    assert items.put_arrow([batch], mode="update", columns=["id", "name"]).written == 100
    assert [(each.value["name"], each.value["stock"]) for each in items.scan(end=2)] == [("new", 0), ("new", 1)]
    assert items.put_arrow([batch.slice(0, 99)], mode="delete").written == 99
    first = next(iter(items.scan()))
    assert first.value == {"id": 99, "name": "new", "stock": 99}
    with pytest.raises(InvalidArgument, match="column id: is one of those to write"):
        items.put_arrow([batch.select(["name"])], mode="delete")


def test_a_key_inside_of_a_record_is_deleted_with_arrow(client: Client, database: str) -> None:
    name = f"{database}.deep"
    inner = {"type": "record", "name": "In", "fields": [{"name": "a", "type": "int"}]}
    fields = [{"name": "at", "type": inner}]
    client.schemas.register(name, {"type": "record", "name": "Deep", "fields": fields})
    client.create_table(name, ["at.a"])
    table = client.table(name)
    table.put_many({"at": {"a": n}} for n in range(3))
    with pytest.raises(Unsupported, match="inside of a record"):
        table.delete_many([1])


def test_a_large_transaction_updates_and_deletes(client: Client, database: str) -> None:
    items = made(client, f"{database}.items")
    with client.large_transaction([items.full_name]) as txn:
        staged = txn.table(items.full_name)
        assert staged.delete_many(range(1_000)).written == 1_000
        assert staged.update_many([{"id": n, "stock": 0} for n in range(1_000, ROWS)], ["id", "stock"]).written == 1_500
        assert len(list(items.scan())) == ROWS
    rows = [(each.value["id"], each.value["name"], each.value["stock"]) for each in items.scan()]
    assert rows == [(n, f"item {n}", 0) for n in range(1_000, ROWS)]
