"""From values to JSON, compiled from a type. The format is drawn in :mod:`cortado.schema.json_format`."""

from __future__ import annotations

import math
import struct
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

from cortado.errors import InvalidDocument
from cortado.schema.json_containers import Containers, Convert
from cortado.schema.model import NULL, AvroType, Enum, Fixed, Kind, Primitive, Union
from cortado.schema.names import branch_name
from cortado.schema.union_branches import Chooser, class_of_type, class_of_value
from cortado.schema.values import Branch
from cortado.schema.walk import Walk, shown

_Leaf: TypeAlias = Callable[[Any], Any]

_FLOAT: Final = struct.Struct("<f")


def compile_to_json(root: AvroType) -> Convert:
    """Return the function from ``root``'s values to JSON."""
    return _Writers(_check_list, _check_dict).of(root)


def timestamp_text(moment: datetime) -> str:
    """Return RFC 3339 in UTC, with microseconds only if there are any."""
    text = (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat()
    return text.removesuffix("+00:00") + "Z"


def _float_json(value: float) -> Any:
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _short_float_json(value: float) -> Any:
    """Return the shortest number that is this 32-bit float: 0.1, not 0.10000000149011612."""
    if not math.isfinite(value):
        return _float_json(value)
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        if abs(short) < 3.4e38 and _FLOAT.unpack(_FLOAT.pack(short))[0] == value:
            return short
    return float(value)


def _bytes_json(value: bytes) -> str:
    return b64encode(value).decode()


def _decimal_json(value: Decimal) -> str:
    return format(value, "f")


def _iso(value: date | time | datetime) -> str:
    return value.isoformat()


def _duration_json(value: Any) -> dict[str, int]:
    return dict(value._asdict())


def _same(value: Any) -> Any:
    return value


_LEAF_OF_CLASS: Final[dict[str, _Leaf]] = {
    "null": _same,
    "boolean": _same,
    "int": int,
    "float": _float_json,
    "bytes": _bytes_json,
    "str": str,
    "decimal": _decimal_json,
    "uuid": UUID.__str__,
    "date": _iso,
    "time": _iso,
    "timestamp": timestamp_text,
    "local": _iso,
    "duration": _duration_json,
}


class _Writers(Containers):
    def leaf(self, leaf: Primitive | Fixed | Enum) -> Convert:
        name = class_of_type(leaf)
        is_short = isinstance(leaf, Primitive) and leaf.kind is Kind.FLOAT
        return _leaf(name, _short_float_json if is_short else _LEAF_OF_CLASS[name])

    def union(self, union: Union, branches: list[Convert]) -> Convert:
        chooser = Chooser(union)
        if union.nullable is not None:
            return _nullable(branches[union.branches.index(union.nullable)], chooser)
        names = [None if branch == NULL else branch_name(branch) for branch in union.branches]
        return _union(chooser, list(zip(names, branches, strict=True)))


def _check_list(value: Any) -> None:
    if class_of_value(value) != "list":
        raise _wrong("list", value)


def _check_dict(value: Any) -> None:
    if class_of_value(value) != "dict":
        raise _wrong("dict", value)


def _wrong(wanted: str, value: Any) -> InvalidDocument:
    return InvalidDocument("", f"must be of type {wanted}", shown(value))


def _leaf(wanted: str, convert: _Leaf) -> Convert:
    def write(value: Any, _walk: Walk) -> Any:
        found = class_of_value(value)
        if found == wanted:
            return convert(value)
        if found == "int" and wanted == "float":
            return value
        raise _wrong(wanted, value)

    return write


def _nullable(write_value: Convert, chooser: Chooser) -> Convert:
    def write(value: Any, walk: Walk) -> Any:
        if value is None:
            return None
        # A plain value leaves one branch to choose, and its writer names the error.
        if type(value) is Branch:
            _, value = chooser.choose(value)
        return write_value(value, walk)

    return write


def _union(chooser: Chooser, writers: list[tuple[str | None, Convert]]) -> Convert:
    def write(value: Any, walk: Walk) -> Any:
        index, value = chooser.choose(value)
        name, write_value = writers[index]
        json_value = write_value(value, walk)
        return None if name is None else {name: json_value}

    return write
