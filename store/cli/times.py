"""Times as users give them on a command line.

::

    0.1763643600000.2                  a timestamp
    2025-11-20T13:00:00Z               an instant
    -5m, -90s, -12h, -7d               so long ago, by this machine's clock
    12:00Z, 13:00:00+01:00             that time today, on the calendar of its zone
    2025-11-20                         the midnight in UTC with which that day begins
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Final, TypeAlias

from cortado.errors import InvalidArgument
from cortado.rfc3339 import WrongForm, parse_date, parse_moment
from cortado.store.clock.retentions import parse_retention
from cortado.store.clock.text import parse_time
from cortado.store.clock.timestamp import Timestamp

Moment: TypeAlias = Timestamp | datetime

FORMS: Final = "a timestamp (0.1763643600000.2), a time (2025-11-20T13:00:00Z, today's 13:00Z), a day, or -5m"

_AGO: Final = re.compile(r"-([0-9]{1,15}(?:ms|s|m|h|d))")
_TIME: Final = re.compile(r"[0-9]{2}:[0-9]{2}\S*")
_SOME_DAY: Final = "2000-01-01"


def moment(option: str) -> Callable[[str], Moment]:
    """Return a parser of an option's time, which names the option and the value in its refusal."""
    return lambda text: moment_of_text(text, datetime.now(UTC), option)


def moment_of_text(text: str, now: datetime, option: str) -> Moment:
    """Return the timestamp or the instant that ``text`` means at the instant ``now``. Raises InvalidArgument."""
    stripped = text.strip()
    if ago := _AGO.fullmatch(stripped):
        return _ago(ago[1], now, option)
    if _TIME.fullmatch(stripped):
        return _today(stripped, now, option)
    try:
        return datetime.combine(parse_date(stripped), time(), UTC)
    except WrongForm:
        return parse_time(text, option)
    except ValueError as impossible:
        raise InvalidArgument(option, f"is no day of the calendar: {impossible}", text) from None


def _ago(duration: str, now: datetime, option: str) -> datetime:
    try:
        return now - timedelta(milliseconds=parse_retention(duration) or 0)
    except OverflowError:
        raise InvalidArgument(option, "lies before 1970", f"-{duration}") from None


def _today(text: str, now: datetime, option: str) -> datetime:
    try:
        parse_time(f"{_SOME_DAY}T{text}", option)
    except InvalidArgument as error:
        raise InvalidArgument(option, error.problem, text) from None
    # The zone says which day today is.
    on_some_day = parse_moment(f"{_SOME_DAY}T{text}").moment
    today = now.astimezone(on_some_day.tzinfo).date()
    found = datetime.combine(today, on_some_day.timetz()).astimezone(UTC)
    if found > now:
        problem = f"is still to come today: name the day, such as {today - timedelta(days=1)}T{text}"
        raise InvalidArgument(option, problem, text)
    return found
