"""The time to read at as users type it: a timestamp of ours, or an instant of the calendar.

::

    0.1763643600000.2              a timestamp, as replies and etags show it: exactly this point
    2025-11-20T13:00:00Z           RFC 3339: everything committed in the milliseconds up to and including this one
    2025-11-20 14:00:00.250+01:00  the same instant with a space, a fraction and an offset, a quarter of a second on

An instant has no epoch: the server reads it in the current one. A zone is required, because "local" means one thing to
the user and another to the server.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from cortado.errors import InvalidArgument
from cortado.rfc3339 import Impossible, NoZone, WrongForm, parse_instant
from cortado.store.clock.timestamp import Timestamp

_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXAMPLES: Final = "such as 2025-11-20T13:00:00Z, or a timestamp such as 0.1763643600000.2"


def parse_time(text: str, field: str = "at") -> Timestamp | datetime:
    """Return a timestamp, or an instant in UTC (its fraction cut to microseconds). Raises InvalidArgument naming
    ``field``."""
    stripped = text.strip()
    if re.fullmatch(r"[\d.]+", stripped, re.ASCII):
        return Timestamp.parse(stripped, field)
    try:
        return parse_instant(stripped).moment
    except NoZone:
        raise InvalidArgument(field, "must name its zone: add Z for UTC, or an offset such as +01:00", text) from None
    except WrongForm:
        raise InvalidArgument(field, f"must be a time {_EXAMPLES}", text[:80]) from None
    except Impossible as impossible:
        raise InvalidArgument(field, f"is no time of the calendar: {impossible}", text) from None


def wall_ms_of(moment: datetime, field: str = "at") -> int:
    """Milliseconds since 1970 of an instant, rounded down. Raises InvalidArgument without a zone or before 1970."""
    if moment.utcoffset() is None:
        raise InvalidArgument(field, "must have a time zone", str(moment))
    wall_ms = (moment - _1970) // timedelta(milliseconds=1)
    if wall_ms < 0:
        raise InvalidArgument(field, "must not be before 1970", str(moment))
    return wall_ms
