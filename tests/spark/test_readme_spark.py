"""The Spark block of README's taste works as it stands there."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from cortado import Client
from support.readme import taste

pytestmark = pytest.mark.spark

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "customer", "type": "string"},
        {"name": "number", "type": "long"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    ],
}


def test_the_block_runs_as_it_stands(
    spark: SparkSession, node: str, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.create_database("shop")
    client.schemas.register("shop.orders", ORDER)
    for name in ("shop.orders", "shop.orders_copy"):
        client.create_table(name, key=["customer", "number"], subject="shop.orders")
    row = {"customer": "ada", "number": 1, "day": date(2026, 3, 1), "total": Decimal("13.00")}
    client.table("shop.orders").put(row)
    *_, (_, block) = taste()
    # The page's server is on the default port.
    block = block.replace('.format("cortado")', f'.format("cortado").option("endpoint", "{node}")')
    exec(compile(block, "README.md", "exec"), {"spark": spark})
    assert "13.00" in capsys.readouterr().out
    assert [document.value for document in client.table("shop.orders_copy").scan()] == [row]
