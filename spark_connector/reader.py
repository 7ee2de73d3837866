"""A batch read: key ranges of about equal size, all read at one timestamp, as Arrow.

::

    driver    schema() ── newest version of the subject, as Spark types
              partitions() ── the cluster chooses the timestamp and cuts the key range ──┐
    executor  read(partition) ── rows of one range, as Avro, each run of one version  <──┘
                              ── decoded by column, resolved to the reader's version ── record batches

``partitions()`` runs once per ``load()``, so that is where the timestamp is chosen. It travels in each partition: Spark
has made its copy of the reader for the executors by then. The version of the schema is chosen with the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from cortado.errors import InvalidArgument
from cortado.schema.model import Schema
from cortado.store.client import Client
from pyspark_cortado.keys import key_part
from pyspark_cortado.options import Connection, ReadOptions
from pyspark_cortado.types import check_columns, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class KeyRangePartition(InputPartition):
    """Rows of ``[lower, upper)`` at the timestamp ``at``; None is an open end."""

    lower: tuple[Any, ...] | None
    upper: tuple[Any, ...] | None
    at: str


def open_client(connection: Connection) -> Client:
    """Raises InvalidArgument for an endpoint that is no ``host:port``, and for files that hold no certificates."""
    return Client(connection.endpoint, timeout_s=connection.timeout_s, tls=connection.tls)


def table_schema(options: ReadOptions) -> tuple[StructType, int]:
    """The table's columns, or those that the options name, as Spark types, and the schema's version."""
    with open_client(options.connection) as client:
        schema, version = _reading_schema(client, options)
    return spark_schema(schema, options.columns, options.connection.table), version


def _reading_schema(client: Client, options: ReadOptions) -> tuple[Schema, int]:
    """The version of the table's subject that the job reads with."""
    subject = client.describe(options.connection.table).subject
    found = client.schemas.get(subject, options.schema_version)
    return client.schemas.by_id(found.schema_id), found.version


def prepare_read(options: ReadOptions, schema: StructType) -> TableReader:
    """A reader of the columns in ``schema``. Raises NotFound, InvalidArgument where they are not the table's."""
    if not schema.fields:
        # Spark would count no rows where it is given no columns.
        raise InvalidArgument("schema", "must name at least one column")
    with open_client(options.connection) as client:
        own, version = _reading_schema(client, options)
    table = options.connection.table
    check_columns(schema, spark_schema(own, schema.names, table), table)
    return TableReader(options, schema, version)


class TableReader(DataSourceReader):
    """Reads the columns in ``schema``, some or all of the table's, with one version of the table's schema."""

    def __init__(self, options: ReadOptions, schema: StructType, version: int) -> None:
        self._options = options
        self._schema = schema
        self._version = version

    def partitions(self) -> Sequence[InputPartition]:
        """One timestamp for all, and ranges that hold about equally many rows."""
        options = self._options
        with open_client(options.connection) as client:
            lower = _bound(client, options, "keyLower", options.key_lower)
            upper = _bound(client, options, "keyUpper", options.key_upper)
            at, ranges = client.table(options.connection.table).split(options.partitions, lower, upper, at=options.at)
        found = [KeyRangePartition(each.lower, each.upper, str(at)) for each in ranges]
        # Spark would ask for a partition of its own where there is none.
        return found or [KeyRangePartition(lower, upper, str(at))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Record batches that match the schema to the letter."""
        from pyspark.sql.pandas.types import to_arrow_schema

        assert isinstance(partition, KeyRangePartition)
        target = to_arrow_schema(self._schema, timezone="UTC")
        with open_client(self._options.connection) as client:
            table = client.table(self._options.connection.table, schema_version=self._version)
            columns = self._schema.names
            for batch in table.scan_arrow(partition.lower, partition.upper, columns=columns, at=partition.at):
                # They differ where Spark's schema says "may be null", and the table's does not.
                yield batch if batch.schema.equals(target) else batch.cast(target)


def _bound(client: Client, options: ReadOptions, name: str, parts: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Key parts from JSON, with the types that the table's key declares."""
    if parts is None:
        return None
    declared = client.describe(options.connection.table).key
    if len(parts) > len(declared):
        names = ", ".join(part.path for part in declared)
        raise InvalidArgument(f"option {name}", f"must have at most {len(declared)} parts ({names})", str(len(parts)))
    return tuple(key_part(value, part, f"option {name}") for value, part in zip(parts, declared, strict=False))
