"""Conversions between stored values and logical ones: a pair of functions for each logical type.

*Stored* is the value of the type below (an ``int`` of microseconds, the ``bytes`` of a decimal). Both directions are
exact or refuse: nothing is rounded, cut off, or put into another time zone in silence. Times that are finer than their
type are truncated, towards the past, if a caller asks for it by ``truncates``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID

from cortado.errors import InvalidDocument
from cortado.schema.limits import DECIMAL_PRECISION_MAX, LONG_MAX, LONG_MIN
from cortado.schema.model import Logical, LogicalKind
from cortado.schema.values import (
    DATE_MAX,
    DATE_MIN,
    DAY_MICROS,
    EPOCH,
    EPOCH_ORDINAL,
    LOCAL_EPOCH,
    MICROS_MAX,
    MICROS_MIN,
    Duration,
    micros_of,
)
from cortado.schema.walk import shown

FromStored: TypeAlias = Callable[[Any], Any]
ToStored: TypeAlias = Callable[[Any], Any]

_UUID_TEXT: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_DURATION: Final = struct.Struct("<III")
_COUNT_MAX: Final = 2**32 - 1
_NUMBER_CHARACTERS: Final = 60
_EXACT: Final = Context(prec=2 * DECIMAL_PRECISION_MAX)


def from_stored(logical: Logical) -> FromStored:
    """Return the function from a stored value to its meaning. It raises InvalidDocument for one that has none."""
    match logical.kind:
        case LogicalKind.DECIMAL:
            return partial(_decimal_from_stored, 10**logical.precision, logical)
        case kind:
            return _FROM_STORED[kind]


def to_stored(logical: Logical, fixed_size: int | None = None, *, truncates: bool = False) -> ToStored:
    """Return the function from a Python value to the stored one (``bytes`` of ``fixed_size`` for a fixed).

    It raises InvalidDocument for a value of another type, or one that cannot be stored exactly. If it ``truncates``, a
    time that is finer than its type passes.
    """
    match logical.kind:
        case LogicalKind.DECIMAL:
            return partial(_decimal_to_stored, logical, fixed_size)
        case LogicalKind.UUID:
            return _uuid_to_text if fixed_size is None else _uuid_to_bytes
        case kind if truncates and kind in _TRUNCATING:
            return _TRUNCATING[kind]
        case kind:
            return _TO_STORED[kind]


# --- decimals and uuids ----------------------------------------------------------------------------------------


def unscaled_of(value: Decimal, logical: Logical) -> int:
    """Return the decimal as a count of its smallest unit. Raises InvalidDocument if precision or scale do not hold
    it."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidDocument("", "a decimal is a finite number", _number_text(value))
    if not any(digits):
        return 0
    if value.adjusted() + 1 > logical.precision - logical.scale:
        whole = logical.precision - logical.scale
        raise InvalidDocument("", f"more than {whole} digits before the point", _number_text(value))
    shift = exponent + logical.scale
    if shift < 0:
        if any(digits[shift:]) or -shift >= len(digits):
            raise InvalidDocument("", f"more than {logical.scale} digits after the point", _number_text(value))
        digits, shift = digits[:shift], 0
    unscaled = int(Decimal((0, digits, shift)))
    return -unscaled if sign else unscaled


def _number_text(value: Decimal) -> str:
    """Return the number as its writer knows it, also from JSON: 12.505, and not Decimal('12.505')."""
    text = str(value)
    return text if len(text) <= _NUMBER_CHARACTERS else text[: _NUMBER_CHARACTERS - 3] + "..."


def scaled(unscaled: int, logical: Logical) -> Decimal:
    """Return the decimal of a count of its smallest unit."""
    return Decimal(unscaled).scaleb(-logical.scale, _EXACT)


def _decimal_from_stored(bound: int, logical: Logical, stored: bytes) -> Decimal:
    if not stored:
        raise InvalidDocument("", "a decimal takes at least one byte")
    unscaled = int.from_bytes(stored, signed=True)
    if not -bound < unscaled < bound:
        raise InvalidDocument("", f"a decimal of more than {logical.precision} digits")
    return scaled(unscaled, logical)


