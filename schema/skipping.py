"""Where bodies end that stand end to end, as in Avro's container files.

Nothing is decoded, and little is checked: only that nothing leads backwards or out of the data, and that no count makes
work which the data does not pay for. Whoever uses a body that was found so checks it when it is read.
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
    """Where each of ``rows`` documents ends, of which the first begins at ``position``.

    Raises InvalidDocument whose ``row`` is that of the first document, from 0, that is none of ``schema``.
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
    """What the reader of single documents says of the body: a skip says only that there is none."""
    try:
        validate_body(schema, body[:READ_BYTES_MAX])
    except InvalidDocument as error:
        return InvalidDocument("", error.message(), row=row)
    return InvalidDocument("", "leads out of the data", row=row)


@lru_cache(_COMPILED_MAX)
def _skipper(schema: Schema) -> tuple[Skip, int]:
    """What skips a document, and the fewest bytes that one takes."""
    return Skips(schema.root).of(schema.root), Sizes(schema.root).min_bytes(schema.root)
