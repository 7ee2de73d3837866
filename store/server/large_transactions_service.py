"""``cortado.v1.LargeTransactions``: begin, commit, abort, list. Rows are staged by ``Documents.Bulk``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from google.protobuf.message import Message

from cortado.errors import InvalidArgument, TooLarge
from cortado.proto.v1 import large_transactions_pb2 as pb
from cortado.store.auth.caller import asking
from cortado.store.clock.timestamp import Timestamp
from cortado.store.collection.leases import TTL_MS_DEFAULT, check_lease
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.server.convert import timestamp_message
from cortado.store.server.service import Service
from cortado.store.staging.records import (
    APPLICATION_CHARS_MAX,
    ATTEMPTS_MAX,
    OPERATOR,
    VERSION_MAX,
    Application,
    Author,
    Record,
    abort,
    begin,
    check_id,
    commit,
    records_of,
)
from cortado.store.staging.stage import attempt_of, task_of

_ATTEMPTS_AT_ONCE: Final = 5_000
"""The number that is put together in one piece; if there are no more, on the loop."""


class LargeTransactionsService(Service):
    """Each call may be repeated: the record of a transaction tells its state."""

    async def begin(self, request: pb.BeginLargeTransactionRequest) -> bytes:
        ttl_ms = request.ttl_ms or TTL_MS_DEFAULT
        check_id(request.transaction_id)
        check_lease(ttl_ms, request.label)
        tables = [(each.database, each.table) for each in request.tables]
        application, asked_by = _application(request), asking()

        def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            catalog = self.host.meta.catalog(reader)
            name, label, unresolved = request.transaction_id, request.label, self.host.meta.store.unresolved
            return begin(catalog, commit_ts, name, tables, ttl_ms, label, unresolved, Author(asked_by(), application))

        return await self._change(request, evaluate)

    async def commit(self, request: pb.CommitLargeTransactionRequest) -> bytes:
        check_id(request.transaction_id)
        application, asked_by = _application(request), asking()
        attempts = await self._attempts(request)

        def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
            catalog = self.host.meta.catalog(reader)
            return commit(reader, commit_ts, catalog, request.transaction_id, attempts, Author(asked_by(), application))

        return await self._change(request, evaluate)

    async def _attempts(self, request: pb.CommitLargeTransactionRequest) -> Sequence[int]:
        """Return the attempts that count, ascending: many are put together beside the loop, in slices. Raises
        InvalidArgument, TooLarge."""
        count = len(request.tasks)
        if count != len(request.attempts):
            problem = f"must be as many as there are tasks, {count}"
            raise InvalidArgument("attempts", problem, str(len(request.attempts)))
        if count > ATTEMPTS_MAX:
            raise TooLarge("tasks", f"must be at most {ATTEMPTS_MAX}", str(count), count, ATTEMPTS_MAX)
        found: list[int] = []

        def take_some() -> None:
            part = slice(len(found), len(found) + _ATTEMPTS_AT_ONCE)
            found.extend(map(attempt_of, request.tasks[part], request.attempts[part]))

        def sort() -> None:
            found.sort()
            different = len(set(map(task_of, found)))
            if different != count:
                raise InvalidArgument("tasks", "must each be there once", f"{count} tasks, of which {different} differ")

        if count <= _ATTEMPTS_AT_ONCE:
            take_some()
            sort()
            return found
        with self.host.process.reads.place():
            while len(found) < count:
                await self.host.process.scan(take_some)
            await self.host.process.scan(sort)
        return found

    async def abort(self, request: pb.AbortLargeTransactionRequest) -> bytes:
        check_id(request.transaction_id)
        asked_by = asking()
        return await self._change(
            request, lambda reader, _ts: abort(reader, request.transaction_id, OPERATOR, asked_by())
        )

    async def _change(self, request: Message, evaluate: Evaluate) -> bytes:
        def reply(_ts: Timestamp, value: object) -> Message:
            assert isinstance(value, Record)
            return pb.LargeTransactionResponse(transaction=_message(value))

        return await self.write(self.host.meta, request, b"", evaluate, reply)

    async def list(self, _request: pb.ListLargeTransactionsRequest) -> Message:
        replica = self.host.meta
        read_ts = await replica.reads.applied_to(await self.newest())
        with self.host.process.reads.place():
            found = await self.host.process.scan(lambda: records_of(replica.store.snapshot(read_ts)))
        records = sorted([record for record, _ in found], key=lambda each: (each.start, each.transaction_id))
        return pb.ListLargeTransactionsResponse(header=self.header(read_ts), transactions=list(map(_message, records)))


def _application(request: pb.BeginLargeTransactionRequest | pb.CommitLargeTransactionRequest) -> Application | None:
    """Return the application of a request, if it names one. Raises InvalidArgument."""
    if not request.application:
        for name, value in (("version", request.version), ("owner", request.owner)):
            if value:
                raise InvalidArgument(name, "must not be set without an application", str(value))
        return None
    if len(request.application) > APPLICATION_CHARS_MAX:
        problem = f"must have at most {APPLICATION_CHARS_MAX} characters"
        raise InvalidArgument("application", problem, f"{len(request.application)} characters")
    if request.version > VERSION_MAX:
        raise InvalidArgument("version", f"must be at most {VERSION_MAX}", str(request.version))
    if len(request.owner) > APPLICATION_CHARS_MAX:
        problem = f"must have at most {APPLICATION_CHARS_MAX} characters"
        raise InvalidArgument("owner", problem, f"{len(request.owner)} characters")
    return Application(request.application, request.version, request.owner)


def _message(record: Record) -> pb.LargeTransaction:
    return pb.LargeTransaction(
        transaction_id=record.transaction_id,
        state=record.state.name,
        start=timestamp_message(record.start),
        committed=None if record.commit_ts is None else timestamp_message(record.commit_ts),
        label=record.label,
        tables=[pb.TransactionTable(database=each.database, table=each.name) for each in record.tables],
        is_resolved=record.is_resolved,
        cause=record.cause,
        principal=record.principal,
    )
