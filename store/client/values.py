"""Python values and the messages that carry them: keys, conditions, timestamps.

=============  ==============================================  ==================================
key part       Python value                                    ``cortado.v1.Value``
=============  ==============================================  ==================================
bool           ``bool``                                        ``bool``
int64          ``int``                                         ``int64``
float64        ``float``, or an ``int`` that it holds exactly  ``float64``
bytes          ``bytes``                                       ``bytes``
string         ``str``                                         ``string``
timestamp      ``datetime`` with a time zone, or ``int``       ``timestamp_micros``
               (microseconds since 1970); read as UTC
date           ``date``                                        ``date_days``
decimal        ``Decimal`` or ``int``                          ``decimal``, as plain text
uuid           ``UUID``                                        ``uuid``, 16 bytes
null           ``None``                                        ``null``
=============  ==============================================  ==================================

Nothing is coerced beyond this table: text is not a number, and a ``datetime`` without a zone is not a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, Self, TypeAlias
from uuid import UUID

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2
from cortado.store.client.arguments import shown, text, typed, whole
from cortado.store.clock.text import parse_time, wall_ms_of
from cortado.store.clock.timestamp import TTL_MS_MAX, Timestamp
from cortado.store.keys.types import KeyPart, KeyType

Part: TypeAlias = bool | int | float | bytes | str | Decimal | UUID | date | datetime | None
"""One part of a key, as an application writes it."""

Key: TypeAlias = tuple[Part, ...]
"""A whole key, or a prefix of one."""

KeyLike: TypeAlias = Part | Sequence[Part]
"""A key as an application may pass it: its parts, or for a key of one part just that."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Read at any member, from a state that contains all writes acknowledged ``ms`` milliseconds ago or earlier."""

    ms: int


At: TypeAlias = Timestamp | datetime | str | Stale | None
"""When to read: a timestamp or its text, a wall time with a zone (or its RFC 3339 text), how stale it may be, or None
for the newest."""

Expires: TypeAlias = timedelta | datetime | Literal["never"] | None
"""When something expires: a time after it was written, at a wall time with a zone, never; or None for the default."""

