"""Large transactions: rows of any number, staged by any number of processes, visible at one timestamp or never.

::

    begin ......... the cluster keeps a record of it, and a lease of the same id
    stage ......... bulk loads, each for a task and an attempt of it; staged rows are locked for others
    keep .......... beside it: each process of the transaction sends keep-alives (Collection.KeepLease)
    commit ........ names the attempt of each task that counts, and may be repeated for a day; or abort

No reader sees a staged row before the commit, not even the transaction's own process. So its tables only load:
:class:`StagingView` refuses reads, and writes that would take effect at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, cast, overload

from cortado.errors import CortadoError, InvalidArgument, NotFound, TooLarge, TransactionAborted, Unsupported
from cortado.proto.v1 import documents_pb2
from cortado.proto.v1 import large_transactions_pb2 as pb
from cortado.store.client.arguments import hexadecimal, shown, text, texts, whole
from cortado.store.client.connection import Connection
from cortado.store.client.holds import END_S, TTL_S_DEFAULT, HoldKeeper, check_label, check_ttl
from cortado.store.client.public_faces import public_face
from cortado.store.client.stubs import Method
from cortado.store.client.values import timestamp_of
from cortado.store.client.views import nothing_more
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.names import split_table_name

if TYPE_CHECKING:
    from cortado.store.client.documents import D
    from cortado.store.client.table import AsyncTable
    from cortado.store.client.transaction import Handles
    from cortado.store.client.views import View

ID_BYTES: Final = 16
TABLES_MAX: Final = 100
TASK_MAX: Final = (1 << 20) - 1
ATTEMPT_MAX: Final = (1 << 12) - 1
ATTEMPTS_MAX: Final = 100_000
APPLICATION_CHARS_MAX: Final = 200
VERSION_MAX: Final = (1 << 63) - 1

LargeTransactionState: TypeAlias = Literal["open", "committed", "aborted"]


@dataclass(frozen=True, slots=True)
class LargeTransactionRecord:
    """The cluster's record of a large transaction, kept up to a day after its end.

    It may write ``tables`` and began at ``start``. ``committed`` is its commit's timestamp, or None. ``is_resolved``:
    its staged rows are in place, or removed. ``cause`` says why it was aborted: as that of TransactionAborted.
    ``principal`` owns it; empty without one.
    """

    transaction_id: str
    state: LargeTransactionState
    tables: tuple[str, ...]
    label: str
    start: Timestamp
    committed: Timestamp | None
    is_resolved: bool
    cause: str
    principal: str = ""


class StagingView:
    """The view of tables for bulk loads that stage rows; all else is refused."""

    commits = False

    def __init__(self, transaction_id: bytes, task: int, attempt: int) -> None:
        self._staging = documents_pb2.Staging(transaction_id=transaction_id, task=task, attempt=attempt)
        self.is_open = False

    def refusal(self, doing: str) -> Unsupported:
        return Unsupported(f"{doing} in a large transaction", "its tables load in bulk: put_many, put_json, put_arrow")

    def write(self, method: Method, _request: Any, /) -> Any:
        """Raise Unsupported."""
        raise self.refusal(method.name.removeprefix("cortado.v1."))

    def staging(self) -> documents_pb2.Staging:
        """Return the staging. Raises Unsupported outside of the block."""
        if not self.is_open:
            raise Unsupported("a large transaction outside of its block", "use it as a context manager")
        return self._staging

    @asynccontextmanager
    async def reading(self, request: Any, *, is_begun: bool = False) -> AsyncIterator[Callable[[Any], None]]:
        """Allow the request for a table's description. Raises Unsupported for any other read."""
        if not is_begun and request.DESCRIPTOR.name != "DescribeTableRequest":
            raise self.refusal(request.DESCRIPTOR.name.removesuffix("Request"))
        yield nothing_more


