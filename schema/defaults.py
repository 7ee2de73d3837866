"""A field's default: JSON in the declaration, bytes in a document.

The JSON is checked and written in Avro's encoding in one pass, and filled in with the defaults of the records in it. So
all users of a default start from the same bytes: the writer that fills a missing field, a reader that lacks one, the
canonical form that must see 1 and 1.0 of a double as equal. A default is valid if and only if its bytes are a valid
body of its type.

The JSON of each type is the specification's: ``bytes`` and ``fixed`` as a string of code points 0 to 255, an ``enum``
as its symbol, a logical type as the type below it. A union's default is a value of the first branch that it fits.
Source: Apache Avro specification 1.12, *Schema Declaration, Complex Types*.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, assert_never

from cortado.errors import InvalidDocument, InvalidSchema
from cortado.schema.decoding import Read, Readers
from cortado.schema.json_text import shown
from cortado.schema.limits import (
    DEFAULT_VALUES_MAX,
    DEPTH_MAX,
    DOCUMENT_BYTES_MAX,
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
)
from cortado.schema.model import NO_DEFAULT, Array, AvroType, Enum, Field, Fixed, Kind, Map, Primitive, Record, Union
from cortado.schema.names import describe_type
from cortado.schema.varint import append_long
from cortado.schema.walk import MISTAKES, Walk, explained


def default_bytes(avro_type: AvroType, default: Any) -> bytes:
    """Return the body of a default that :func:`check_defaults` has passed."""
    writer = _DefaultWriter()
    writer.write(avro_type, default, "default", 1)
    return bytes(writer.out)


def normal_default(avro_type: AvroType, default: Any) -> Any:
    """Return the default's JSON in the one form that equal defaults share: filled in, keys sorted, 1.0 for a double's
    1."""
    return _DefaultWriter().write(avro_type, default, "default", 1)


def check_defaults(root: AvroType, fields: Iterable[tuple[str, Field]]) -> None:
    """Check the defaults of ``fields`` within ``root``, each with the path of its default.

    Raises InvalidSchema, at such a path or inside, for one that is not a value of its field's type.
    """
    writer, readers = _DefaultWriter(), Readers(root)
    for path, field in fields:
        writer.out.clear()
        try:
            writer.write(field.type, field.default, path, 1)
        except _TooLarge as refusal:
            raise InvalidSchema(refusal.path, refusal.problem) from None
        _check_meaning(readers.of(field.type), bytes(writer.out), path)


def _check_meaning(read: Read, body: bytes, path: str) -> None:
    try:
        read(body, 0, Walk())
    except MISTAKES as error:
        # The form is right, so the logical type refuses the value: a date in no year, a text that is no UUID.
        mistake = explained(error)
        assert isinstance(mistake, InvalidDocument)
        step = "" if not mistake.field or mistake.field.startswith("[") else "."
        raise InvalidSchema(f"{path}{step}{mistake.field}", mistake.problem, mistake.value) from None


class _TooLarge(Exception):
    """A default beyond the limits: not a mismatch that another branch of a union could mend."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path = path
        self.problem = problem