Times: TypeAlias = Literal["exact", "truncate"]
"""Treatment of a time that is finer than its field keeps: it is refused, or truncated towards the past."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = _EPOCH.toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_INT64_MAX: Final = (1 << 63) - 1
_UINT32_MAX: Final = (1 << 32) - 1
_FLOAT64_EXACT_MAX: Final = 1 << 53
_DECIMAL_DIGITS_MAX: Final = 1_000

_WANTED: Final = {
    KeyType.BOOL: "a bool",
    KeyType.INT64: "an int",
    KeyType.FLOAT64: "a float",
    KeyType.BYTES: "bytes",
    KeyType.STRING: "a str",
    KeyType.TIMESTAMP: "a datetime with a time zone, or an int (microseconds since 1970)",
    KeyType.DATE: "a date",
    KeyType.DECIMAL: "a Decimal or an int",
    KeyType.UUID: "a UUID",
}


def expiry_to_proto(expires: Expires, field: str = "expires") -> common_pb2.Expiry | None:
    """Return an expiry as a message, None for None. Raises InvalidArgument."""
    match expires:
        case None:
            return None
        case "never":
            return common_pb2.Expiry(never=True)
        case timedelta():
            ttl_ms = expires // _MILLISECOND
            if not 1 <= ttl_ms <= TTL_MS_MAX:
                raise InvalidArgument(field, f"must be between 1 and {TTL_MS_MAX} ms", str(expires))
            return common_pb2.Expiry(ttl_ms=ttl_ms)
        case datetime():
            at_ms = wall_ms_of(expires, field)
            if at_ms < 1:
                raise InvalidArgument(field, "must be after 1970", str(expires))
            return common_pb2.Expiry(at_ms=at_ms)
    raise InvalidArgument(field, 'must be a timedelta, a datetime with a time zone, "never" or None', typed(expires))


# --- keys ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TruncatedPart(KeyPart):
    """A part of a key with timestamps truncated to whole units."""

    unit_micros: int = 1

    @classmethod
    def of(cls, part: KeyPart, unit_micros: int) -> Self:
        return cls(part.path, part.type, part.descending, unit_micros)


def key_to_proto(key: KeyLike, parts: Sequence[KeyPart], *, what: str = "key", prefix: bool = False) -> common_pb2.Key:
    """Return ``key`` as a message. Raises InvalidArgument if a part is missing, too many, or of another type.

    With ``prefix``, trailing parts may be missing. ``what`` names the key in errors.
    """
    values = parts_of(key)
    if len(values) > len(parts) or (len(values) < len(parts) and not prefix):
        declared = ", ".join(part.path for part in parts)
        allowed = f"{len(parts)} part{'s' if len(parts) > 1 else ''} ({declared})"
        raise InvalidArgument(what, f"must have {'at most ' if prefix else ''}{allowed}", f"{len(values)} parts")
    return common_pb2.Key(parts=[part_to_proto(value, part, what) for value, part in zip(values, parts, strict=False)])


def parts_of(key: KeyLike) -> tuple[Part, ...]:
    """Return the parts of ``key``; a single value is a key of one part."""
    if isinstance(key, list | tuple):
        return tuple(key)
    return (key,)  # type: ignore[return-value]


def part_to_proto(value: Part, part: KeyPart, what: str = "key") -> common_pb2.Value:
    """Return one part as a message. Raises InvalidArgument naming ``what.path``."""
    if value is None:
        return common_pb2.Value(null=common_pb2.NULL_VALUE)
    field = f"{what}.{part.path}"
    match part.type, value:
        case KeyType.BOOL, bool():
            return common_pb2.Value(bool=value)
        case KeyType.INT64, int() if not isinstance(value, bool):
            return common_pb2.Value(int64=_int64(value, field))
        case KeyType.FLOAT64, float():
            return common_pb2.Value(float64=value)
        case KeyType.FLOAT64, int() if not isinstance(value, bool) and abs(value) <= _FLOAT64_EXACT_MAX:
            return common_pb2.Value(float64=float(value))
        case KeyType.BYTES, bytes():
            return common_pb2.Value(bytes=value)
        case KeyType.STRING, str():
            return common_pb2.Value(string=_utf8(value, field))
        case KeyType.TIMESTAMP, datetime():
            return common_pb2.Value(timestamp_micros=_in_units(micros_of(value, field), part))
        case KeyType.TIMESTAMP, int() if not isinstance(value, bool):
            return common_pb2.Value(timestamp_micros=_in_units(_int64(value, field), part))
        case KeyType.DATE, date() if not isinstance(value, datetime):
            return common_pb2.Value(date_days=value.toordinal() - _EPOCH_DAY)
        case KeyType.DECIMAL, int() if not isinstance(value, bool):
            return common_pb2.Value(decimal=_plain_decimal(Decimal(value), field))
        case KeyType.DECIMAL, Decimal():
            return common_pb2.Value(decimal=_plain_decimal(value, field))
        case KeyType.UUID, UUID():
            return common_pb2.Value(uuid=value.bytes)
    raise InvalidArgument(field, f"must be {_WANTED[part.type]}", typed(value))


def key_from_proto(key: common_pb2.Key) -> Key:
    """Return the parts as Python values."""
    return tuple(part_from_proto(part) for part in key.parts)


def part_from_proto(value: common_pb2.Value) -> Part:
    """Return one part as a Python value. A timestamp outside of Python's years 1 to 9999 stays an int of
    microseconds."""
    match value.WhichOneof("kind"):
        case "timestamp_micros":
            return datetime_of(value.timestamp_micros)
        case "date_days":
            return date.fromordinal(value.date_days + _EPOCH_DAY)
        case "decimal":
            return Decimal(value.decimal)
        case "uuid":
            return UUID(bytes=value.uuid)
        case "null" | None:
            return None
        case kind:
            plain: bool | int | float | bytes | str = getattr(value, kind)
            return plain


def range_to_proto(
    start: KeyLike, end: KeyLike, prefix: KeyLike, parts: Sequence[KeyPart]
) -> common_pb2.KeyRange | None:
    """Return a range of keys as a message, None for all. Raises InvalidArgument for a prefix beside a bound."""
    if prefix is not None:
        if start is not None or end is not None:
            raise InvalidArgument("prefix", "must not be given together with start or end")
        return common_pb2.KeyRange(prefix=key_to_proto(prefix, parts, what="prefix", prefix=True))
    if start is None and end is None:
        return None
    return common_pb2.KeyRange(
        start=None if start is None else key_to_proto(start, parts, what="start", prefix=True),
        end=None if end is None else key_to_proto(end, parts, what="end", prefix=True),
    )


# --- time ------------------------------------------------------------------------------------------------------


def micros_of(moment: datetime, field: str) -> int:
    """Return microseconds since 1970 in UTC. Raises InvalidArgument for a moment without a time zone."""
    if moment.tzinfo is None:
        raise InvalidArgument(field, "must have a time zone, such as tzinfo=UTC", moment.isoformat())
    return (moment - _EPOCH) // _MICROSECOND


def datetime_of(micros: int) -> datetime | int:
    """Return the moment in UTC, or ``micros`` itself if Python has no such year."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return micros


