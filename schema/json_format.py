"""Documents as JSON, for people, scripts and clients without an Avro library.

=========================  ================================================================================
int, long, nanoseconds     a number, exact
float, double              a number, or ``"NaN"``, ``"Infinity"``, ``"-Infinity"``
bytes, fixed               base64 (RFC 4648, with padding)
decimal, uuid              text: ``"12.50"``, ``"6f0c..."``
date, time                 ``"2013-01-31"``, ``"23:59:59[.999999]"``
timestamp                  RFC 3339: ``"2013-01-31T23:59:59[.999999]Z"``; any offset is taken
local timestamp            the same without ``Z``
duration                   ``{"months": 1, "days": 2, "milliseconds": 3}``
[null, T]                  ``null`` or T as it stands
any other union            ``null``, or ``{"branch": value}`` with the branch's name
=========================  ================================================================================

It is not Avro's own JSON encoding, which writes bytes as code points and ``{"int": 5}`` for a nullable 5.
:func:`from_json_value` makes the same document again from the result of :func:`to_json_value`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from cortado.schema.json_containers import Convert
from cortado.schema.json_reading import compile_from_json
from cortado.schema.json_writing import compile_to_json
from cortado.schema.model import AvroType, Schema
from cortado.schema.walk import REFUSALS, Walk, explained, located

_COMPILED_MAX = 1024


def to_json_value(schema: Schema | AvroType, value: Any) -> Any:
    """Return a value of the schema (or of a type in one) as JSON, which ``json.dumps`` takes.

    Fields that a record lacks are left out. Raises InvalidDocument with the path for a value that is not of the type.
    """
    try:
        return _to_json(_type_of(schema))(value, Walk())
    except REFUSALS as error:
        raise explained(error) from None


def from_json_value(schema: Schema | AvroType, json_value: Any, path: str = "") -> Any:
    """Return the value that JSON stands for, ready for :func:`~cortado.schema.documents.encode_document`.

    Fields that are missing stay so. Raises InvalidDocument, at ``path`` or inside, for JSON that is not of the type.
    """
    try:
        return _from_json(_type_of(schema))(json_value, Walk())
    except REFUSALS as error:
        raise (located(error, path) if path else explained(error)) from None


def _type_of(schema: Schema | AvroType) -> AvroType:
    return schema.root if isinstance(schema, Schema) else schema


@lru_cache(_COMPILED_MAX)
def _to_json(avro_type: AvroType) -> Convert:
    return compile_to_json(avro_type)


@lru_cache(_COMPILED_MAX)
def _from_json(avro_type: AvroType) -> Convert:
    return compile_from_json(avro_type)
