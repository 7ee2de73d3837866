"""Dividing a range into parts of about equal numbers of rows, by one pass over its keys, in slices.

Spark reads a table in partitions, and equal ones take equal time. LMDB can't say how many keys lie between two, so the
keys are counted; values are not read. While counting, every n-th key is kept as a possible boundary, n doubling
whenever too many are kept: the memory is bounded, and the parts are equal to within a thousandth of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from cortado.store.engine.interface import Engine, Space
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.chunks import newest_visible
from cortado.store.mvcc.reader import logical_of, suffix_from
from cortado.store.mvcc.slices import Slice, SliceReader

KEYS_PER_STEP: Final = 10_000
_SAMPLES_MAX: Final = 4_096
_KEY_BYTES_MAX: Final = 4 << 20
"""The most bytes of a step's keys, read by the kernel."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part begins at ``start``, and ends at the next one's start. ``rows`` counts keys with a version at the
    timestamp: those that are deleted by then still count until they are collected."""

    start: LogicalKey
    rows: int


class SplitPass:
    """Call :meth:`step` until it returns True, then ask for :meth:`parts`. A step takes about two milliseconds."""

    def __init__(
        self,
        engine: Engine,
        start: LogicalKey,
        end: LogicalKey,
        parts: int,
        read_suffix: bytes,
        kernel: SliceReader | None = None,
    ) -> None:
        self._engine = engine
        self._kernel = kernel
        self._start = start
        self._position = start
        self._end = end
        self._parts = parts
        self._read_suffix = read_suffix
        self._samples: list[LogicalKey] = []
        self._stride = 1
        self.rows = 0

    def step(self, max_keys: int = KEYS_PER_STEP) -> bool:
        """Count up to ``max_keys`` versions more, in a transaction of its own. True once the range is counted."""
        mapped = self._engine.mapped
        if self._kernel is not None and not isinstance(mapped, str):
            suffix = self._read_suffix
            wanted = Slice(self._position, self._end, suffix, suffix, False, max_keys, _KEY_BYTES_MAX, keys_only=True)
            found = self._kernel.read(mapped, wanted)
            if found is not None and found.packed is not None:
                keys = found.packed
                self._sample(len(keys), lambda place: keys.logical_key(place))
                self._position = self._end if found.resume is None else found.resume
                return found.resume is None
        with self._engine.read() as txn:
            engine_keys, exhausted = txn.keys(Space.DATA, self._position, self._end, max_items=max_keys)
        self._count(engine_keys)
        if engine_keys and not exhausted:
            last = logical_of(engine_keys[-1])
            # All its versions up to here may be above the timestamp, so look at the rest, but for those just seen.
            visible = suffix_from(engine_keys[-1]) >= self._read_suffix
            self._position = LogicalKey(successor_of_prefix(last) if visible else last + self._read_suffix)
        return exhausted

    def parts(self) -> list[Part]:
        """Return the parts in order, the first from the range's start; fewer than asked for if there are few rows."""
        count = max(1, min(self._parts, len(self._samples)))
        # Sample number i is row number i * stride.
        places = [round(number * self.rows / count / self._stride) for number in range(count)]
        places = sorted({min(place, len(self._samples) - 1) for place in places[1:]} - {0})
        first_rows = [0, *(place * self._stride for place in places), self.rows]
        starts = [self._start, *(self._samples[place] for place in places)]
        rows = [after - before for before, after in pairwise(first_rows)]
        return list(map(Part, starts, rows))

    def _count(self, engine_keys: list[bytes]) -> None:
        if not engine_keys:
            return
        # A step never begins with a key that the one before has counted.
        places = np.flatnonzero(newest_visible(engine_keys, self._read_suffix)).tolist()
        self._sample(len(places), lambda number: logical_of(engine_keys[places[number]]))

    def _sample(self, rows: int, key_of: Callable[[int], LogicalKey]) -> None:
        """Count ``rows`` more; ``key_of`` gives their keys by number."""
        if self._parts > 1:
            self._samples += map(key_of, range(-self.rows % self._stride, rows, self._stride))
        self.rows += rows
        while len(self._samples) > _SAMPLES_MAX:
            del self._samples[1::2]
            self._stride *= 2


Counting: TypeAlias = Callable[[LogicalKey, LogicalKey, int], SplitPass]
"""Begins to count a range, and to divide it into a number of parts."""
