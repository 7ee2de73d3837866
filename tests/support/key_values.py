"""Key values for property tests, and the order that they should have, said without any bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from cortado.store.keys.types import KeyPart, KeyType, KeyValue

# Few characters, so that strings often share a prefix: those that the escape is about, and each length of UTF-8.
_CHARACTERS = "\0\x01\x02a\x7fé\ud7ff\ue000\uffff\U00010000\U0010ffff"
_BYTES = st.lists(st.sampled_from([0, 1, 2, 0x61, 0xFE, 0xFF]), max_size=6).map(bytes)
_MICROS = st.integers(-(1 << 63), (1 << 63) - 1)
_NEAR_ZERO = st.integers(-300, 300)


def _decimals() -> st.SearchStrategy[Decimal]:
    digits = st.lists(st.integers(0, 9), max_size=9).map(tuple)
    built = st.builds(
        lambda sign, ds, scale: Decimal((sign, ds, scale)), st.integers(0, 1), digits, st.integers(-12, 9)
    )
    return built | st.decimals(allow_nan=False, allow_infinity=False, places=4) | st.integers(-999, 999).map(Decimal)


VALUES: dict[KeyType, st.SearchStrategy[Any]] = {
    KeyType.BOOL: st.booleans(),
    KeyType.INT64: _MICROS | _NEAR_ZERO,
    KeyType.FLOAT64: st.floats() | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324]),
    KeyType.BYTES: st.binary(max_size=8) | _BYTES,
    KeyType.STRING: st.text(max_size=8) | st.text(_CHARACTERS, max_size=5),
    KeyType.TIMESTAMP: _MICROS | _NEAR_ZERO,
    KeyType.DATE: st.dates(),
    KeyType.DECIMAL: _decimals(),
    KeyType.UUID: st.uuids(),
}


def nullable(key_type: KeyType) -> st.SearchStrategy[Any]:
    return st.none() | VALUES[key_type]


def key_parts(max_size: int = 4) -> st.SearchStrategy[list[KeyPart]]:
    """Draw declarations of 1 to ``max_size`` parts of any type and direction."""
    declared = st.lists(st.tuples(st.sampled_from(list(KeyType)), st.booleans()), min_size=1, max_size=max_size)
    return declared.map(lambda each: [KeyPart(f"p{place}", *part) for place, part in enumerate(each)])


@st.composite
def declared_rows(draw: st.DrawFn, min_size: int = 2, max_size: int = 8) -> tuple[list[KeyPart], list[list[KeyValue]]]:
    """Draw parts, and rows of values for them that often agree in their first parts."""
    parts = draw(key_parts())
    pools = [draw(st.lists(nullable(part.type), min_size=1, max_size=3)) for part in parts]
    row = st.tuples(*(st.sampled_from(pool) | nullable(part.type) for part, pool in zip(parts, pools, strict=True)))
    return parts, [list(each) for each in draw(st.lists(row, min_size=min_size, max_size=max_size))]


def compare(left: Sequence[KeyValue], right: Sequence[KeyValue], parts: Sequence[KeyPart]) -> int:
    """Compare two keys as the twin of the codec: -1, 0 or 1 by the values alone, for as many parts as both have."""
    for a, b, part in zip(left, right, parts, strict=False):
        order = _compare_values(a, b)
        if order:
            return -order if part.descending else order
    return 0


def _compare_values(left: KeyValue, right: KeyValue) -> int:
    a, b = _sortable(left), _sortable(right)
    return (a > b) - (a < b)


def _sortable(value: KeyValue) -> tuple[Any, ...]:
    """Return a sort key: null below everything, NaN above every number and equal to itself."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
    if isinstance(value, date):
        return (1, value.toordinal())
    return (1, value)


def same(left: KeyValue, right: KeyValue) -> bool:
    """Return whether two are equal as key values: one value has one key, however it is written (1 and 1.0, 0.0 and
    -0.0)."""
    return type(left) is type(right) and _compare_values(left, right) == 0
