"""A batch write: every task streams its rows, encoded by column, to the node; each chunk is one commit.

An append is an upsert by primary key and may be repeated: a task that Spark runs again writes the same rows again, and
rows that are the same byte for byte count as written. A row that differs from one written since the job began is either
a second row with the same key in the job, or another writer's; by default it fails the job (``onConflict``).

What was written before a failure stays, unless the job is ``transactional`` (:class:`TransactionWriter`) or overwrites
the table (:mod:`pyspark_cortado.overwriting`). Spark's save mode "errorifexists", its default, is refused by Spark
itself for sources in Python.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, cast

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from cortado.errors import (
    AlreadyExists,
    CortadoError,
    NotFound,
    OutcomeUnknown,
    TransactionAborted,
    TryAgain,
    WriteConflict,
)
from cortado.schema.model import Schema
from cortado.store.client import BulkResult
from cortado.store.client.collection import LABEL_CHARS_MAX
from cortado.store.client.large_transactions import ATTEMPT_MAX, ID_BYTES
from cortado.store.clock.timestamp import Timestamp
from pyspark_cortado.bad_rows import BadRows, new_job, remove_all, sum_up
from pyspark_cortado.catalogue import check_no_new_table
from pyspark_cortado.options import WriteOptions
from pyspark_cortado.reader import open_client
from pyspark_cortado.types import check_frame

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.store.client import Client, LargeTransactionRecord, LargeTransactions, Staging
    from cortado.store.client.put_mode import BulkMode

_TWICE = (
    "Two rows of this job have that key, or another writer changed it since the job began. "
    'With the option onConflict "overwrite" the last one to arrive wins.'
)


_TWICE_STAGED = "Two rows of this job have that key, or another writer changed it since the job began."
TTL_S = 600.0
"""So long after its last task a job's transaction lives without a commit."""
REPEATED = "repeated"
"""Why a transaction was aborted whose application has committed that version before."""
_AGAIN_S = 1.0


@dataclass
class TaskResult(WriterCommitMessage):
    """Rows that one task stored; and how many were refused, in that file of the bad ones."""

    written: int
    refused: int = 0
    bad_rows: str = ""


@dataclass
class StagedResult(TaskResult):
    """What one run of a task has staged."""

    task: int = 0
    attempt: int = 0


def prepare_write(options: WriteOptions, frame: StructType) -> TableWriter:
    """Check the DataFrame's columns against the table before any task starts."""
    with open_client(options.connection) as client:
        job = plan_job(client, options, frame)
    return TransactionWriter(options, job) if options.transactional else TableWriter(options, job)


@dataclass(frozen=True, slots=True)
class Job:
    """What tasks need to know of the table: the fields that the DataFrame's columns are, by the columns' places, those
    that the key is in, the version of the schema to write with, and the timestamp before the job's first row."""

    fields: Mapping[int, str]
    key_fields: Sequence[str]
    version: int
    began: Timestamp


def plan_job(client: Client, options: WriteOptions, frame: StructType) -> Job:
    """Raises NotFound, InvalidArgument."""
    name = options.connection.table
    table = client.describe(name)
    version = client.schemas.get(table.subject)
    schema: Schema = client.schemas.by_id(version.schema_id)
    key_fields = list(dict.fromkeys(part.path.partition(".")[0] for part in table.key))
    fields = check_frame(frame, schema, key_fields, name, options.operation)
    return Job(fields, key_fields, version.version, client.now())


