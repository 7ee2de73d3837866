"""From values to a body: writers compiled from a type, which take nothing that they would have to change.

::

    write(out, value, walk)      appends the value's bytes to ``out``

A general encoder is lenient: fastavro takes ``True`` and 1.9 for a long, 2^31 for an int, any text for a uuid, and
drops a timestamp's microseconds, even when asked to be strict. Here each of these is refused with the field's path.
Since the check is a comparison of types in the closure that writes anyway, it costs next to nothing.

A field that is missing takes its default, if it has one. A field that the schema lacks is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from cortado.errors import InvalidDocument
from cortado.schema.decoding import free_items_of
from cortado.schema.defaults import default_bytes
from cortado.schema.fold import Fields, Fold
from cortado.schema.limits import DEPTH_MAX, INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from cortado.schema.logical_values import ToStored, to_stored
from cortado.schema.model import (
    NO_DEFAULT,
    NULL,
    Array,
    AvroType,
    Enum,
    Fixed,
    Kind,
    Logical,
    Map,
    Primitive,
    Record,
    Union,
)
from cortado.schema.union_branches import Chooser
from cortado.schema.values import Branch
from cortado.schema.varint import append_long, encoded_long
from cortado.schema.walk import REFUSALS, Walk, located, shown, too_deep

Write: TypeAlias = Callable[[bytearray, Any, Walk], None]

_pack_float = struct.Struct("<f").pack
_pack_double = struct.Struct("<d").pack


def write_null(_out: bytearray, value: Any, _walk: Walk) -> None:
    if value is not None:
        raise _wrong("null", value)


def write_boolean(out: bytearray, value: Any, _walk: Walk) -> None:
    if value is True:
        out.append(1)
    elif value is False:
        out.append(0)
    else:
        raise _wrong("a bool", value)


def write_int(out: bytearray, value: Any, _walk: Walk) -> None:
    if type(value) is not int and (not isinstance(value, int) or isinstance(value, bool)):
        raise _wrong("an int", value)
    if not INT_MIN <= value <= INT_MAX:
        raise InvalidDocument("", f"an int is from {INT_MIN} to {INT_MAX}", shown(value))
    append_long(out, value)


def write_long(out: bytearray, value: Any, _walk: Walk) -> None:
    if type(value) is not int and (not isinstance(value, int) or isinstance(value, bool)):
        raise _wrong("an int", value)
    if not LONG_MIN <= value <= LONG_MAX:
        raise InvalidDocument("", f"a long is from {LONG_MIN} to {LONG_MAX}", shown(value))
    append_long(out, value)


def write_float(out: bytearray, value: Any, _walk: Walk) -> None:
    if type(value) is not float:
        value = _exact_float(value)
    try:
        out += _pack_float(value)
    except OverflowError:
        raise InvalidDocument("", "does not fit into a float of 32 bits", shown(value)) from None


def write_double(out: bytearray, value: Any, _walk: Walk) -> None:
    if type(value) is not float:
        value = _exact_float(value)
    out += _pack_double(value)


def _exact_float(value: Any) -> float:
    if isinstance(value, float):
        return float(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong("a float", value)
    try:
        exact = float(value)
    except OverflowError:
        exact = 0.0
    if exact != value:
        raise InvalidDocument("", "no float has exactly this value", shown(value))
    return exact


def write_bytes(out: bytearray, value: Any, _walk: Walk) -> None:
    if type(value) is not bytes:
        value = _as_bytes(value)
    append_long(out, len(value))
    out += value


def _as_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong("bytes", value)
    return bytes(value)


def write_string(out: bytearray, value: Any, _walk: Walk) -> None:
    if not isinstance(value, str):
        raise _wrong("a str", value)
    encoded = value.encode()
    length = len(encoded)
    if length < 64:
        out.append(length << 1)
    else:
        append_long(out, length)
    out += encoded


def _wrong(wanted: str, value: Any) -> InvalidDocument:
    return InvalidDocument("", f"must be {wanted}", shown(value))


_PRIMITIVE_WRITERS: Final[dict[Kind, Write]] = {
    Kind.NULL: write_null,
    Kind.BOOLEAN: write_boolean,
    Kind.INT: write_int,
    Kind.LONG: write_long,
    Kind.FLOAT: write_float,
    Kind.DOUBLE: write_double,
    Kind.BYTES: write_bytes,
    Kind.STRING: write_string,
}


def compile_writer(root: AvroType, *, truncates: bool = False) -> Write:
    """Return the writer of ``root``'s values. If it ``truncates``, it takes times that are finer than their type."""
    return _Writers(truncates).of(root)