@public_face
class AsyncStaging:
    """One attempt of one task of a large transaction, which another process may have begun::

        async with client.large_transactions.staging(transaction_id, task=7, attempt=1) as staging:
            await staging.table("shop.orders").put_many(rows)

    It keeps the transaction alive for as long as its block lasts. The block's end does not end the transaction: the
    commit names the attempts that count.
    """

    def __init__(self, handles: Handles, connection: Connection, view: StagingView, keeper: HoldKeeper) -> None:
        """``handles`` are those of ``view``, over ``connection``."""
        self._handles = handles
        self._connection = connection
        self._view = view
        self._keeper = keeper

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None) -> AsyncTable: ...

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None, document_type: type[D]) -> AsyncTable[D]: ...

    def table(
        self, full_name: str, *, schema_version: int | None = None, document_type: type[Any] | None = None
    ) -> AsyncTable[Any]:
        """Return a handle of ``database.table`` whose bulk loads stage rows; as :meth:`AsyncClient.table`.

        They are all or nothing: a refused row raises, and so does a key that this transaction has staged before
        (AlreadyExists). With mode "insert" or "replace" a row must be unchanged since the transaction began, and with
        ``unchanged_since`` since then, whatever the mode, deletes too (WriteConflict). Rows that their result counts as
        written are staged. All else is Unsupported.
        """
        return self._handles.table(full_name, schema_version=schema_version, document_type=document_type)  # type: ignore[arg-type]

    async def __aenter__(self) -> Self:
        if self._view.is_open:
            raise Unsupported("entering a large transaction again", "one block stages for it")
        self._connection.check_open()
        self._view.is_open = True
        self._keeper.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._view.is_open = False
        self._keeper.end()
        await self._keeper.ended()


@public_face
class AsyncLargeTransaction:
    """Rows of any number, visible at one timestamp, or never::

        async with client.large_transaction(["shop.orders"], label="nightly load") as txn:
            await txn.table("shop.orders").put_many(rows)
        print(txn.timestamp)

    Leaving the block commits; an exception aborts the whole transaction. Staged rows are invisible before the commit,
    and locked for every other writer. The transaction keeps itself alive while the block runs. If the cluster hears
    nothing of its process for ``ttl_s``, it is aborted.
    """

    def __init__(
        self,
        transactions: AsyncLargeTransactions,
        transaction_id: str,
        tables: Sequence[str],
        *,
        label: str,
        ttl_s: float,
    ) -> None:
        """As :meth:`AsyncClient.large_transaction`."""
        self.transaction_id = transaction_id
        """Its id, as ``cortado txn list`` shows it."""
        self._transactions = transactions
        self._begin = transactions._begin_request(transaction_id, tables, label, ttl_s)
        self._staging = transactions.staging(transaction_id, ttl_s=ttl_s)
        self._is_begun = False
        self._timestamp: Timestamp | None = None

    @property
    def timestamp(self) -> Timestamp | None:
        """When it was committed; None before."""
        return self._timestamp

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None) -> AsyncTable: ...

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None, document_type: type[D]) -> AsyncTable[D]: ...

    def table(
        self, full_name: str, *, schema_version: int | None = None, document_type: type[Any] | None = None
    ) -> AsyncTable[Any]:
        """Return a handle of ``database.table`` whose bulk loads stage rows; as :meth:`AsyncStaging.table`."""
        return self._staging.table(full_name, schema_version=schema_version, document_type=document_type)  # type: ignore[arg-type]

    async def commit(self) -> Timestamp:
        """Make all staged rows visible, and return the commit's timestamp; leaving the block does it.

        It may be repeated for a day and then returns the same: so call it again after OutcomeUnknown. Raises
        TransactionAborted if it was aborted before.
        """
        self._timestamp = await self._transactions.commit(self.transaction_id, {0: 0})
        return self._timestamp

    async def __aenter__(self) -> Self:
        if self._is_begun:
            raise Unsupported("entering a large transaction again", "begin another")
        self._is_begun = True
        await self._transactions._change(self._transactions._stub.Begin, self._begin)
        await self._staging.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.commit()
            else:
                # If the cluster does not answer, the transaction ends by itself: its keep-alives have stopped.
                with suppress(CortadoError):
                    await self._transactions._abort(self.transaction_id, END_S)
        finally:
            await self._staging.__aexit__(kind, error, traceback)


