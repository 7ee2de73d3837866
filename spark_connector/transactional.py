"""A job, or a batch of a stream, with rows that all become visible at one timestamp, or never.

::

    driver      the id of a large transaction
    task ────── begins it, if it is the first; stages its rows as (partition, attempt); keeps it alive meanwhile
    driver      commit: exactly the attempts that Spark says count; or abort

Nothing of the driver lives between planning and commit: if Spark dies, the transaction is kept alive no longer, and the
cluster aborts it. Rows staged by a task that ran again, or twice at once, are kept beside, and not written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from cortado.errors import (
    AlreadyExists,
    InvalidArgument,
    NotFound,
    OutcomeUnknown,
    TransactionAborted,
    TryAgain,
    WriteConflict,
)
from cortado.store.client.holds import LABEL_CHARS_MAX
from cortado.store.client.large_transactions import ID_BYTES
from pyspark_cortado.catalogue import check_no_new_table
from pyspark_cortado.clients import open_client
from pyspark_cortado.options import WriteOptions
from pyspark_cortado.writer import Job, Loader, TableWriter, TaskResult, plan_job, task_and_attempt

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.store.client import Client, LargeTransactionRecord

T = TypeVar("T")

TTL_S: Final = 600.0
"""So long after its last task a transaction lives without a commit."""
REPEATED: Final = "repeated"
"""The cause of an abort: its application has committed that version before."""
TABLE: Final = "table"
"""The cause of an abort: by its commit, its table is another one, or gone."""
_AGAIN_S: Final = 1.0
_NO_TABLE: Final = "The table, or an index of it, was dropped, truncated or replaced since the first task began."
_TWICE: Final = "Two rows of this job have that key, or another writer changed it since the job began."


@dataclass(frozen=True, slots=True)
class Numbered:
    """The application that commits, and the number of this commit; without one, ``application`` is empty. ``owner`` has
    the numbering: a query's."""

    application: str
    version: int
    owner: str = ""


@dataclass
class StagedResult(TaskResult):
    """The rows that one run of a task has staged."""

    task: int = 0
    attempt: int = 0


class StagedRows:
    """The rows of one large transaction, with an id that it draws."""

    def __init__(self, options: WriteOptions, job: Job) -> None:
        self.transaction_id = os.urandom(ID_BYTES).hex()
        self._options = options
        self._job = job

    def stage(self, batches: Iterator[pa.RecordBatch], numbered: Numbered, label: str) -> StagedResult:
        """One task's rows. Raises the first refused row's error."""
        task, attempt = task_and_attempt()
        batches = (batch for batch in batches if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return StagedResult(0, task=task, attempt=attempt)
        with open_client(self._options.connection) as client:
            begun = _of_its_own(lambda: self._begin(client, numbered, label))
            if begun.cause == REPEATED:
                return StagedResult(0, task=task, attempt=attempt)
            self._job.check_table(client, self._options.connection.table)
            parts = client.large_transactions
            with parts.staging(self.transaction_id, task=task, attempt=attempt, ttl_s=TTL_S) as staging:
                try:
                    name = self._options.connection.table
                    loader = Loader(self._options, self._job)
                    result = loader.load(staging, chain([first], batches), name, self._job.began)
                except (WriteConflict, AlreadyExists) as error:
                    error.add_note(_TWICE)
                    raise
        return StagedResult(result.written, task=task, attempt=attempt)

    def _begin(self, client: Client, numbered: Numbered, label: str) -> LargeTransactionRecord:
        """Or what became of it since another task began it."""
        return client.large_transactions.begin(
            [self._options.connection.table],
            label=label,
            ttl_s=TTL_S,
            transaction_id=self.transaction_id,
            application=numbered.application,
            version=numbered.version,
            owner=numbered.owner,
        )


def commit_staged(client: Client, transaction_id: str, attempts: Mapping[int, int], numbered: Numbered) -> None:
    """Commit all rows that these attempts have staged, one for each task. If the application has committed that version
    before, this changes nothing. Raises TransactionAborted."""
    give_up_s = time.monotonic() + TTL_S
    while True:
        try:
            _commit(client, transaction_id, attempts, numbered)
        except (OutcomeUnknown, TryAgain):
            # It may have happened, and Spark must not say that it did not.
            if time.monotonic() > give_up_s:
                raise
            time.sleep(_AGAIN_S)
        except TransactionAborted as aborted:
            if aborted.cause == TABLE:
                aborted.add_note(_NO_TABLE)
            if aborted.cause != REPEATED:
                raise
            return
        else:
            return


def _commit(client: Client, transaction_id: str, attempts: Mapping[int, int], numbered: Numbered) -> None:
    name, version, owner = numbered.application, numbered.version, numbered.owner
    commit = client.large_transactions.commit
    _of_its_own(lambda: commit(transaction_id, attempts, application=name, version=version, owner=owner))


def _of_its_own(call: Callable[[], T]) -> T:
    """Return the call's result. The error of another owner's application names the option."""
    try:
        return call()
    except InvalidArgument as refused:
        if refused.field != "application":
            raise
        raise InvalidArgument("option txnAppId", refused.problem, refused.value) from refused


def abort_staged(client: Client, transaction_id: str) -> None:
    """Nothing of it happens, unless it has been committed."""
    # Without a task that had a row, it was never begun.
    with suppress(NotFound):
        client.large_transactions.abort(transaction_id)


def attempts_of(messages: list[WriterCommitMessage | None]) -> dict[int, int]:
    """Return the run of each task that counts, without those that had no rows."""
    return {each.task: each.attempt for each in messages if isinstance(each, StagedResult) and each.written}


def prepare_transaction(options: WriteOptions, frame: StructType) -> TransactionWriter:
    """Check the DataFrame's columns against the table before any task starts."""
    with open_client(options.connection) as client:
        return TransactionWriter(options, plan_job(client, options, frame))


class TransactionWriter(TableWriter):
    """Writes all rows of a job at one timestamp, or none."""

    def __init__(self, options: WriteOptions, job: Job) -> None:
        super().__init__(options, job)
        self._rows = StagedRows(options, job)
        self._numbered = Numbered(options.application, options.version)
        of = f", {options.application} {options.version}" if options.application else ""
        self._label = f"Spark, {options.connection.table}{of}"[:LABEL_CHARS_MAX]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedResult:
        """One task's rows, staged. Raises the first refused row's error."""
        check_no_new_table()
        return self._rows.stage(iterator, self._numbered, self._label)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All that these tasks have staged; a job without rows commits nothing. Repeated, also of another run with the
        same ``txnVersion``, it changes nothing. Raises TransactionAborted."""
        attempts = attempts_of(messages)
        with open_client(self._options.connection) as client:
            if attempts:
                commit_staged(client, self._rows.transaction_id, attempts, self._numbered)
            else:
                abort_staged(client, self._rows.transaction_id)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Nothing of it happens, unless it has been committed."""
        with open_client(self._options.connection) as client:
            abort_staged(client, self._rows.transaction_id)
