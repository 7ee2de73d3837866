"""A document's values in Python, and the stored numbers behind dates and times.

========================  ==================================================================================
null, boolean             ``None``, ``bool``
int, long                 ``int``, never a ``bool``
float, double             ``float`` (an ``int`` is taken if it is exact)
string, enum              ``str``
bytes, fixed              ``bytes``
array, map, record        ``list``, ``dict``, ``dict``
decimal                   ``decimal.Decimal``
uuid                      ``uuid.UUID``
date                      ``datetime.date``
time-*                    ``datetime.time`` without zone
timestamp-millis/-micros  ``datetime.datetime`` in UTC (any zone is taken); ``int`` nanoseconds for -nanos
local-timestamp-*         ``datetime.datetime`` without zone; ``int`` nanoseconds for -nanos
duration                  :class:`Duration`
========================  ==================================================================================

A union's value is that of its branch. Only if branches share a Python type and differ in meaning (two records; a string
and an enum), it is a :class:`Branch`, which names its branch; any union's value may be given as one.

Dates and timestamps are bounded to the years 1 to 9999, so that every client can show every value of a body.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple


class Branch(NamedTuple):
    """A value of the branch ``name`` of a union (see :func:`cortado.schema.names.branch_name`)."""

    name: str
    value: Any


class Duration(NamedTuple):
    """Avro's duration: three counts, each from 0 to 2^32 - 1, that do not convert into each other."""

    months: int
    days: int
    milliseconds: int


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LOCAL_EPOCH: Final = datetime(1970, 1, 1)
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()

DATE_MIN: Final = date.min.toordinal() - EPOCH_ORDINAL
DATE_MAX: Final = date.max.toordinal() - EPOCH_ORDINAL

DAY_MICROS: Final = 86_400_000_000
MICROS_MIN: Final = DATE_MIN * DAY_MICROS
MICROS_MAX: Final = (DATE_MAX + 1) * DAY_MICROS - 1


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970 of a moment in UTC, or of a local one on its own calendar. Exact."""
    since = moment - (LOCAL_EPOCH if moment.tzinfo is None else EPOCH)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