@public_face
class AsyncLargeTransactions:
    """The parts of large transactions, for jobs of several processes: one begins it, others stage, one commits.

    All calls may be repeated.
    """

    def __init__(self, connection: Connection, through: Callable[[View], Handles], *, timeout_s: float) -> None:
        """``through`` makes the handles of a view."""
        self._connection = connection
        self._through = through
        self._timeout_s = timeout_s
        self._stub = connection.stubs.large_transactions

    async def begin(
        self,
        tables: Sequence[str],
        *,
        label: str = "",
        ttl_s: float = TTL_S_DEFAULT,
        transaction_id: str | None = None,
        application: str = "",
        version: int = 0,
        owner: str = "",
    ) -> LargeTransactionRecord:
        """Begin one that may write ``tables``, 1 to 100 of them; repeated with its id, return its record.

        If the cluster hears of no :meth:`staging` of it for ``ttl_s``, 1 to 600 seconds, it is aborted. One whose
        commit with this ``application`` and ``version`` would not be done begins aborted, as "repeated". Otherwise the
        application's open transactions are aborted, as "superseded". Raises NotFound for a table, AlreadyExists
        if the id is that of another, InvalidArgument if the application is another ``owner``'s, ResourceExhausted if
        100 are open.
        """
        if transaction_id is None:
            transaction_id = self._connection.environment.random_bytes(ID_BYTES).hex()
        request = self._begin_request(transaction_id, tables, label, ttl_s)
        _check_application(application, version, owner)
        request.application, request.version, request.owner = application, version, owner
        return await self._change(self._stub.Begin, request)

    def staging(
        self, transaction_id: str, *, task: int = 0, attempt: int = 0, ttl_s: float = TTL_S_DEFAULT
    ) -> AsyncStaging:
        """Return a context manager that stages rows for it, and keeps it alive. ``ttl_s`` is that of its begin.

        ``task``, up to 1,048,575, is a part of the work: two must not write one key. ``attempt``, up to 4,095, is which
        run of that part: two of one task are kept side by side, and one of them counts.
        """
        encoded = hexadecimal(transaction_id, "transaction_id", ID_BYTES)
        view = StagingView(encoded, whole(task, "task", 0, TASK_MAX), whole(attempt, "attempt", 0, ATTEMPT_MAX))
        keeper = HoldKeeper(self._connection, encoded, ttl_s=check_ttl(ttl_s), timeout_s=self._timeout_s)
        return AsyncStaging(self._through(view), self._connection, view, keeper)

    async def commit(
        self,
        transaction_id: str,
        attempts: Mapping[int, int],
        *,
        application: str = "",
        version: int = 0,
        owner: str = "",
    ) -> Timestamp:
        """Make the rows staged by these ``attempts``, one for each task, visible at the timestamp that it returns.

        Repeated within a day, of an application within an hour, it returns the same; so call it again after
        OutcomeUnknown. With an ``application``, from any caller, it is done only if ``version`` is above that of the
        application's last commit, however late it comes. ``owner`` names the owner of that numbering, such as the id of
        a query. Raises TransactionAborted if it was aborted, or is now, since a table of it was dropped ("table"), or
        its application has committed it before ("repeated"); InvalidArgument if the application is another owner's;
        NotFound if it never existed, or is forgotten.
        """
        tasks = _checked(attempts)
        _check_application(application, version, owner)
        request = pb.CommitLargeTransactionRequest(
            transaction_id=hexadecimal(transaction_id, "transaction_id", ID_BYTES),
            tasks=tasks,
            attempts=tasks.values(),
            application=application,
            version=version,
            owner=owner,
        )
        record = await self._change(self._stub.Commit, request)
        if record.committed is None:
            raise TransactionAborted(record.cause)
        return record.committed

    async def abort(self, transaction_id: str) -> LargeTransactionRecord:
        """End an open one: none of its rows are ever written. One that has ended stays as it is; so look at its state.
        Raises NotFound."""
        return await self._abort(transaction_id, self._timeout_s)

    async def list(self) -> list[LargeTransactionRecord]:
        """Return the open ones, and those that ended in the last day, by when they began."""
        request = pb.ListLargeTransactionsRequest()
        reply = await self._connection.call(self._stub.List, request, timeout_s=self._timeout_s)
        return [_record(each) for each in reply.transactions]

    async def get(self, transaction_id: str) -> LargeTransactionRecord:
        """Return its record. Raises NotFound."""
        hexadecimal(transaction_id, "transaction_id", ID_BYTES)
        for each in await self.list():
            if each.transaction_id == transaction_id.lower():
                return each
        raise NotFound("transaction", transaction_id)

    async def _abort(self, transaction_id: str, timeout_s: float) -> LargeTransactionRecord:
        encoded = hexadecimal(transaction_id, "transaction_id", ID_BYTES)
        request = pb.AbortLargeTransactionRequest(transaction_id=encoded)
        return await self._change(self._stub.Abort, request, timeout_s)

    def _begin_request(
        self, transaction_id: str, tables: Sequence[str], label: str, ttl_s: float
    ) -> pb.BeginLargeTransactionRequest:
        names = [split_table_name(name) for name in dict.fromkeys(texts(tables, "tables"))]
        if not names:
            raise InvalidArgument("tables", "must not be empty")
        if len(names) > TABLES_MAX:
            raise TooLarge("tables", f"must be at most {TABLES_MAX}", str(len(names)), len(names), TABLES_MAX)
        return pb.BeginLargeTransactionRequest(
            transaction_id=hexadecimal(transaction_id, "transaction_id", ID_BYTES),
            tables=[pb.TransactionTable(database=database, table=name) for database, name in names],
            ttl_ms=round(check_ttl(ttl_s) * 1000),
            label=check_label(label),
        )

    async def _change(self, method: Method, request: Any, timeout_s: float | None = None) -> LargeTransactionRecord:
        """Make a change without a request id: its record tells its outcome."""
        timeout_s = self._timeout_s if timeout_s is None else min(timeout_s, self._timeout_s)
        reply = await self._connection.call(method, request, timeout_s=timeout_s, changes=True)
        return _record(reply.transaction)


