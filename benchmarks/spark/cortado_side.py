"""Cortado by its data source: all work that the node can do is left to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from benchmarks.cluster.cortado_nodes import CortadoCluster
from benchmarks.spark.loads import FLIGHTS_BELOW, GATE, PARTITIONS, SCHEMA, key_range
from benchmarks.spark.turns import Act
from cortado import Client
from cortado.store.client.tables import Index

TABLE: Final = "bench.flights"
INDEX: Final = "by_gate"


class CortadoSide:
    """A cluster, and a session that reads and writes it."""

    brings_rows = True

    def __init__(self, cluster: CortadoCluster, spark: SparkSession, rows: int) -> None:
        self.name = cluster.name
        self.pids: Sequence[int] = [member.pid for member in cluster.members]
        self.client = Client(cluster.endpoints, timeout_s=60)
        self._endpoints = cluster.endpoints
        self._spark = spark
        self._rows = rows
        self._tables = 0
        self._written = ""

    def fill(self, rows: DataFrame, there: DataFrame) -> None:
        """Write the rows of reads and of upserts."""
        self.client.create_database("bench")
        for name, frame in ((TABLE, rows), ("bench.upsert", there)):
            self.create(name, [Index(INDEX, ["gate"])] if name == TABLE else ())
            self.append(name, frame, {})()

    def settings(self) -> str:
        return f"{self.name}: Cortado with default settings"

    def read(self, load: str) -> DataFrame | None:
        lower, upper = key_range(self._rows)
        options: Mapping[str, Mapping[str, object]] = {
            "read": {"partitions": PARTITIONS},
            "sum": {"aggregate": "sum(flight) as flight, sum(distance) as distance"},
            "sum_by_spark": {"columns": "flight,distance", "partitions": PARTITIONS},
            "grouped": {
                "aggregate": "count(*) as n, sum(distance) as s",
                "groupBy": "carrier",
                "partitions": PARTITIONS,
            },
            "by_value": {"filter": f"flight < {FLIGHTS_BELOW}", "partitions": PARTITIONS},
            "by_key": {"keyStart": f"[{lower}]", "keyEnd": f"[{upper}]", "partitions": 1},
            "by_index": {"index": INDEX, "keyStart": f"[{GATE}]", "keyEnd": f"[{GATE + 1}]"},
        }
        frame = self._loaded(TABLE, options[load]) if load in options else None
        if frame is not None and load == "sum_by_spark":
            return frame.selectExpr("sum(flight)", "sum(distance)")
        return frame

    def write(self, load: str, rows: DataFrame) -> Act | None:
        if load == "upsert":
            self._written = "bench.upsert"
            return self.append(self._written, rows, {"onConflict": "overwrite"})
        if load not in ("append", "append_at_once"):
            return None
        self._tables += 1
        self._written = f"bench.appended_{self._tables}"
        self.create(self._written)
        return self.append(self._written, rows, {"transactional": "true"} if load == "append_at_once" else {})

    def stored(self) -> DataFrame:
        return self._loaded(self._written, {})

    def create(self, name: str, indexes: Sequence[Index] = ()) -> None:
        """Create a table for the rows."""
        self.client.schemas.register(name, SCHEMA)
        self.client.create_table(name, ["id"], indexes=indexes)

    def at_table(self, name: str, reader_or_writer: Any) -> Any:
        """Return a reader or writer, of batches or of streams, that knows the table's address."""
        return reader_or_writer.format("cortado").options(endpoint=self._endpoints, table=name)

    def append(self, name: str, rows: DataFrame, options: Mapping[str, str]) -> Act:
        """Return the act that appends the rows to a table."""
        writer = self.at_table(name, rows.write).options(**options)
        return lambda: writer.mode("append").save()

    def _loaded(self, name: str, options: Mapping[str, object]) -> DataFrame:
        given = {key: str(value) for key, value in options.items()}
        frame: DataFrame = self.at_table(name, self._spark.read).options(**given).load()
        return frame
