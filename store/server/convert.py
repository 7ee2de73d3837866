"""Conversion between the messages of ``cortado.v1`` and the values of the layers below.

Values from requests are checked here for their form: a value of another case than its part declares, a UUID of 15
bytes, a timestamp out of range. Each refusal names the field as the caller wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2, tables_pb2
from cortado.store.catalog.descriptors import Dropped
from cortado.store.clock.timestamp import LOGICAL_MAX, WALL_MS_MAX, Timestamp
from cortado.store.keys.types import KeyPart, KeyType, KeyValue
from cortado.store.mvcc.evaluation import Absent, Condition, Present, ValueIs, parse_etag
from cortado.store.mvcc.expiry import NEVER, Expiry
from cortado.store.replica.read.read_timestamps import Stale

_CASE_OF_TYPE: Final[dict[KeyType, str]] = {
    KeyType.BOOL: "bool",
    KeyType.INT64: "int64",
    KeyType.FLOAT64: "float64",
    KeyType.BYTES: "bytes",
    KeyType.STRING: "string",
    KeyType.TIMESTAMP: "timestamp_micros",
    KeyType.DATE: "date_days",
    KeyType.DECIMAL: "decimal",
    KeyType.UUID: "uuid",
}
_DAY_OF_1970: Final = date(1970, 1, 1).toordinal()
_DECIMAL_CHARS_MAX: Final = 200


def timestamp_message(ts: Timestamp) -> common_pb2.Timestamp:
    return common_pb2.Timestamp(epoch=ts.epoch, wall_ms=ts.wall_ms, logical=ts.logical)


def timestamp_value(message: common_pb2.Timestamp, field: str = "timestamp") -> Timestamp:
    """Return the timestamp of a message. Raises InvalidArgument if a part is out of range."""
    try:
        return Timestamp(message.epoch, message.wall_ms, message.logical)
    except InvalidArgument as error:
        part = error.field.rpartition(".")[2]
        raise InvalidArgument(f"{field}.{part}", error.problem, error.value) from None


def read_at(message: common_pb2.ReadAt, epoch: int, field: str = "at") -> Timestamp | Stale | None:
    """Return the timestamp to read at, or how stale a read may be; None for the newest. A wall time includes all of its
    millisecond in ``epoch``."""
    match message.WhichOneof("kind"):
        case "timestamp":
            return timestamp_value(message.timestamp, f"{field}.timestamp")
        case "wall_ms":
            if message.wall_ms > WALL_MS_MAX:
                raise InvalidArgument(f"{field}.wall_ms", f"must be between 0 and {WALL_MS_MAX}", str(message.wall_ms))
            return Timestamp(epoch, message.wall_ms, LOGICAL_MAX)
        case "stale_ms":
            return Stale(message.stale_ms)
        case _:
            return None


def read_at_text(message: common_pb2.ReadAt) -> str:
    """Return the part of a read time that a page token is bound to: the time as the request states it, and its own
    writes."""
    own = ""
    if message.own_writes:
        digest = blake2b(digest_size=16)
        for each in message.own_writes:
            digest.update(each.SerializeToString(deterministic=True))
        own = f" over {digest.hexdigest()}"
    match message.WhichOneof("kind"):
        case "timestamp":
            return f"{timestamp_value(message.timestamp)}{own}"
        case "wall_ms":
            return f"wall_ms {message.wall_ms}{own}"
        case "stale_ms":
            return f"stale_ms {message.stale_ms}{own}"
        case _:
            return own


def expiry_value(message: Any, field: str = "expiry") -> Expiry | None:
    """Return the ``expiry`` of a message, None if it is not set. Raises InvalidArgument."""
    if not message.HasField("expiry"):
        return None
    asked: common_pb2.Expiry = message.expiry
    try:
        match asked.WhichOneof("when"):
            case "ttl_ms" if asked.ttl_ms:
                return Expiry(ttl_ms=asked.ttl_ms)
            case "at_ms" if asked.at_ms:
                return Expiry(at_ms=asked.at_ms)
            case "never" if asked.never:
                return NEVER
    except InvalidArgument as unfit:
        raise InvalidArgument(unfit.field.replace("expiry", field, 1), unfit.problem, unfit.value) from unfit
    raise InvalidArgument(field, "must set ttl_ms or at_ms, not to 0, or never to true")


def condition_value(message: common_pb2.Condition, *, field: str = "condition", kv: bool = False) -> Condition | None:
    """Return the condition of a write, or None. ``value`` is for the key-value API alone."""
    match message.WhichOneof("kind"):
        case "absent":
            _must_be_true(message.absent, f"{field}.absent")
            return Absent()
        case "present":
            _must_be_true(message.present, f"{field}.present")
            return Present()
        case "etag":
            return parse_etag(message.etag, f"{field}.etag")
        case "value":
            if not kv:
                raise InvalidArgument(f"{field}.value", "is a condition of the key-value API: use an etag")
            return ValueIs(message.value)
        case _:
            return None


def key_values(message: common_pb2.Key, parts: Sequence[KeyPart], field: str = "key") -> tuple[KeyValue, ...]:
    """Return a key's parts, or those of a prefix, each of the declared type. Raises InvalidArgument naming the part."""
    if len(message.parts) > len(parts):
        declared = ", ".join(part.path for part in parts)
        problem = f"has {len(message.parts)} parts, {len(parts)} are declared: {declared}"
        raise InvalidArgument(field, problem)
    return tuple(
        _part_value(value, part, f"{field}.{part.path}") for value, part in zip(message.parts, parts, strict=False)
    )


