"""The checker of watch histories finds the faults in known-bad ones, and nothing in good ones."""

from __future__ import annotations

import pytest

from cortado.store.clock.timestamp import ZERO, Timestamp
from support.watch_history import History, Resolved, Seen, last_resolved, problems, state_after


def at(number: int) -> Timestamp:
    return Timestamp(0, number, 0)


def seen(number: int, key: bytes = b"a", value: bytes | None = b"v") -> Seen:
    return Seen(at(number), key, value)


def mark(number: int) -> Resolved:
    return Resolved(at(number))


COMMITTED = [seen(1), seen(2, b"b"), seen(3), seen(3, b"b", None), seen(5)]

GOOD: list[tuple[int, History]] = [
    (0, []),
    (0, [mark(0), *COMMITTED, mark(9)]),
    (0, [*COMMITTED[:2], mark(2), *COMMITTED[2:4]]),
    # Unresolved changes may be missing.
    (0, [seen(1), mark(1)]),
    (2, [mark(2), *COMMITTED[2:], mark(7)]),
    (4, [mark(4), mark(4), seen(5), mark(5)]),
]

BAD: list[tuple[str, int, History]] = [
    ("is missing", 0, [seen(1), seen(3), seen(3, b"b", None), mark(3)]),
    ("is missing", 0, [mark(1)]),
    ("is missing", 0, [*COMMITTED[:3], mark(3)]),
    ("is missing", 2, [seen(3), seen(3, b"b", None), mark(5)]),
    ("was resolved", 0, [seen(1), mark(2), seen(2, b"b")]),
    ("was resolved", 2, [seen(2, b"b")]),
    ("came after", 0, [seen(2, b"b"), seen(1)]),
    ("came after", 0, [seen(1), seen(1)]),
    ("came after", 0, [seen(3, b"b", None), seen(3)]),
    ("went back", 0, [seen(1), seen(2, b"b"), mark(2), mark(1)]),
    ("never committed", 0, [seen(1, b"a", b"other")]),
    ("never committed", 0, [seen(4)]),
    ("never committed", 0, [seen(1, b"a", None)]),
]


@pytest.mark.parametrize(("after", "history"), GOOD)
def test_nothing_is_found_in_a_good_history(after: int, history: History) -> None:
    assert problems(history, at(after), COMMITTED) == []


@pytest.mark.parametrize(("problem", "after", "history"), BAD)
def test_what_is_wrong_is_found(problem: str, after: int, history: History) -> None:
    assert any(problem in each for each in problems(history, at(after), COMMITTED))


def test_changes_add_up_to_a_state() -> None:
    assert state_after({}, COMMITTED, at(2)) == {b"a": b"v", b"b": b"v"}
    assert state_after({b"c": b"old"}, COMMITTED, at(9)) == {b"a": b"v", b"c": b"old"}
    assert last_resolved([mark(3), seen(4)]) == at(3)
    assert last_resolved([]) is None
    assert state_after({}, COMMITTED, ZERO) == {}
