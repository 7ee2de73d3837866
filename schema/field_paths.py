"""Fields by path: ``a``, or ``a.b`` for field ``b`` of the record in ``a``.

A path goes through records, and through a union of null and a record; what it leads to is null where that one is.
It does not go into arrays, maps or other unions: there it would lead to many values, or to none.
"""

from __future__ import annotations

from dataclasses import dataclass

from cortado.errors import InvalidArgument
from cortado.schema.model import NULL, AvroType, Field, Record, Schema, Union
from cortado.schema.names import describe_type


@dataclass(frozen=True, slots=True)
class FoundField:
    """Where a path leads: the ``fields`` on the way, the value's ``type`` without null, and whether it may be null."""

    fields: tuple[Field, ...]
    type: AvroType
    nullable: bool

    @property
    def field(self) -> Field:
        return self.fields[-1]


def find_field(schema: Schema, path: str) -> FoundField:
    """The field at ``path``. Raises InvalidArgument, naming the path, where there is none."""
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
