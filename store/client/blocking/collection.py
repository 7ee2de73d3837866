"""Leases, synchronous."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.collection import (
    CONSUMER_TTL_S_DEFAULT,
    AsyncCollection,
    AsyncLease,
    CollectionStatus,
    HeldLease,
)
from cortado.store.client.values import At
from cortado.store.clock.timestamp import Timestamp


@forwards(AsyncLease)
class Lease:
    """Keeps versions readable at one timestamp, and at all later ones, for as long as its block lasts::

        with client.lease(label="nightly report") as lease:
            for document in client.at(lease.timestamp).table("shop.items").scan():
                ...

    A thread keeps it alive beside the block. The lease ends if the cluster could not be told in time that its holder is
    alive, or once it is a day old. Then :attr:`timestamp` raises LeaseExpired, and reads below the versions collected
    since raise SnapshotTooOld, so no read ever misses a part. A lease keeps disk space in use: hold it no longer than
    you read.
    """

    def __init__(self, core: AsyncLease) -> None:
        self._core = core

    @property
    def lease_id(self) -> str:
        return self._core.lease_id

    @property
    def timestamp(self) -> Timestamp:
        return self._core.timestamp

    def __enter__(self) -> Self:
        run(self._core.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run(self._core.__aexit__(kind, error, traceback))


@forwards(AsyncCollection)
class Collection:
    """Garbage collection, and the leases that hold it back."""

    def __init__(self, core: AsyncCollection) -> None:
        self._core = core

    def leases(self) -> list[HeldLease]:
        return run(self._core.leases())

    def status(self) -> CollectionStatus:
        return run(self._core.status())

    def run(self) -> int:
        return run(self._core.run())

    def move_consumer(
        self, consumer: str, at: At, *, label: str = "", ttl_s: float = CONSUMER_TTL_S_DEFAULT, owner: str = ""
    ) -> HeldLease:
        return run(self._core.move_consumer(consumer, at, label=label, ttl_s=ttl_s, owner=owner))

    def end_lease(self, lease_id: str) -> bool:
        return run(self._core.end_lease(lease_id))
