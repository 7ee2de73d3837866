"""Schemas of some of a document's fields, for rows that are read or written by column."""

from __future__ import annotations

from functools import lru_cache

from cortado.errors import InvalidArgument, NotFound
from cortado.schema.model import Record, Schema


@lru_cache(maxsize=128)
def select_fields(schema: Schema, names: tuple[str, ...], table_name: str) -> Schema:
    """Return the schema of documents with these fields alone, in this order.

    It exists for reading and writing columns, and is not registered anywhere. Raises NotFound, InvalidArgument for a
    field that is named twice. Kept, because codecs are compiled once for each schema object.
    """
    known = {each.name: each for each in schema.record.fields}
    if not names:
        raise InvalidArgument("columns", "must name at least one field")
    for place, name in enumerate(names):
        if name not in known:
            raise NotFound("field", f"{name} in {table_name}; there are {', '.join(known)}")
        if name in names[:place]:
            raise InvalidArgument("columns", "names a field twice", name)
    record = schema.record
    chosen = Record(record.name, record.aliases, record.doc, tuple(known[name] for name in names))
    return Schema(chosen, schema.text, schema.canonical, schema.fingerprint)
