"""Dates, times and moments as text: RFC 3339, read in one way wherever programs or people write them.

::

    2013-01-31                      a date
    23:59:59.5                      a time of the day, with up to nine digits of a second's fraction
    2013-01-31T23:59:59.5+01:00     a moment, with Z or an offset: an instant
    2013-01-31T23:59:59.5           a moment without a zone: local

As RFC 3339 allows, ``t`` and ``z`` may stand for ``T`` and ``Z``, and a space for ``T``. The seconds may be left out.
Documents, keys, bounds, filters, imports and times to read at all take these forms and no others. They differ in one
thing: a stored value has no digit behind the microseconds (:func:`exact_time` and its like), while filters compare
nanoseconds and a time to read at is cut.

Hours are 00 to 23, minutes 00 to 59, in an offset too. The second 60 is refused, since no value here could hold it.
Python's ``fromisoformat`` takes more: ``+01:60`` as two hours, weeks, forms without dashes, digits that it cuts off. So
nothing else of this project calls it.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T", time, datetime)

_DATE: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_HOUR: Final = "(?:[01][0-9]|2[0-3])"
_SIXTY: Final = "[0-5][0-9]"
_TWO: Final = "[0-9]{2}"
_FRACTION: Final = r"(?:\.([0-9]{1,9}))?"


def _time(hour: str, sixty: str) -> str:
    return f"{hour}:{sixty}(?::{sixty}{_FRACTION})?"


def _moment(hour: str, sixty: str) -> str:
    return f"{_DATE}[Tt ]{_time(hour, sixty)}(?:[Zz]|[+-]{hour}:{sixty})?"


_DATES: Final = re.compile(_DATE)
_TIMES: Final = re.compile(_time(_HOUR, _SIXTY))
_MOMENTS: Final = re.compile(_moment(_HOUR, _SIXTY))
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


def parse_time_of_day(text: str) -> TimeOfDay:
    """Raises WrongForm, Impossible."""
    match = _TIMES.fullmatch(text)
    if match is None:
        raise _refusal(_time(_TWO, _TWO), text)
    return TimeOfDay(time.fromisoformat(text), _below_ns(match[1]))


def parse_moment(text: str) -> Moment:
    """A moment with a zone or without. Raises WrongForm, Impossible."""
    match = _MOMENTS.fullmatch(text)
    if match is None:
        raise _refusal(_moment(_TWO, _TWO), text)
    try:
        return Moment(datetime.fromisoformat(text.upper()), _below_ns(match[1]))
    except ValueError as impossible:
        raise Impossible(impossible) from None


def parse_instant(text: str) -> Moment:
    """A moment with a zone, in UTC and of the years 1 to 9999 there. Raises WrongForm, NoZone, Impossible."""
    moment, below_ns = parse_moment(text)
    if moment.tzinfo is None:
        raise NoZone
    try:
        return Moment(moment.astimezone(UTC), below_ns)
    except OverflowError:
        raise Impossible("it lies beyond the years 1 to 9999 in UTC") from None


def exact_time(text: str) -> time:
    """A time of the day that a field can hold. Raises WrongForm, Impossible."""
    return _held(*parse_time_of_day(text))


def exact_instant(text: str) -> datetime:
    """A moment with a zone, in UTC, that a field or a key can hold. Raises WrongForm, NoZone, Impossible."""
    return _held(*parse_instant(text))


def exact_local(text: str) -> datetime:
    """A moment without a zone that a field can hold. Raises WrongForm, Impossible."""
    moment = _held(*parse_moment(text))
    if moment.tzinfo is not None:
        raise WrongForm
    return moment


def _held(value: T, below_ns: int) -> T:
    if below_ns:
        raise Impossible("digits behind the microseconds, the first six, must be zeros")
    return value


def _below_ns(fraction: str | None) -> int:
    return int(fraction[6:].ljust(3, "0")) if fraction is not None and len(fraction) > 6 else 0


def _refusal(like: str, text: str) -> WrongForm | Impossible:
    if re.fullmatch(like, text) is None:
        return WrongForm()
    return Impossible("hours must be 00 to 23, minutes and seconds 00 to 59, in an offset too")
