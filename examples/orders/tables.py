"""The two tables of the pipeline, and the orders that are put into the first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cortado import Client

DATABASE: Final = "shop"
ORDERS: Final = f"{DATABASE}.orders"
REVENUE: Final = f"{DATABASE}.revenue"

SHOPS: Final = ("berlin", "lisbon", "oslo")
BEGAN: Final = datetime(2026, 3, 1, 8, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
ORDERS_AN_HOUR: Final = 100

_TIMESTAMP: Final = {"type": "long", "logicalType": "timestamp-micros"}
_ORDER: Final = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "placed_at", "type": _TIMESTAMP},
        {"name": "number", "type": "long"},
        {"name": "shop", "type": "string"},
        {"name": "cents", "type": "long"},
    ],
}
_REVENUE: Final = {
    "type": "record",
    "name": "Revenue",
    "fields": [
        {"name": "hour", "type": _TIMESTAMP},
        {"name": "shop", "type": "string"},
        {"name": "orders", "type": "long"},
        {"name": "cents", "type": "long"},
    ],
}


def create_tables(client: Client) -> None:
    """Create the tables: orders by the time at which they were placed; sums by hour and shop."""
    client.create_database(DATABASE)
    client.schemas.register(ORDERS, _ORDER)
    client.create_table(ORDERS, key=["placed_at", "number"])
    client.schemas.register(REVENUE, _REVENUE)
    client.create_table(REVENUE, key=["hour", "shop"])


def orders_of(hour: int) -> Iterator[dict[str, Any]]:
    """Yield the orders of an hour since the beginning: the same in every run."""
    for place in range(ORDERS_AN_HOUR):
        number = hour * ORDERS_AN_HOUR + place
        yield {
            "placed_at": BEGAN + hour * HOUR + place * HOUR / ORDERS_AN_HOUR,
            "number": number,
            "shop": SHOPS[number * number % len(SHOPS) if number % 5 else number % len(SHOPS)],
            "cents": 100 + number * 7919 % 9_900,
        }
