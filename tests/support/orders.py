"""A table with every kind of index, and documents for it."""

from __future__ import annotations

from typing import Any

from cortado.store.catalog.descriptors import TableDescriptor
from support.table_world import TableWorld, index

ADDRESS = {
    "type": "record",
    "name": "Address",
    "fields": [{"name": "city", "type": "string"}, {"name": "zip", "type": ["null", "string"], "default": None}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "customer", "type": "string"},
        {"name": "number", "type": "long"},
        {"name": "code", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": "double", "default": 0.0},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["open", "paid"]}, "default": "open"},
        {"name": "address", "type": ["null", ADDRESS], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ],
}
ORDER_V2 = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": "none"}],  # type: ignore[misc]
}
INDEXES = [
    index("by_code", "code", unique=True),
    index("by_city", "address.city", "number desc"),
    index("by_status_amount", "status", "amount"),
]


def create_orders(world: TableWorld) -> TableDescriptor:
    """Create table ``orders``, by customer and, newest first, number."""
    return world.create("orders", ORDER, ["customer", "number desc"], INDEXES)


def order(customer: str, number: int, **fields: Any) -> dict[str, Any]:
    """Return a whole document, as it reads back."""
    defaults: dict[str, Any] = {"code": None, "amount": 0.0, "status": "open", "address": None, "tags": []}
    return {"customer": customer, "number": number, **defaults, **fields}


def address(city: str, zip_code: str | None = None) -> dict[str, Any]:
    return {"city": city, "zip": zip_code}
