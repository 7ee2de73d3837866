"""Garbage collection, synchronous."""

from __future__ import annotations

from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.gc import AsyncGc, GcStatus
from cortado.store.client.holds import CONSUMER_TTL_S_DEFAULT, HoldInfo
from cortado.store.client.values import At


@forwards(AsyncGc)
class Gc:
    """Garbage collection, and the holds that hold it back."""

    def __init__(self, core: AsyncGc) -> None:
        self._core = core

    def holds(self) -> list[HoldInfo]:
        return run(self._core.holds())

    def status(self) -> GcStatus:
        return run(self._core.status())

    def run(self) -> int:
        return run(self._core.run())

    def advance_consumer(
        self, consumer: str, at: At, *, label: str = "", ttl_s: float = CONSUMER_TTL_S_DEFAULT, owner: str = ""
    ) -> HoldInfo:
        return run(self._core.advance_consumer(consumer, at, label=label, ttl_s=ttl_s, owner=owner))

    def end_hold(self, hold_id: str) -> bool:
        return run(self._core.end_hold(hold_id))