class _Writers(Fold[Write]):
    def __init__(self, truncates: bool) -> None:
        super().__init__()
        self._truncates = truncates

    def leaf(self, leaf: Primitive | Fixed | Enum) -> Write:
        match leaf:
            case Primitive(kind=kind, logical=logical):
                write = _PRIMITIVE_WRITERS[kind]
                return write if logical is None else self._logical(logical, None, write)
            case Fixed(size=size, logical=logical):
                write = _fixed_writer(size)
                return write if logical is None else self._logical(logical, size, write)
            case Enum():
                return _enum_writer(leaf)

    def _logical(self, logical: Logical, fixed_size: int | None, write: Write) -> Write:
        return _logical_writer(to_stored(logical, fixed_size, truncates=self._truncates), write)

    def array(self, array: Array, item: Write) -> Write:
        return _array_writer(item, array.items == NULL)

    def map(self, map_: Map, value: Write) -> Write:  # noqa: ARG002
        return _map_writer(value)

    def record(self, record: Record, fields: Fields[Write]) -> Write:
        defaults = {
            field.name: default_bytes(field.type, field.default)
            for field in record.fields
            if field.default is not NO_DEFAULT
        }
        return _record_writer(fields.pairs, defaults, free_items_of(record))

    def union(self, union: Union, branches: list[Write]) -> Write:
        write_any = _union_writer(Chooser(union), branches)
        if union.nullable is None:
            return write_any
        null_byte = 2 * union.branches.index(NULL)
        return _nullable_writer(branches[1 - null_byte // 2], null_byte, write_any)


def _logical_writer(convert: ToStored, write_stored: Write) -> Write:
    def write(out: bytearray, value: Any, walk: Walk) -> None:
        write_stored(out, convert(value), walk)

    return write


def _fixed_writer(size: int) -> Write:
    def write(out: bytearray, value: Any, _walk: Walk) -> None:
        if type(value) is not bytes:
            value = _as_bytes(value)
        if len(value) != size:
            raise InvalidDocument("", f"must have {size} bytes, has {len(value)}", shown(value))
        out += value

    return write


def _enum_writer(enum: Enum) -> Write:
    encoded = {symbol: encoded_long(index) for index, symbol in enumerate(enum.symbols)}

    def write(out: bytearray, value: Any, _walk: Walk) -> None:
        if not isinstance(value, str):
            raise _wrong("a str", value)
        number = encoded.get(value)
        if number is None:
            raise InvalidDocument("", f"not a symbol of {enum.name}", shown(value))
        out += number

    return write


def _array_writer(write_item: Write, of_nulls: bool) -> Write:
    def write(out: bytearray, value: Any, walk: Walk) -> None:
        if not isinstance(value, list | tuple) or isinstance(value, Branch):
            raise _wrong("a list", value)
        walk.enter()
        if of_nulls:
            walk.take_free(len(value))
        if value:
            append_long(out, len(value))
        index = 0
        try:
            for index, item in enumerate(value):  # noqa: B007 - the index is for the error's path
                write_item(out, item, walk)
        except REFUSALS as error:
            raise located(error, f"[{index}]") from None
        out.append(0)
        walk.depth -= 1

    return write


def _map_writer(write_value: Write) -> Write:
    def write(out: bytearray, value: Any, walk: Walk) -> None:
        if not isinstance(value, Mapping):
            raise _wrong("a dict", value)
        walk.enter()
        if value:
            append_long(out, len(value))
        key: Any = None
        try:
            for key, item in value.items():
                write_string(out, key, walk)
                write_value(out, item, walk)
        except REFUSALS as error:
            raise located(error, f"[{key!r}]") from None
        out.append(0)
        walk.depth -= 1

    return write


def _record_writer(fields: list[tuple[str, Write]], defaults: dict[str, bytes], free_items: int) -> Write:
    """``fields`` may be filled in later: that is how a record can hold itself. ``defaults`` are encoded."""

    def write(out: bytearray, value: Any, walk: Walk) -> None:
        if type(value) is not dict and not isinstance(value, Mapping):
            raise _wrong("a dict", value)
        walk.depth += 1
        if walk.depth > DEPTH_MAX:
            raise too_deep()
        if free_items:
            walk.take_free(free_items)
        filled = 0
        name = ""
        try:
            for name, write_field in fields:
                try:
                    item = value[name]
                except KeyError:
                    default = defaults.get(name)
                    if default is None:
                        raise InvalidDocument("", "is missing, and the schema has no default for it") from None
                    out += default
                    filled += 1
                    continue
                write_field(out, item, walk)
        except REFUSALS as error:
            raise located(error, name) from None
        if len(value) + filled != len(fields):
            raise _unknown_field(value, [name for name, _ in fields])
        walk.depth -= 1

    return write


def _unknown_field(value: Mapping[Any, Any], names: list[str]) -> InvalidDocument:
    unknown = next(key for key in value if key not in names)
    if isinstance(unknown, str):
        return InvalidDocument(unknown, "the schema has no such field")
    return InvalidDocument("", "a field's name must be a str", shown(unknown))


def _nullable_writer(write_value: Write, null_byte: int, write_any: Write) -> Write:
    value_byte = 2 - null_byte

    def write(out: bytearray, value: Any, walk: Walk) -> None:
        if value is None:
            out.append(null_byte)
        elif type(value) is Branch:
            write_any(out, value, walk)
        else:
            out.append(value_byte)
            write_value(out, value, walk)

    return write


def _union_writer(chooser: Chooser, writers: list[Write]) -> Write:
    def write(out: bytearray, value: Any, walk: Walk) -> None:
        chosen, value = chooser.choose(value)
        append_long(out, chosen)
        writers[chosen](out, value, walk)

    return write
