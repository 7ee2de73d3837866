"""Documents as instances of a class, against a real server, while their schema goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypedDict

import pytest

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.store.client import Changed, Client, Index, Resolved
from support.faces import FACES, open_client
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

SHOP: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "SENT"]}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [
                        {"name": "item", "type": "string"},
                        {
                            "name": "price",
                            "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
                        },
                    ],
                },
            },
        },
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
SHOP_2: dict[str, Any] = {**SHOP, "fields": [*SHOP["fields"], {"name": "gift", "type": "boolean", "default": False}]}


class State(StrEnum):
    OPEN = "OPEN"
    SENT = "SENT"


@dataclass
class Line:
    item: str
    price: Decimal


@dataclass
class Order:
    id: int
    state: State = State.OPEN
    lines: list[Line] = field(default_factory=list)
    note: str | None = None


class OrderDict(TypedDict):
    id: int
    state: State


@pytest.fixture(params=FACES)
def client(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint, timeout_s=10) as opened:
        yield opened


@pytest.fixture
def orders(client: Client, database: str) -> str:
    name = f"{database}.orders"
    client.schemas.register(name, SHOP)
    client.create_table(name, ["id"], indexes=[Index("by_state", ["state"])])
    return name


def order(number: int) -> Order:
    return Order(number, State.OPEN, [Line(f"item {number}", Decimal("1.50"))])


def test_instances_go_in_and_come_out_of_every_call(client: Client, database: str, orders: str) -> None:
    table = client.table(orders, document_type=Order)
    began = client.now()
    first = order(1)
    table.put(first)
    found = table.get(1)
    assert found is not None
    assert found.value == first
    assert table.put_many(order(number) for number in range(2, 6)).written == 4
    with client.transaction() as txn:
        txn.table(orders, document_type=Order).put(order(6))
    changed = table.update(6, {"state": State.SENT, "lines": [Line("other", Decimal("2.00"))]})
    assert changed.value == Order(6, State.SENT, [Line("other", Decimal("2.00"))])
    assert [document.value for document in table.scan(end=4)] == [order(1), order(2), order(3)]
    assert [document.value.id for document in table.scan(prefix="SENT", index="by_state")] == [6]
    assert table.get_many([1, 9])[0] == found
    assert client.table(orders, document_type=OrderDict).get(6).value["state"] is State.SENT  # type: ignore[union-attr]
    with table.watch(after=began, until=client.now()) as watch:
        events = [event for event in watch if not isinstance(event, Resolved)]
    assert all(isinstance(event, Changed) and isinstance(event.value.value, Order) for event in events)
    assert [event.key for event in events][:1] == [(1,)]


def test_a_class_goes_on_when_the_schema_gets_a_field_and_writes_its_default(client: Client, orders: str) -> None:
    table = client.table(orders, document_type=Order)
    table.put(order(1))
    client.schemas.register(orders, SHOP_2)
    plain = client.table(orders)
    plain.put({"id": 2, "state": "OPEN", "lines": [], "gift": True})
    assert [document.value for document in table.scan()] == [order(1), Order(2)]
    table.put(Order(2))
    assert [document.value["gift"] for document in plain.scan()] == [False, False]
    plain.put({"id": 3, "state": "OPEN", "lines": [], "gift": True})
    assert table.update(3, {"note": "x"}).value == Order(3, note="x")
    kept = plain.get(3)
    assert kept is not None
    assert kept.value["gift"] is True


def test_what_does_not_fit_is_told_by_the_first_call_whatever_is_stored(client: Client, orders: str) -> None:
    @dataclass
    class Other:
        id: str

    wrong = client.table(orders, document_type=Other)
    for call in (lambda: wrong.get(1), lambda: wrong.put(Other("x")), lambda: list(wrong.scan())):
        with pytest.raises(InvalidArgument, match=r"Other\.id: must admit int"):
            call()
    with pytest.raises(InvalidArgument, match=r"Other\.id"):
        wrong.update(1, {"note": "x"})
    table = client.table(orders, document_type=Order)
    with pytest.raises(InvalidArgument, match="columns"):
        list(table.scan(columns=["id"]))
    with pytest.raises(InvalidDocument, match=r"lines\[0\]\.price"):
        table.put(Order(1, lines=[Line("x", 1.5)]))  # type: ignore[arg-type]
    refused = table.put_many([order(1), Order("x"), order(2)])  # type: ignore[arg-type]
    assert (refused.written, [(each.row, str(each.error)) for each in refused.errors]) == (
        2,
        [(1, "id: must be an int (got str 'x')")],
    )
