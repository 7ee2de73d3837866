"""Single documents: a mapping to a body and back, against a parsed schema.

::

    encode_document(schema, {"carrier": "UA", ...})  ->  body        no value is coerced, the error names the field
    validate_body(schema, body)                                      every byte is looked at
    decode_document(writer, body, reader)            ->  dict        validated on the way, resolved to the reader

A schema's readers and writers are compiled once and kept as long as the schema is in use, so hold on to parsed schemas:
the same declaration parsed again is compiled again. Values are those of :mod:`cortado.schema.values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cortado.errors import InvalidDocument, TooLarge
from cortado.schema.decoding import Read, compile_reader
from cortado.schema.encoding import Write, compile_writer
from cortado.schema.limits import DOCUMENT_BYTES_MAX, READ_BYTES_MAX
from cortado.schema.model import AvroType, Schema
from cortado.schema.resolution import compile_resolver
from cortado.schema.walk import MISTAKES, REFUSALS, Walk, explained

_COMPILED_MAX = 1024


def encode_document(
    schema: Schema, value: Mapping[str, Any], *, bytes_max: int = DOCUMENT_BYTES_MAX, truncates: bool = False
) -> bytes:
    """Return the body of ``value``. A missing field takes its default. It ``truncates`` times that are finer than their
    type.

    Raises InvalidDocument with the field's path, TooLarge for a body over 1 MiB, or over ``bytes_max``.
    """
    body = bytearray()
    try:
        _writer(schema, truncates)(body, value, Walk())
    except REFUSALS as error:
        raise explained(error) from None
    _check_length(len(body), bytes_max)
    return bytes(body)


def decode_document(writer: Schema, body: bytes, reader: Schema | None = None) -> dict[str, Any]:
    """Return the document in ``body``, which ``writer`` wrote, as ``reader`` sees it (default: as it was written).

    Raises InvalidDocument with the field's path for a body that is not one of ``writer``, or that ``reader`` cannot
    read; TooLarge for one over 8 MiB.
    """
    read = _reader(writer) if reader is None or reader is writer else _resolver(writer, reader)
    value: dict[str, Any] = _read_whole(read, body)
    return value


def validate_body(schema: Schema, body: bytes) -> None:
    """Return if ``body`` is one value of ``schema``, all of it. Raises as :func:`decode_document`."""
    _read_whole(_reader(schema), body)


def truncated_value(type_: AvroType, value: Any) -> Any:
    """``value`` with all times in it as ``type_`` keeps them. Raises InvalidDocument with the path within it."""
    body = bytearray()
    try:
        compile_writer(type_, truncates=True)(body, value, Walk())
    except REFUSALS as error:
        raise explained(error) from None
    return _read_whole(compile_reader(type_), bytes(body))


def _read_whole(read: Read, body: bytes) -> Any:
    _check_length(len(body), READ_BYTES_MAX)
    if type(body) is not bytes:
        body = bytes(body)
    try:
        value, position = read(body, 0, Walk())
    except MISTAKES as error:
        raise explained(error) from None
    if position != len(body):
        raise InvalidDocument("", f"the document ends at byte {position} of {len(body)}")
    return value


def _check_length(length: int, limit: int) -> None:
    if length > limit:
        raise TooLarge("document", f"has {length} bytes, the limit is {limit}", length=length, limit=limit)


@lru_cache(_COMPILED_MAX)
def _writer(schema: Schema, truncates: bool) -> Write:
    return compile_writer(schema.root, truncates=truncates)


@lru_cache(_COMPILED_MAX)
def _reader(schema: Schema) -> Read:
    return compile_reader(schema.root)


@lru_cache(_COMPILED_MAX)
def _resolver(writer: Schema, reader: Schema) -> Read:
    return compile_resolver(writer.root, reader.root)
