"""Mode "overwrite": all rows of the table are replaced by those of the job, in one step.

::

    tasks     load a table beside the one that is meant, with its key, its indexes and its settings
    driver    commit: that table takes the name, and the old one is dropped, in one commit; or abort: it is dropped

So readers find all of the old rows or all of the new ones, and a job that fails changes nothing. The old rows can be
undropped until their grace is over. The table beside is made by the first task that has a row: Spark plans writes that
it never runs. If the driver dies, it stays, under a name that tells its origin.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from cortado.errors import AlreadyExists, InvalidArgument, NotFound, OutcomeUnknown, TryAgain, WriteConflict
from cortado.store.catalog.descriptors import IndexState, TableDescriptor
from cortado.store.client import Index
from cortado.store.keys.names import NAME_LENGTH_MAX
from pyspark_cortado.catalogue import check_no_new_table
from pyspark_cortado.clients import open_client
from pyspark_cortado.options import WriteOptions
from pyspark_cortado.writer import Job, TableWriter, TaskResult, plan_job

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.store.client import Client
    from cortado.store.keys.types import KeyPart

_GIVE_UP_S = 600.0
_AGAIN_S = 1.0


def prepare_overwrite(options: WriteOptions, frame: StructType) -> OverwriteWriter:
    """Check the request, and the DataFrame's columns against the table, before any task starts."""
    if not options.confirm_truncate:
        problem = f'must be "true": mode("overwrite") replaces all rows of {options.connection.table}'
        raise InvalidArgument("option confirmTruncate", problem)
    if options.operation not in ("upsert", "insert"):
        raise InvalidArgument("option operation", 'must be upsert or insert with mode("overwrite")', options.operation)
    if options.application:
        raise InvalidArgument("option txnAppId", 'does not go with mode("overwrite")', options.application)
    if options.unchanged_since is not None:
        since = str(options.unchanged_since)
        raise InvalidArgument("option unchangedSince", 'does not go with mode("overwrite")', since)
    with open_client(options.connection) as client:
        old = client.describe(options.connection.table)
        return OverwriteWriter(options, plan_job(client, options, frame), old)


@dataclass
class LoadedResult(TaskResult):
    """Rows that one task has loaded into the table of that id."""

    table_id: int = 0


class OverwriteWriter(TableWriter):
    """``old`` is the table that is replaced. The job fails if its name has come to mean another one."""

    def __init__(self, options: WriteOptions, job: Job, old: TableDescriptor) -> None:
        super().__init__(options, job)
        self._old = old
        of_job = f"__overwrite_{os.urandom(4).hex()}"
        self._beside = f"{old.database}.{old.name[: NAME_LENGTH_MAX - len(of_job)]}{of_job}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """One task's rows, into the table beside. Raises the first refused row's error."""
        check_no_new_table()
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return TaskResult(0)
        with open_client(self._options.connection) as client:
            made = self._make(client)
            done = self._stored(client, chain([first], batches), self._beside, made.named_ts)
        return LoadedResult(done.written, done.refused, done.bad_rows, made.table_id)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Repeated, it changes nothing. Raises WriteConflict if another table has the name by now."""
        loaded = {each.table_id for each in messages if isinstance(each, LoadedResult)}
        with open_client(self._options.connection) as client:
            found = _find(client, self._old.full_name)
            if found is not None and found.table_id in loaded:
                return
            super().commit(messages)
            made = self._make(client)
            give_up_s = time.monotonic() + _GIVE_UP_S
            while True:
                try:
                    client.rename_table(self._beside, self._old.name, replaces=self._old)
                except (OutcomeUnknown, TryAgain):
                    # It may have happened, and Spark must not say that it did not.
                    if time.monotonic() > give_up_s:
                        raise
                    time.sleep(_AGAIN_S)
                except (NotFound, AlreadyExists) as refused:
                    found = _find(client, self._old.full_name)
                    if found is not None and found.table_id == made.table_id:
                        return
                    raise self._replaced(found) from refused
                else:
                    return

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing of it happens."""
        super().abort(messages)
        with open_client(self._options.connection) as client, suppress(NotFound):
            client.drop_table(self._beside)

    def _make(self, client: Client) -> TableDescriptor:
        """Return the table beside, or what another task has made."""
        old = self._old
        ready = [each for each in old.indexes if each.state is not IndexState.FAILED]
        with suppress(AlreadyExists):
            return client.create_table(
                self._beside,
                _parts(old.key),
                subject=old.subject,
                indexes=[Index(each.name, _parts(each.parts), unique=each.unique) for each in ready],
                retention_ms=old.retention_ms,
                ttl_ms=old.ttl_ms,
            )
        return client.describe(self._beside)

    def _replaced(self, found: TableDescriptor | None) -> WriteConflict:
        now = "none" if found is None else str(found.named_ts)
        return WriteConflict(self._old.full_name, str(self._job.began), now, kind="table")


def _find(client: Client, name: str) -> TableDescriptor | None:
    with suppress(NotFound):
        return client.describe(name)
    return None


def _parts(parts: tuple[KeyPart, ...]) -> list[str]:
    return [f"{part.path} desc" if part.descending else part.path for part in parts]
