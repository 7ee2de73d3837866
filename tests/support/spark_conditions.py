"""Rows of many types with odd values, and conditions on them in Spark's SQL: some that a node understands, some not."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

_NULL: Final = "null"
FIELDS: Final[dict[str, Any]] = {
    "id": "long",
    "i": ([_NULL, "int"], None),
    "l": "long",
    "s": ([_NULL, "string"], None),
    "e": {"type": "enum", "name": "Colour", "symbols": ["RED", "blue", "Green"]},
    "b": ([_NULL, "boolean"], None),
    "f": ([_NULL, "float"], None),
    "x": ([_NULL, "double"], None),
    "p": ([_NULL, {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}], None),
    "day": ([_NULL, {"type": "int", "logicalType": "date"}], None),
    "ts": ([_NULL, {"type": "long", "logicalType": "timestamp-micros"}], None),
    "tm": {"type": "long", "logicalType": "timestamp-millis"},
    "r": (
        [
            _NULL,
            {
                "type": "record",
                "name": "Inner",
                "fields": [{"name": "n", "type": [_NULL, "int"]}, {"name": "Name", "type": "string"}],
            },
        ],
        None,
    ),
}

_INTS: Final = (0, 1, -1, 2, 3, 7, 2**31 - 1, -(2**31))
_LONGS: Final = (*_INTS, 2**53, 2**53 + 1, -(2**63), 2**63 - 1)
_TEXTS: Final = (
    "",
    "a",
    "A",
    "ab",
    "a%",
    "a_b",
    "x",
    "é",
    "e\u0301",
    "ß",
    "SS",
    "\u212a",
    "\uffff",
    "\U0001f600",
    " a",
    "0",
    "1",
)
_REALS: Final = (0.0, -0.0, 1.0, 0.1, -1.5, 3.5, 1e300, 5e-324, math.nan, math.inf, -math.inf)
_DECIMALS: Final = tuple(map(Decimal, ("0.00", "1.50", "-1.50", "12.34", "9999999999.99", "0.01")))
_DAYS: Final = (date(1970, 1, 1), date(2013, 3, 10), date(1582, 10, 10), date(9999, 12, 31), date(1, 1, 1))
# About the hours that the clocks are changed, of half of the sessions' time zones, and before time zones.
_MOMENTS: Final = (
    datetime(2013, 3, 10, 7, tzinfo=UTC),
    datetime(2013, 3, 10, 6, 59, 59, 999_000, tzinfo=UTC),
    datetime(2013, 11, 3, 5, 30, tzinfo=UTC),
    datetime(2013, 11, 3, 6, 30, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1899, 12, 31, 23, 59, tzinfo=UTC),
    datetime(2013, 1, 1, tzinfo=UTC),
)


def row(random: Random, number: int) -> dict[str, Any]:
    """Return the document with that id."""

    def some(values: tuple[Any, ...]) -> Any:
        return None if random.random() < 0.15 else random.choice(values)

    moment = some(_MOMENTS)
    inner = {"n": some(_INTS), "Name": random.choice(_TEXTS)}
    real = some(_REALS)
    return {
        "id": number,
        "i": some(_INTS),
        "l": random.choice(_LONGS),
        "s": some(_TEXTS),
        "e": random.choice(("RED", "blue", "Green")),
        "b": some((True, False)),
        "f": real if real is None or abs(real) != 1e300 else 1.0,
        "x": some(_REALS),
        "p": some(_DECIMALS),
        "day": some(_DAYS),
        "ts": None if moment is None else moment + timedelta(microseconds=random.choice((0, 0, 1))),
        "tm": random.choice(_MOMENTS),
        "r": some((inner, inner)),
    }


VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "i": _INTS,
    "l": _LONGS,
    "r.n": _INTS,
    "s": _TEXTS,
    "r.Name": _TEXTS,
    "x": _REALS,
    "p": _DECIMALS,
    "day": _DAYS,
    "ts": _MOMENTS,
}
"""The values by the fields that have them."""


def expression(random: Random, depth: int = 2) -> Any:
    """Return a filter of these fields, as :mod:`support.filter_twin` has it."""
    if depth and random.random() < 0.5:
        return random.choice(("and", "or")), [expression(random, depth - 1) for _ in range(2)]
    if depth and random.random() < 0.2:
        return "not", expression(random, depth - 1)
    name = random.choice(list(VALUES))
    field, values = ("field", name), [("value", random.choice(VALUES[name])) for _ in range(2)]
    if random.random() < 0.2:
        return "null", field
    if random.random() < 0.3:
        return random.choice((("in", field, values), ("between", field, *values)))
    return "compare", random.choice(("=", "!=", "<", "<=", ">", ">=")), field, values[0]


_NUMBERS: Final = ("0", "1", "-1", "2", "3", "7", "2147483647", "2147483648", "9007199254740993", "9223372036854775808")
_FRACTIONS: Final = (
    "0.0",
    "0.1",
    "1.5",
    "1.50",
    "-1.5",
    "1.505",
    "3.5",
    "12.34",
    "9999999999.99",
    "1e0",
    "1.5D",
    "2L",
    ".5",
    "3.",
)
_STRINGS: Final = (*(f"'{each}'" for each in _TEXTS), '"a"', "'a' 'b'", "'it''s'", "r'a'", "'\\u0061'")
_DATES: Final = ("DATE '1970-01-01'", "DATE '2013-03-10'", "DATE '1582-10-10'", "DATE '9999-12-31'", "DATE '2013-03'")
_TIMES: Final = (
    "TIMESTAMP '2013-03-10 02:00:00'",
    "TIMESTAMP '2013-03-10 02:30:00'",
    "TIMESTAMP '2013-03-10T07:00:00Z'",
    "TIMESTAMP '2013-11-03 01:30:00'",
    "TIMESTAMP '2013-11-03 06:30:00+00:00'",
    "TIMESTAMP '1970-01-01 00:00:00.000001'",
    "TIMESTAMP '2013-01-01'",
    "TIMESTAMP_NTZ '2013-01-01 00:00:00'",
    "TIMESTAMP_LTZ '2013-01-01 00:00:00'",
    "TIMESTAMP '1899-12-31 23:59:00'",
)
_OF: Final[dict[str, tuple[str, ...]]] = {
    "i": _NUMBERS,
    "l": _NUMBERS,
    "r.n": _NUMBERS,
    "R.N": _NUMBERS,
    "s": _STRINGS,
    "S": _STRINGS,
    "r.name": _STRINGS,
    "e": ("'RED'", "'blue'", "'red'", "'Blue'", "'M'"),
    "f": (*_NUMBERS[:6], *_FRACTIONS),
    "x": (*_NUMBERS[:9], *_FRACTIONS),
    "p": (*_NUMBERS[:6], *_FRACTIONS),
    "day": _DATES,
    "ts": _TIMES,
    "tm": _TIMES,
    "b": ("true", "FALSE"),
}
# Casts from other types, for sessions that do not refuse impossible casts.
_NUMERIC_CASTS: Final = ("'1'", "'1.5'", "NULL", "1.5", "2S")
_CASTS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("i", "l", "r.n", "R.N", "f", "x", "p"), _NUMERIC_CASTS),
    **dict.fromkeys(("s", "S", "r.name", "e"), ("NULL", "1", "1.5", "DATE '2013-03-10'")),
    **dict.fromkeys(("ts", "tm"), ("NULL", "'2013-03-10 02:00:00'", "DATE '2013-03-10'")),
    "day": ("NULL", "'2013-03-10'", "TIMESTAMP '2013-03-10 00:00:00'"),
    "b": ("NULL", "'true'"),
}
_ODD: Final = (
    "i % 5 + 1 = 2", "cast(i AS string) = '1'", "i = l", "s COLLATE UTF8_LCASE = 'A'", "upper(s) = 'A'", "s <=> NULL",
    "i <=> 1", "x = double('NaN')", "isnan(x)", "x = 0.0", "f = 0.1", "coalesce(i, 0) = 0", "s LIKE 'a\\\\_%'",
    "s LIKE '%a'", "s LIKE 'a_%'", "s ILIKE 'A%'", "s LIKE 'a%' ESCAPE '!'", "i IN (1, NULL)", "i NOT IN (1, NULL)",
    "s = NULL", "-(i % 5) = 1", "i = 1 = true", "NOT i = 1 IS NULL", "! b", "ts > day", "i BETWEEN 3 AND 1",
    "year(ts) = 2013",
    "r IS NULL", "r.n IS NOT NULL", "s IN ('a', 'A')", "(i, l) IN ((1, 1L))", "b = (i = 1)", "x < f",
)  # fmt: skip


def condition(random: Random, *, lenient: bool, depth: int = 3) -> str:
    """Return a condition. ``lenient`` is for a session that turns impossible casts into null
    (``spark.sql.ansi.enabled`` off)."""
    kind = random.random()
    if depth and kind < 0.5:
        word = random.choice((" AND ", " OR "))
        parts = [condition(random, lenient=lenient, depth=depth - 1) for _ in range(random.randint(2, 3))]
        return f"({word.join(parts)})"
    if depth and kind < 0.6:
        return f"NOT ({condition(random, lenient=lenient, depth=depth - 1)})"
    return _leaf(random, lenient=lenient)


def _leaf(random: Random, *, lenient: bool) -> str:
    column = random.choice(list(_OF))
    values = _OF[column] if not lenient or random.random() < 0.8 else _CASTS[column]
    first, second = random.choice(values), random.choice(values)
    name = random.choice((column, f"t.{column}"))
    match random.randint(0, 9):
        case 0 | 1 | 2:
            return f"{name} {random.choice(('=', '==', '<>', '!=', '<', '<=', '>', '>='))} {first}"
        case 3:
            return f"{first} {random.choice(('=', '<', '<=', '>', '>='))} {name}"
        case 4:
            return f"{name} {random.choice(('', 'NOT '))}IN ({first}, {second})"
        case 5:
            return f"{name} {random.choice(('', 'NOT '))}BETWEEN {first} AND {second}"
        case 6:
            return f"{name} IS {random.choice(('', 'NOT '))}NULL"
        case 7:
            return f"s LIKE '{random.choice(('a', 'A', 'é', '', 'x', ' '))}%'"
        case 8:
            return random.choice(("b", "t.b", "NOT b", "b = true", "s LIKE 'a%'"))
        case _:
            return random.choice(_ODD)
