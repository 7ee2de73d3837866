"""A watcher's history, held against the committed changes.

A history is the list of :class:`Seen` and :class:`Resolved` in the order in which they came. It must have these
properties, by all that was committed in its range:

- *order*: changes rise strictly, by timestamp, then by key; so nothing comes twice
- *resolved*: marks never go back, and nothing at or below a mark comes after it
- *no gaps*: everything that was committed above the start and at or below the last mark was seen
- *truth*: - *truth*: every change seen was committed, with that timestamp, key and value
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cortado.store.clock.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Seen:
    """One change; ``value`` None is a delete."""

    ts: Timestamp
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Resolved:
    ts: Timestamp


History: TypeAlias = "Sequence[Seen | Resolved]"


def problems(history: History, after: Timestamp, committed: Iterable[Seen]) -> list[str]:
    """Return the broken properties, a sentence each; empty if all is well. ``committed`` is all of the range, in any
    order."""
    found: list[str] = []
    last = (after, b"\xff")
    resolved = after
    seen: set[Seen] = set()
    for each in history:
        if isinstance(each, Resolved):
            if each.ts < resolved:
                found.append(f"the resolved mark went back from {resolved} to {each.ts}")
            resolved = max(resolved, each.ts)
            continue
        if each.ts <= resolved:
            found.append(f"{each} came although {resolved} was resolved")
        if (each.ts, each.key) <= last:
            found.append(f"{each} came after {last}")
        last = max(last, (each.ts, each.key))
        seen.add(each)
    truth = set(committed)
    found += [f"{each} was never committed" for each in sorted(seen - truth, key=_place)]
    missing = [each for each in truth - seen if after < each.ts <= resolved]
    found += [f"{each} is missing, and {resolved} is resolved" for each in sorted(missing, key=_place)]
    return found


def state_after(state: dict[bytes, bytes], history: History, at: Timestamp) -> dict[bytes, bytes]:
    """Return ``state`` after the changes up to ``at``."""
    made = dict(state)
    for each in history:
        if isinstance(each, Seen) and each.ts <= at:
            if each.value is None:
                made.pop(each.key, None)
            else:
                made[each.key] = each.value
    return made


def last_resolved(history: History) -> Timestamp | None:
    return max((each.ts for each in history if isinstance(each, Resolved)), default=None)


def _place(each: Seen) -> tuple[Timestamp, bytes]:
    return each.ts, each.key
