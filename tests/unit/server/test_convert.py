"""Keys, conditions and times between messages and values."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2
from cortado.store.clock.timestamp import LOGICAL_MAX, Timestamp
from cortado.store.keys.types import KeyPart, KeyType, KeyValue
from cortado.store.mvcc.evaluation import Absent, EtagIs, Present, ValueIs
from cortado.store.server.convert import (
    condition_value,
    key_message,
    key_values,
    read_at,
    timestamp_message,
    timestamp_value,
)

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES: dict[KeyType, st.SearchStrategy[KeyValue]] = {
    KeyType.BOOL: st.booleans(),
    KeyType.INT64: INT64,
    KeyType.FLOAT64: st.floats(allow_nan=False),
    KeyType.BYTES: st.binary(),
    KeyType.STRING: st.text(),
    KeyType.TIMESTAMP: INT64,
    KeyType.DATE: st.dates(),
    KeyType.DECIMAL: st.decimals(allow_nan=False, allow_infinity=False, places=4),
    KeyType.UUID: st.uuids(),
}


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[KeyPart], list[KeyValue]]:
    types = draw(st.lists(st.sampled_from(KeyType), min_size=1, max_size=4))
    parts = [KeyPart(f"p{i}", each, draw(st.booleans())) for i, each in enumerate(types)]
    return parts, [draw(st.none() | VALUES[each]) for each in types]


@given(keys())
def test_a_key_comes_back_as_it_went(key: tuple[list[KeyPart], list[KeyValue]]) -> None:
    parts, values = key
    message = common_pb2.Key.FromString(key_message(values, parts).SerializeToString())
    assert list(key_values(message, parts)) == values
    assert [type(value) for value in key_values(message, parts)] == [type(value) for value in values]


def test_a_prefix_is_fewer_parts() -> None:
    parts = [KeyPart("a", KeyType.INT64), KeyPart("b", KeyType.STRING)]
    assert key_values(common_pb2.Key(parts=[common_pb2.Value(int64=1)]), parts) == (1,)
    assert key_values(common_pb2.Key(), parts) == ()


@pytest.mark.parametrize("part_type", KeyType)
def test_a_value_of_another_case_is_refused(part_type: KeyType) -> None:
    examples: dict[KeyType, KeyValue] = {
        KeyType.BOOL: True,
        KeyType.INT64: 1,
        KeyType.FLOAT64: 1.0,
        KeyType.BYTES: b"x",
        KeyType.STRING: "x",
        KeyType.TIMESTAMP: 1,
        KeyType.DATE: date(2026, 1, 1),
        KeyType.DECIMAL: Decimal("1.5"),
        KeyType.UUID: UUID(int=1),
    }
    for other, value in examples.items():
        message = key_message([value], [KeyPart("f", other)])
        if other == part_type:
            assert key_values(message, [KeyPart("f", part_type)]) == (value,)
            continue
        with pytest.raises(InvalidArgument, match=rf"key\.f: is of type {part_type}"):
            key_values(message, [KeyPart("f", part_type)])


def test_a_wall_time_means_all_of_its_millisecond_in_the_current_epoch() -> None:
    assert read_at(common_pb2.ReadAt(wall_ms=7), epoch=3) == Timestamp(3, 7, LOGICAL_MAX)
    assert read_at(common_pb2.ReadAt(), epoch=3) is None
    ts = Timestamp(1, 2, 3)
    assert read_at(common_pb2.ReadAt(timestamp=timestamp_message(ts)), epoch=9) == ts
    assert timestamp_value(timestamp_message(ts)) == ts


def test_a_wall_time_out_of_range_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"at\.wall_ms: must be between 0 and"):
        read_at(common_pb2.ReadAt(wall_ms=1 << 60), epoch=0)


def test_conditions() -> None:
    assert condition_value(common_pb2.Condition()) is None
    assert condition_value(common_pb2.Condition(absent=True)) == Absent()
    assert condition_value(common_pb2.Condition(present=True)) == Present()
    assert condition_value(common_pb2.Condition(etag="0.1.2")) == EtagIs(Timestamp(0, 1, 2))
    assert condition_value(common_pb2.Condition(value=b""), kv=True) == ValueIs(b"")
