"""Many rows at once give the same bytes, and the same refusals, as one row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument, InvalidDocument, KeyTooLong
from cortado.store.keys.bulk import index_keys, row_keys
from cortado.store.keys.codec import encode_parts
from cortado.store.keys.columns import encode_columns
from cortado.store.keys.keyspace import index_key, row_key
from cortado.store.keys.types import KeyPart, KeyType, KeyValue
from support.key_values import VALUES, declared_rows, nullable

DTYPES = {
    KeyType.BOOL: [np.bool_],
    KeyType.INT64: [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64],
    KeyType.TIMESTAMP: [np.int64],
    KeyType.FLOAT64: [np.float32, np.float64],
}


def transposed(rows: list[list[KeyValue]]) -> list[list[KeyValue]]:
    return [list(column) for column in zip(*rows, strict=True)]


@given(declared_rows(min_size=1), st.binary(max_size=6), st.booleans())
def test_lists_encode_as_their_rows_do(
    declared: tuple[list[KeyPart], list[list[KeyValue]]], prefix: bytes, with_suffixes: bool
) -> None:
    parts, rows = declared
    suffixes = [bytes([place]) * place for place in range(len(rows))] if with_suffixes else None
    expected = [
        prefix + encode_parts(row, parts) + (suffixes[place] if suffixes is not None else b"")
        for place, row in enumerate(rows)
    ]
    assert encode_columns(prefix, transposed(rows), parts, suffixes=suffixes) == expected


@pytest.mark.parametrize(("key_type", "dtype"), [(t, d) for t, dtypes in DTYPES.items() for d in dtypes])
@given(data=st.data(), descending=st.booleans())
def test_arrays_encode_as_their_values_do(
    key_type: KeyType, dtype: type[np.generic], data: st.DataObject, descending: bool
) -> None:
    part = KeyPart("p", key_type, descending)
    values = data.draw(st.lists(VALUES[key_type], min_size=1, max_size=9))
    with np.errstate(over="ignore"):
        array = np.array(values).astype(dtype)
    if dtype is np.uint64:
        array &= np.uint64((1 << 63) - 1)
    nulls = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    masked = [None if null else value for value, null in zip(array.tolist(), nulls, strict=True)]
    assert encode_columns(b"", [array], [part]) == [encode_parts([value], [part]) for value in array.tolist()]
    column = np.ma.MaskedArray(array, nulls)
    assert encode_columns(b"", [column], [part]) == [encode_parts([value], [part]) for value in masked]


@given(st.lists(st.dates(), min_size=1), st.booleans())
def test_an_array_of_days_encodes_as_its_dates_do(dates: list[Any], descending: bool) -> None:
    part = KeyPart("d", KeyType.DATE, descending)
    days = np.array(dates, "datetime64[D]").astype(np.int32)
    assert encode_columns(b"", [days], [part]) == encode_columns(b"", [dates], [part])


@given(declared_rows(min_size=1))
def test_row_and_index_keys_of_columns_are_those_of_rows(
    declared: tuple[list[KeyPart], list[list[KeyValue]]],
) -> None:
    parts, rows = declared
    primary_keys = [b"\x14%d" % place for place in range(len(rows))]
    for unique in (False, True):
        one_by_one = [
            index_key(7, 2, parts, row, key, unique=unique) for row, key in zip(rows, primary_keys, strict=True)
        ]
        assert index_keys(7, 2, parts, transposed(rows), primary_keys, unique=unique) == one_by_one
    with_null = [place for place, row in enumerate(rows) if None in row]
    if not with_null:
        assert row_keys(7, parts, transposed(rows)) == [row_key(7, parts, row) for row in rows]
        return
    with pytest.raises(InvalidDocument, match="must not be null in a primary key") as refused:
        row_keys(7, parts, transposed(rows))
    assert rows[refused.value.row][int(refused.value.field[1:])] is None


@pytest.mark.parametrize("key_type", list(KeyType))
@given(data=st.data())
def test_a_value_of_another_type_is_refused_with_its_row(key_type: KeyType, data: st.DataObject) -> None:
    part = KeyPart("a.b", key_type)
    other = data.draw(st.sampled_from([each for each in KeyType if each is not key_type]))
    stranger = data.draw(VALUES[other])
    try:
        encode_parts([stranger], [part])
    except InvalidArgument as single:
        expected = single
    else:
        return  # an int is a timestamp, and may be a float or a decimal
    before = data.draw(st.lists(nullable(key_type), max_size=5))
    with pytest.raises(InvalidDocument) as refused:
        encode_columns(b"", [[*before, stranger]], [part])
    assert refused.value.row == len(before)
    assert (refused.value.field, refused.value.problem, refused.value.value) == (
        "a.b",
        expected.problem,
        expected.value,
    )


def test_a_key_that_is_too_long_is_refused_among_many() -> None:
    parts = [KeyPart("name", KeyType.STRING)]
    with pytest.raises(KeyTooLong, match="limit is 499"):
        row_keys(7, parts, [["a", "a" * 600]])
