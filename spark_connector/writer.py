"""A batch write: every task streams its rows, encoded by column, to the node; each chunk is one commit.

An append is an upsert by primary key and may be repeated: a task that Spark runs again writes the same rows again, and
rows that are the same byte for byte count as written. A row that differs from one written since the job began is either
a second row with the same key in the job, or another writer's; by default it fails the job (``onConflict``).

Rows written before a failure stay, unless the job is ``transactional`` (:mod:`pyspark_cortado.transactional`) or
overwrites the table (:mod:`pyspark_cortado.overwriting`). Spark's save mode "errorifexists", its default, is refused by
Spark itself for sources in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from cortado.errors import CortadoError, InvalidArgument, WriteConflict
from cortado.schema.model import Schema
from cortado.store.client import BulkResult
from cortado.store.client.large_transactions import ATTEMPT_MAX
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import show_table_id
from pyspark_cortado.applied_changes import COLUMNS_OF_CHANGES, LastChanges, ToldBy, check_changes
from pyspark_cortado.bad_rows import BadRows, check_path, new_job, remove_all, sum_up
from pyspark_cortado.catalogue import check_no_new_table
from pyspark_cortado.clients import open_client
from pyspark_cortado.options import WriteOptions
from pyspark_cortado.types import check_frame

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.store.client import Client, Staging
    from cortado.store.client.put_mode import BulkMode

_TWICE = (
    "Two rows of this job have that key, or another writer changed it since the job began. "
    'With the option onConflict "overwrite" the last one to arrive wins.'
)


@dataclass
class TaskResult(WriterCommitMessage):
    """Rows that one task stored; and how many were refused, in that file of the bad ones."""

    written: int
    refused: int = 0
    bad_rows: str = ""


def prepare_write(options: WriteOptions, frame: StructType) -> TableWriter:
    """Check the DataFrame's columns against the table before any task starts."""
    with open_client(options.connection) as client:
        return TableWriter(options, plan_job(client, options, frame))


@dataclass(frozen=True, slots=True)
class Job:
    """The plan that tasks get: the field of each column of the DataFrame, by the columns' places, the key's fields, and
    the version of the schema to write with. Then the timestamp since which no other writer may have written a row: that
    before the job's first one, or an earlier one; and its id. For changes, also the columns that describe them."""

    fields: Mapping[int, str]
    key_fields: Sequence[str]
    version: int
    began: Timestamp
    table_id: int
    told_by: ToldBy | None = None

    def check_table(self, client: Client, name: str) -> None:
        """``name`` means the table that the columns were checked against. Raises NotFound, InvalidArgument."""
        found = client.describe(name).table_id
        if found != self.table_id:
            raise another_table(name, self.table_id, found, "as the job was planned")


def another_table(name: str, before: int | str, now: int, when: str) -> InvalidArgument:
    """Return the error for a target that is another table than before, by the tables' ids."""
    was = before if isinstance(before, str) else show_table_id(before)
    problem = f"is the table {show_table_id(now)} now, and was {was} {when}: that was dropped, truncated or replaced"
    return InvalidArgument("option table", problem, name)


def plan_job(client: Client, options: WriteOptions, frame: StructType) -> Job:
    """Raises NotFound, InvalidArgument."""
    name = options.connection.table
    if options.bad_rows_path is not None:
        check_path(options.bad_rows_path)
    table = client.describe(name)
    version = client.schemas.get(table.subject)
    schema: Schema = client.schemas.get_by_id(version.schema_id)
    key_fields = list(dict.fromkeys(part.path.partition(".")[0] for part in table.key))
    began, since = client.now(), options.unchanged_since
    if since is not None and since > began:
        raise InvalidArgument("option unchangedSince", f"must not be after now, {began}", str(since))
    began = began if since is None else since
    if options.operation == "changes":
        fields = check_frame(frame, schema, key_fields, name, beside=COLUMNS_OF_CHANGES)
        told_by = check_changes(frame, fields, [part.path for part in table.key])
        return Job(fields, key_fields, version.version, began, table.table_id, told_by)
    fields = check_frame(frame, schema, key_fields, name, options.operation)
    return Job(fields, key_fields, version.version, began, table.table_id)