def _decimal_to_stored(logical: Logical, fixed_size: int | None, value: Any) -> bytes:
    if not isinstance(value, Decimal):
        raise InvalidDocument("", "must be a Decimal", shown(value))
    unscaled = unscaled_of(value, logical)
    if fixed_size is None:
        fixed_size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return unscaled.to_bytes(fixed_size, signed=True)


def uuid_of(text: str) -> UUID:
    """Return the UUID that ``text`` writes in the one form of RFC 9562, of either case. Raises InvalidDocument."""
    if _UUID_TEXT.fullmatch(text) is None:
        raise InvalidDocument("", "not a UUID", shown(text))
    return UUID(text)


def _uuid_from_stored(stored: str | bytes) -> UUID:
    return uuid_of(stored) if isinstance(stored, str) else UUID(bytes=stored)


def _uuid_to_text(value: Any) -> str:
    if not isinstance(value, UUID):
        raise InvalidDocument("", "must be a UUID", shown(value))
    return str(value)


def _uuid_to_bytes(value: Any) -> bytes:
    if not isinstance(value, UUID):
        raise InvalidDocument("", "must be a UUID", shown(value))
    return value.bytes


# --- dates and times -------------------------------------------------------------------------------------------


def _date_from_stored(days: int) -> date:
    if not DATE_MIN <= days <= DATE_MAX:
        raise InvalidDocument("", "a date must be in the years 1 to 9999", f"{days} days since 1970")
    return date.fromordinal(EPOCH_ORDINAL + days)


def _date_to_stored(value: Any) -> int:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise InvalidDocument("", "must be a date", shown(value))
    return value.toordinal() - EPOCH_ORDINAL


def _time_from_millis(millis: int) -> time:
    return _time_from_micros(millis * 1000)


