"""Find the ends of bodies that stand end to end, as in Avro's container files.

Nothing is decoded, and little is checked: only that no length leads backwards or out of the data, and that no count
makes work which the data does not pay for. A body found in this way is checked when it is read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from cortado.errors import InvalidDocument
from cortado.schema.columnar.skip import Malformed, Skip, Skips
from cortado.schema.documents import validate_body
from cortado.schema.limits import FREE_ITEMS_MAX, READ_BYTES_MAX
from cortado.schema.model import Schema
from cortado.schema.shape import Sizes

_COMPILED_MAX: Final = 256


def ends_of(schema: Schema, data: bytes, position: int, rows: int) -> list[int]:
    """Return the end of each of ``rows`` documents; the first begins at ``position``.

    Raises InvalidDocument with the ``row``, from 0, of the first document that is not of ``schema``.
    """
    skip, row_bytes_min = _skipper(schema)
    ends: list[int] = []
    size = len(data)
    if rows * row_bytes_min > size - position or (not row_bytes_min and rows > FREE_ITEMS_MAX):
        raise InvalidDocument("", f"{rows} documents with {size - position} bytes left")
    try:
        for _ in range(rows):
            position = skip(data, position, size, 0)
            ends.append(position)
    except Malformed:
        raise _explained(schema, data[position:], len(ends)) from None
    return ends


def _explained(schema: Schema, body: bytes, row: int) -> InvalidDocument:
    """Return the error of the reader of single documents: a skip says only that there is no document."""
    try:
        validate_body(schema, body[:READ_BYTES_MAX])
    except InvalidDocument as error:
        return InvalidDocument("", error.message(), row=row)
    return InvalidDocument("", "leads out of the data", row=row)


@lru_cache(_COMPILED_MAX)
def _skipper(schema: Schema) -> tuple[Skip, int]:
    """Return the function that skips a document, and the fewest bytes of one."""
    return Skips(schema.root).of(schema.root), Sizes(schema.root).min_bytes(schema.root)
