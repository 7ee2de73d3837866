"""Dates, times and moments as text: RFC 3339, read in one way wherever programs or people write them.

::

    2013-01-31                      a date
    23:59:59.5                      a time of the day, with up to nine digits of a second's fraction
    2013-01-31T23:59:59.5+01:00     a moment, with Z or an offset: an instant
    2013-01-31T23:59:59.5           a moment without a zone: local

Hours are 00 to 23, minutes 00 to 59, in an offset too. The second 60 is refused, since no value here could hold it.
Python's ``fromisoformat`` takes more: ``+01:60`` as two hours, weeks, forms without dashes, digits that it cuts off. So
nothing else of this project calls it.

``typed`` texts come from a person's hand, and may also have a space or ``t`` before the time, ``z``, and no seconds.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

_DATE: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_HOUR: Final = "(?:[01][0-9]|2[0-3])"
_SIXTY: Final = "[0-5][0-9]"
_TWO: Final = "[0-9]{2}"
_FRACTION: Final = r"(?:\.([0-9]{1,9}))?"


def _time(hour: str, sixty: str, *, typed: bool) -> str:
    seconds = f":{sixty}{_FRACTION}"
    return f"{hour}:{sixty}(?:{seconds})?" if typed else f"{hour}:{sixty}{seconds}"


def _moment(hour: str, sixty: str, *, typed: bool) -> str:
    between, z = ("[Tt ]", "[Zz]") if typed else ("T", "Z")
    return f"{_DATE}{between}{_time(hour, sixty, typed=typed)}({z}|[+-]{hour}:{sixty})?"


_DATES: Final = re.compile(_DATE)
_TIMES: Final = {typed: re.compile(_time(_HOUR, _SIXTY, typed=typed)) for typed in (False, True)}
_MOMENTS: Final = {typed: re.compile(_moment(_HOUR, _SIXTY, typed=typed)) for typed in (False, True)}
_1970: Final = datetime(1970, 1, 1)
_1970_UTC: Final = _1970.replace(tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class WrongForm(ValueError):
    """A text does not look like what it should be."""


class NoZone(WrongForm):
    """An instant lacks its zone."""


class Impossible(ValueError):
    """A text looks right, and there is no such day, time or offset."""


class TimeOfDay(NamedTuple):
    """``below_ns``: nanoseconds, 0 to 999, that ``time`` cannot hold."""

    time: time
    below_ns: int

    @property
    def ns(self) -> int:
        """Nanoseconds since midnight."""
        seconds = (self.time.hour * 60 + self.time.minute) * 60 + self.time.second
        return (seconds * 1_000_000 + self.time.microsecond) * 1_000 + self.below_ns


class Moment(NamedTuple):
    """``moment`` has a time zone where the text has one. ``below_ns``: nanoseconds, 0 to 999, that it cannot hold."""

    moment: datetime
    below_ns: int

    @property
    def ns(self) -> int:
        """Nanoseconds since 1970, in UTC or, without a zone, local."""
        epoch = _1970 if self.moment.tzinfo is None else _1970_UTC
        return (self.moment - epoch) // _MICROSECOND * 1_000 + self.below_ns


def parse_date(text: str) -> date:
    """A day of the years 1 to 9999. Raises WrongForm, Impossible."""
    if _DATES.fullmatch(text) is None:
        raise WrongForm
    try:
        return date.fromisoformat(text)
    except ValueError as impossible:
        raise Impossible(impossible) from None


def parse_time_of_day(text: str, *, typed: bool = False) -> TimeOfDay:
    """Raises WrongForm, Impossible."""
    match = _TIMES[typed].fullmatch(text)
    if match is None:
        raise _refusal(_time(_TWO, _TWO, typed=typed), text)
    return TimeOfDay(time.fromisoformat(text), _below_ns(match[1]))


def parse_moment(text: str, *, typed: bool = False) -> Moment:
    """A moment with a zone or without. Raises WrongForm, Impossible."""
    match = _MOMENTS[typed].fullmatch(text)
    if match is None:
        raise _refusal(_moment(_TWO, _TWO, typed=typed), text)
    try:
        return Moment(datetime.fromisoformat(text.upper() if typed else text), _below_ns(match[1]))
    except ValueError as impossible:
        raise Impossible(impossible) from None


def parse_instant(text: str, *, typed: bool = False) -> Moment:
    """A moment with a zone, in UTC and of the years 1 to 9999 there. Raises WrongForm, NoZone, Impossible."""
    moment, below_ns = parse_moment(text, typed=typed)
    if moment.tzinfo is None:
        raise NoZone
    try:
        return Moment(moment.astimezone(UTC), below_ns)
    except OverflowError:
        raise Impossible("it lies beyond the years 1 to 9999 in UTC") from None


def _below_ns(fraction: str | None) -> int:
    return int(fraction[6:].ljust(3, "0")) if fraction is not None and len(fraction) > 6 else 0


def _refusal(like: str, text: str) -> WrongForm | Impossible:
    if re.fullmatch(like, text) is None:
        return WrongForm()
    return Impossible("hours must be 00 to 23, minutes and seconds 00 to 59, in an offset too")
