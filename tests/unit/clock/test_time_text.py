"""Times as people may type them, and the bytes and text of a timestamp."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument
from cortado.store.clock.text import parse_time, wall_ms_of
from cortado.store.clock.timestamp import LARGEST, LOGICAL_MAX, WALL_MS_MAX, ZERO, Timestamp, texts_of

TIMESTAMPS = st.builds(
    Timestamp, st.integers(0, (1 << 16) - 1), st.integers(0, WALL_MS_MAX), st.integers(0, LOGICAL_MAX)
)


def test_a_timestamp_has_these_bytes() -> None:
    assert bytes(Timestamp(1, 1_763_643_600_000, 2)).hex(" ", -4) == "0001019a a159ac80 00000002"
    assert bytes(ZERO) == bytes(12)
    assert bytes(LARGEST) == b"\xff" * 12


@given(TIMESTAMPS, TIMESTAMPS)
def test_timestamps_order_as_their_bytes_and_read_back_from_bytes_and_text(a: Timestamp, b: Timestamp) -> None:
    assert (a < b) == (bytes(a) < bytes(b))
    assert Timestamp.from_bytes(bytes(a)) == a == parse_time(str(a))
    assert texts_of(bytes(a) * 2) == [str(a)] * 2


@given(st.datetimes(datetime(1970, 1, 1), timezones=st.timezones()))
def test_what_python_writes_as_an_instant_reads_back(moment: datetime) -> None:
    offset = moment.utcoffset()
    if offset is None or offset % timedelta(minutes=1):
        return  # RFC 3339 has no offsets of seconds
    parsed = parse_time(moment.isoformat())
    assert isinstance(parsed, datetime)
    # Across zones Python calls no moment equal that a change of the clocks skips or repeats.
    assert parsed == moment.astimezone(UTC)
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "wall_ms"),
    [
        ("2025-11-20T13:00:00Z", 1_763_643_600_000),
        ("2025-11-20t13:00:00z", 1_763_643_600_000),
        (" 2025-11-20 14:00:00.25+01:00 ", 1_763_643_600_250),
        ("2025-11-20T13:00:00.123999999-00:00", 1_763_643_600_123),
        ("1970-01-01T00:00:00Z", 0),
    ],
)
def test_an_instant_is_rfc_3339_to_the_millisecond_below(text: str, wall_ms: int) -> None:
    parsed = parse_time(text)
    assert isinstance(parsed, datetime)
    assert wall_ms_of(parsed) == wall_ms


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at: must be a time such as"),
        ("yesterday", "(got yesterday)"),
        ("2025-11-20", "at: must be a time such as"),
        ("20251120T130000Z", "at: must be a time such as"),
        ("2025-11-20T13:00:00", "at: must name its zone: add Z for UTC"),
        ("2025-02-30T13:00:00Z", "at: is no time of the calendar: day is out of range for month"),
        ("2025-11-20T24:00:01Z", "at: is no time of the calendar"),
        ("2016-12-31T23:59:60Z", "at: is no time of the calendar"),
        ("0001-01-01T00:00:00+10:00", "at: is no time of the calendar"),
        ("٢٠٢٥-11-20T13:00:00Z", "at: must be a time such as"),
        ("1763643600000", "must look like epoch.wall_ms.logical"),
        ("0.1.2.3", "must look like epoch.wall_ms.logical"),
        ("65536.0.0", "timestamp.epoch: must be between 0 and 65535"),
        ("x" * 500, "(got " + "x" * 80 + ")"),
    ],
)
def test_anything_else_is_refused_with_what_would_do(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_time(text)
    assert message in str(refused.value)


def test_an_instant_needs_a_zone_and_is_not_before_1970() -> None:
    with pytest.raises(InvalidArgument, match="at: must have a time zone"):
        wall_ms_of(datetime(2025, 11, 20))
    with pytest.raises(InvalidArgument, match="since: must not be before 1970"):
        wall_ms_of(datetime(1969, 12, 31, 23, tzinfo=UTC), "since")
    assert wall_ms_of(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0
