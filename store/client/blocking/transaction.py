"""Transactions, synchronous."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast, overload

from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.blocking.kv import KeyValue
from cortado.store.client.transaction import AsyncTransaction
from cortado.store.clock.timestamp import Timestamp

if TYPE_CHECKING:
    from cortado.store.client.blocking.table import Table
    from cortado.store.client.documents import D
    from cortado.store.client.table import AsyncTable


@forwards(AsyncTransaction)
class Transaction:
    """Reads one state, keeps its writes, and commits them at the end of its ``with`` block, unless an exception ends
    the block::

        with client.transaction() as txn:
            items = txn.table("shop.items")
            tea = items.get("tea")
            items.update("tea", {"left": tea.value["left"] - 1})
            txn.kv("log").put(b"7", b"one tea was sold")
        print(txn.etag)

    Its handles are those of the client, and do the same with these differences. All reads are as of one timestamp, that
    of the first one, and see the transaction's own writes. Writes are checked as far as that needs no server, and
    kept; they return None. Deleting ranges, bulk loads, watches and other times to read at are Unsupported.

    Under "snapshot" isolation it conflicts with writes of others, since its reads, to keys that it writes, or reads
    with ``validate=True``. Under "serializable" every read counts, as if transactions ran one after the other.
    Transactions that write nothing send nothing, and never conflict. It is for one thread at a time. Several may be
    open at once; each is one of its own.
    """

    def __init__(self, core: AsyncTransaction) -> None:
        self._core = core

    @property
    def timestamp(self) -> Timestamp | None:
        return self._core.timestamp

    @property
    def etag(self) -> str:
        return self._core.etag

    @property
    def sums(self) -> list[int]:
        return self._core.sums

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None) -> Table: ...

    @overload
    def table(self, full_name: str, *, schema_version: int | None = None, document_type: type[D]) -> Table[D]: ...

    def table(
        self, full_name: str, *, schema_version: int | None = None, document_type: type[Any] | None = None
    ) -> Table[Any]:
        from cortado.store.client.blocking.table import Table

        core: AsyncTable[Any] = self._core.table(
            full_name, schema_version=schema_version, document_type=cast("type[Any]", document_type)
        )
        return Table(core)

    def kv(self, namespace: str) -> KeyValue:
        return KeyValue(self._core.kv(namespace))

    def commit(self) -> str:
        return run(self._core.commit())

    def rollback(self) -> None:
        run(self._core.rollback())

    def __enter__(self) -> Self:
        run(self._core.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run(self._core.__aexit__(kind, error, traceback))
