"""Quotas at one node: the ones in force, and the stored bytes of their targets. :mod:`cortado.store.quotas.meters`
counts calls; :mod:`cortado.store.server.authority` passes calls to it.

::

    applied state   ──► all quotas, four times a second if an entry was applied ──► the meters of this node
    the data's tree ──► bytes of each database and namespace with such a limit, every two seconds ──► full, or not

Each node follows its applied state and measures its own copy, so a new leader knows both. If quotas cannot be read,
since their value is damaged, they stay as they were: the node serves on.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Final

from cortado.errors import CortadoError, NotFound
from cortado.store.engine.interface import Page, Space
from cortado.store.engine.tree_sizes import range_bytes
from cortado.store.host.host import Host
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.keyspace import KeyRange, database_range, namespace_range, staged_range
from cortado.store.quotas.meters import Meter, Meters
from cortado.store.quotas.quota import kind_of, name_of
from cortado.store.quotas.stored import QUOTAS_KEY, decode_quotas

_LOG: Final = logging.getLogger(__name__)

LOOK_S: Final = 0.25
MEASURE_S: Final = 2.0
"""The time between two measurements of the stored bytes; longer after a long measurement."""
_REST: Final = 20.0
"""The rest after a measurement of all, as a multiple of its time."""
_SLICE_ITEMS: Final = 1_000
_SLICE_REST: Final = 4.0
"""The least rest after a slice, as a multiple of its time."""


class Metering:
    """The meters of one server, current while :meth:`follow` and :meth:`measure` run. On the loop."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.meters = Meters(host.process.monotonic_ms)
        self._index = -1
        self._suffix = b""
        self._is_stopping = False

    async def follow(self) -> None:
        """Follow the applied quotas. Runs until it is cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    async def measure(self) -> None:
        """Measure the stored bytes again and again. Runs until it is cancelled."""
        while True:
            began_ms = self._host.process.monotonic_ms()
            await self.measure_all()
            took_s = (self._host.process.monotonic_ms() - began_ms) / 1_000
            await asyncio.sleep(max(MEASURE_S, _REST * took_s))

    def stop(self) -> None:
        """Stop: no call is counted any more, and no stream waits for its quota."""
        self._is_stopping = True
        self.meters.use({})

    def look(self) -> None:
        """Take the newest applied quotas, if they have changed."""
        replica = self._host.meta
        applied = replica.applied
        if applied.index == self._index or self._is_stopping:
            return
        try:
            version = replica.store.get(QUOTAS_KEY, applied.last_ts)
            suffix = b"" if version is None else version.suffix
            if suffix != self._suffix:
                self.meters.use({} if version is None else decode_quotas(version.payload))
                self._suffix = suffix
            self._index = applied.index
        except CortadoError as error:
            _LOG.debug("quotas stay as they were: %s", error)

    async def measure_all(self) -> None:
        """Measure the stored bytes of each target that has such a limit."""
        for meter in list(self.meters.by_target.values()):
            if meter.quota.stored_bytes is None:
                continue
            try:
                self.meters.measured(meter, sum([await self._size(within) for within in self._ranges(meter)]))
            except CortadoError as error:
                _LOG.debug("the stored bytes of %s are not measured: %s", meter.quota.target, error)

    def _ranges(self, meter: Meter) -> list[KeyRange]:
        """Return the key ranges of the meter's target; none if there is no such database."""
        kind, name = kind_of(meter.quota.target), name_of(meter.quota.target)
        if kind == "namespace":
            return [namespace_range(name)]
        replica = self._host.meta
        try:
            database = replica.catalog(replica.store.snapshot(replica.applied.last_ts)).database(name)
        except NotFound:
            return []
        within = database_range(database.number)
        return [within, staged_range(*within)]

    async def _size(self, within: KeyRange) -> int:
        mapped = self._host.process.engine.mapped
        if not isinstance(mapped, str):
            found = await self._host.process.scan(lambda: range_bytes(mapped, *within))
            if found is not None:
                return found
        return await self._size_item_by_item(*within)

    async def _size_item_by_item(self, start: bytes, end: bytes) -> int:
        """Return the size by reading every item, if the tree's pages cannot be read: slower by far, and with rests."""
        size_bytes = 0
        engine = self._host.process.engine

        def read(begin: bytes) -> Page:
            with engine.read() as transaction:
                return transaction.page(Space.DATA, begin, end, max_items=_SLICE_ITEMS)

        while True:
            began_ms = self._host.process.monotonic_ms()
            page = await self._host.process.scan(partial(read, start))
            size_bytes += sum(map(len, page.keys)) + sum(map(len, page.values))
            if page.exhausted:
                return size_bytes
            start = successor_of_prefix(page.keys[-1])
            await asyncio.sleep(_SLICE_REST * (self._host.process.monotonic_ms() - began_ms) / 1_000)