@dataclass(frozen=True, slots=True)
class Loader:
    """Loads a job's record batches into tables, with one version of the table's schema, as its operation has it."""

    options: WriteOptions
    job: Job

    def load(
        self, tables: Client | Staging, batches: Iterable[pa.RecordBatch], name: str, began: Timestamp
    ) -> BulkResult:
        """Into the table ``name`` as ``tables`` has it."""
        told_by = self.job.told_by
        if told_by is None:
            return self.load_named(tables, self.named(batches), name, began, self.options.operation)
        with LastChanges(batches, told_by) as last:
            written = self.load_named(tables, self.named(last.puts()), name, began, "upsert")
            if last.deletes and not written.refused:
                gone = self.load_named(tables, self.named(last.deleted()), name, began, "delete")
                gone.written += written.written
                return gone
        return written

    def named(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the columns to write, called as the fields are."""
        fields = self.job.fields
        return (batch.select(list(fields)).rename_columns(list(fields.values())) for batch in batches)

    def load_named(
        self,
        tables: Client | Staging,
        batches: Iterable[pa.RecordBatch],
        name: str,
        began: Timestamp,
        operation: str,
    ) -> BulkResult:
        """Batches of such columns."""
        return tables.table(name, schema_version=self.job.version).put_arrow(
            batches,
            mode=cast("BulkMode", operation),
            columns=list(self.job.fields.values()) if operation == "update" else None,
            chunk_rows=self.options.chunk_rows,
            unchanged_since=began if self.options.refuse_conflicts else None,
        )


class TableWriter(DataSourceArrowWriter):
    """Writes record batches as they come from Spark."""

    def __init__(self, options: WriteOptions, job: Job) -> None:
        self._options = options
        self._job = job
        self._loader = Loader(options, job)
        self._name = new_job()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """One task's rows. Raises the first refused row's error, with how many were refused."""
        check_no_new_table()
        name = self._options.connection.table
        with open_client(self._options.connection) as client:
            self._job.check_table(client, name)
            result = self._stored(client, iterator, name, self._job.began)
            # With onConflict "overwrite" nothing else tells that another table has come to have the name meanwhile.
            self._job.check_table(client, name)
            return result

    def _stored(self, client: Client, batches: Iterator[pa.RecordBatch], name: str, began: Timestamp) -> TaskResult:
        """Store the rows in the table ``name``; those that it refuses aside if that is asked for."""
        path = self._options.bad_rows_path
        loader, operation = self._loader, self._options.operation
        if path is None:
            result = loader.load(client, batches, name, began)
            if result.refused:
                raise _refusal(result)
            return TaskResult(result.written)
        partition, run = task_and_attempt()
        file = f"{self._name}-{partition:05}-{run:04}.jsonl"
        with BadRows(path, file, self._job.key_fields) as bad:
            written = bad.store(
                loader.named(batches), lambda rows: loader.load_named(client, rows, name, began, operation)
            )
        return TaskResult(written, bad.count, file if bad.count else "")

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Every chunk was durable before its task ended. Only the summary of the bad rows is left to write."""
        path = self._options.bad_rows_path
        if path is not None:
            results = [each for each in messages if isinstance(each, TaskResult)]
            refused = {each.bad_rows: each.refused for each in results if each.refused}
            sum_up(path, self._name, self._options.connection.table, sum(each.written for each in results), refused)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Rows written before stay, and the next append of the same rows does not change them."""
        if self._options.bad_rows_path is not None:
            remove_all(self._options.bad_rows_path, self._name)


def task_and_attempt() -> tuple[int, int]:
    """Return the partition, and a number of 12 bits for this run of it. Spark counts the runs of each attempt at a
    stage anew, and two of those may be under way at once: three bits are of that count, and the others of the run's own
    id."""
    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), (context.taskAttemptId() << 3 | context.attemptNumber() & 7) & ATTEMPT_MAX


def _refusal(result: BulkResult) -> CortadoError:
    """Return the first refused row's error, with what else there is to know."""
    error = result.errors[0].error
    if isinstance(error, WriteConflict):
        error.add_note(_TWICE)
    error.add_note(
        f"This task stored {result.written} rows; {result.refused} were refused, of which this is the first."
    )
    return error
