"""Strangers choose how often a library logs, and what: its lines are bounded, and hold no bytes of theirs."""

from __future__ import annotations

import logging

from cortado.store.observe.library_logs import LINE_S, LINES_AT_ONCE, LibraryLines

TOKEN = b"Bearer ctd_0123456789abcdef_secret\xff"


def record(at_s: float = 1_000.0, name: str = "grpc._cython.cygrpc") -> logging.LogRecord:
    made = logging.LogRecord(name, logging.ERROR, "x.py", 1, "Invalid encoding on %s", (TOKEN,), None)
    made.created = at_s
    return made


def test_a_library_has_some_lines_at_once_and_then_one_in_a_time() -> None:
    lines = LibraryLines()
    assert sum(lines.filter(record()) for _ in range(10 * LINES_AT_ONCE)) == LINES_AT_ONCE
    assert not lines.filter(record(1_000.0 + LINE_S / 2))
    later = record(1_000.0 + LINE_S)
    assert lines.filter(later)
    assert later.getMessage().endswith(f"({9 * LINES_AT_ONCE + 1} lines of grpc before it are missing)")
    assert not lines.filter(record(1_000.0 + LINE_S))


def test_one_library_does_not_silence_another_nor_our_own_lines() -> None:
    lines = LibraryLines()
    while lines.filter(record()):
        pass
    assert lines.filter(record(name="asyncio"))
    assert all(lines.filter(record(name="cortado.store.replica.driver")) for _ in range(10 * LINES_AT_ONCE))


def test_a_clock_that_is_put_back_silences_no_library() -> None:
    lines = LibraryLines()
    while lines.filter(record(1e9)):
        pass
    assert lines.filter(record(1_000.0))


def test_bytes_are_shown_as_their_number() -> None:
    seen = record()
    assert LibraryLines().filter(seen)
    assert seen.getMessage() == f"Invalid encoding on {len(TOKEN)} bytes"
