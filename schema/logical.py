"""Logical types: the types below them, and the attributes that a declaration needs.

The specification asks readers to ignore a logical type that is not valid, and read the type below. Cortado does so for
names it does not know. A *known* name in the wrong place (a date on a string, a decimal without precision) is refused:
ignored, it would turn money into bytes for good, since stored bytes cannot be read as a decimal later. Source: Apache
Avro specification 1.12, *Logical Types*.
"""

from __future__ import annotations

from typing import Any, Final

from cortado.errors import InvalidSchema
from cortado.schema.json_text import shown
from cortado.schema.limits import DECIMAL_PRECISION_MAX
from cortado.schema.model import Kind, Logical, LogicalKind

FIXED: Final = "fixed"

_BY_NAME: Final = {kind.value: kind for kind in LogicalKind}

_UUID_BYTES: Final = 16
_DURATION_BYTES: Final = 12

_STANDS_ON: Final[dict[LogicalKind, tuple[str, ...]]] = {
    LogicalKind.DECIMAL: (Kind.BYTES.value, FIXED),
    LogicalKind.UUID: (Kind.STRING.value, FIXED),
    LogicalKind.DATE: (Kind.INT.value,),
    LogicalKind.TIME_MILLIS: (Kind.INT.value,),
    LogicalKind.TIME_MICROS: (Kind.LONG.value,),
    LogicalKind.TIMESTAMP_MILLIS: (Kind.LONG.value,),
    LogicalKind.TIMESTAMP_MICROS: (Kind.LONG.value,),
    LogicalKind.TIMESTAMP_NANOS: (Kind.LONG.value,),
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: (Kind.LONG.value,),
    LogicalKind.LOCAL_TIMESTAMP_MICROS: (Kind.LONG.value,),
    LogicalKind.LOCAL_TIMESTAMP_NANOS: (Kind.LONG.value,),
    LogicalKind.DURATION: (FIXED,),
}


def known_logical(declaration: dict[str, Any]) -> LogicalKind | None:
    """Return the logical type that a JSON object names; None for none, or one that Cortado gives no meaning to."""
    name = declaration.get("logicalType")
    return _BY_NAME.get(name) if isinstance(name, str) else None


def parse_logical(declaration: dict[str, Any], base: str, path: str, size: int = 0) -> Logical | None:
    """Return the logical type of a ``base`` type (``fixed`` of ``size`` bytes, or a primitive's name).

    Raises InvalidSchema at ``path`` if a known one does not fit.
    """
    kind = known_logical(declaration)
    if kind is None:
        return None
    allowed = _STANDS_ON[kind]
    if base not in allowed:
        raise InvalidSchema(f"{path}.logicalType", f"{kind} stands on {' or '.join(allowed)}, not on {base}")
    if base == FIXED:
        _check_fixed_size(kind, size, path)
    return _decimal(declaration, base, path, size) if kind is LogicalKind.DECIMAL else Logical(kind)


def _check_fixed_size(kind: LogicalKind, size: int, path: str) -> None:
    wanted = {LogicalKind.UUID: _UUID_BYTES, LogicalKind.DURATION: _DURATION_BYTES}.get(kind)
    if wanted is not None and size != wanted:
        raise InvalidSchema(f"{path}.size", f"a {kind} takes {wanted} bytes", str(size))


def _decimal(declaration: dict[str, Any], base: str, path: str, size: int) -> Logical:
    precision = _integer(declaration, "precision", path)
    scale = _integer(declaration, "scale", path) if "scale" in declaration else 0
    if not 1 <= precision <= DECIMAL_PRECISION_MAX:
        raise InvalidSchema(f"{path}.precision", f"must be from 1 to {DECIMAL_PRECISION_MAX}", str(precision))
    if not 0 <= scale <= precision:
        raise InvalidSchema(f"{path}.scale", f"must be from 0 to the precision, {precision}", str(scale))
    # Digits that every value of the size can hold: 10^digits - 1 must fit below the sign bit.
    if base == FIXED and 10**precision > 2 ** (8 * min(size, DECIMAL_PRECISION_MAX) - 1):
        raise InvalidSchema(f"{path}.precision", f"{precision} digits do not fit into {size} bytes")
    return Logical(LogicalKind.DECIMAL, precision, scale)


def _integer(declaration: dict[str, Any], name: str, path: str) -> int:
    if name not in declaration:
        raise InvalidSchema(path, f"a decimal needs a {name}")
    value = declaration[name]
    if type(value) is not int:
        raise InvalidSchema(f"{path}.{name}", "must be an integer", shown(value))
    return value
