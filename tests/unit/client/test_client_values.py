"""Keys, times and conditions between Python and the API."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2
from cortado.store.client.values import (
    at_to_proto,
    key_from_proto,
    key_to_proto,
    parse_at,
    part_from_proto,
    part_to_proto,
    range_to_proto,
)
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import KeyPart, KeyType

PARTS = (KeyPart("time_hour", KeyType.TIMESTAMP), KeyPart("carrier", KeyType.STRING), KeyPart("flight", KeyType.INT64))

VALUES: dict[KeyType, st.SearchStrategy[Any]] = {
    KeyType.BOOL: st.booleans(),
    KeyType.INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    KeyType.FLOAT64: st.floats(allow_nan=False),
    KeyType.BYTES: st.binary(),
    KeyType.STRING: st.text(),
    KeyType.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
    KeyType.DATE: st.dates(),
    KeyType.DECIMAL: st.decimals(allow_nan=False, allow_infinity=False),
    KeyType.UUID: st.uuids(),
}


@given(st.data())
@pytest.mark.parametrize("type", list(KeyType))
def test_a_part_comes_back_as_it_went(type: KeyType, data: st.DataObject) -> None:
    value = data.draw(st.one_of(st.none(), VALUES[type]))
    sent = part_to_proto(value, KeyPart("part", type))
    back = part_from_proto(common_pb2.Value.FromString(sent.SerializeToString()))
    assert back == value
    assert back.__class__ is value.__class__


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (KeyType.BOOL, 1),
        (KeyType.INT64, True),
        (KeyType.INT64, 1.0),
        (KeyType.INT64, "1"),
        (KeyType.INT64, 1 << 63),
        (KeyType.FLOAT64, "1.5"),
        (KeyType.FLOAT64, (1 << 53) + 1),
        (KeyType.BYTES, "text"),
        (KeyType.STRING, b"bytes"),
        (KeyType.STRING, "\ud800"),
        (KeyType.TIMESTAMP, datetime(2013, 1, 1)),
        (KeyType.TIMESTAMP, "2013-01-01T00:00:00Z"),
        (KeyType.TIMESTAMP, 1.5),
        (KeyType.DATE, datetime(2013, 1, 1, tzinfo=UTC)),
        (KeyType.DATE, 5),
        (KeyType.DECIMAL, 1.5),
        (KeyType.DECIMAL, Decimal("NaN")),
        (KeyType.UUID, "9f0c6a52-3f6e-4a7b-8f52-4f1e6a1d2c3b"),
        (KeyType.STRING, object()),
    ],
)
def test_a_part_of_another_type_is_refused_by_its_path(type: KeyType, value: Any) -> None:
    with pytest.raises(InvalidArgument) as raised:
        part_to_proto(value, KeyPart("address.city", type))
    assert raised.value.field == "key.address.city"


def test_a_timestamp_of_any_zone_is_read_as_utc() -> None:
    part = KeyPart("at", KeyType.TIMESTAMP)
    there = datetime(2013, 1, 1, 5, tzinfo=timezone(timedelta(hours=-5)))
    assert part_from_proto(part_to_proto(there, part)) == datetime(2013, 1, 1, 10, tzinfo=UTC)


def test_a_timestamp_may_be_microseconds_and_stays_so_beyond_pythons_years() -> None:
    part = KeyPart("at", KeyType.TIMESTAMP)
    assert part_from_proto(part_to_proto(0, part)) == datetime(1970, 1, 1, tzinfo=UTC)
    assert part_from_proto(part_to_proto(1 << 62, part)) == 1 << 62


def test_a_single_value_is_a_key_of_one_part() -> None:
    part = (KeyPart("carrier", KeyType.STRING),)
    assert key_to_proto("UA", part) == key_to_proto(("UA",), part) == key_to_proto(["UA"], part)
    assert key_from_proto(key_to_proto(UUID(int=7), (KeyPart("id", KeyType.UUID),))) == (UUID(int=7),)


@pytest.mark.parametrize("key", [(), (0,), (0, "UA"), (0, "UA", 1, 2)])
def test_a_key_must_have_all_its_parts_and_no_more(key: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgument, match=r"3 parts \(time_hour, carrier, flight\)"):
        key_to_proto(key, PARTS)


def test_a_bound_may_leave_trailing_parts_away() -> None:
    found = range_to_proto((0,), (0, "UA"), None, PARTS)
    assert found is not None
    assert (len(found.start.parts), len(found.end.parts)) == (1, 2)
    with pytest.raises(InvalidArgument, match="at most 3 parts"):
        range_to_proto((0, "UA", 1, 2), None, None, PARTS)


def test_a_prefix_stands_alone() -> None:
    assert range_to_proto(None, None, None, PARTS) is None
    found = range_to_proto(None, None, (0, "UA"), PARTS)
    assert found is not None
    assert found.HasField("prefix")
    with pytest.raises(InvalidArgument, match="prefix"):
        range_to_proto((0,), None, (0,), PARTS)


def test_a_key_of_one_null_part_is_not_an_open_bound() -> None:
    found = range_to_proto((None,), None, None, PARTS)
    assert found is not None
    assert found.start.parts[0].WhichOneof("kind") == "null"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0.1763643600000.2", Timestamp(0, 1_763_643_600_000, 2)),
        ("2025-11-20T13:00:00Z", datetime(2025, 11, 20, 13, tzinfo=UTC)),
        ("2025-11-20T08:00:00-05:00", datetime(2025, 11, 20, 13, tzinfo=UTC)),
    ],
)
def test_a_time_is_a_timestamp_or_a_wall_time(text: str, meant: Timestamp | datetime) -> None:
    assert parse_at(text) == meant
    assert at_to_proto(text) == at_to_proto(meant)


@pytest.mark.parametrize(
    "at",
    ["", "now", "1.2", "0.1.2.3", "2025-11-20", "2025-11-20T13:00:00", "2025-13-01T00:00:00Z", 5, datetime(2025, 1, 1)],
)
def test_a_wrong_time_is_refused(at: Any) -> None:
    with pytest.raises(InvalidArgument) as raised:
        at_to_proto(at)
    assert raised.value.field == "at"


def test_a_time_before_1970_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="before 1970"):
        at_to_proto(datetime(1969, 1, 1, tzinfo=UTC))


def test_dates_before_1970_are_keys() -> None:
    part = KeyPart("day", KeyType.DATE)
    assert part_from_proto(part_to_proto(date(1, 1, 1), part)) == date(1, 1, 1)
