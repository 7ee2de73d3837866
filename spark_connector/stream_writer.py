"""The sink of a stream: each of its batches becomes visible at one timestamp, exactly once.

::

    driver    streamWriter: the columns against the table, the id of a large transaction
    task      begins it, numbered by query and batch; stages its rows as (partition, attempt)
    driver    commit, by another instance: the attempts that Spark names, and the number of the batch as that of the
              query's last one, in one entry of the log; or abort

For each batch Spark makes a writer as it plans it, and another one, in another process, as it commits or aborts it:
between them only the tasks' messages travel. Spark tells tasks their query and batch: so those of a batch that is run
again after its commit find that out as they begin, and stage nothing.

A batch has one effect however often it is run, and however late: the cluster keeps the number and the owner of the
query's last one for ever, so that a second query under one ``txnAppId`` is refused. It is the numbering of a query and
a table, by their ids: if the table is another one, the query's earlier rows are gone, and it is told so.

Rows that a batch has staged and not committed are gone with its ``abort``; if the driver has died, with the next batch
that begins, or with the lease.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from cortado.errors import InvalidArgument, Unsupported
from cortado.store.client.holds import LABEL_CHARS_MAX
from cortado.store.keys.keyspace import show_table_id
from pyspark_cortado.clients import open_client
from pyspark_cortado.options import WriteOptions
from pyspark_cortado.transactional import (
    Numbered,
    StagedResult,
    StagedRows,
    abort_staged,
    attempts_of,
    commit_staged,
)
from pyspark_cortado.writer import Job, another_table, plan_job

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.store.client import Client

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"


@dataclass
class StreamedResult(StagedResult):
    """The rows that one run of a task has staged, and their transaction."""

    transaction_id: str = ""
    application: str = ""
    owner: str = ""


def prepare_stream(options: WriteOptions, frame: StructType, is_complete: bool) -> TableStreamWriter:
    """Check the columns against the table before any task starts. Raises Unsupported for the output mode "complete"."""
    if is_complete:
        instead = 'append with a watermark, or write each batch with foreachBatch and mode("overwrite")'
        raise Unsupported('outputMode("complete")', instead)
    with open_client(options.connection) as client:
        return TableStreamWriter(options, plan_job(client, options, frame))


class TableStreamWriter(DataSourceStreamArrowWriter):
    """Writes all rows of a batch at one timestamp."""

    def __init__(self, options: WriteOptions, job: Job) -> None:
        self._options = options
        self._rows = StagedRows(options, job)
        self._table_id = job.table_id

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StreamedResult:
        """One task's rows, staged. Raises the first refused row's error."""
        query_id, batch_id = _query_and_batch()
        owner = _owner(query_id, show_table_id(self._table_id))
        numbered = Numbered(self._options.application or query_id, batch_id, owner)
        name = self._options.application or self._options.checkpoint or query_id
        try:
            staged = self._rows.stage(iterator, numbered, _label(self._options, name, batch_id))
        except InvalidArgument as refused:
            before = re.search(_owner(re.escape(query_id), r"(\d+\.\d+)"), refused.problem)
            if before is None or before[0] == owner:
                raise
            table, when = self._options.connection.table, "at this query's last batch"
            raise another_table(table, before[1], self._table_id, when) from refused
        return StreamedResult(
            staged.written,
            task=staged.task,
            attempt=staged.attempt,
            transaction_id=self._rows.transaction_id,
            application=numbered.application,
            owner=numbered.owner,
        )

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """All that these tasks have staged; a batch without rows commits nothing. Repeated, it changes nothing. Raises
        TransactionAborted."""
        attempts = attempts_of(messages)
        for each in messages:
            if attempts and isinstance(each, StreamedResult):
                with open_client(self._options.connection) as client:
                    numbered = Numbered(each.application, batchId, each.owner)
                    commit_staged(client, each.transaction_id, attempts, numbered)
                return

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing of it happens, unless it has been committed."""
        ids = {each.transaction_id for each in messages if isinstance(each, StreamedResult)}
        with open_client(self._options.connection) as client:
            for each in ids or self._begun(client, batchId):
                abort_staged(client, each)

    def _begun(self, client: Client, batch_id: int) -> list[str]:
        """Return the transactions begun for a batch without a message from a task. By its label: the ids of the
        transaction and of the query are the tasks'."""
        name = self._options.application or self._options.checkpoint
        label = _label(self._options, name, batch_id)
        found = client.large_transactions.list() if name else []
        return [each.transaction_id for each in found if (each.label, each.state) == (label, "open")]


def _label(options: WriteOptions, name: str, batch_id: int) -> str:
    return f"Spark stream, batch {batch_id} of {name} into {options.connection.table}"[:LABEL_CHARS_MAX]


def _owner(query_id: str, table: str) -> str:
    """Return the owner of the numbers of batches."""
    return f"query {query_id} into table {table}"


def _query_and_batch() -> tuple[str, int]:
    """Return the query and the batch of the running task."""
    context = TaskContext.get()
    assert context is not None
    query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
    if query is None or batch is None:
        raise Unsupported(
            "writeStream in a mode that does not tell tasks their query and batch", "trigger micro-batches"
        )
    return query, int(batch)
