"""A batch read: key ranges of about equal size, all read at one timestamp, as Arrow.

::

    driver    schema() ── newest version of the subject, as Spark types
              partitions() ── the cluster chooses the timestamp and cuts the key range ──┐
    executor  read(partition) ── rows of one range, as Avro, each run of one version  <──┘
                              ── decoded by column, resolved to the reader's version ── record batches

``partitions()`` runs once per ``load()``, so that is where the timestamp is chosen; it travels in each partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from cortado.errors import InvalidArgument
from cortado.store.client import Client
from pyspark_cortado.options import Connection, ReadOptions
from pyspark_cortado.types import check_columns, select, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.schema.model import Schema

ROWS_PER_BATCH = 20_000


@dataclass
class KeyRangePartition(InputPartition):  # type: ignore[misc]
    """Rows of ``[lower, upper)`` at the timestamp ``at``; None is an open end."""

    lower: tuple[Any, ...] | None
    upper: tuple[Any, ...] | None
    at: str


def open_client(connection: Connection) -> Client:
    return Client(connection.endpoint, timeout_s=connection.timeout_s)


def reading_schema(client: Client, options: ReadOptions) -> Schema:
    """The version of the table's subject that the job reads with."""
    subject = client.describe(options.connection.table).subject
    version = client.schemas.get(subject, options.schema_version)
    return client.schemas.by_id(version.schema_id)


def table_schema(options: ReadOptions) -> StructType:
    """The table's columns, or those that the options name, as Spark types."""
    with open_client(options.connection) as client:
        whole = spark_schema(reading_schema(client, options))
    return select(whole, options.columns, options.connection.table)


class TableReader(DataSourceReader):
    """Reads ``schema``, whose columns may be a subset of the table's."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[KeyRangePartition]:
        """One timestamp for all, and ranges that hold about equally many rows."""
        options = self._options
        with open_client(options.connection) as client:
            check_columns(self._schema, spark_schema(reading_schema(client, options)), options.connection.table)
            table = client.table(options.connection.table)
            at, ranges = table.split(
                options.partitions,
                _typed(client, options, "keyLower", options.key_lower),
                _typed(client, options, "keyUpper", options.key_upper),
                at=options.at,
            )
        return [KeyRangePartition(each.lower, each.upper, str(at)) for each in ranges]

    def read(self, partition: KeyRangePartition) -> Iterator[pa.RecordBatch]:
        """Record batches that match the schema to the letter."""
        from pyspark_cortado.arrow import ArrowBatches

        with open_client(self._options.connection) as client:
            batches = ArrowBatches(client, reading_schema(client, self._options), self._schema)
            table = client.table(self._options.connection.table)
            for rows in table.scan_batches(partition.lower, partition.upper, at=partition.at):
                yield from batches.add(rows)
            yield from batches.finish()


def _typed(client: Client, options: ReadOptions, name: str, parts: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Key parts from JSON, with the types that the table's key declares."""
    if parts is None:
        return None
    from pyspark_cortado.types import key_part

    declared = client.describe(options.connection.table).key
    if len(parts) > len(declared):
        raise InvalidArgument(f"option {name}", f"the key has {len(declared)} parts", f"{len(parts)} parts")
    return tuple(key_part(value, part, f"option {name}") for value, part in zip(parts, declared, strict=False))
