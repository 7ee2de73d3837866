"""PostgreSQL by Spark's JDBC source, as its users write it for speed.

Reads are cut by ranges of the key into partitions, and fetch 10,000 rows at a time. Conditions are pushed down, and
aggregates are a ``query``. Appends write multi-row inserts in batches of 10,000. JDBC knows no upsert, and each task of
an append commits by itself: so rows that are there, and rows that must come all or none, go to an unlogged table first,
and from there with one statement of SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from benchmarks.spark.loads import FLIGHTS_BELOW, GATE, PARTITIONS, SQL_COLUMNS, VALUES, key_range
from benchmarks.spark.postgres import USER, Postgres
from benchmarks.spark.turns import Act

DRIVER: Final = "org.postgresql.Driver"
FETCHED: Final = 10_000
STAGED: Final = "staged"
_NAMES: Final = [each.rpartition(" ")[2] for each in VALUES]


class JdbcSide:
    """A database, and a session that reads and writes it."""

    brings_rows = True

    def __init__(self, postgres: Postgres, spark: SparkSession, rows: int) -> None:
        self.name = "jdbc"
        self.pids: Sequence[int] = [postgres.pid]
        self._settings = postgres.settings
        self._options = {"url": postgres.url, "user": USER, "password": postgres.password, "driver": DRIVER}
        self._spark = spark
        self._rows = rows
        self._written = ""
        jvm: Any = spark._jvm
        jvm.java.lang.Class.forName(DRIVER)
        self._connection = jvm.java.sql.DriverManager.getConnection(postgres.url, USER, postgres.password)

    def fill(self, rows: DataFrame, there: DataFrame) -> None:
        """Write the rows of reads and of upserts."""
        self._run(f"CREATE TABLE flights ({SQL_COLUMNS})", f"CREATE TABLE upserted ({SQL_COLUMNS})")
        self._append("flights", rows)
        self._append("upserted", there)
        self._run("CREATE INDEX by_gate ON flights (gate)", "VACUUM ANALYZE")

    def settings(self) -> str:
        return f"{self.name}: {self._settings}"

    def close(self) -> None:
        self._connection.close()

    def read(self, load: str) -> DataFrame | None:
        lower, upper = key_range(self._rows)
        match load:
            case "read":
                return self._by_ranges()
            case "sum":
                return self._of("SELECT sum(flight) AS flight, sum(distance) AS distance FROM flights")
            case "sum_by_spark":
                return self._by_ranges().selectExpr("sum(flight)", "sum(distance)")
            case "grouped":
                return self._of("SELECT carrier, count(*), sum(distance) FROM flights GROUP BY carrier")
            case "by_value":
                return self._by_ranges().where(f"flight < {FLIGHTS_BELOW}")
            case "by_key":
                return self._of(f"SELECT * FROM flights WHERE id >= {lower} AND id < {upper}")
            case "by_index":
                return self._of(f"SELECT * FROM flights WHERE gate = {GATE}")
        return None

    def write(self, load: str, rows: DataFrame) -> Act | None:
        match load:
            case "append":
                self._empty("appended")
                return lambda: self._append("appended", rows)
            case "append_at_once":
                self._empty("appended")
                return lambda: self._through_staged(rows, "")
            case "upsert":
                self._written = "upserted"
                changed = ", ".join(f"{name} = excluded.{name}" for name in _NAMES if name != "id")
                return lambda: self._through_staged(rows, f" ON CONFLICT (id) DO UPDATE SET {changed}")
        return None

    def stored(self) -> DataFrame:
        return self._table(self._written).load()

    def _empty(self, name: str) -> None:
        self._written = name
        self._run(f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({SQL_COLUMNS})", "CHECKPOINT")

    def _through_staged(self, rows: DataFrame, on_conflict: str) -> None:
        self._run(f"DROP TABLE IF EXISTS {STAGED}", f"CREATE UNLOGGED TABLE {STAGED} (LIKE {self._written})")
        self._append(STAGED, rows)
        self._run(f"INSERT INTO {self._written} SELECT * FROM {STAGED}{on_conflict}")

    def _append(self, name: str, rows: DataFrame) -> None:
        writer = rows.write.format("jdbc").options(**self._options, dbtable=name, batchsize=FETCHED)
        writer.mode("append").save()

    def _by_ranges(self) -> DataFrame:
        reader = self._table("flights").options(partitionColumn="id", numPartitions=PARTITIONS)
        return reader.options(lowerBound=0, upperBound=self._rows).load()

    def _table(self, name: str) -> DataFrameReader:
        return self._spark.read.format("jdbc").options(**self._options, dbtable=name, fetchsize=FETCHED)

    def _of(self, query: str) -> DataFrame:
        reader = self._spark.read.format("jdbc").options(**self._options, fetchsize=FETCHED)
        return reader.option("query", query).load()

    def _run(self, *statements: str) -> None:
        for each in statements:
            statement = self._connection.createStatement()
            statement.execute(each)
            statement.close()
