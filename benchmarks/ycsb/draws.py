"""Draw the next record: uniformly, by Zipf's law, or the latest ones most.

The generator is that of Gray et al., "Quickly Generating Billion-Record Synthetic Databases", 1994, §3.2, with YCSB's
constant of 0.99: with a million records, every 15th call draws the most popular one. Popular records are not to be
neighbours, so numbers are scattered by a hash (FNV-1a), and so are the keys, as YCSB does by default.
"""

from __future__ import annotations

import random
from typing import Final, Protocol

THETA: Final = 0.99
_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3


def scattered(number: int) -> int:
    """Return 64 bits that look random, the same for the same number."""
    found = _OFFSET
    for _ in range(8):
        found = ((found ^ (number & 0xFF)) * _PRIME) & 0xFFFF_FFFF_FFFF_FFFF
        number >>= 8
    return found


class Draw(Protocol):
    """Draws a number from 0 up to the ``count`` of records, exclusive."""

    def __call__(self, chance: random.Random, count: int) -> int: ...


class Zipfian:
    """0 most often, 1 half as often, and so on."""

    def __init__(self) -> None:
        self._count = 0
        self._zeta = 0.0

    def __call__(self, chance: random.Random, count: int) -> int:
        self._reach(count)
        drawn = chance.random() * self._zeta
        second = 1 + 0.5**THETA
        if drawn < 1:
            return 0
        if drawn < second:
            return min(1, count - 1)
        eta = (1 - (2 / count) ** (1 - THETA)) / (1 - second / self._zeta)
        return min(count - 1, int(count * (eta * drawn / self._zeta - eta + 1) ** (1 / (1 - THETA))))

    def _reach(self, count: int) -> None:
        """Add up the weights of ``count`` records, a number that only grows."""
        if count < self._count:
            self._count, self._zeta = 0, 0.0
        self._zeta += sum(1 / each**THETA for each in range(self._count + 1, count + 1))
        self._count = count


class Scattered:
    """As :class:`Zipfian`, but the popular ones lie anywhere."""

    def __init__(self) -> None:
        self._ranks = Zipfian()

    def __call__(self, chance: random.Random, count: int) -> int:
        return scattered(self._ranks(chance, count)) % count


class Latest:
    """As :class:`Zipfian`, from the newest record on."""

    def __init__(self) -> None:
        self._ages = Zipfian()

    def __call__(self, chance: random.Random, count: int) -> int:
        return count - 1 - self._ages(chance, count)