class _DefaultWriter:
    """Appends a default's bytes to ``out`` and returns its JSON in normal form."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.visits = 0

    def write(self, avro_type: AvroType, value: Any, path: str, depth: int) -> Any:
        """``depth`` is that of the type, were it a container. Visits count, so that trying branches is bounded too."""
        self.visits += 1
        if self.visits > DEFAULT_VALUES_MAX or len(self.out) > DOCUMENT_BYTES_MAX:
            limits = f"{DEFAULT_VALUES_MAX} values in all defaults, {DOCUMENT_BYTES_MAX} bytes in one"
            raise _TooLarge(path, f"the default is too large: the limits are {limits}")
        match avro_type:
            case Primitive(kind=kind):
                return self._primitive(avro_type, kind, value, path)
            case Fixed(size=size):
                raw = _code_points(avro_type, value, path)
                if len(raw) != size:
                    raise InvalidSchema(path, f"must have {size} bytes, has {len(raw)}", shown(value))
                self.out += raw
                return value
            case Enum(symbols=symbols):
                if not isinstance(value, str) or value not in symbols:
                    raise _mismatch(avro_type, value, path)
                append_long(self.out, symbols.index(value))
                return value
            case Union():
                return self._union(avro_type, value, path, depth)
            case Array() | Map() | Record():
                if depth > DEPTH_MAX:
                    raise _TooLarge(path, f"the default is nested deeper than {DEPTH_MAX}, or has no end")
                return self._container(avro_type, value, path, depth)
            case _:
                assert_never(avro_type)

    def _primitive(self, avro_type: AvroType, kind: Kind, value: Any, path: str) -> Any:
        out = self.out
        match kind:
            case Kind.NULL if value is None:
                return None
            case Kind.BOOLEAN if isinstance(value, bool):
                out.append(value)
                return value
            case Kind.INT if type(value) is int and INT_MIN <= value <= INT_MAX:
                append_long(out, value)
                return value
            case Kind.LONG if type(value) is int and LONG_MIN <= value <= LONG_MAX:
                append_long(out, value)
                return value
            case Kind.FLOAT | Kind.DOUBLE if type(value) in (int, float):
                raw = _float_bytes(kind, value, path)
                out += raw
                return struct.unpack("<f" if kind is Kind.FLOAT else "<d", raw)[0]
            case Kind.BYTES:
                raw = _code_points(avro_type, value, path)
            case Kind.STRING if isinstance(value, str):
                try:
                    raw = value.encode()
                except UnicodeEncodeError:
                    raise InvalidSchema(path, "has half a surrogate pair, which is not Unicode") from None
            case _:
                raise _mismatch(avro_type, value, path)
        append_long(out, len(raw))
        out += raw
        return value

    def _union(self, union: Union, value: Any, path: str, depth: int) -> Any:
        mark = len(self.out)
        mistakes: list[InvalidSchema] = []
        for index, branch in enumerate(union.branches):
            append_long(self.out, index)
            try:
                return self.write(branch, value, path, depth)
            except InvalidSchema as mistake:
                mistakes.append(mistake)
                del self.out[mark:]
        deepest = max(mistakes, key=lambda mistake: len(mistake.field))
        if len(deepest.field) > len(path):
            raise deepest
        raise _mismatch(union, value, path)

    def _container(self, avro_type: Array | Map | Record, value: Any, path: str, depth: int) -> Any:
        if not isinstance(value, list if isinstance(avro_type, Array) else dict):
            raise _mismatch(avro_type, value, path)
        if isinstance(avro_type, Record):
            return self._record(avro_type, value, path, depth)
        if value:
            append_long(self.out, len(value))
        if isinstance(avro_type, Array):
            normal: Any = [
                self.write(avro_type.items, item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)
            ]
        else:
            normal = {}
            for key in sorted(value):
                self._primitive(avro_type, Kind.STRING, key, path)
                normal[key] = self.write(avro_type.values, value[key], f"{path}[{key!r}]", depth + 1)
        self.out.append(0)
        return normal

    def _record(self, record: Record, value: Any, path: str, depth: int) -> Any:
        normal = {}
        for field in record.fields:
            given = value.get(field.name, field.default)
            if given is NO_DEFAULT:
                raise InvalidSchema(f"{path}.{field.name}", "is missing, and has no default of its own")
            normal[field.name] = self.write(field.type, given, f"{path}.{field.name}", depth + 1)
        for name in value:
            if name not in normal:
                raise InvalidSchema(f"{path}.{name}", f"{record.name} has no such field")
        return normal


def _mismatch(avro_type: AvroType, value: Any, path: str) -> InvalidSchema:
    return InvalidSchema(path, f"the default must be of type {describe_type(avro_type)}", shown(value))


def _code_points(avro_type: AvroType, value: Any, path: str) -> bytes:
    if not isinstance(value, str):
        raise _mismatch(avro_type, value, path)
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        problem = "a default of bytes is a string of the code points 0 to 255"
        raise InvalidSchema(path, problem, shown(value)) from None


def _float_bytes(kind: Kind, value: float, path: str) -> bytes:
    try:
        if math.isfinite(value):
            return struct.pack("<f" if kind is Kind.FLOAT else "<d", value)
    except OverflowError:
        pass
    raise InvalidSchema(path, f"does not fit into a {kind}", shown(value))
