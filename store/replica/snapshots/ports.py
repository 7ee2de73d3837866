"""The part of the driver that snapshots need, and the wait between two attempts."""

from __future__ import annotations

import random
from typing import Protocol

from cortado.store.process.snapshot_settings import SnapshotSettings
from cortado.store.replica.apply.applied_state import AppliedState


class PausableDriver(Protocol):
    """The driver, as far as an installation must stop it."""

    async def pause(self) -> None:
        """Return when nothing is being stored or applied; nothing will be until :meth:`resume`."""

    def resume(self, state: AppliedState) -> None:
        """Go on, from ``state``: the state that the engine holds as applied now, perhaps another one than before."""


class Backoff:
    """Waits that double from ``retry_ms_min`` to ``retry_ms_max``, each shortened by up to a half at random, so that
    nodes that failed together do not come back together."""

    def __init__(self, random_: random.Random, settings: SnapshotSettings) -> None:
        self._random = random_
        self._settings = settings
        self._attempts = 0

    def next_ms(self) -> float:
        bound = min(self._settings.retry_ms_max, self._settings.retry_ms_min << min(self._attempts, 32))
        self._attempts += 1
        return bound * self._random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It went forward again."""
        self._attempts = 0
