"""Is a concurrent history what *some* order of its calls, one at a time, would have given?

A history is linearizable if every call can be given an instant between its start and its end, with this property: run
at these instants, each call returns what it returned. If the outcome of a call is unknown (its ``end`` is infinite), it
may have happened at any time after its start, or never.

The search is Wing and Gong's (*Testing and Verifying Concurrent Objects*, 1993): take as the next call any that no
other one ended before. As in Lowe's (*Testing for Linearizability*, 2017) every configuration (calls taken, value) that
led nowhere is remembered, since most of a search would come by again. Two shortcuts lose nothing:

- a call that changes nothing and returned the current value is taken at once: later it can only be harder to take;
- an unknown call is tried last if no call saw its value.

Keys are independent of each other (Herlihy and Wing, 1990, §3.3), so a history of many is checked key by key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

Value: TypeAlias = bytes | None


@dataclass(frozen=True, slots=True)
class Call:
    """``get`` returned ``value``; ``put`` wrote it (None: a delete); ``cas`` wrote it if the key held ``expected``;
    ``append`` put it behind the old value; ``expected`` is the result that it was told (None: it was not told).

    ``held`` is False for a refused ``cas``. ``end`` is infinite if the caller never learned the outcome.
    """

    kind: Literal["get", "put", "cas", "append"]
    start: float
    end: float
    value: Value
    expected: Value = None
    held: bool = True


def is_linearizable(calls: Iterable[Call], first: Value = None) -> bool:
    """Return whether an order exists, beginning with a key that holds ``first``."""
    search = _Search(sorted(calls, key=lambda call: (call.start, call.end)))
    return search.run(first)


def unexplained(history: Iterable[tuple[bytes, Call]], first: Value = None) -> list[tuple[bytes, list[Call]]]:
    """Return the keys of a history that no order explains, each with its calls in order of their starts."""
    by_key: dict[bytes, list[Call]] = {}
    for key, call in history:
        by_key.setdefault(key, []).append(call)
    return [
        (key, sorted(calls, key=lambda call: call.start))
        for key, calls in sorted(by_key.items())
        if not is_linearizable(calls, first)
    ]


_Configuration: TypeAlias = tuple[int, int, Value]
"""All calls before the first number are taken, and those of the bits of the second, counted from there."""


class _Search:
    """Depth first over configurations. ``calls`` in order of their starts."""

    def __init__(self, calls: list[Call]) -> None:
        self._calls = calls
        self._must = sum(1 for call in calls if call.end != inf)
        self._seen: set[_Configuration] = set()
        self._known_before = [0]
        for call in calls:
            self._known_before.append(self._known_before[-1] + (call.end != inf))

    def run(self, first: Value) -> bool:
        stack: list[_Configuration] = [(0, 0, first)]
        while stack:
            configuration = stack.pop()
            if configuration in self._seen:
                continue
            self._seen.add(configuration)
            if self._is_done(configuration):
                return True
            stack.extend(self._next(configuration))
        return False

    def _is_done(self, configuration: _Configuration) -> bool:
        done, mask, _ = configuration
        taken = self._known_before[done]
        while mask:
            bit = mask & -mask
            taken += self._calls[done + bit.bit_length() - 1].end != inf
            mask ^= bit
        return taken == self._must

    def _next(self, configuration: _Configuration) -> list[_Configuration]:
        """Return the configurations that may follow, the most promising last."""
        done, mask, value = configuration
        unknown: list[_Configuration] = []
        known: list[_Configuration] = []
        for place in self._candidates(done, mask):
            call = self._calls[place]
            after = _step(call, value)
            if after is None:
                continue
            follows = _taken(done, mask, place, after[0])
            if call.end == inf:
                unknown.append(follows)
            elif after[0] == value and call.kind in ("get", "cas"):
                return [follows]
            else:
                known.append(follows)
        return unknown[::-1] + known[::-1]

    def _candidates(self, done: int, mask: int) -> list[int]:
        """Return the calls that may be next: those not taken that began before any other such call had ended."""
        found: list[int] = []
        first_end = inf
        for place in range(done, len(self._calls)):
            call = self._calls[place]
            if call.start > first_end:
                break
            if not mask >> (place - done) & 1:
                found.append(place)
                first_end = min(first_end, call.end)
        return found


def _taken(done: int, mask: int, place: int, value: Value) -> _Configuration:
    mask |= 1 << (place - done)
    while mask & 1:
        mask >>= 1
        done += 1
    return done, mask, value


def _step(call: Call, value: Value) -> tuple[Value] | None:
    """Return the key's value after the call, or None if the call could not have returned its result."""
    if call.kind == "get":
        return (value,) if call.value == value else None
    if call.kind == "put":
        return (call.value,)
    if call.kind == "append":
        after = (value or b"") + (call.value or b"")
        return (after,) if call.expected is None or call.expected == after else None
    if call.held != (value == call.expected):
        return None
    return (call.value if call.held else value,)
