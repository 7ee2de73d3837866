"""Partial updates: new values at field paths, set in a copy of a document.

A path goes through records, and through nullable records that are not null. It does not reach into arrays, maps or
other unions: those are replaced whole. The parts of the primary key cannot change, since they *are* the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cortado.errors import InvalidArgument, NotFound, TooLarge
from cortado.schema.json_format import from_json_value
from cortado.schema.limits import SCHEMA_FIELDS_MAX
from cortado.schema.model import AvroType, Record, Union
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.tables.rows import path_names
from cortado.store.tables.view import TableView

CHANGES_MAX: Final = SCHEMA_FIELDS_MAX
"""Paths in one update: as many as a schema may have fields."""


def apply_changes(view: TableView, document: Mapping[str, Any], changes: Mapping[str, Any], *, json: bool) -> Any:
    """Return a copy of ``document`` with the ``changes``; unchanged parts are shared with it.

    Raises InvalidArgument or NotFound naming the path, InvalidDocument for a JSON value of the wrong type. Python
    values are checked when the document is encoded.
    """
    if len(changes) > CHANGES_MAX:
        problem = f"names {len(changes)} fields, an update may change {CHANGES_MAX}"
        raise TooLarge("changes", problem, length=len(changes), limit=CHANGES_MAX)
    _check_paths(view.table, changes)
    changed = dict(document)
    for path, value in changes.items():
        field_type = type_at(view.newest.root, path, view.table)
        _set(changed, path, from_json_value(field_type, value, path) if json else value)
    return changed


def type_at(root: AvroType, path: str, table: TableDescriptor) -> AvroType:
    """Return the type at a path through records and nullable records. Raises NotFound naming the field."""
    found = root
    for depth, name in enumerate(path_names(path)):
        record = found.nullable if isinstance(found, Union) else found
        field = record.field(name) if isinstance(record, Record) else None
        if field is None:
            parent = ".".join(path_names(path)[:depth])
            detail = f" ({parent} is not a record)" if depth and not isinstance(record, Record) else ""
            raise NotFound("field", f"{path} of table {table.full_name}{detail}")
        found = field.type
    return found


def _check_paths(table: TableDescriptor, changes: Mapping[str, Any]) -> None:
    for path in changes:
        for part in table.key:
            if _overlap(path, part.path):
                problem = f"holds {part.path}, a part of the primary key of table {table.full_name}, and cannot change"
                raise InvalidArgument(path, problem)
    for shorter, longer in zip(ordered := sorted(changes, key=path_names), ordered[1:], strict=False):
        if _overlap(shorter, longer):
            raise InvalidArgument(longer, f"is changed twice: {shorter} holds it")


def _overlap(one: str, other: str) -> bool:
    """Return whether one path is the other or leads to it."""
    return all(a == b for a, b in zip(path_names(one), path_names(other), strict=False))


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path_names(path)
    target = document
    for depth, name in enumerate(parents):
        if target[name] is None:
            parent = ".".join(parents[: depth + 1])
            raise InvalidArgument(path, f"cannot be set, since {parent} is null: set {parent} as a whole")
        target[name] = dict(target[name])  # Not shared with the old document, whose index entries are still needed.
        target = target[name]
    target[last] = value
