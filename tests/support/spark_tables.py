"""Tables for Spark tests: made, written and read with few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cortado import Client
from cortado.store.client import Table

Fields = dict[str, Any]
"""Avro types by field name; a pair of type and default if there is one."""


def record(fields: Fields, name: str = "Row") -> dict[str, Any]:
    """Return an Avro schema of these fields."""
    return {"type": "record", "name": name, "fields": [_field(each, kind) for each, kind in fields.items()]}


def _field(name: str, kind: Any) -> dict[str, Any]:
    if isinstance(kind, tuple):
        return {"name": name, "type": kind[0], "default": kind[1]}
    return {"name": name, "type": kind}


class SparkTables:
    """Tables of database ``d`` with names that begin with ``prefix``."""

    def __init__(self, spark: SparkSession, client: Client, endpoint: str, prefix: str) -> None:
        self.spark = spark
        self.client = client
        self.endpoint = endpoint
        self._prefix = prefix

    def make(self, fields: Fields, key: Sequence[str] = ("id",), suffix: str = "") -> Table:
        """Make a new table; its subject has its name."""
        name = f"d.{self._prefix}{suffix}"
        self.client.schemas.register(name, record(fields))
        self.client.create_table(name, list(key))
        return self.client.table(name)

    def evolve(self, table: Table, fields: Fields) -> None:
        """Register another version of the table's schema."""
        self.client.schemas.register(table.full_name, record(fields))

    def read(self, table: Table | str, schema: Any = None, **options: Any) -> DataFrame:
        reader = self.spark.read.format("cortado").option("endpoint", self.endpoint)
        name = table if isinstance(table, str) else table.full_name
        reader = reader.option("table", name).options(**options)
        return (reader if schema is None else reader.schema(schema)).load()

    def append(self, frame: DataFrame, table: Table | str, **options: Any) -> None:
        name = table if isinstance(table, str) else table.full_name
        writer = frame.write.format("cortado").option("endpoint", self.endpoint).option("table", name)
        writer.options(**options).mode("append").save()
