"""Fields that stored keys rest on, and their properties that must not change.

A primary key and an index hold values that were worked out from documents as they were when they were written. A new
schema version that reads the same bytes as another value, or as another type of key, would make stored keys wrong
without touching one of them: int to double is compatible in Avro, and changes the key's bytes. So beyond compatibility,
which a subject may even switch off, a pinned field keeps

- its place: it exists, under the name that the key is declared with, read from the same field of old documents;
- its key type (int and long share one, so int to long is welcome), and a nullable part of a key stays understood;
- its default, and those of the records around it: the key of a document without the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cortado.errors import InvalidArgument
from cortado.schema.defaults import normal_default
from cortado.schema.field_paths import FoundField, find_field
from cortado.schema.json_text import shown
from cortado.schema.key_types import key_type_of
from cortado.schema.model import NO_DEFAULT, Enum, Field, Schema
from cortado.schema.names import describe_type, listed
from cortado.schema.reader_writer import Incompatibility, IncompatibilityKind, ReaderWriter


def check_pinned(new: Schema, old: Schema, paths: Sequence[str]) -> list[Incompatibility]:
    """Return the incompatible changes of ``new`` to the key and indexed fields at ``paths``, which ``old`` has."""
    return [found for path in paths for found in _check_path(new, old, path)]


def _check_path(new: Schema, old: Schema, path: str) -> Iterator[Incompatibility]:
    try:
        before = find_field(old, path)
    except InvalidArgument:
        return  # No key can have been stored for a field that was not there.
    try:
        after = find_field(new, path)
    except InvalidArgument as missing:
        yield Incompatibility(path, IncompatibilityKind.PINNED_FIELD_REMOVED, f"stored keys need it: {missing.problem}")
        return
    problem = _retyped(new, old, path, after, before)
    if problem is not None:
        yield Incompatibility(path, IncompatibilityKind.PINNED_FIELD_RETYPED, problem)
        return
    for position, (field_after, field_before) in enumerate(zip(after.fields, before.fields, strict=True)):
        names = [field.name for field in after.fields[position + 1 :]]
        was, now = _default_of(field_before, names), _default_of(field_after, names)
        if was is not NO_DEFAULT and was != now:
            place = ".".join(field.name for field in after.fields[: position + 1])
            message = f"the default was {shown(was)} and would be {_default_text(now)}: documents without it have keys"
            yield Incompatibility(place, IncompatibilityKind.PINNED_DEFAULT_CHANGED, message)


def _retyped(new: Schema, old: Schema, path: str, after: FoundField, before: FoundField) -> str | None:
    """Return why stored keys would not be those of the new type; None if they are."""
    was, _ = key_type_of(old, path)
    try:
        now, _ = key_type_of(new, path)
    except InvalidArgument as refused:
        return f"its key type is {was}: {refused.problem}"
    if was != now:
        types = f"{describe_type(before.type)} would be {describe_type(after.type)}"
        return f"its key type is {was} and would be {now}: {types}"
    if isinstance(before.type, Enum) and isinstance(after.type, Enum):
        kept = set(after.type.symbols)
        lost = [symbol for symbol in before.type.symbols if symbol not in kept]
        if lost:
            return f"stored keys may hold {listed(lost)}, which the enum would lack"
    differences = list(ReaderWriter().report(after.field.type, before.field.type, path))
    return "; ".join(each.message for each in differences) or None


def _default_of(field: Field, inner_names: Sequence[str]) -> Any:
    """Return the value at the path ``inner_names`` of a document without ``field``; NO_DEFAULT if such a document is
    refused."""
    if field.default is NO_DEFAULT:
        return NO_DEFAULT
    value = normal_default(field.type, field.default)
    for name in inner_names:
        if value is None:
            return None
        value = value[name]
    return value


def _default_text(default: Any) -> str:
    return "gone" if default is NO_DEFAULT else shown(default)
