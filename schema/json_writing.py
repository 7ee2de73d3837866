"""From values to JSON, compiled from a type. The format is drawn in :mod:`cortado.schema.json_format`."""

from __future__ import annotations

import math
import struct
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias, assert_never
from uuid import UUID

from cortado.errors import InvalidDocument
from cortado.schema.model import NULL, Array, AvroType, Enum, Fixed, Kind, Map, Primitive, Record, Union
from cortado.schema.names import branch_name
from cortado.schema.union_branches import Chooser, class_of_type, class_of_value
from cortado.schema.values import Branch
from cortado.schema.walk import REFUSALS, Walk, located, shown

ToJson: TypeAlias = Callable[[Any, Walk], Any]
_Leaf: TypeAlias = Callable[[Any], Any]

_FLOAT: Final = struct.Struct("<f")


def compile_to_json(root: AvroType) -> ToJson:
    """The function from ``root``'s values to JSON."""
    return _Compiler().writer(root)


def timestamp_text(moment: datetime) -> str:
    """RFC 3339 in UTC, microseconds only where there are any."""
    text = (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat()
    return text.removesuffix("+00:00") + "Z"


def _float_json(value: float) -> Any:
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _short_float_json(value: float) -> Any:
    """Of the numbers that are this 32-bit float, the shortest to write: 0.1, not 0.10000000149011612."""
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


class _Compiler:
    def __init__(self) -> None:
        self.records: dict[str, ToJson] = {}

    def writer(self, avro_type: AvroType) -> ToJson:
        match avro_type:
            case Primitive(kind=Kind.FLOAT):
                return _leaf("float", _short_float_json)
            case Primitive() | Fixed() | Enum():
                name = class_of_type(avro_type)
                return _leaf(name, _LEAF_OF_CLASS[name])
            case Array(items=items):
                return _array(self.writer(items))
            case Map(values=values):
                return _map(self.writer(values))
            case Union():
                return self.union(avro_type)
            case Record():
                return self.record(avro_type)
            case _:
                assert_never(avro_type)

    def record(self, record: Record) -> ToJson:
        if record.name not in self.records:
            fields: dict[str, ToJson] = {}
            self.records[record.name] = _record(fields)
            fields.update((field.name, self.writer(field.type)) for field in record.fields)
        return self.records[record.name]

    def union(self, union: Union) -> ToJson:
        writers = [self.writer(branch) for branch in union.branches]
        chooser = Chooser(union)
        if union.nullable is not None:
            return _nullable(writers[1 - union.branches.index(NULL)], chooser)
        names = [None if branch == NULL else branch_name(branch) for branch in union.branches]
        return _union(chooser, list(zip(names, writers, strict=True)))


def _leaf(wanted: str, convert: _Leaf) -> ToJson:
    def write(value: Any, _walk: Walk) -> Any:
        found = class_of_value(value)
        if found == wanted:
            return convert(value)
        if found == "int" and wanted == "float":
            return value
        raise InvalidDocument("", f"must be of type {wanted}", shown(value))

    return write


def _nullable(write_value: ToJson, chooser: Chooser) -> ToJson:
    def write(value: Any, walk: Walk) -> Any:
        if value is None:
            return None
        # Of a plain value there is one branch to choose, whose writer says what is wrong with it.
        if type(value) is Branch:
            _, value = chooser.choose(value)
        return write_value(value, walk)

    return write


def _union(chooser: Chooser, writers: list[tuple[str | None, ToJson]]) -> ToJson:
    def write(value: Any, walk: Walk) -> Any:
        index, value = chooser.choose(value)
        name, write_value = writers[index]
        json_value = write_value(value, walk)
        return None if name is None else {name: json_value}

    return write


def _array(write_item: ToJson) -> ToJson:
    def write(value: Any, walk: Walk) -> list[Any]:
        if class_of_value(value) != "list":
            raise InvalidDocument("", "must be of type list", shown(value))
        walk.enter()
        items: list[Any] = []
        try:
            for item in value:
                items.append(write_item(item, walk))  # noqa: PERF401 - its length is the error's path
        except REFUSALS as error:
            raise located(error, f"[{len(items)}]") from None
        walk.depth -= 1
        return items

    return write


def _map(write_value: ToJson) -> ToJson:
    def write(value: Any, walk: Walk) -> dict[str, Any]:
        if class_of_value(value) != "dict":
            raise InvalidDocument("", "must be of type dict", shown(value))
        walk.enter()
        entries: dict[str, Any] = {}
        key: Any = None
        try:
            for key, item in value.items():
                entries[key] = write_value(item, walk)
        except REFUSALS as error:
            raise located(error, f"[{key!r}]") from None
        walk.depth -= 1
        return entries

    return write


def _record(fields: dict[str, ToJson]) -> ToJson:
    def write(value: Any, walk: Walk) -> dict[str, Any]:
        if class_of_value(value) != "dict":
            raise InvalidDocument("", "must be of type dict", shown(value))
        walk.enter()
        members: dict[str, Any] = {}
        name = ""
        try:
            for name, item in value.items():
                write_field = fields.get(name)
                if write_field is None:
                    raise InvalidDocument("", "the schema has no such field")
                members[name] = write_field(item, walk)
        except REFUSALS as error:
            raise located(error, str(name)) from None
        walk.depth -= 1
        return members

    return write
