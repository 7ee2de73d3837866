"""Parsing: the meaning of a filter's text, and the places of errors."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cortado.errors import InvalidFilter
from cortado.store.filter.expression import (
    And,
    Compare,
    In,
    IsNull,
    Literal,
    LiteralKind,
    Not,
    Operator,
    Or,
    Path,
    StartsWith,
    Truth,
)
from cortado.store.filter.parse import DEPTH_MAX, NODES_MAX, TEXT_BYTES_MAX, parse_filter


def number(value: str) -> Literal:
    return Literal(LiteralKind.NUMBER, Decimal(value))


A, B, C = Path(("a",)), Path(("b",)), Path(("c",))


def test_and_binds_closer_than_or_and_not_closer_than_both() -> None:
    parsed = parse_filter("a or b and not c")
    assert parsed == Or((Truth(A), And((Truth(B), Not(Truth(C))))))


def test_parentheses_come_first() -> None:
    assert parse_filter("not (a or b) and c") == And((Not(Or((Truth(A), Truth(B)))), Truth(C)))


def test_keywords_are_known_in_any_case_and_names_are_not() -> None:
    assert parse_filter("A IS NOT NULL AnD b Is nUlL") == And((Not(IsNull(Path(("A",)))), IsNull(B)))


def test_both_spellings_of_equality_are_one() -> None:
    assert parse_filter("a = 1") == parse_filter("a == 1") == Compare(Operator.EQ, A, number("1"))
    assert parse_filter("a != 1") == parse_filter("a <> 1") == Compare(Operator.NE, A, number("1"))


def test_between_is_two_comparisons() -> None:
    assert parse_filter("a between 1 and 2 and b") == And(
        (And((Compare(Operator.GE, A, number("1")), Compare(Operator.LE, A, number("2")))), Truth(B))
    )


def test_each_predicate_has_its_negation() -> None:
    assert parse_filter("a not in (1, null)") == Not(In(A, (number("1"), Literal(LiteralKind.NULL, None))))
    assert parse_filter("a not starts with 'x'") == Not(StartsWith(A, Literal(LiteralKind.STRING, "x")))
    assert parse_filter("a not between 1 and 2") == Not(parse_filter("a between 1 and 2"))
    assert parse_filter("not not not a") == Not(Truth(A))


def test_words_of_literals_are_names_where_no_string_follows() -> None:
    for word in ("date", "time", "timestamp", "decimal", "double", "uuid", "x", "starts", "with"):
        assert parse_filter(f"{word} = 1") == Compare(Operator.EQ, Path((word,)), number("1"))


def test_quoted_names_may_be_keywords_and_parts_of_paths() -> None:
    expected = Compare(Operator.EQ, Path(("in", "not", "null")), number("1"))
    assert parse_filter('"in".`not`.null = 1') == expected


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("'it''s'", LiteralKind.STRING, "it's"),
        ("''", LiteralKind.STRING, ""),
        ("'\n'", LiteralKind.STRING, "\n"),
        ("-1.50", LiteralKind.NUMBER, Decimal("-1.50")),
        ("+6.02e23", LiteralKind.NUMBER, Decimal("6.02e23")),
        ("decimal '0.1'", LiteralKind.NUMBER, Decimal("0.1")),
        ("double '-infinity'", LiteralKind.DOUBLE, float("-inf")),
        ("x'00Ff'", LiteralKind.BYTES, b"\x00\xff"),
        ("X''", LiteralKind.BYTES, b""),
        ("date '1969-12-31'", LiteralKind.DATE, -1),
        ("time '00:01'", LiteralKind.TIME, 60_000_000_000),
        ("time '00:00:01.5'", LiteralKind.TIME, 1_500_000_000),
        ("timestamp '1970-01-01T00:00:00Z'", LiteralKind.TIMESTAMP, 0),
        ("timestamp '1970-01-01 01:00:00.000000001+01:00'", LiteralKind.TIMESTAMP, 1),
        ("timestamp '1969-12-31T23:00:00-01:00'", LiteralKind.TIMESTAMP, 0),
        ("timestamp '1970-01-01T00:00:01'", LiteralKind.LOCAL_TIMESTAMP, 1_000_000_000),
    ],
)
def test_literals_are_exact(text: str, kind: LiteralKind, value: object) -> None:
    assert parse_filter(f"a = {text}") == Compare(Operator.EQ, A, Literal(kind, value))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "expected a field or a value, found the end"),
        ("a =", 3, "expected a field or a value, found the end"),
        ("a = 1 b", 6, "expected and, or, or the end, found b"),
        ("a = 1)", 5, "found )"),
        ("(a = 1", 6, "expected ')', found the end"),
        ("a = 'x", 4, "a string has no end"),
        ('a = "x', 4, "a quoted name has no end"),
        ("a = 12abc", 4, "malformed number 12abc"),
        ("a = 1 ; drop", 6, "unexpected character ';'"),
        ("a = b c", 6, "found c"),
        ("and", 0, 'a field of that name is "and"'),
        ("a in 1", 5, "expected '(', found 1"),
        ("a in ()", 6, "expected a value, found )"),
        ("a in (1 2)", 8, "expected ',' or ')', found 2"),
        ("a in (b)", 6, "expected a value, found b"),
        ('a in ("b")', 6, "a string stands in single quotes"),
        ("1 in (1)", 0, "expected a field before in"),
        ("a is 1", 5, "expected null or not null, found 1"),
        ("a is not 1", 9, "expected null, found 1"),
        ("a not = 1", 6, "expected in, between or starts with, found ="),
        ("a starts 'x'", 9, "expected with, found 'x'"),
        ("a between 1 or 2", 12, "expected and, found or"),
        ("a like 'x%'", 2, "starts with"),
        ("a.", 2, "expected a name, found the end"),
        ("5", 1, "expected a comparison, found the end"),
        ("a = date '2013-02-30'", 4, "is no date"),
        ("a = date '2013-2-3'", 4, "must look like 2013-01-01"),
        ("a = time '24:00'", 4, "is no time of day"),
        ("a = timestamp '2013-01-01'", 4, "must look like"),
        (
            "a = timestamp '2013-01-01T00:00:00+25:00'",
            4,
            "is no moment: hours must be 00 to 23, minutes and seconds 00 to 59, in an offset too",
        ),
        ("a = uuid '123'", 4, "must look like"),
        ("a = x'0'", 4, "pairs of hexadecimal digits"),
        ("a = x'0 00 0'", 4, "pairs of hexadecimal digits"),
        ("a = double '1e999'", 4, "exponent"),
        ("a = double '1e400'", 4, "range of a double"),
        ("a = decimal 'x'", 4, "must look like"),
        ("a = 1e999999999", 4, "exponent"),
        ("a = \udc80", 4, "not valid Unicode"),
    ],
)
def test_a_wrong_filter_is_refused_where_it_is_wrong(text: str, position: int, problem: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        parse_filter(text)
    assert refused.value.position == position
    assert problem in refused.value.problem
    assert f"at character {position}" in str(refused.value)


def test_limits_are_met_to_the_last_and_not_beyond() -> None:
    parse_filter("(" * DEPTH_MAX + "a" + ")" * DEPTH_MAX)
    parse_filter(f"a in ({', '.join(['1'] * (NODES_MAX - 2))})")
    parse_filter("a" + " " * (TEXT_BYTES_MAX - 1))
    parse_filter(".".join(["a"] * DEPTH_MAX))
    parse_filter("a = " + "1" * 100)
    parse_filter("a = 1e400")
    for beyond, problem in (
        ("(" * (DEPTH_MAX + 1) + "a" + ")" * (DEPTH_MAX + 1), "64 parentheses"),
        (f"a in ({', '.join(['1'] * (NODES_MAX - 1))})", "more than 1000"),
        ("a" + " " * TEXT_BYTES_MAX, "16384 bytes"),
        (".".join(["a"] * (DEPTH_MAX + 1)), "64 names"),
        ("a = " + "1" * 101, "100 characters"),
        ("a = 1e401", "exponent"),
    ):
        with pytest.raises(InvalidFilter, match=problem):
            parse_filter(beyond)


@pytest.mark.parametrize("filler", ["(", "not ", "a or ", "a.", "'", "x'", "1", "a in (1,", "a between 1 and ", "((a)"])
def test_hostile_text_is_refused_and_never_exhausts_the_stack(filler: str) -> None:
    with pytest.raises(InvalidFilter):
        parse_filter((filler * TEXT_BYTES_MAX)[:TEXT_BYTES_MAX])


def test_a_long_row_of_nots_is_one_or_none() -> None:
    assert parse_filter("not " * 4000 + "a") == Truth(A)
