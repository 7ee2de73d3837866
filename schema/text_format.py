"""Values as the texts of cells, such as CSV has them: their JSON without its quotes.

==========================  =====================================================================================
string, enum                as it is
boolean                     ``true`` or ``false``, in any case
int, long, nanoseconds      ``-12``
float, double               ``12.5``, ``NaN``, ``Infinity``, ``-Infinity``
bytes, fixed                base64, with padding
decimal, uuid, date, time   ``12.50``, ``9f0c6a52-...``, ``2013-01-31``, ``23:59:59.5``
timestamp                   RFC 3339: ``2013-01-31T23:59:59.5Z``; read also with a space, and without seconds
local timestamp             the same without ``Z``
[null, T]                   T; how a cell says null is not decided here: null is ``None``
any other type              JSON: ``[1, 2]``, ``{"city": "Rome"}``, ``{"branch": value}``
==========================  =====================================================================================

:func:`from_texts` makes the same document again from the result of :func:`to_texts`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, Final, TypeAlias

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.rfc3339 import Impossible, exact_instant, exact_local, exact_time, parse_date
from cortado.schema.json_bounds import check_json_bounds
from cortado.schema.json_format import from_json_value, to_json_value
from cortado.schema.json_text import BYTE_ORDER_MARK, json_text, parse_json, shown_text
from cortado.schema.model import NULL, AvroType, Record, Schema, Union
from cortado.schema.names import describe_type
from cortado.schema.union_branches import class_of_type
from cortado.schema.walk import located

Read: TypeAlias = Callable[[str], Any]

_COMPILED_MAX: Final = 1024
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_FLOAT_WORDS: Final = {
    "nan": float("nan"),
    "inf": float("inf"),
    "infinity": float("inf"),
    "-inf": float("-inf"),
    "-infinity": float("-inf"),
}
_BOOLEANS: Final = {"true": True, "false": False}


def admits_null(avro_type: AvroType) -> bool:
    """Return whether a value of the type may be null."""
    return NULL in avro_type.branches if isinstance(avro_type, Union) else avro_type == NULL


def from_texts(schema: Schema, texts: Mapping[str, Any], *, empty_is_null: bool = False) -> dict[str, Any]:
    """Return a document from the texts of its fields, ready for :func:`~cortado.schema.documents.encode_document`.

    Values that are no texts stay as they are. ``empty_is_null``: the empty text is null if the field may be null.
    Raises InvalidDocument, with the field, for a text that is not of its type.
    """
    reads = _reads(schema.record, empty_is_null)
    document: dict[str, Any] = {}
    for name, text in texts.items():
        read = reads.get(name)
        if read is None:
            # Python's DictReader has cells beyond the header under None.
            problem = "has more cells than the header" if name is None else "the schema has no such field"
            if isinstance(name, str) and name.startswith(BYTE_ORDER_MARK):
                problem = "begins with a byte order mark: open the file with the encoding utf-8-sig"
            raise InvalidDocument("" if name is None else str(name), problem)
        document[name] = _read(read, name, text) if isinstance(text, str) else text
    return document


def to_texts(schema: Schema, document: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the texts of a document's fields, None for null. Raises InvalidDocument for a value that is not of its
    type."""
    return {name: None if value is None else _text(value) for name, value in to_json_value(schema, document).items()}


def _text(json_value: Any) -> str:
    return json_value if isinstance(json_value, str) else json_text(json_value)


def _read(read: Read, name: str, text: str) -> Any:
    try:
        return read(text)
    except InvalidDocument as error:
        raise located(error, name) from None


@lru_cache(_COMPILED_MAX)
def _reads(record: Record, empty_is_null: bool) -> dict[str, Read]:
    reads = {field.name: _reader(field.type) for field in record.fields}
    if empty_is_null:
        reads |= {each.name: _or_null(reads[each.name]) for each in record.fields if admits_null(each.type)}
    return reads


def _or_null(read: Read) -> Read:
    return lambda text: None if text == "" else read(text)


def _reader(avro_type: AvroType) -> Read:
    inner = avro_type.nullable if isinstance(avro_type, Union) else avro_type
    if inner is None:
        return _json_reader(avro_type)
    kind = class_of_type(inner)
    if kind in ("list", "dict", "union", "duration"):
        return _json_reader(inner)
    read = _OF_CLASS.get(kind) or (lambda text: from_json_value(inner, text))
    wanted = f"must fit the type {describe_type(inner)}"
    if kind in _EXAMPLES:
        wanted += f", such as {_EXAMPLES[kind]}"

    def checked(text: str) -> Any:
        try:
            return read(text)
        except Impossible as impossible:
            raise InvalidDocument("", f"{wanted}: {impossible}", shown_text(text)) from None
        except (ValueError, InvalidDocument):
            raise InvalidDocument("", wanted, shown_text(text)) from None

    return checked


def _json_reader(avro_type: AvroType) -> Read:
    def read(text: str) -> Any:
        try:
            check_json_bounds(text.encode("utf-8", "surrogatepass"), "")
            value = parse_json(text, "", InvalidDocument)
        except InvalidDocument as error:
            problem = f"must fit the type {describe_type(avro_type)}, as JSON: {error.problem}"
            raise InvalidDocument("", problem, error.value) from None
        except InvalidArgument as error:
            raise InvalidDocument("", error.problem, error.value) from None
        return from_json_value(avro_type, value)

    return read


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise ValueError
    return value


def _integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ValueError
    return int(text)


def _float(text: str) -> float:
    if _NUMBER.fullmatch(text) is not None:
        value = float(text)
        # Python reads 1e400 as an infinity that the text does not have.
        if isfinite(value):
            return value
    word = _FLOAT_WORDS.get(text.lower())
    if word is None:
        raise ValueError
    return word


_OF_CLASS: Final[dict[str, Read]] = {
    "boolean": _boolean,
    "int": _integer,
    "float": _float,
    "date": parse_date,
    "time": exact_time,
    "timestamp": exact_instant,
    "local": exact_local,
}
_EXAMPLES: Final = {
    "boolean": "true",
    "int": "12",
    "float": "12.5",
    "bytes": "AP8=, which is base64",
    "decimal": "12.50",
    "uuid": "9f0c6a52-3f6e-4a7b-8f52-4f1e6a1d2c3b",
    "date": "2013-01-31",
    "time": "23:59:59.5",
    "timestamp": "2013-01-31T23:59:59.5Z",
    "local": "2013-01-31T23:59:59.5",
}