def timestamp_of(message: common_pb2.Timestamp) -> Timestamp:
    """Return the value of a protobuf timestamp."""
    return Timestamp(message.epoch, message.wall_ms, message.logical)


def timestamp_to_proto(ts: Timestamp) -> common_pb2.Timestamp:
    """Return a timestamp as a message."""
    return common_pb2.Timestamp(epoch=ts.epoch, wall_ms=ts.wall_ms, logical=ts.logical)


def at_to_proto(at: At, field: str = "at") -> common_pb2.ReadAt | None:
    """Return the time to read at, as a message; None for the newest. Raises InvalidArgument naming ``field``."""
    if isinstance(at, str):
        at = parse_at(at, field)
    match at:
        case None:
            return None
        case Timestamp():
            return common_pb2.ReadAt(timestamp=timestamp_to_proto(at))
        case datetime():
            return common_pb2.ReadAt(wall_ms=wall_ms_of(at, field))
        case Stale():
            return common_pb2.ReadAt(stale_ms=whole(at.ms, f"{field}.ms", 1, _UINT32_MAX))
    problem = "must be a Timestamp, its text, a datetime with a time zone, or Stale"
    raise InvalidArgument(field, problem, type(at).__name__)


def parse_at(when: str, field: str = "at") -> Timestamp | datetime:
    """Return a timestamp (``0.1763643600000.2``), or a wall time (``2025-11-20T13:00:00Z``). Raises InvalidArgument."""
    try:
        return parse_time(when)
    except InvalidArgument as error:
        raise InvalidArgument(field, error.problem, error.value) from None


# --- conditions ------------------------------------------------------------------------------------------------


def etag_condition(if_etag: str | None) -> common_pb2.Condition | None:
    """Return the condition that the live version has the etag ``if_etag``."""
    return None if if_etag is None else common_pb2.Condition(etag=etag_text(if_etag))


def etag_text(if_etag: str) -> str:
    """Return the etag of a condition. Raises InvalidArgument if it is none."""
    asked = text(if_etag, "if_etag")
    try:
        Timestamp.parse(asked)
    except InvalidArgument as malformed:
        raise InvalidArgument("if_etag", f"not an etag: {malformed.problem}", repr(asked)) from None
    return asked


# --- single values ---------------------------------------------------------------------------------------------


def _in_units(micros: int, part: KeyPart) -> int:
    return micros - micros % part.unit_micros if isinstance(part, TruncatedPart) else micros


def _int64(value: int, field: str) -> int:
    if not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        raise InvalidArgument(field, "must fit in 64 bits", shown(value))
    return value


def _utf8(value: str, field: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(field, f"must be valid Unicode: {error.reason}", shown(value)) from None
    return value


def _plain_decimal(value: Decimal, field: str) -> str:
    if not value.is_finite():
        raise InvalidArgument(field, "must be a finite decimal", str(value))
    # Written out, a number of a few characters may be a gigabyte.
    if max(value.adjusted(), -int(value.as_tuple().exponent)) > _DECIMAL_DIGITS_MAX:
        problem = f"must have at most {_DECIMAL_DIGITS_MAX} digits before the point, and after it"
        raise InvalidArgument(field, problem, f"{value:.5E}")
    return format(value, "f")
