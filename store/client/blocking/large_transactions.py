"""Large transactions, synchronous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast, overload

from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.holds import TTL_S_DEFAULT
from cortado.store.client.large_transactions import (
    AsyncLargeTransaction,
    AsyncLargeTransactions,
    AsyncStaging,
    LargeTransactionRecord,
)
from cortado.store.clock.timestamp import Timestamp

if TYPE_CHECKING:
    from cortado.store.client.blocking.table import Table
    from cortado.store.client.documents import D
    from cortado.store.client.table import AsyncTable


@forwards(AsyncStaging)
class Staging:
    """One attempt of one task of a large transaction, which another process may have begun::

        with client.large_transactions.staging(transaction_id, task=7, attempt=1) as staging:
            staging.table("shop.orders").put_many(rows)

    A thread keeps the transaction alive for as long as its block lasts. The transaction outlives the block: the process
    that commits it names the attempts that count.
    """

    def __init__(self, core: AsyncStaging) -> None:
        self._core = core

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None) -> Table: ...

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None, document_type: type[D]) -> Table[D]: ...

    def table(
        self, full_name: str, *, schema_version: int | None = None, document_type: type[Any] | None = None
    ) -> Table[Any]:
        return _table(self._core, full_name, schema_version, document_type)

    def __enter__(self) -> Self:
        run(self._core.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run(self._core.__aexit__(kind, error, traceback))


@forwards(AsyncLargeTransaction)
class LargeTransaction:
    """Rows of any number, visible at one timestamp, or never::

        with client.large_transaction(["shop.orders"], label="nightly load") as txn:
            txn.table("shop.orders").put_many(rows)
        print(txn.timestamp)

    Leaving the block commits; an exception aborts, and none of the rows are written. Before the commit staged rows are
    visible to no reader, and locked for every other writer. A thread keeps the transaction alive beside the block; if
    the cluster hears nothing of its process for ``ttl_s``, it is aborted.
    """

    def __init__(self, core: AsyncLargeTransaction) -> None:
        self._core = core
        self.transaction_id = core.transaction_id

    @property
    def timestamp(self) -> Timestamp | None:
        return self._core.timestamp

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None) -> Table: ...

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None, document_type: type[D]) -> Table[D]: ...

    def table(
        self, full_name: str, *, schema_version: int | None = None, document_type: type[Any] | None = None
    ) -> Table[Any]:
        return _table(self._core, full_name, schema_version, document_type)

    def commit(self) -> Timestamp:
        return run(self._core.commit())

    def __enter__(self) -> Self:
        run(self._core.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run(self._core.__aexit__(kind, error, traceback))


@forwards(AsyncLargeTransactions)
class LargeTransactions:
    """The parts of large transactions, for jobs of several processes: one begins it, others stage, one commits.

    All calls may be repeated.
    """

    def __init__(self, core: AsyncLargeTransactions) -> None:
        self._core = core

    def begin(
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
        begun = self._core.begin(
            tables,
            label=label,
            ttl_s=ttl_s,
            transaction_id=transaction_id,
            application=application,
            version=version,
            owner=owner,
        )
        return run(begun)

    def staging(self, transaction_id: str, *, task: int = 0, attempt: int = 0, ttl_s: float = TTL_S_DEFAULT) -> Staging:
        return Staging(self._core.staging(transaction_id, task=task, attempt=attempt, ttl_s=ttl_s))

    def commit(
        self,
        transaction_id: str,
        attempts: Mapping[int, int],
        *,
        application: str = "",
        version: int = 0,
        owner: str = "",
    ) -> Timestamp:
        committed = self._core.commit(transaction_id, attempts, application=application, version=version, owner=owner)
        return run(committed)

    def abort(self, transaction_id: str) -> LargeTransactionRecord:
        return run(self._core.abort(transaction_id))

    def list(self) -> list[LargeTransactionRecord]:
        return run(self._core.list())

    def get(self, transaction_id: str) -> LargeTransactionRecord:
        return run(self._core.get(transaction_id))


def _table(
    core: AsyncStaging | AsyncLargeTransaction,
    full_name: str,
    schema_version: int | None,
    document_type: type[Any] | None,
) -> Table[Any]:
    from cortado.store.client.blocking.table import Table

    table: AsyncTable[Any] = core.table(
        full_name, schema_version=schema_version, document_type=cast("type[Any]", document_type)
    )
    return Table(table)
