"""A batch write: every task streams its rows, encoded by column, to the node; each chunk is one commit.

An append is an upsert by primary key and may be repeated: a task that Spark runs again writes the same rows again, and
rows that are the same byte for byte count as written. A row that differs from one written since the job began is either
a second row with the same key in the job, or another writer's; by default it fails the job (``onConflict``).

What was written before a failure stays. Spark's save mode "errorifexists", its default, is refused by Spark itself for
sources in Python; "overwrite" is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from cortado.errors import CortadoError, Unsupported, WriteConflict
from cortado.schema.model import Schema
from cortado.store.client import BulkResult
from cortado.store.clock.timestamp import Timestamp
from pyspark_cortado.options import WriteOptions
from pyspark_cortado.reader import open_client
from pyspark_cortado.types import check_frame

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.store.client.put_mode import PutMode

_TWICE = (
    "Two rows of this job have that key, or another writer changed it since the job began. "
    'With the option onConflict "overwrite" the last one to arrive wins.'
)


@dataclass
class TaskResult(WriterCommitMessage):
    """Rows that one task stored."""

    written: int


def prepare_write(options: WriteOptions, frame: StructType, overwrite: bool) -> TableWriter:
    """Check the DataFrame's columns against the table before any task starts."""
    if overwrite:
        raise Unsupported('mode("overwrite")', 'mode("append") upserts by primary key')
    name = options.connection.table
    with open_client(options.connection) as client:
        table = client.describe(name)
        version = client.schemas.get(table.subject)
        schema: Schema = client.schemas.by_id(version.schema_id)
        fields = check_frame(frame, schema, [part.path.partition(".")[0] for part in table.key], name)
        return TableWriter(options, fields, version.version, client.now())


class TableWriter(DataSourceArrowWriter):
    """Writes record batches as they come from Spark, with one version of the table's schema.

    ``fields`` are what its columns are called in the table; ``began`` is the timestamp before the job's first row.
    """

    def __init__(self, options: WriteOptions, fields: Sequence[str], version: int, began: Timestamp) -> None:
        self._options = options
        self._fields = list(fields)
        self._version = version
        self._began = began

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """One task's rows. Raises the first refused row's error, with how many were refused."""
        options = self._options
        with open_client(options.connection) as client:
            table = client.table(options.connection.table, schema_version=self._version)
            result = table.bulk_arrow(
                (batch.rename_columns(self._fields) for batch in iterator),
                mode=cast("PutMode", options.mode),
                chunk_rows=options.chunk_rows,
                unchanged_since=self._began if options.refuse_conflicts else None,
            )
        if result.refused:
            raise _refusal(result)
        return TaskResult(result.written)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Every chunk was durable before its task ended: there is nothing left to do."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What was written stays, and the next append of the same rows changes nothing of it."""


def _refusal(result: BulkResult) -> CortadoError:
    """The first refused row's error, with what else there is to know."""
    error = result.errors[0].error
    if isinstance(error, WriteConflict):
        error.add_note(_TWICE)
    error.add_note(
        f"This task stored {result.written} rows; {result.refused} were refused, of which this is the first."
    )
    return error
