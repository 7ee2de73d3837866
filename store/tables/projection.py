"""Projection: the schema of chosen fields, and the columns that it keeps.

``["carrier", "engine.type"]`` of a flight gives documents of the shape ``{"carrier": ..., "engine": {"type": ...}}``:
the fields in the order in which they were asked for, nested ones inside of their (perhaps nullable) records, so a
projected document reads like the whole one with parts left out. A record that lost fields is another type than the
registered one, and gets a name of its own.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cortado.errors import InvalidArgument, NotFound
from cortado.schema.canonical import MeaningForm
from cortado.schema.columnar.column import Column, RecordColumn
from cortado.schema.field_paths import way_through_recursion
from cortado.schema.model import AvroType, Field, Record, Schema, Union
from cortado.schema.parse import parse_document_schema
from cortado.store.tables.rows import path_names

Tree: TypeAlias = "dict[str, Tree | None]"
"""The kept fields of a record in order, each whole (None) or in part."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Chosen fields of a reader's schema: ``schema`` is that of projected documents."""

    schema: Schema
    tree: Tree

    @property
    def fields(self) -> list[str]:
        """Return the fields of the whole document that are needed, in order."""
        return list(self.tree)

    def prune(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """Return the projected document's columns, from the whole fields' ones."""
        return {
            field.name: _prune(columns[field.name], field.type, self.tree[field.name])
            for field in self.schema.record.fields
        }


def project(schema: Schema, paths: Sequence[str], table_name: str) -> Projection:
    """Return the projection to these paths. Raises NotFound for a field that the schema lacks. Raises InvalidArgument
    for a path that is named twice, or goes through another type than records or through a record that may hold
    itself."""
    return _project(schema, tuple(paths), table_name)


@functools.lru_cache(maxsize=128)
def _project(schema: Schema, paths: tuple[str, ...], table_name: str) -> Projection:
    """Kept, because each page of a scan asks again, and a schema that is parsed anew has its codecs compiled anew."""
    tree: Tree = {}
    seen: set[str] = set()
    for path in paths:
        if not path:
            raise InvalidArgument("columns", "must be paths of fields, and one is empty")
        if path in seen:
            raise InvalidArgument("columns", "names a field twice", path)
        seen.add(path)
        _check_path(schema.record, path, table_name)
        recursion = way_through_recursion(schema, path)
        if recursion is not None:
            raise InvalidArgument("columns", recursion, path)
        _add(tree, path_names(path))
    text = json.dumps(_ProjectedForm().record(schema.record, tree, "projection"))
    return Projection(parse_document_schema(text), tree)


def _check_path(root: Record, path: str, table_name: str) -> None:
    found: AvroType = root
    for depth, name in enumerate(path_names(path)):
        record = _record_of(found)
        if record is None:
            parent = ".".join(path_names(path)[:depth])
            raise InvalidArgument("columns", f"{parent} of table {table_name} is no record, and has no fields", path)
        field = record.field(name)
        if field is None:
            raise NotFound("field", f"{path} of table {table_name}")
        found = field.type


def _record_of(avro_type: AvroType) -> Record | None:
    """Return a record, or the record of a nullable one."""
    inner = avro_type.nullable if isinstance(avro_type, Union) else avro_type
    return inner if isinstance(inner, Record) else None


def _add(tree: Tree, names: Sequence[str]) -> None:
    """Keep the field of that path; the whole of a record wins over its parts."""
    name, *below = names
    if not below:
        tree[name] = None
        return
    inner = tree.setdefault(name, {})
    if inner is not None:
        _add(inner, below)


def _prune(column: Column, projected: AvroType, tree: Tree | None) -> Column:
    record = _record_of(projected)
    if tree is None or record is None:
        return column
    assert isinstance(column, RecordColumn)
    children = {
        field.name: _prune(column.children[field.name], field.type, tree[field.name]) for field in record.fields
    }
    return dataclasses.replace(column, type=record, children=children)


class _ProjectedForm(MeaningForm):
    """The JSON of a projected document's schema.

    Not the canonical form, which is only ever compared: this JSON is parsed again, so every declaration states its
    namespace. Without it a type of no namespace would take the one of the record around it.
    """

    def name(self, full_name: str) -> dict[str, Any]:
        namespace, _, name = full_name.rpartition(".")
        return {"name": name, "namespace": namespace}

    def record(self, record: Record, tree: Tree, suffix: str) -> dict[str, Any]:
        """Return the part of a record that ``tree`` keeps, under another name."""
        fields = []
        for name, below in tree.items():
            field = record.field(name)
            assert field is not None  # The path was checked.
            fields.append(self.field(field) if below is None else self._part(field, below, f"{suffix}_{name}"))
        return {"type": "record", **self.name(f"{record.name}_{suffix}"), "fields": fields}

    def _part(self, field: Field, tree: Tree, suffix: str) -> dict[str, Any]:
        """Without its default, which was one of the whole record."""
        record = _record_of(field.type)
        assert record is not None
        inner: Any = self.record(record, tree, suffix)
        if isinstance(field.type, Union):
            inner = [inner if branch is record else "null" for branch in field.type.branches]
        return {"name": field.name, "type": inner}
