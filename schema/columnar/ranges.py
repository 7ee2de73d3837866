"""Which numbers and bytes the logical types admit, for checks over whole columns."""

from __future__ import annotations

from typing import Final, NamedTuple

from cortado.schema.columnar.column import logical_kind, logical_of
from cortado.schema.limits import INT_MAX, INT_MIN
from cortado.schema.model import AvroType, Enum, Kind, LogicalKind, Primitive
from cortado.schema.values import DATE_MAX, DATE_MIN, DAY_MICROS, MICROS_MAX, MICROS_MIN


class Range(NamedTuple):
    """The numbers that a type admits, both included."""

    low: int
    high: int


_INT: Final = Range(INT_MIN, INT_MAX)
_MICROS: Final = Range(MICROS_MIN, MICROS_MAX)
_MILLIS: Final = Range(MICROS_MIN // 1000, MICROS_MAX // 1000)
_OF_LOGICAL: Final = {
    LogicalKind.DATE: Range(DATE_MIN, DATE_MAX),
    LogicalKind.TIME_MILLIS: Range(0, DAY_MICROS // 1000 - 1),
    LogicalKind.TIME_MICROS: Range(0, DAY_MICROS - 1),
    LogicalKind.TIMESTAMP_MILLIS: _MILLIS,
    LogicalKind.TIMESTAMP_MICROS: _MICROS,
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: _MILLIS,
    LogicalKind.LOCAL_TIMESTAMP_MICROS: _MICROS,
}


def range_of(type_: AvroType) -> Range | None:
    """Return the range of an int, a long or an enum's index; None for any number of 64 bits."""
    if isinstance(type_, Enum):
        return Range(0, len(type_.symbols) - 1)
    logical = logical_kind(type_)
    if logical is not None and logical in _OF_LOGICAL:
        return _OF_LOGICAL[logical]
    return _INT if isinstance(type_, Primitive) and type_.kind is Kind.INT else None


def is_uuid_text(type_: AvroType) -> bool:
    return isinstance(type_, Primitive) and type_.kind is Kind.STRING and logical_kind(type_) is LogicalKind.UUID


def decimal_bound(type_: AvroType) -> int | None:
    """10^precision of a decimal, which its unscaled value must stay below; None for another type."""
    logical = logical_of(type_)
    if logical is None or logical.kind is not LogicalKind.DECIMAL:
        return None
    bound: int = 10**logical.precision
    return bound