def key_message(values: Sequence[KeyValue], parts: Sequence[KeyPart]) -> common_pb2.Key:
    """Return the message of values that :func:`key_values` returned."""
    key = common_pb2.Key()
    for value, part in zip(values, parts, strict=False):
        key.parts.append(_part_message(value, part.type))
    return key


def dropped_message(record: Dropped) -> tables_pb2.Dropped:
    what = record.what
    return tables_pb2.Dropped(
        number=record.number,
        kind=f"DROP_KIND_{what.kind.name}",
        name=what.name,
        dropped=timestamp_message(record.dropped_ts),
        retention_ms=what.retention_ms,
        table_id=what.table_id,
        dropped_with=record.dropped_with,
        is_clearing=record.is_clearing,
    )


def _must_be_true(value: bool, field: str) -> None:
    if not value:
        raise InvalidArgument(field, "must be true if it is set: leave the condition out instead", "false")


def _part_value(message: common_pb2.Value, part: KeyPart, field: str) -> KeyValue:
    case = message.WhichOneof("kind")
    if case is None:
        raise InvalidArgument(field, f"has no value: set {_CASE_OF_TYPE[part.type]}, or null")
    if case == "null":
        return None
    if case != _CASE_OF_TYPE[part.type]:
        raise InvalidArgument(field, f"is of type {part.type}: set {_CASE_OF_TYPE[part.type]}", case)
    match case:
        case "decimal":
            return _decimal(message.decimal, field)
        case "uuid":
            if len(message.uuid) != 16:
                raise InvalidArgument(field, "a UUID must have 16 bytes", f"{len(message.uuid)} bytes")
            return UUID(bytes=message.uuid)
        case "date_days":
            try:
                return date.fromordinal(_DAY_OF_1970 + message.date_days)
            except (ValueError, OverflowError) as error:
                problem = "must be a day between 0001-01-01 and 9999-12-31"
                raise InvalidArgument(field, problem, f"{message.date_days} days after 1970-01-01") from error
        case _:
            value: KeyValue = getattr(message, case)
            return value


def _decimal(text: str, field: str) -> Decimal:
    if len(text) > _DECIMAL_CHARS_MAX:
        raise InvalidArgument(field, f"a decimal must have at most {_DECIMAL_CHARS_MAX} characters", f"{len(text)}")
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise InvalidArgument(field, "must be a decimal number such as -12.50", repr(text)) from error
    if not value.is_finite():
        raise InvalidArgument(field, "must be a finite decimal number", repr(text))
    return value


def _part_message(value: KeyValue, part_type: KeyType) -> common_pb2.Value:
    message = common_pb2.Value()
    if value is None:
        message.null = common_pb2.NULL_VALUE
    elif isinstance(value, Decimal):
        message.decimal = format(value, "f")
    elif isinstance(value, UUID):
        message.uuid = value.bytes
    elif isinstance(value, date):
        message.date_days = value.toordinal() - _DAY_OF_1970
    else:
        setattr(message, _CASE_OF_TYPE[part_type], value)
    return message