class TableWriter(DataSourceArrowWriter):
    """Writes record batches as they come from Spark, with one version of the table's schema."""

    def __init__(self, options: WriteOptions, job: Job) -> None:
        self._options = options
        self._job = job
        self._name = new_job()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """One task's rows. Raises the first refused row's error, with how many were refused."""
        check_no_new_table()
        with open_client(self._options.connection) as client:
            return self._stored(client, iterator, self._options.connection.table, self._job.began)

    def _stored(self, client: Client, batches: Iterator[pa.RecordBatch], name: str, began: Timestamp) -> TaskResult:
        """The rows in the table ``name``; those that it refuses aside, where that is asked for."""
        path = self._options.bad_rows_path
        if path is None:
            result = self._load(client, batches, name, began)
            if result.refused:
                raise _refusal(result)
            return TaskResult(result.written)
        partition, run = _task_and_attempt()
        file = f"{self._name}-{partition:05}-{run:04}.jsonl"
        with BadRows(path, file, self._job.key_fields) as bad:
            written = bad.store(self._named(batches), lambda rows: self._load_named(client, rows, name, began))
        return TaskResult(written, bad.count, file if bad.count else "")

    def _load(
        self, tables: Client | Staging, batches: Iterable[pa.RecordBatch], name: str, began: Timestamp
    ) -> BulkResult:
        """Into the table ``name`` as ``tables`` has it."""
        return self._load_named(tables, self._named(batches), name, began)

    def _named(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The columns to write, called as the fields are."""
        fields = self._job.fields
        return (batch.select(list(fields)).rename_columns(list(fields.values())) for batch in batches)

    def _load_named(
        self, tables: Client | Staging, batches: Iterable[pa.RecordBatch], name: str, began: Timestamp
    ) -> BulkResult:
        options = self._options
        return tables.table(name, schema_version=self._job.version).bulk_arrow(
            batches,
            mode=cast("BulkMode", options.operation),
            columns=list(self._job.fields.values()) if options.operation == "update" else None,
            chunk_rows=options.chunk_rows,
            unchanged_since=began if options.refuse_conflicts else None,
        )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Every chunk was durable before its task ended. What is left to do is to say which rows are bad."""
        path = self._options.bad_rows_path
        if path is not None:
            results = [each for each in messages if isinstance(each, TaskResult)]
            refused = {each.bad_rows: each.refused for each in results if each.refused}
            sum_up(path, self._name, self._options.connection.table, sum(each.written for each in results), refused)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """What was written stays, and the next append of the same rows changes nothing of it."""
        if self._options.bad_rows_path is not None:
            remove_all(self._options.bad_rows_path, self._name)


class TransactionWriter(TableWriter):
    """Writes all rows of the job at one timestamp, or none::

        driver      the id of a large transaction
        task ────── begins it, if it is the first; stages its rows as (partition, attempt); keeps it alive meanwhile
        driver      commit: exactly the attempts that Spark says count; or abort

    Nothing of the driver lives between planning and commit: where Spark dies, nobody keeps the transaction alive, and
    the cluster aborts it. What a task has staged that ran again, or twice at once, is kept beside, and not written.
    """

    def __init__(self, options: WriteOptions, job: Job) -> None:
        super().__init__(options, job)
        self._transaction_id = os.urandom(ID_BYTES).hex()
        of = f", {options.application} {options.version}" if options.application else ""
        self._label = f"Spark, {options.connection.table}{of}"[:LABEL_CHARS_MAX]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedResult:
        """One task's rows, staged. Raises the first refused row's error."""
        check_no_new_table()
        task, attempt = _task_and_attempt()
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return StagedResult(0, task=task, attempt=attempt)
        with open_client(self._options.connection) as client:
            transactions = client.large_transactions
            if self._begin(transactions).cause == REPEATED:
                return StagedResult(0, task=task, attempt=attempt)
            with transactions.staging(self._transaction_id, task=task, attempt=attempt, ttl_s=TTL_S) as staging:
                try:
                    name = self._options.connection.table
                    result = self._load(staging, chain([first], batches), name, self._job.began)
                except (WriteConflict, AlreadyExists) as error:
                    error.add_note(_TWICE_STAGED)
                    raise
        return StagedResult(result.written, task=task, attempt=attempt)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All that these tasks have staged; a job without rows commits nothing. Repeated, also of another run with the
        same ``txnVersion``, it changes nothing. Raises TransactionAborted."""
        attempts = {each.task: each.attempt for each in messages if isinstance(each, StagedResult) and each.written}
        if not attempts:
            self._abort()
            return
        options = self._options
        give_up_s = time.monotonic() + TTL_S
        with open_client(options.connection) as client:
            while True:
                try:
                    client.large_transactions.commit(
                        self._transaction_id, attempts, application=options.application, version=options.version
                    )
                except (OutcomeUnknown, TryAgain):
                    # It may have happened, and Spark must not say that it did not.
                    if time.monotonic() > give_up_s:
                        raise
                    time.sleep(_AGAIN_S)
                except TransactionAborted as aborted:
                    if aborted.cause != REPEATED:
                        raise
                    return
                else:
                    return

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Nothing of it happens, unless it has been committed."""
        self._abort()

    def _begin(self, transactions: LargeTransactions) -> LargeTransactionRecord:
        """Or what became of it since another task began it."""
        options = self._options
        return transactions.begin(
            [options.connection.table],
            label=self._label,
            ttl_s=TTL_S,
            transaction_id=self._transaction_id,
            application=options.application,
            version=options.version,
        )

    def _abort(self) -> None:
        # Where no task has had a row it was never begun.
        with open_client(self._options.connection) as client, suppress(NotFound):
            client.large_transactions.abort(self._transaction_id)


def _task_and_attempt() -> tuple[int, int]:
    """The partition, and a number of 12 bits for this run of it. Spark counts the runs of each attempt at a stage anew,
    and two of those may be under way at once: three bits are of that count, and the others of the run's own id."""
    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), (context.taskAttemptId() << 3 | context.attemptNumber() & 7) & ATTEMPT_MAX


def _refusal(result: BulkResult) -> CortadoError:
    """The first refused row's error, with what else there is to know."""
    error = result.errors[0].error
    if isinstance(error, WriteConflict):
        error.add_note(_TWICE)
    error.add_note(
        f"This task stored {result.written} rows; {result.refused} were refused, of which this is the first."
    )
    return error
