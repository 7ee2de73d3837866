"""A batch write: every task streams its rows, encoded by column, to the node; each chunk is one commit.

An append is an upsert by primary key and may be repeated: a task that Spark runs again writes the same rows again, and
rows that are the same byte for byte count as written. A row that differs from one written since the job began is either
a second row with the same key in the job, or another writer's; by default it fails the job (``onConflict``).

What was written before a failure stays. Spark's save mode "errorifexists", its default, is refused by Spark itself for
sources in Python; "overwrite" is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from cortado.errors import InvalidArgument, NotFound, Unsupported
from cortado.schema.model import NO_DEFAULT, Schema
from cortado.store.client import Client
from cortado.store.clock.timestamp import Timestamp
from pyspark_cortado.options import WriteOptions
from pyspark_cortado.reader import open_client
from pyspark_cortado.types import spark_schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class TaskResult(WriterCommitMessage):  # type: ignore[misc]
    """Rows that one task stored."""

    written: int


def prepare_write(options: WriteOptions, schema: StructType, overwrite: bool) -> TableWriter:
    """Check the DataFrame's columns against the table before any task starts."""
    table = options.connection.table
    if overwrite:
        raise Unsupported('mode("overwrite")', 'mode("append") upserts by primary key')
    with open_client(options.connection) as client:
        version = client.schemas.get(client.describe(table).subject)
        _check_frame(schema, client.schemas.by_id(version.schema_id), table)
        _check_key(schema, client, table)
        return TableWriter(options, version.schema_id, client.now())


def _check_frame(frame: StructType, schema: Schema, table: str) -> None:
    whole = spark_schema(schema)
    for field in frame.fields:
        if field.name not in whole.fieldNames():
            raise NotFound("field", f"{field.name} in {table}; there are {', '.join(whole.fieldNames())}")
        own = whole[field.name].dataType
        if field.dataType != own:
            found = field.dataType.simpleString()
            raise InvalidArgument(f"column {field.name}", f"must be {own.simpleString()} as in {table}", found)
    for declared in schema.record.fields:
        if declared.default is NO_DEFAULT and declared.name not in frame.fieldNames():
            raise InvalidArgument(f"column {declared.name}", f"is required by {table}: it has no default", "no column")


def _check_key(frame: StructType, client: Client, table: str) -> None:
    for part in client.describe(table).key:
        if part.path.split(".")[0] not in frame.fieldNames():
            raise InvalidArgument(f"column {part.path}", f"is required: it is part of the primary key of {table}")


class TableWriter(DataSourceArrowWriter):
    """Writes record batches as they come from Spark. ``began`` is the timestamp before the job's first row."""

    def __init__(self, options: WriteOptions, schema_id: int, began: Timestamp) -> None:
        self._options = options
        self._schema_id = schema_id
        self._began = began

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """One task's rows. Raises the first refused row's error, with how many were refused."""
        options = self._options
        with open_client(options.connection) as client:
            result = client.table(options.connection.table).bulk_arrow(
                iterator,
                schema_id=self._schema_id,
                mode=options.mode,
                chunk_rows=options.chunk_rows,
                unchanged_since=self._began if options.refuse_conflicts else None,
            )
        if result.errors:
            raise result.errors[0]
        return TaskResult(result.written)

    def commit(self, messages: list[TaskResult | None]) -> None:
        """Every chunk was durable before its task ended: there is nothing left to do."""

    def abort(self, messages: list[TaskResult | None]) -> None:
        """What was written stays, and the next append of the same rows changes nothing of it."""
