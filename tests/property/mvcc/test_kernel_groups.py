"""Rows grouped by the kernel beside a dictionary of their values; and a table that fills too unevenly is given up."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from cortado.store.mvcc.walks import Walked
from support.kernels import column_kernels

TEXTS = [
    b"",
    b"a",
    b"ab",
    b"abc",
    b"abcd",
    b"abcde",
    b"abcdefgh",
    b"abcdefghi",
    b"abcdefgh" * 3,
    b"a\0",
    b"\0",
    b"x" * 300,
]
DTYPES = ["bool", "int32", "int64", "float32", "float64"]


def a_column(draw: Random, rows: int) -> tuple[Walked, list[Any]]:
    """Draw a column, and its values."""
    kind, distinct = draw.choice([*DTYPES, "text"]), draw.choice([1, 3, 5_000])
    is_null = [draw.random() < 0.2 for _ in range(rows)] if draw.random() < 0.5 else [False] * rows
    validity = ~np.array(is_null) if any(is_null) else None
    if kind == "text":
        chosen = [b"" if null else draw.choice(TEXTS) + b"%d" % draw.randrange(distinct) for null in is_null]
        offsets = np.cumsum([0, *map(len, chosen)]).astype(np.int32)
        column = Walked(np.frombuffer(b"".join(chosen), np.uint8), offsets, validity)
    else:
        numbers = [0 if null else draw.randrange(-distinct, distinct) for null in is_null]
        values = np.array(numbers).astype(kind)
        column, chosen = Walked(values, None, validity), values.tolist()
    return column, [None if null else value for null, value in zip(is_null, chosen, strict=True)]


@pytest.mark.parametrize("seed", range(40))
def test_groups_are_those_of_a_dictionary(seed: int) -> None:
    draw, kernel = Random(seed), column_kernels()[-1]
    if kernel is None:
        pytest.skip("nothing compiles the scan kernel here")
    rows = draw.choice([1, 2, 7, 8, 300, 2_000])
    columns = [a_column(draw, rows) for _ in range(draw.choice([1, 1, 2, 4]))]
    found = kernel.group([column for column, _ in columns], rows)
    assert found is not None
    numbers: dict[Any, int] = {}
    keys = list(zip(*(values for _, values in columns), strict=True))
    expected = [numbers.setdefault(key, len(numbers)) for key in keys]
    assert found.places.tolist() == expected
    assert found.first_rows.tolist() == [expected.index(number) for number in range(len(numbers))]


def test_a_table_that_fills_too_unevenly_is_given_up() -> None:
    """For example, the hashes of chosen values collide: the caller groups in another way, in bounded time."""
    if column_kernels()[-1] is None:
        pytest.skip("nothing compiles the scan kernel here")
    from cortado.store.mvcc.kernel.groups import CROWDED, group

    values, places, firsts = (np.arange(100) for _ in range(3))
    held = np.array([values.ctypes.data, 0, 0, 8])
    for slots, expected in ((256, 100), (64, CROWDED)):
        table = np.zeros(slots, np.int32)
        told = table.ctypes.data, slots - 1, 5
        assert group(held.ctypes.data, 1, 100, told, (places.ctypes.data, firsts.ctypes.data)) == expected
