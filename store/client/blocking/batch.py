"""Atomic batches, synchronous."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from cortado.store.client.batch import AsyncBatch
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.document_types import DataclassInstance
from cortado.store.client.put_mode import PutMode
from cortado.store.client.values import Expires, KeyLike


@forwards(AsyncBatch)
class Batch:
    """Collects operations, and commits them at the end of its ``with`` block, unless that ends by an exception::

        with client.batch("flights") as batch:
            batch.put("airlines", {"carrier": "ZZ", "name": "Zed Air"})
            batch.delete("planes", ("N14228",))
        print(batch.etag)

    They count in their order: an operation sees those before it. Table names are those within the database.
    """

    def __init__(self, core: AsyncBatch) -> None:
        self._core = core

    @property
    def database(self) -> str:
        """The database of all its tables."""
        return self._core.database

    @property
    def etag(self) -> str:
        """The etag of everything written, once committed."""
        return self._core.etag

    def __len__(self) -> int:
        return len(self._core)

    def put(
        self,
        table: str,
        document: Mapping[str, Any] | DataclassInstance,
        *,
        mode: PutMode = "upsert",
        if_match: str | None = None,
        expires: Expires = None,
    ) -> None:
        run(self._core.put(table, document, mode=mode, if_match=if_match, expires=expires))

    def update(
        self,
        table: str,
        key: KeyLike,
        changes: Mapping[str, Any],
        *,
        if_match: str | None = None,
        expires: Expires = None,
    ) -> None:
        run(self._core.update(table, key, changes, if_match=if_match, expires=expires))

    def delete(self, table: str, key: KeyLike, *, if_match: str | None = None) -> None:
        run(self._core.delete(table, key, if_match=if_match))

    def commit(self) -> str:
        return run(self._core.commit())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run(self._core.__aexit__(kind, error, traceback))
