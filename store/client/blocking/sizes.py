"""Sizes, synchronous."""

from __future__ import annotations

from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.sizes import AsyncSizes, DatabaseSize, TableSize


@forwards(AsyncSizes)
class Sizes:
    """How much is stored. It is ``client.admin.sizes``, and may be shared by threads."""

    def __init__(self, core: AsyncSizes) -> None:
        self._core = core

    def table(self, full_name: str) -> TableSize:
        return run(self._core.table(full_name))

    def tables(self, database: str | None = None) -> list[TableSize]:
        return run(self._core.tables(database))

    def databases(self) -> list[DatabaseSize]:
        return run(self._core.databases())