def _time_from_micros(micros: int) -> time:
    if not 0 <= micros < DAY_MICROS:
        raise InvalidDocument("", "a time of day must be from 0 to 24 hours, 24 excluded", f"{micros} microseconds")
    seconds, microsecond = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    return time(minutes // 60, minutes % 60, second, microsecond)


def _time_to_micros(value: Any) -> int:
    if not isinstance(value, time):
        raise InvalidDocument("", "must be a time", shown(value))
    if value.tzinfo is not None:
        raise InvalidDocument("", "a time of day has no zone", shown(value))
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _time_to_millis(value: Any) -> int:
    return _whole_millis(_time_to_micros(value), value)


def _timestamp_from_millis(millis: int) -> datetime:
    return _timestamp_from_micros(millis * 1000)


def _timestamp_from_micros(micros: int) -> datetime:
    if not MICROS_MIN <= micros <= MICROS_MAX:
        raise _out_of_years(micros)
    return EPOCH + timedelta(0, 0, micros)


def _local_from_millis(millis: int) -> datetime:
    return _local_from_micros(millis * 1000)


def _local_from_micros(micros: int) -> datetime:
    if not MICROS_MIN <= micros <= MICROS_MAX:
        raise _out_of_years(micros)
    return LOCAL_EPOCH + timedelta(0, 0, micros)


def _timestamp_to_micros(value: Any) -> int:
    moment = value if type(value) is datetime else _plain_datetime(value)
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidDocument("", "must be a datetime with a time zone", shown(value))
    micros = micros_of(moment)
    if not MICROS_MIN <= micros <= MICROS_MAX:
        raise _out_of_years(micros)
    return micros


def _timestamp_to_millis(value: Any) -> int:
    return _whole_millis(_timestamp_to_micros(value), value)


def _local_to_micros(value: Any) -> int:
    moment = value if type(value) is datetime else _plain_datetime(value)
    if moment.tzinfo is not None:
        raise InvalidDocument("", "must be a datetime without a time zone", shown(value))
    return micros_of(moment)


def _local_to_millis(value: Any) -> int:
    return _whole_millis(_local_to_micros(value), value)


def _plain_datetime(value: Any) -> datetime:
    """Return a subclass of datetime (pandas has one) as a datetime; refuse it if that would lose a part."""
    if not isinstance(value, datetime):
        raise InvalidDocument("", "must be a datetime", shown(value))
    try:
        plain = datetime.combine(value.date(), value.timetz())
    except (TypeError, ValueError):  # pandas' NaT is an instance of datetime without being a moment
        raise InvalidDocument("", "must be a datetime", shown(value)) from None
    if getattr(value, "nanosecond", 0):
        raise InvalidDocument("", "has nanoseconds, the type keeps microseconds", shown(value))
    return plain


def _without_nanos(value: Any) -> Any:
    """Return a datetime of pandas without its nanoseconds; any other value as it is."""
    # The nanosecond of pandas' NaT is a NaN, so NaT stays as it is.
    if isinstance(value, datetime) and getattr(value, "nanosecond", 0) > 0:
        return datetime.combine(value.date(), value.timetz())
    return value


def _whole_millis(micros: int, value: Any) -> int:
    millis, rest = divmod(micros, 1000)
    if rest:
        raise InvalidDocument(
            "", "has microseconds, the type keeps milliseconds: truncate it, or declare micros", shown(value)
        )
    return millis


def _out_of_years(micros: int) -> InvalidDocument:
    return InvalidDocument("", "a timestamp must be in the years 1 to 9999", f"{micros} microseconds since 1970")


def _nanos_from_stored(nanos: int) -> int:
    return nanos


def _nanos_to_stored(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidDocument("", "must be an int of nanoseconds", shown(value))
    if not LONG_MIN <= value <= LONG_MAX:
        raise InvalidDocument("", "does not fit into 64 bits", shown(value))
    return int(value)


def _duration_from_stored(stored: bytes) -> Duration:
    return Duration(*_DURATION.unpack(stored))


def _duration_to_stored(value: Any) -> bytes:
    if not isinstance(value, Duration):
        raise InvalidDocument("", "must be a Duration(months, days, milliseconds)", shown(value))
    for name, count in zip(Duration._fields, value, strict=True):
        if type(count) is not int or not 0 <= count <= _COUNT_MAX:
            raise InvalidDocument(name, f"must be an integer from 0 to {_COUNT_MAX}", shown(count))
    return _DURATION.pack(*value)


_FROM_STORED: Final[dict[LogicalKind, FromStored]] = {
    LogicalKind.UUID: _uuid_from_stored,
    LogicalKind.DATE: _date_from_stored,
    LogicalKind.TIME_MILLIS: _time_from_millis,
    LogicalKind.TIME_MICROS: _time_from_micros,
    LogicalKind.TIMESTAMP_MILLIS: _timestamp_from_millis,
    LogicalKind.TIMESTAMP_MICROS: _timestamp_from_micros,
    LogicalKind.TIMESTAMP_NANOS: _nanos_from_stored,
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: _local_from_millis,
    LogicalKind.LOCAL_TIMESTAMP_MICROS: _local_from_micros,
    LogicalKind.LOCAL_TIMESTAMP_NANOS: _nanos_from_stored,
    LogicalKind.DURATION: _duration_from_stored,
}

_TO_STORED: Final[dict[LogicalKind, ToStored]] = {
    LogicalKind.DATE: _date_to_stored,
    LogicalKind.TIME_MILLIS: _time_to_millis,
    LogicalKind.TIME_MICROS: _time_to_micros,
    LogicalKind.TIMESTAMP_MILLIS: _timestamp_to_millis,
    LogicalKind.TIMESTAMP_MICROS: _timestamp_to_micros,
    LogicalKind.TIMESTAMP_NANOS: _nanos_to_stored,
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: _local_to_millis,
    LogicalKind.LOCAL_TIMESTAMP_MICROS: _local_to_micros,
    LogicalKind.LOCAL_TIMESTAMP_NANOS: _nanos_to_stored,
    LogicalKind.DURATION: _duration_to_stored,
}

_TRUNCATING: Final[dict[LogicalKind, ToStored]] = {
    LogicalKind.TIME_MILLIS: lambda value: _time_to_micros(value) // 1000,
    LogicalKind.TIMESTAMP_MILLIS: lambda value: _timestamp_to_micros(_without_nanos(value)) // 1000,
    LogicalKind.TIMESTAMP_MICROS: lambda value: _timestamp_to_micros(_without_nanos(value)),
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: lambda value: _local_to_micros(_without_nanos(value)) // 1000,
    LogicalKind.LOCAL_TIMESTAMP_MICROS: lambda value: _local_to_micros(_without_nanos(value)),
}
