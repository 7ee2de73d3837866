"""Names: which are allowed, and that every refusal names the rule and the field."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument
from cortado.store.keys import names


@pytest.mark.parametrize("good", ["a", "flights", "Flights_2", "2013", "a-b", "_x", "x" * 64])
def test_plain_names_are_taken_as_they_are(good: str) -> None:
    assert names.check_database(good) == good
    assert names.check_table(good) == good
    assert names.check_index(good) == good
    assert names.check_namespace(good) == good


@pytest.mark.parametrize("bad", ["", "-a", "a b", "a.b", "ü", "a/b", "a\x00", "a\n", "x" * 65])
def test_other_names_are_refused_by_field(bad: str) -> None:
    for check, field in (
        (names.check_database, "database"),
        (names.check_table, "table"),
        (names.check_index, "index"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            check(bad)
        assert refused.value.field == field


def test_a_namespace_and_a_subject_may_hold_dots_but_not_begin_with_one() -> None:
    assert names.check_namespace("app.cache") == "app.cache"
    assert names.check_subject("db.table") == "db.table"
    for check in (names.check_namespace, names.check_subject):
        with pytest.raises(InvalidArgument):
            check(".hidden")


def test_the_longest_default_subject_is_a_subject() -> None:
    names.check_subject("d" * names.NAME_LENGTH_MAX + "." + "t" * names.NAME_LENGTH_MAX)


def test_a_table_s_full_name_splits_at_its_dot() -> None:
    assert names.split_table_name("air.flights") == ("air", "flights")
    for bad in ("flights", "a.b.c", ".b", "a."):
        with pytest.raises(InvalidArgument) as refused:
            names.split_table_name(bad)
        assert refused.value.field == "table"


def test_an_error_shows_a_long_name_cut() -> None:
    with pytest.raises(InvalidArgument) as refused:
        names.check_database("x" * 1_000_000)
    assert len(str(refused.value)) < 300
    assert "1000000 characters" in str(refused.value)
