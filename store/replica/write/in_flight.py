"""The newest version in flight of each key: one look finds it, however many batches wait to be applied.

A chunk of a bulk load writes thousands of keys, and nearly all of them are applied before a caller asks for them: the
next chunk has other keys. To enter each, and to take it out again, would cost as much as a tenth of the load. So the
writes of such a command are kept as they came, with the bounds of their keys. They are entered once a key within these
bounds is asked for::

    runs        [low .. high] keys, items      oldest first, not entered yet
    versions    {key: item}                    of a key within a run's bounds: older than the run's version

Before a version is entered or written by a small command within the bounds of a run, all runs are entered: so the
newest stands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.versions import Item

RUN_KEYS_MIN: Final = 64
"""A command that writes fewer keys is entered at once."""


class _Run(NamedTuple):
    low: LogicalKey
    high: LogicalKey
    keys: Sequence[LogicalKey]
    items: Sequence[Item]


class InFlight:
    """The writes of all batches that are not applied."""

    def __init__(self, run_keys_min: int = RUN_KEYS_MIN) -> None:
        self._run_keys_min = run_keys_min
        self._versions: dict[LogicalKey, Item] = {}
        self._runs: deque[_Run] = deque()
        # No run's bounds reach beyond these.
        self._low = self._high = LogicalKey(b"")

    def wrote(
        self,
        keys: Sequence[LogicalKey],
        items: Sequence[Item],
        bounds: tuple[LogicalKey, LogicalKey] | None = None,
    ) -> None:
        """Add the next command's effects: its keys, and the engine's item of each. ``bounds`` are the first and the
        last of the keys, if known."""
        if len(keys) < self._run_keys_min:
            if self._runs and keys:
                self._enter_within(min(keys), max(keys))
            self._versions.update(zip(keys, items, strict=True))
            return
        run = _Run(*(bounds or (min(keys), max(keys))), keys, items)
        self._low, self._high = (min(self._low, run.low), max(self._high, run.high)) if self._runs else run[:2]
        self._runs.append(run)

    def applied(self, keys: Sequence[LogicalKey], items: Sequence[Item]) -> None:
        """Drop the oldest command's writes that are still here: the engine has them."""
        if self._runs and self._runs[0].items is items:
            self._runs.popleft()
            return
        versions = self._versions
        for key, item in zip(keys, items, strict=True):
            if versions.get(key) is item:
                del versions[key]

    def get(self, key: LogicalKey) -> Item | None:
        """Return the newest version of ``key``; None if no batch in flight writes it."""
        if self._runs:
            self._enter_within(key, key)
        return self._versions.get(key)

    def has_one_of(self, keys: Sequence[LogicalKey]) -> bool:
        """Return whether a batch in flight writes one of these."""
        if self._runs and keys:
            self._enter_within(min(keys), max(keys))
        return bool(self._versions) and not self._versions.keys().isdisjoint(keys)

    @property
    def versions(self) -> dict[LogicalKey, Item]:
        """Return all versions, to be read only."""
        if self._runs:
            self._enter()
        return self._versions

    def _enter_within(self, low: LogicalKey, high: LogicalKey) -> None:
        """Enter all runs, if a key in ``[low, high]`` may be in one of them."""
        if self._high < low or high < self._low:
            return
        if any(run.low <= high and low <= run.high for run in self._runs):
            self._enter()

    def _enter(self) -> None:
        for run in self._runs:
            self._versions.update(zip(run.keys, run.items, strict=True))
        self._runs.clear()
