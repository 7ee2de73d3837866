"""Filters over columns, and over single documents, against a dumb interpreter with SQL's three-valued logic."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from datetime import date, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.schema.columnar.decode import decode_rows
from cortado.schema.parse import parse_document_schema
from cortado.store.filter.bind import compile_filter
from support.filter_twin import INSTANTS, SCHEMA, answer, write

PARSED = parse_document_schema(SCHEMA)
AVRO = fastavro.parse_schema(json.loads(SCHEMA))

INTS = [0, 1, -1, 7, 2**31 - 1, -(2**31)]
LONGS = [*INTS, 2**63 - 1, -(2**63), 2**53 + 1]
SMALLS = [0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), float("nan")]
DOUBLES = [*SMALLS, 0.1, 1e300, 5e-324]
TEXTS = ["", "a", "ab", "abc", "abd", "b", "it's", "é", "\U0001f600", "\uffff", "x" * 31, "x" * 32, "x" * 33, "x" * 70,
         "w" + "z" * 40, "y" + "a" * 40, "x" * 40 + "a" + "z" * 40]  # fmt: skip
BYTES = [b"", b"\x00", b"\x00\x00", b"\x00\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff"]
DECIMALS = [Decimal("0.00"), Decimal("1.50"), Decimal("-1.50"), Decimal("9999999.99")]
EXTREMES = [Decimal("9999999999999999.99"), Decimal("-9999999999999999.99")]
UUIDS = [UUID(int=0), UUID(int=1), UUID(int=2**128 - 1), UUID("123e4567-e89b-12d3-a456-426614174000")]
DAYS = [date(1970, 1, 1), date(2013, 1, 1), date(2013, 1, 2), date(1, 1, 1), date(9999, 12, 31)]
LOCALS = [each.replace(tzinfo=None) for each in INSTANTS]
MILLIS = [each.replace(microsecond=each.microsecond // 1000 * 1000) for each in INSTANTS]
TIMES = [time(0), time(5, 0, 0, 1000), time(23, 59, 59, 999_000)]
ODD_TIMES = [*TIMES, time(5, 0, 0, 1001)]
SYMBOLS = ["RED", "GREEN", "BLUE"]

# By field: the values that documents have, and those that filters compare them with.
FIELDS: dict[str, tuple[list[Any], list[Any]]] = {
    "flag": ([None, True, False], [True, False]),
    "count": (INTS, [*INTS, 2**63, -(10**30), Decimal("0.5"), Decimal("-1.5")]),
    "total": ([None, *LONGS], [*LONGS, 2**63, -(2**63) - 1, Decimal("1e40"), Decimal("6.999")]),
    "small": (SMALLS, DOUBLES),
    "ratio": ([None, *DOUBLES], DOUBLES),
    "name": ([None, *TEXTS], [*TEXTS, "x" * 64, "x" * 71, "x" * 32 + "y", "x" * 40 + "b" + "a" * 40]),
    "other": (TEXTS, TEXTS),
    "colour": ([None, *SYMBOLS], SYMBOLS),
    "raw": ([None, *BYTES], BYTES),
    "code": ([b"\x00\x00", b"\xff\xff", b"ab"], [*BYTES, b"ab"]),
    "price": ([None, *DECIMALS], [*DECIMALS, 0, Decimal("1.5"), Decimal("1.505"), 10**20]),
    "most": ([*DECIMALS, *EXTREMES], [*DECIMALS, *EXTREMES, 10**16, -(10**16), Decimal("1e40"), Decimal("0.001")]),
    "worth": ([None, *DECIMALS, *EXTREMES], [*DECIMALS, *EXTREMES, 0, Decimal("1.505"), 10**30]),
    "id": ([None, *UUIDS], UUIDS),
    "day": ([None, *DAYS], DAYS),
    "at": ([None, *INSTANTS], INSTANTS),
    "at_ms": (MILLIS, INSTANTS),
    "local": ([None, *LOCALS], LOCALS),
    "clock": (TIMES, ODD_TIMES),
    "tags": ([None, [], ["a"]], []),
    "address": ([None, *({"city": city, "zip": 7} for city in (None, "", "ab"))], []),
}
OPERATORS = st.sampled_from(["=", "==", "!=", "<>", "<", "<=", ">", ">="])
FIELD_PAIRS = [
    ("count", "total"), ("count", "ratio"), ("total", "price"), ("small", "ratio"), ("name", "other"),
    ("name", "colour"), ("raw", "code"), ("at", "at_ms"), ("address.city", "name"), ("address.zip", "count"),
]  # fmt: skip

DOCUMENTS = st.fixed_dictionaries({name: st.sampled_from(values) for name, (values, _) in FIELDS.items()})
COMPARABLE: dict[str, list[Any]] = {
    **{name: literals for name, (_, literals) in FIELDS.items() if literals},
    "address.city": TEXTS,
    "address.zip": [7, 8],
}


def field(name: str) -> tuple[str, str]:
    return "field", name


def values_for(name: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([*COMPARABLE[name], None]).map(lambda value: ("value", value))


NAMES = st.sampled_from(sorted(COMPARABLE))
COMPARISONS = st.one_of(
    NAMES.flatmap(lambda name: st.tuples(st.just("compare"), OPERATORS, st.just(field(name)), values_for(name))),
    NAMES.flatmap(lambda name: st.tuples(st.just("compare"), OPERATORS, values_for(name), st.just(field(name)))),
    NAMES.flatmap(lambda name: st.tuples(st.just("between"), st.just(field(name)), values_for(name), values_for(name))),
    NAMES.flatmap(
        lambda name: st.tuples(st.just("in"), st.just(field(name)), st.lists(values_for(name), min_size=1, max_size=20))
    ),
    st.tuples(OPERATORS, st.sampled_from(FIELD_PAIRS)).map(
        lambda drawn: ("compare", drawn[0], field(drawn[1][0]), field(drawn[1][1]))
    ),
    st.sampled_from(["name", "other", "colour", "raw", "code", "address.city"]).flatmap(
        lambda name: st.tuples(st.just("starts"), st.just(field(name)), values_for(name))
    ),
    st.sampled_from([*FIELDS, "address.city", "address.zip"]).map(lambda name: ("null", field(name))),
    st.sampled_from([("truth", field("flag")), *(("truth", ("value", value)) for value in (True, False, None))]),
)
EXPRESSIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=4)),
        st.tuples(st.just("not"), inner),
    ),
    max_leaves=6,
)


def encode(documents: list[dict[str, Any]]) -> tuple[bytes, np.ndarray[Any, Any]]:
    bodies = []
    for document in documents:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, AVRO, document)
        bodies.append(out.getvalue())
    return b"".join(bodies), np.array([len(body) for body in bodies], np.uint32)


@given(st.lists(DOCUMENTS, min_size=1, max_size=12), st.lists(EXPRESSIONS, min_size=1, max_size=12))
def test_a_filter_says_of_columns_what_the_dumb_interpreter_says(
    documents: list[dict[str, Any]], expressions: list[Any]
) -> None:
    check(documents, expressions)


def check(documents: list[dict[str, Any]], expressions: Iterable[Any]) -> None:
    bodies, lengths = encode(documents)
    for expression in expressions:
        text = write(expression)
        bound = compile_filter(text, PARSED)
        assert bound is not None
        columns = decode_rows(PARSED, bodies, lengths, columns=bound.paths).columns
        answers = [answer(expression, document) for document in documents]
        assert bound.mask(columns, len(documents)).tolist() == [each is True for each in answers], text
        refused = compile_filter(f"not ({text})", PARSED)
        assert refused is not None
        assert refused.mask(columns, len(documents)).tolist() == [each is False for each in answers], text


FIRST = {name: values[0] for name, (values, _) in FIELDS.items()}


@pytest.mark.parametrize("name", sorted(COMPARABLE))
def test_every_value_against_every_literal_with_every_operator(name: str) -> None:
    top = name.partition(".")[0]
    documents = [FIRST | {top: value} for value in FIELDS[top][0]]
    literals = [("value", value) for value in [*COMPARABLE[name], None]]
    operators = ["=", "!=", "<", "<=", ">", ">="]
    check(documents, [("compare", op, field(name), literal) for op in operators for literal in literals])
    check(documents, [("in", field(name), [literal]) for literal in literals])
    check(documents, [("in", field(name), literals), ("in", field(name), literals[:-1] * 2), ("null", field(name))])


@pytest.mark.parametrize(("left", "right"), FIELD_PAIRS)
def test_every_value_of_a_field_against_every_one_of_another(left: str, right: str) -> None:
    tops = [name.partition(".")[0] for name in (left, right)]
    documents = [FIRST | {tops[0]: a, tops[1]: b} for a in FIELDS[tops[0]][0] for b in FIELDS[tops[1]][0]]
    check(documents, [("compare", op, field(left), field(right)) for op in ("=", "!=", "<", "<=", ">", ">=")])
