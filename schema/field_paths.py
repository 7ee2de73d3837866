"""Fields by path: ``a``, or ``a.b`` for field ``b`` of the record in ``a``.

A path goes through records, and through a union of null and a record; its value is null if that record is. It does not
go into arrays, maps or other unions: there it would lead to many values, or to none.
"""

from __future__ import annotations

from dataclasses import dataclass

from cortado.errors import InvalidArgument
from cortado.schema.model import NULL, AvroType, Field, Record, Schema, Union
from cortado.schema.names import describe_type
from cortado.schema.shape import records_of, recursive_names


@dataclass(frozen=True, slots=True)
class FoundField:
    """The target of a path: the ``fields`` on the way, the value's ``type`` without null, and whether it may be
    null."""

    fields: tuple[Field, ...]
    type: AvroType
    nullable: bool

    @property
    def field(self) -> Field:
        return self.fields[-1]


def find_field(schema: Schema, path: str) -> FoundField:
    """Return the field at ``path``. Raises InvalidArgument, naming the path, if there is none."""
    inside: AvroType = schema.root
    fields: list[Field] = []
    nullable = False
    for name in path.split("."):
        if not isinstance(inside, Record):
            reached = ".".join(field.name for field in fields)
            raise InvalidArgument(path, f"{reached} is of type {describe_type(inside)}, which has no fields to name")
        field = inside.field(name)
        if field is None:
            raise InvalidArgument(path, f"{inside.name} has no field {name!r}")
        fields.append(field)
        inside = field.type
        if isinstance(inside, Union):
            value_type = inside.nullable
            nullable = nullable or NULL in inside.branches
            inside = value_type if value_type is not None else inside
    return FoundField(tuple(fields), inside, nullable)


def way_through_recursion(schema: Schema, path: str) -> str | None:
    """Return the problem of a path through a record that may hold itself; None for any other path.

    Such a record has no finite set of columns, and keys of many documents are made from columns.
    """
    for field in find_field(schema, path).fields[:-1]:
        record = field.type.nullable if isinstance(field.type, Union) else field.type
        if isinstance(record, Record) and record.name in recursive_names(records_of(record)):
            return f"leads through {field.name}, of type {record.name}, which may hold itself"
    return None
