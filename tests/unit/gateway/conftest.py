"""One gateway for all tests of the folder: each uses a table, or keys, of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cortado.store.client import Index
from support.gateways import Gateway, gateway

ITEM: dict[str, Any] = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "name", "type": "string", "default": ""},
        {"name": "left", "type": "long", "default": 0},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
         "default": None},
        {"name": "maker", "type": ["null", {"type": "record", "name": "Maker", "fields": [
            {"name": "name", "type": "string"}]}], "default": None},
    ],
}  # fmt: skip
EVENT: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "device", "type": "int"},
        {"name": "value", "type": "double", "default": 0.0},
    ],
}


@pytest.fixture(scope="package")
def served() -> Iterator[Gateway]:
    with gateway() as made:
        made.run(make_tables(made))
        yield made


async def make_tables(made: Gateway) -> None:
    await made.client.create_database("shop")
    await made.client.schemas.register("shop.items", ITEM)
    await made.client.create_table("shop.items", key=["id"], indexes=[Index("by_name", ["name"])])
    await made.client.schemas.register("shop.events", EVENT)
    await made.client.create_table("shop.events", key=["device", "at"])
