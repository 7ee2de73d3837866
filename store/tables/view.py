"""A table as one evaluation sees it: its descriptor, its schemas, and the way from documents to keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.schema.documents import decode_document
from cortado.schema.model import Schema
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
from cortado.store.keys.codec import decode_parts, encode_parts
from cortado.store.keys.keyspace import ROW_PREFIX_BYTES, check_key_length, row_prefix
from cortado.store.keys.types import KeyValue, LogicalKey
from cortado.store.tables.rows import decode_payload, key_values, show_values


class TableView:
    """One table under one state of the catalogue. Cheap to make; good for one evaluation or one scan."""

    def __init__(self, catalog: Catalog, database: str, name: str, table: TableDescriptor | None = None) -> None:
        """``table`` is the table, if it is known; else the catalogue's of that name. Raises NotFound for an unknown
        database or table."""
        self.catalog = catalog
        self.table = catalog.table(database, name) if table is None else table
        self.indexes = self.table.maintained
        """The indexes whose entries a write moves."""
        self.newest_id, self.newest = catalog.newest_schema(self.table.subject)
        self._version_ids: frozenset[int] | None = None
        self.row_prefix = row_prefix(self.table.table_id)
        self.key_label = f"primary key of table {self.table.full_name}"

    def without(self, indexes: Collection[IndexDescriptor]) -> TableView:
        """Return the same table, these indexes not maintained."""
        view = copy(self)
        view.indexes = tuple(each for each in self.indexes if each not in indexes)
        return view

    # --- schemas -----------------------------------------------------------------------------------------------

    def writer(self, schema_id: int, field: str = "schema_id") -> Schema:
        """Return the schema of that id, which must be a version of the table's subject; NotFound or InvalidArgument."""
        if schema_id == self.newest_id:
            return self.newest
        schema = self.catalog.schema(schema_id)
        if self._version_ids is None:
            self._version_ids = frozenset(each.schema_id for each in self.catalog.subject(self.table.subject).live)
        if schema_id not in self._version_ids:
            problem = f"is not a version of subject {self.table.subject}, which table {self.table.full_name} follows"
            raise InvalidArgument(field, problem, str(schema_id))
        return schema

    def stored_schema(self, schema_id: int) -> Schema:
        """Return the schema of a stored row, checked when the row was written."""
        return self.newest if schema_id == self.newest_id else self.catalog.schema(schema_id)

    def decode(self, payload: bytes) -> dict[str, Any]:
        """Return a stored row as the newest version of the subject reads it."""
        schema_id, body = decode_payload(payload)
        if schema_id == self.newest_id:
            return decode_document(self.newest, body)
        return decode_document(self.stored_schema(schema_id), body, self.newest)

    # --- keys --------------------------------------------------------------------------------------------------

    def encode_key(self, values: Sequence[KeyValue], field: str = "key") -> bytes:
        """Return a whole primary key's parts, encoded. InvalidArgument names the part; KeyTooLong the table."""
        parts = self.table.key
        if len(values) != len(parts):
            names = ", ".join(part.path for part in parts)
            problem = f"table {self.table.full_name} has a key of {len(parts)} parts ({names})"
            raise InvalidArgument(field, problem, f"{len(values)} parts")
        for value, part in zip(values, parts, strict=True):
            if value is None:
                raise InvalidArgument(f"{field}.{part.path}", "a part of the primary key cannot be null", "null")
        primary_key = encode_parts(values, parts)
        check_key_length(self.row_key(primary_key), self.key_label)
        return primary_key

    def key_of(self, document: Mapping[str, Any]) -> bytes:
        """Return the encoded primary key of a document. Raises InvalidDocument for a null part, KeyTooLong."""
        values = key_values(document, self.table.key)
        for value, part in zip(values, self.table.key, strict=True):
            if value is None:
                problem = f"is part of the primary key of table {self.table.full_name} and cannot be null"
                raise InvalidDocument(part.path, problem, "null")
        return self.encode_key(values)

    def row_key(self, primary_key: bytes) -> LogicalKey:
        return LogicalKey(self.row_prefix + primary_key)

    def primary_key_of(self, row_key: bytes) -> bytes:
        """Return the inverse of :meth:`row_key`."""
        return row_key[ROW_PREFIX_BYTES:]

    def decode_key(self, primary_key: bytes) -> tuple[KeyValue, ...]:
        return decode_parts(primary_key, self.table.key)

    def show_key(self, primary_key: bytes) -> str:
        """Return a row's name for people, in errors: ``shop.orders('UA', 7)``."""
        return f"{self.table.full_name}{show_values(self.decode_key(primary_key), self.table.key)}"
