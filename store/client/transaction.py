"""Transactions: reads of one state, and writes that are committed together, or none of them."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeAlias, overload

from cortado.errors import CortadoError, OutcomeUnknown, TransactionAborted, Unsupported
from cortado.proto.v1 import transactions_pb2
from cortado.store.client.connection import Connection
from cortado.store.client.kv import AsyncKeyValue
from cortado.store.client.public_faces import public_face
from cortado.store.client.transaction_view import TransactionView
from cortado.store.client.values import timestamp_of
from cortado.store.clock.timestamp import Timestamp

if TYPE_CHECKING:
    from cortado.store.client.documents import D
    from cortado.store.client.table import AsyncTable

Isolation: TypeAlias = Literal["snapshot", "serializable"]

_COMMIT_SHARE: Final = 0.75
"""The commit's share of its time. The rest is for asking about its outcome."""
_SETTLE_S_MIN: Final = 0.05


class Handles(Protocol):
    """The tables and namespaces of a client, as one view reads and writes them."""

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None) -> AsyncTable: ...

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None, document_type: type[D]) -> AsyncTable[D]: ...

    def kv(self, namespace: str) -> AsyncKeyValue: ...


@public_face
class AsyncTransaction:
    """Reads one state, keeps its writes, and commits them at the end of its ``async with`` block, unless an exception
    ends the block::

        async with client.transaction() as txn:
            items = txn.table("shop.items")
            tea = await items.get("tea")
            await items.update("tea", {"left": tea.value["left"] - 1})
            await txn.kv("log").put(b"7", b"one tea was sold")
        print(txn.etag)

    Its handles are those of the client, and do the same with these differences. All reads are as of one timestamp, that
    of the first one, and see the transaction's own writes. Writes are checked as far as that needs no server, and
    kept; they return None. Deleting ranges, bulk loads, watches and other times to read at are Unsupported.

    Under "snapshot" isolation it conflicts with writes of others, since its reads, to keys that it writes, or reads
    with ``validate=True``. Under "serializable" every read counts, as if transactions ran one after the other.
    Transactions that write nothing send nothing, and never conflict. It is for one thread or task at a time. Several
    may be open at once; each is one of its own.
    """

    def __init__(self, handles: Handles, connection: Connection, view: TransactionView, *, timeout_s: float) -> None:
        """``handles`` read and write through ``view``, over ``connection``."""
        self._handles = handles
        self._connection = connection
        self._view = view
        self._timeout_s = timeout_s
        self._is_entered = False
        self._timestamp: Timestamp | None = None
        self._sums: list[int] = []

    @property
    def timestamp(self) -> Timestamp | None:
        """When it was committed; None before, and if it wrote nothing."""
        return self._timestamp

    @property
    def etag(self) -> str:
        """The etag of everything that it wrote, once committed; empty before, and if it wrote nothing."""
        return "" if self._timestamp is None else str(self._timestamp)

    @property
    def sums(self) -> list[int]:
        """The sum after each add, in their order, once committed."""
        return [*self._sums]

    # --- reads and writes ----------------------------------------------------------------------------------------

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None) -> AsyncTable: ...

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None, document_type: type[D]) -> AsyncTable[D]: ...

    def table(
        self, full_name: str, *, schema_version: int | None = None, document_type: type[Any] | None = None
    ) -> AsyncTable[Any]:
        """Return a handle of ``database.table`` in this transaction; as :meth:`AsyncClient.table`."""
        return self._handles.table(full_name, schema_version=schema_version, document_type=document_type)  # type: ignore[arg-type]

    def kv(self, namespace: str) -> AsyncKeyValue:
        """Return a handle of a namespace in this transaction; as :meth:`AsyncClient.kv`."""
        return self._handles.kv(namespace)

    # --- how it ends ---------------------------------------------------------------------------------------------

    async def commit(self) -> str:
        """Write everything durably and at once; return the etag, or "" if nothing was written and so nothing sent.

        Raises WriteConflict if others were faster: begin again, with :meth:`AsyncClient.run` for example. Raises the
        refusal of an operation: ConditionFailed, UniqueViolation, OutOfBounds, NotFound. If the outcome got lost, it
        is asked for, within the same timeout. So it is known: the commit happened, or TransactionAborted says that it
        never will. OutcomeUnknown remains if no node can be reached for that either.

        However it ends, the transaction is over.
        """
        with self._view.alone():
            end = "its commit had no success"
            try:
                request = self._view.commit_request()
                if request is not None:
                    self._take(await self._sent(request))
                end = "it was committed"
            finally:
                self._view.end(end)
        return self.etag

    async def rollback(self) -> None:
        """Forget its writes. None of them was sent, so nothing needs to be undone."""
        with self._view.alone():
            self._view.end("it was rolled back")

    async def __aenter__(self) -> Self:
        with self._view.alone():
            if self._is_entered:
                raise Unsupported("nesting a transaction in itself", "begin another, which is one of its own")
            self._is_entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._view.is_open:
            return
        if kind is None:
            await self.commit()
        else:
            # Also while another thread uses it: that use fails, and the caller must see the exception.
            self._view.end("it was rolled back")

    async def _sent(self, request: transactions_pb2.CommitRequest) -> transactions_pb2.CommitResponse:
        now_s = self._connection.environment.monotonic_s
        deadline_s = now_s() + self._timeout_s
        commit = self._connection.stubs.transactions.Commit
        try:
            reply: transactions_pb2.CommitResponse = await self._connection.write(
                commit, request, timeout_s=self._timeout_s * _COMMIT_SHARE
            )
        except OutcomeUnknown as unknown:
            lost = unknown
        else:
            return reply
        return await self._settled(request.request_id, lost, max(deadline_s - now_s(), _SETTLE_S_MIN))

    async def _settled(
        self, request_id: bytes, lost: OutcomeUnknown, timeout_s: float
    ) -> transactions_pb2.CommitResponse:
        request = transactions_pb2.SettleRequest(request_id=request_id)
        settle = self._connection.stubs.transactions.Settle
        try:
            settled = await self._connection.call(settle, request, timeout_s=timeout_s)
        except CortadoError as error:
            problem = f"{lost.problem}; asking what became of it failed, too: {error}"
            raise OutcomeUnknown(problem, request_id.hex()) from error
        if not settled.happened:
            raise TransactionAborted("settled") from lost
        reply = transactions_pb2.CommitResponse.FromString(settled.reply)
        reply.header.timestamp.CopyFrom(settled.timestamp)
        return reply

    def _take(self, reply: transactions_pb2.CommitResponse) -> None:
        self._timestamp = timestamp_of(reply.header.timestamp)
        self._sums = [*reply.sums]