def _checked(attempts: Mapping[int, int]) -> dict[int, int]:
    if not isinstance(attempts, Mapping):
        raise InvalidArgument("attempts", "must be a dict of tasks and their attempts", shown(attempts))
    count = len(attempts)
    if count > ATTEMPTS_MAX:
        raise TooLarge("attempts", f"must be at most {ATTEMPTS_MAX}", str(count), count, ATTEMPTS_MAX)
    return {
        whole(task, "task", 0, TASK_MAX): whole(attempt, "attempt", 0, ATTEMPT_MAX)
        for task, attempt in attempts.items()
    }


def _check_application(application: str, version: int, owner: str) -> None:
    for field, value in (("application", application), ("owner", owner)):
        if len(text(value, field)) > APPLICATION_CHARS_MAX:
            problem = f"must have at most {APPLICATION_CHARS_MAX} characters"
            raise InvalidArgument(field, problem, f"{len(value)} characters")
    if whole(version, "version", 0, VERSION_MAX) and not application:
        raise InvalidArgument("version", "must not be given without an application", str(version))
    if owner and not application:
        raise InvalidArgument("owner", "must not be given without an application", owner)


def _record(transaction: pb.LargeTransaction) -> LargeTransactionRecord:
    return LargeTransactionRecord(
        transaction.transaction_id.hex(),
        cast("LargeTransactionState", pb.LargeTransaction.State.Name(transaction.state).lower()),
        tuple(f"{each.database}.{each.table}" for each in transaction.tables),
        transaction.label,
        timestamp_of(transaction.start),
        timestamp_of(transaction.committed) if transaction.HasField("committed") else None,
        transaction.is_resolved,
        transaction.cause,
        transaction.principal,
    )
