"""Functions between documents and instances, put together once for each class and schema.

None of them raises for a value of the wrong kind: it stays what it is, and the codec refuses it with its path.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from cortado.schema.model import Array, AvroType, Map, Record
from cortado.schema.names import branch_name
from cortado.schema.values import Branch
from cortado.store.client.annotations import symbol_of

FIELD: Final = "field"
"""The key of a dataclass field's metadata that names the field of the schema."""

Convert = Callable[[Any], Any]


class Both(NamedTuple):
    """The conversions of a value on reading and on writing; None if it stays as it is."""

    read: Convert | None = None
    write: Convert | None = None


AS_IT_IS: Final = Both()


class Part(NamedTuple):
    """A field of a dataclass: its name there, that in the schema, and its conversions.

    ``extra`` is set if the schema has no such field: there is only its default.
    """

    attribute: str
    name: str
    read: Convert | None
    write: Convert | None
    extra: dataclasses.Field[Any] | None = None


def field_name(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get(FIELD, field.name))


def same(value: Any) -> Any:
    return value


def enum(hint: Any) -> Both:
    if not (isinstance(hint, type) and issubclass(hint, Enum)):
        return AS_IT_IS
    members = {symbol_of(member): member for member in hint}
    return Both(members.__getitem__, _symbol_of)


def _symbol_of(value: Any) -> Any:
    return symbol_of(value) if isinstance(value, Enum) else value


def or_none(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def each_of(convert: Convert, values: Any) -> Any:
    # A value that is no list stays as it is: the codec refuses it, with its path.
    return [convert(value) for value in values] if isinstance(values, list | tuple) else values


def map_list(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda values: each_of(convert, values)


def map_dict(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None

    def each(values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        return {key: convert(value) for key, value in values.items()}

    return each


def keys_converter(converts: dict[str, Convert]) -> Convert | None:
    if not converts:
        return None

    def convert(document: Any) -> Any:
        if not isinstance(document, Mapping):
            return document
        return {**document, **{name: each(document[name]) for name, each in converts.items() if name in document}}

    return convert


def instance_reader(cls: Any, parts: Sequence[Part]) -> Convert:
    plain = [(each.attribute, each.name) for each in parts if each.extra is None and each.read is None]
    converted = [(each.attribute, each.name, each.read) for each in parts if each.read is not None]

    def read(document: Any) -> Any:
        values = {attribute: document[name] for attribute, name in plain}
        for attribute, name, convert in converted:
            values[attribute] = convert(document[name])
        return cls(**values)

    return read


def instance_writer(cls: Any, parts: Sequence[Part]) -> Convert:
    converts = [(each.attribute, each.name, each.write or same) for each in parts if each.extra is None]
    extras = [(each.attribute, each.name, each.extra) for each in parts if each.extra is not None]

    def write(instance: Any) -> Any:
        if not isinstance(instance, cls):
            return instance
        document = {name: convert(getattr(instance, attribute)) for attribute, name, convert in converts}
        for attribute, name, field in extras:
            value = getattr(instance, attribute)
            if value != _default_of(field):
                document[name] = value  # Which the codec refuses: the schema has no such field.
        return document

    return write


def _default_of(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def branch_reader(found: Sequence[tuple[AvroType, Any, Both]]) -> Convert:
    by_name = {branch_name(branch): both.read for branch, _, both in found if both.read is not None}
    by_type = {_type_read(branch): both.read for branch, _, both in found if both.read is not None}

    def read(value: Any) -> Any:
        if isinstance(value, Branch):
            # One that is not converted stays a Branch: its value alone would not say which it is.
            named = by_name.get(value.name)
            return value if named is None else named(value.value)
        convert = by_type.get(type(value))
        return value if convert is None else convert(value)

    return read


def _type_read(branch: AvroType) -> type:
    match branch:
        case Array():
            return list
        case Map() | Record():
            return dict
    return str  # Only symbols of the other types are converted.


def branch_writer(found: Sequence[tuple[AvroType, Any, Both]]) -> Convert:
    by_class = {
        member: (branch_name(branch), both.write or same) for branch, member, both in found if isinstance(member, type)
    }
    by_name = {branch_name(branch): both.write for branch, _, both in found if both.write is not None}
    by_type = {_type_read(branch): both.write for branch, _, both in found if both.write is not None}

    def write(value: Any) -> Any:
        if isinstance(value, Branch):
            # A Branch is a tuple, and no array.
            named = by_name.get(value.name)
            return value if named is None else Branch(value.name, named(value.value))
        known = by_class.get(type(value))
        if known is not None and (dataclasses.is_dataclass(value) or isinstance(value, Enum)):
            name, convert = known
            return Branch(name, convert(value))
        by_kind = by_type.get(list if isinstance(value, tuple) else type(value))
        return value if by_kind is None else by_kind(value)

    return write
