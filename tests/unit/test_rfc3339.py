"""Texts of dates, times and moments are read in one way, wherever they come from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import CortadoError
from cortado.rfc3339 import (
    Impossible,
    NoZone,
    WrongForm,
    parse_date,
    parse_instant,
    parse_moment,
    parse_time_of_day,
)
from cortado.schema.json_format import from_json_value
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.schema.text_format import from_texts
from cortado.store.cli.times import moment_of_text
from cortado.store.clock.text import parse_time
from cortado.store.filter.literals import Malformed, time_of_day_ns, timestamp_ns
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.transfer.key_text import key_of_json, parse_bound, parse_part
from pyspark_cortado.keys import key_part

ROOT = Path(__file__).parents[2]
PART = KeyPart("at", KeyType.TIMESTAMP)
NOW = datetime(2026, 11, 28, tzinfo=UTC)


def schema(name: str) -> Schema:
    base = "int" if name == "time-millis" else "long"
    fields = [{"name": "at", "type": {"type": base, "logicalType": name}}]
    return parse_schema(json.dumps({"type": "record", "name": "R", "fields": fields}))


def of_document(name: str) -> Callable[[str], Any]:
    made = schema(name)
    return lambda text: from_json_value(made, {"at": text})["at"]


def of_text(name: str) -> Callable[[str], Any]:
    """Return a parser of one field, as CSV has it, and an argument of a command."""
    made = schema(name)
    return lambda text: from_texts(made, {"at": text})["at"]


READERS: dict[str, Callable[[str], Any]] = {
    "document": of_document("timestamp-micros"),
    "field of CSV": of_text("timestamp-micros"),
    "at": parse_time,
    "at of a command line": lambda text: moment_of_text(text, NOW, "--at"),
    "filter": timestamp_ns,
    "key": lambda text: parse_part(text, PART),
    "key of JSON": lambda text: key_of_json([text], [PART], "key"),
    "bound": lambda text: parse_bound(json.dumps([text]), [PART], "--start"),
    "bound of Spark": lambda text: key_part(text, PART, "start"),
}
CUT = ("at", "at of a command line")
"""Digits behind the microseconds are cut there, and spaces around the text are not of it."""


def ns_of(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1_000


IMPOSSIBLE = [
    "2018-02-14T00:28:07+01:60",
    "2018-02-14T00:28:07-00:60",
    "2018-02-14T00:28:07+00:99",
    "2018-02-14T00:28:07+22:99",
    "2018-02-14T00:28:07+24:00",
    "2018-02-14T24:00:00Z",
    "2018-02-14T00:60:00Z",
    "2018-02-14T00:28:60Z",
    "2018-02-30T00:28:07Z",
    "0000-01-01T00:00:00Z",
]
OF_ANOTHER_FORM = [
    "2018-02-14T00:28:07+0100",
    "2018-02-14T00:28:07+01",
    "2018-02-14T00:28:07+01:00:30",
    "20180214T002807Z",
    "2018-W07-3T00:28:07Z",
    "2018-02-14T00:28:07,5Z",
    "2018-02-14_00:28:07Z",
    "2018-02-14T00:28:07.Z",
    "2018-02-14T00:28:07.1234567890Z",
    "2018-02-14T00:28:07 Z",
    "2018-02-14T00:28:07Z\n",
    "\u0662\u066018-02-14T00:28:07Z",
]


@pytest.mark.parametrize("text", [*IMPOSSIBLE, *OF_ANOTHER_FORM])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_moment_is_refused_everywhere(reader: str, text: str) -> None:
    if reader in CUT and text != text.strip():
        return
    with pytest.raises((CortadoError, Malformed)):
        READERS[reader](text)


FORMS = {
    "2018-02-14T00:28:07.25+00:59": datetime(2018, 2, 13, 23, 29, 7, 250_000, UTC),
    "2018-02-14T00:28:07.123456Z": datetime(2018, 2, 14, 0, 28, 7, 123_456, UTC),
    "2018-02-14T00:28:07.123456000Z": datetime(2018, 2, 14, 0, 28, 7, 123_456, UTC),
    "2018-02-14 00:28:07Z": datetime(2018, 2, 14, 0, 28, 7, tzinfo=UTC),
    "2018-02-14t00:28:07z": datetime(2018, 2, 14, 0, 28, 7, tzinfo=UTC),
    "2018-02-14T00:28:07z": datetime(2018, 2, 14, 0, 28, 7, tzinfo=UTC),
    "2018-02-14T00:28Z": datetime(2018, 2, 14, 0, 28, tzinfo=UTC),
    "2018-02-14 00:28-00:00": datetime(2018, 2, 14, 0, 28, tzinfo=UTC),
}


@pytest.mark.parametrize("text", FORMS)
@pytest.mark.parametrize("reader", READERS)
def test_one_form_is_one_moment_everywhere(reader: str, text: str) -> None:
    moment = FORMS[text]
    assert READERS[reader](text) in (moment, (moment,), (ns_of(moment), True))


@pytest.mark.parametrize("reader", READERS)
def test_a_digit_behind_the_microseconds_is_refused_by_name_where_it_would_be_lost(reader: str) -> None:
    text, cut = "2018-02-14T00:28:07.1234567Z", datetime(2018, 2, 14, 0, 28, 7, 123_456, UTC)
    if reader in CUT:
        assert READERS[reader](text) == cut
    elif reader == "filter":
        assert READERS[reader](text) == (ns_of(cut) + 700, True)
    else:
        with pytest.raises(CortadoError, match="digits behind the microseconds, the first six, must be zeros"):
            READERS[reader](text)


LOCALS: dict[str, Callable[[str], Any]] = {
    "document": of_document("local-timestamp-micros"),
    "field of CSV": of_text("local-timestamp-micros"),
    "filter": timestamp_ns,
}


@pytest.mark.parametrize(
    "text", ["2018-02-14T00:28:00", "2018-02-14 00:28:00.0", "2018-02-14t00:28", "2018-02-14 00:28"]
)
@pytest.mark.parametrize("reader", LOCALS)
def test_one_form_without_a_zone_is_one_moment_everywhere(reader: str, text: str) -> None:
    moment = datetime(2018, 2, 14, 0, 28)
    assert LOCALS[reader](text) in (moment, (ns_of(moment.replace(tzinfo=UTC)), False))


TIMES: dict[str, Callable[[str], Any]] = {
    "document": of_document("time-micros"),
    "field of CSV": of_text("time-micros"),
    "filter": time_of_day_ns,
}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("23:59:59.5", time(23, 59, 59, 500_000)),
        ("23:59:59.500000000", time(23, 59, 59, 500_000)),
        ("23:59", time(23, 59)),
        *((each, None) for each in ("24:00", "23:60", "23:59:60", "23", "T23:59", "23:59Z", " 23:59", "23:59:59.")),
    ],
)
@pytest.mark.parametrize("reader", TIMES)
def test_one_time_of_the_day_is_the_same_one_everywhere(reader: str, text: str, meant: time | None) -> None:
    if meant is None:
        with pytest.raises((CortadoError, Malformed)):
            TIMES[reader](text)
    else:
        assert TIMES[reader](text) in (meant, ns_of(datetime.combine(datetime(1970, 1, 1), meant, UTC)))


@pytest.mark.parametrize("text", IMPOSSIBLE)
def test_what_looks_right_and_cannot_be_is_impossible(text: str) -> None:
    with pytest.raises(Impossible):
        parse_moment(text)


@pytest.mark.parametrize("text", OF_ANOTHER_FORM)
def test_what_looks_wrong_is_of_another_form(text: str) -> None:
    with pytest.raises(WrongForm):
        parse_moment(text)


def test_digits_below_a_microsecond_are_told() -> None:
    assert parse_time_of_day("23:59:59.123456789") == (time(23, 59, 59, 123_456), 789)
    assert parse_time_of_day("00:00:01.0000001").ns == 1_000_000_100
    assert parse_moment("1970-01-01T00:00:00.000000001Z").ns == 1
    assert parse_moment("1969-12-31T23:59:59.999999999").ns == -1


def test_an_instant_has_a_zone_and_lies_within_the_years_of_the_calendar() -> None:
    with pytest.raises(NoZone):
        parse_instant("2018-02-14T00:28:07")
    for text in ("0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"):
        assert parse_moment(text)
        with pytest.raises(Impossible, match="years 1 to 9999"):
            parse_instant(text)


@given(st.dates(), st.times(), st.none() | st.integers(-1439, 1439))
def test_what_python_writes_reads_back(day: date, clock: time, offset_minutes: int | None) -> None:
    zone = None if offset_minutes is None else timezone(timedelta(minutes=offset_minutes))
    moment = datetime.combine(day, clock, zone)
    assert parse_moment(moment.isoformat()) == (moment, 0)
    assert parse_date(day.isoformat()) == day
    assert parse_time_of_day(clock.isoformat()) == (clock, 0)


@given(st.text("0123456789-+:.TZtz ", max_size=30))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    for parse in (parse_date, parse_time_of_day, parse_moment, parse_instant):
        with suppress(WrongForm, Impossible):
            parse(text)


def test_no_other_place_reads_times() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "spark_connector").rglob("*.py")]
    for folder in ("store", "schema", "raft"):
        sources += (ROOT / folder).rglob("*.py")
    readers = {path.resolve() for path in sources if re.search(r"fromisoformat\(|strptime\(", path.read_text())}
    assert {path.relative_to(ROOT).as_posix() for path in readers} == {"src/cortado/rfc3339.py"}
