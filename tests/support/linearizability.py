"""Is a concurrent history of one register what *some* order of its calls, one at a time, would have given?

A history is linearizable if every call can be given an instant between its start and its end so that, run at these
instants, each returns what it returned. A call whose outcome is unknown may have happened at any time after its start,
or never. The search is Wing and Gong's (*Testing and Verifying Concurrent Objects*, 1993): take as the next call any
that no other one ended before, and remember the (calls taken, value) pairs that led nowhere, as Lowe's does.

Registers are independent of each other, so a history of many keys is checked key by key.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

Value: TypeAlias = bytes | None


@dataclass(frozen=True, slots=True)
class Call:
    """``get`` returned ``value``; ``put`` wrote it; ``cas`` wrote it if the register held ``expected``.

    ``held`` is False for a refused ``cas``. ``end`` is infinite where the caller never learned the outcome.
    """

    kind: Literal["get", "put", "cas"]
    start: float
    end: float
    value: Value
    expected: Value = None
    held: bool = True


def is_linearizable(calls: list[Call], first: Value = None) -> bool:
    """True where an order exists, beginning with a register that holds ``first``."""
    calls = sorted(calls, key=lambda call: call.start)
    must = sum(1 << place for place, call in enumerate(calls) if call.end != inf)
    stack: list[tuple[int, Value]] = [(0, first)]
    seen = set(stack)
    while stack:
        taken, value = stack.pop()
        if taken & must == must:
            return True
        for place in _candidates(calls, taken):
            after = _step(calls[place], value)
            if after is not None and (state := (taken | 1 << place, after[0])) not in seen:
                seen.add(state)
                stack.append(state)
    return False


def _candidates(calls: list[Call], taken: int) -> list[int]:
    """Calls that may be next: those not taken that began before any other such call had ended."""
    found: list[int] = []
    first_end = inf
    for place, call in enumerate(calls):
        if call.start > first_end:
            break
        if not taken >> place & 1:
            found.append(place)
            first_end = min(first_end, call.end)
    return found


def _step(call: Call, value: Value) -> tuple[Value] | None:
    """The register after the call, or None where it could not have returned what it did."""
    if call.kind == "get":
        return (value,) if call.value == value else None
    if call.kind == "put":
        return (call.value,)
    if call.held != (value == call.expected):
        return None
    return (call.value if call.held else value,)
