"""Documents as JSON, in the form of :mod:`cortado.schema.json_format`. With ``longs=string`` 64-bit numbers are text,
in requests and answers: JavaScript rounds numbers beyond 2^53."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.schema.json_text import shown
from cortado.schema.model import NULL, Array, AvroType, Kind, LogicalKind, Map, Primitive, Record, Union
from cortado.schema.names import branch_name
from cortado.store.client.documents import Document
from cortado.store.gateway.calls import Call
from cortado.store.transfer.key_text import WHOLE

# The times that JSON has as numbers; the others are text anyway.
_NUMBERS: Final = (LogicalKind.TIMESTAMP_NANOS, LogicalKind.LOCAL_TIMESTAMP_NANOS)

_Convert: TypeAlias = Callable[[Any, str], Any]


def document_json(call: Call, document: Document) -> Any:
    """Return a document as the call wants it."""
    value = document.to_json()
    return each_long(document.schema.root, value, _to_text) if has_text_longs(call) else value


def longs_from_text(root: AvroType, value: Any) -> Any:
    """Return a document's JSON with its longs as numbers again. Raises InvalidDocument for text that is no whole
    number."""
    return each_long(root, value, _from_text)


def has_text_longs(call: Call) -> bool:
    """Return whether the parameter ``longs`` asks for text. Raises InvalidArgument."""
    given = call.text("longs")
    if given not in (None, "number", "string"):
        raise InvalidArgument("longs", "must be number or string", shown(given))
    return given == "string"


def each_long(of: AvroType, value: Any, convert: _Convert, path: str = "") -> Any:
    """Return ``value``, converted in each place for which the type has a long. A value that does not fit the type
    stays as it is: its later reader reports the defect."""
    match of, value:
        case Primitive(kind=Kind.LONG), _ if of.logical is None or of.logical.kind in _NUMBERS:
            return convert(value, path)
        case Record(), dict():
            found = {}
            for name, each in value.items():
                member = of.field(name)
                below = f"{path}.{name}" if path else name
                found[name] = each if member is None else each_long(member.type, each, convert, below)
            return found
        case Array(), list():
            return [each_long(of.items, each, convert, f"{path}[{i}]") for i, each in enumerate(value)]
        case Map(), dict():
            return {name: each_long(of.values, each, convert, f"{path}[{name!r}]") for name, each in value.items()}
        case Union(), _ if of.nullable is not None:
            return None if value is None else each_long(of.nullable, value, convert, path)
        case Union(), dict():
            named = {branch_name(each): each for each in of.branches if each != NULL}
            return {
                name: each_long(named[name], each, convert, path) if name in named else each
                for name, each in value.items()
            }
    return value


def _to_text(value: Any, _path: str) -> Any:
    return str(value) if type(value) is int else value


def _from_text(value: Any, path: str) -> Any:
    if not isinstance(value, str):
        return value
    if WHOLE.fullmatch(value) is None:
        raise InvalidDocument(path, "must be a whole number, or text of one", shown(value))
    return int(value)
