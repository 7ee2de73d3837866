"""Holds, synchronous."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.holds import AsyncHold
from cortado.store.clock.timestamp import Timestamp


@forwards(AsyncHold)
class Hold:
    """Keeps versions readable at one timestamp, and at all later ones, for as long as its block lasts::

        with client.hold(label="nightly report") as hold:
            for document in client.at(hold.timestamp).table("shop.items").scan():
                ...

    A thread keeps it alive beside the block. The hold ends if the cluster could not be told in time that its holder is
    alive, or once it is a day old. Then :attr:`timestamp` raises HoldExpired, and reads below the versions collected
    since raise SnapshotTooOld, so no read ever misses a part. A hold keeps disk space in use: keep it no longer than
    you read.
    """

    def __init__(self, core: AsyncHold) -> None:
        self._core = core

    @property
    def hold_id(self) -> str:
        return self._core.hold_id

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
