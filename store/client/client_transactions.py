"""The transactions of a client, small and large."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Self, cast

from cortado.errors import InvalidArgument
from cortado.store.client.arguments import whole
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face
from cortado.store.client.transaction_runs import Pace, T, run_transactions
from cortado.store.client.views import View

if TYPE_CHECKING:
    from cortado.store.client.large_transactions import AsyncLargeTransaction, AsyncLargeTransactions
    from cortado.store.client.transaction import AsyncTransaction, Handles, Isolation

_ATTEMPTS_MAX: Final = 1_000


@public_face
class ClientTransactions:
    """A part of the client, and its views of one time: none of them transacts."""

    _connection: Connection
    _timeout_s: float
    _pace: Pace

    def _through(self, view: View) -> Self:
        # As copy() makes it, at a tenth of its cost: each transaction has one.
        bound = object.__new__(type(self))
        bound.__dict__ = {**self.__dict__, "_connection": self._connection.through(view)}
        return bound

    def _bound(self, view: View) -> Handles:
        return cast("Handles", self._through(view))

    def transaction(self, *, isolation: Isolation = "snapshot") -> AsyncTransaction:
        """Return a transaction on documents and pairs; a context manager that commits at its end.

        Under "snapshot" isolation others may change keys that it has only read; under "serializable" that is a
        conflict. Nothing is sent to begin it.
        """
        from cortado.store.client.transaction import AsyncTransaction
        from cortado.store.client.transaction_view import TransactionView

        self._connection.check_present("a transaction")
        view = TransactionView(isolation)
        return AsyncTransaction(self._bound(view), self._connection, view, timeout_s=self._timeout_s)

    async def run(
        self,
        fn: Callable[[AsyncTransaction], Awaitable[T]],
        *,
        isolation: Isolation = "snapshot",
        attempts: int | None = None,
    ) -> T:
        """Run ``fn`` in a transaction, commit it, and return the result of ``fn``.

        After WriteConflict and TransactionAborted ``fn`` runs again in a new transaction, until this client's timeout
        or the number of ``attempts`` is over; once also after SnapshotTooOld. So ``fn`` should do nothing but read and
        write through its transaction. The pauses grow to 500 ms. A client whose transactions conflict often runs fewer
        at once: the others wait in line, a second at most. An exception of ``fn`` rolls back and is raised. Raises the
        errors of :meth:`AsyncTransaction.commit`.
        """
        if attempts is not None:
            attempts = whole(attempts, "attempts", 1, _ATTEMPTS_MAX)
        if not callable(fn):
            raise InvalidArgument("fn", "must be a function of the transaction", type(fn).__name__)
        begin = partial(self.transaction, isolation=isolation)
        runtime, timeout_s = self._connection.runtime, self._timeout_s
        return await run_transactions(begin, fn, runtime, self._pace, timeout_s=timeout_s, attempts=attempts)

    def large_transaction(
        self, tables: Sequence[str], *, label: str = "", ttl_s: float = 60.0
    ) -> AsyncLargeTransaction:
        """Return a transaction that loads any number of rows into these tables, at one timestamp; a context manager.

        ``label`` names its purpose or owner. If the cluster hears nothing of its process for ``ttl_s``, 1 to 600
        seconds, it is aborted. Entering it raises NotFound for a table, and ResourceExhausted if 100 are open.
        """
        from cortado.store.client.large_transactions import AsyncLargeTransaction

        transaction_id = self._connection.environment.random_bytes(16).hex()
        return AsyncLargeTransaction(self.large_transactions, transaction_id, tables, label=label, ttl_s=ttl_s)

    @property
    def large_transactions(self) -> AsyncLargeTransactions:
        """The parts of large transactions, for jobs of several processes; and those that there are."""
        from cortado.store.client.large_transactions import AsyncLargeTransactions

        self._connection.check_present("a large transaction")
        return AsyncLargeTransactions(self._connection, self._bound, timeout_s=self._timeout_s)
