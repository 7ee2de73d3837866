"""Measures from time to time the stored sizes of tables and databases at this node, for the metrics.

A round measures one table after another on the scan thread, and is followed by a rest of twenty times its length, so
that it costs a twentieth at most. If nothing was applied since the last round there is no new one.
"""

from __future__ import annotations

import asyncio
import logging
from heapq import nlargest
from typing import Final

from cortado.errors import CortadoError
from cortado.store.catalog.catalog import Catalog
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import table_range
from cortado.store.observe.stored_sizes import StoredSizes
from cortado.store.server.sizes_service import size_of

_LOG: Final = logging.getLogger(__name__)

MEASURE_S: Final = 15.0
_REST: Final = 20.0
TABLES_MAX: Final = 100
"""The number of tables that the metrics name: the largest ones."""


class SizeSampler:
    """The sizes at one server, current while :meth:`measure` runs. On the loop."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._index = -1
        self.sizes = StoredSizes()

    async def measure(self) -> None:
        """Measure the sizes again and again. Runs until it is cancelled."""
        while True:
            began_ms = self._host.process.monotonic_ms()
            try:
                await self.measure_all()
            except CortadoError as error:
                _LOG.debug("sizes are not measured: %s", error)
            took_s = (self._host.process.monotonic_ms() - began_ms) / 1_000
            await asyncio.sleep(max(MEASURE_S, _REST * took_s))

    async def measure_all(self) -> None:
        """Measure once, if an entry was applied since. If the tree's pages cannot be read, do nothing: it would read
        every item. Raises Unavailable."""
        replica = self._host.meta
        applied = replica.applied
        if applied.index == self._index or replica.is_installing or isinstance(self._host.process.engine.mapped, str):
            return
        catalog = Catalog(replica.store.snapshot(applied.last_ts))
        found = await self._host.process.scan(
            lambda: [(each.table_id, each.database, each.name) for each in catalog.tables()]
        )
        databases = dict.fromkeys(await self._host.process.scan(catalog.databases), (0, 0))
        tables: dict[str, tuple[int, int]] = {}
        for table_id, database, name in found:
            size = await size_of(self._host, table_range(table_id), of_rows=True)
            rows, size_bytes = databases[database]
            databases[database] = rows + size.count, size_bytes + size.bytes
            tables[f"{database}.{name}"] = size.count, size.bytes
        self.sizes.tables = dict(nlargest(TABLES_MAX, tables.items(), key=lambda each: each[1][1]))
        self.sizes.databases = databases
        self._index = applied.index
