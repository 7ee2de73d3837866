"""Documents as instances of a class: a dataclass or a TypedDict, checked against a schema before it is used.

===========================  ==========================================================================
Avro                         annotation
===========================  ==========================================================================
null, boolean                ``None``, ``bool``
int, long; float, double     ``int`` (or ``float``); ``float``
string; bytes, fixed         ``str``; ``bytes``
enum                         an ``Enum`` with all its symbols, a ``Literal`` of them, or ``str``
array, map                   ``list[T]``, ``Sequence[T]`` or ``tuple[T, ...]``; ``dict[str, T]`` or ``Mapping[str, T]``
record                       a dataclass, a TypedDict, or ``dict[str, Any]``
union                        a union that admits each branch, such as ``T | None``; of several records: their classes,
                             named like the records. An ``Enum`` that would do for several enums has the name of one
logical types                as in :mod:`cortado.schema.values`
===========================  ==========================================================================

The class must admit every value that the schema does, and may admit more: the codec checks a written value, as it does
for a dict. It may lack fields of the schema. They are not seen, and written as their default. A field that the
schema lacks must have a default; it keeps that, and any other value is refused when it is written. A dataclass's field
stands for the field of the schema that is named in its metadata, else for that of its own name::

    departure: datetime = dataclasses.field(metadata={"field": "from"})

Nothing is checked twice: the check makes a pair of functions, which are kept for each class and schema.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Generic, TypeVar

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.schema.model import Array, AvroType, Map, Record, Schema
from cortado.schema.model import Enum as AvroEnum
from cortado.schema.model import Union as AvroUnion
from cortado.schema.names import simple_name
from cortado.schema.values import Branch
from cortado.store.client.annotations import (
    MAPS,
    fits,
    is_class_of_records,
    is_required,
    members,
    name_of,
    named,
    origin,
    shown,
    symbol_of,
    wanted,
)
from cortado.store.client.conversions import (
    AS_IT_IS,
    Both,
    Convert,
    Part,
    branch_reader,
    branch_writer,
    each_of,
    enum,
    field_name,
    instance_reader,
    instance_writer,
    keys_converter,
    map_dict,
    map_list,
    or_none,
    same,
)

D = TypeVar("D")


class DocumentType(Generic[D]):
    """How documents of ``schema`` are instances of ``cls``. Raises InvalidArgument if they cannot be."""

    def __init__(self, cls: type[D], schema: Schema) -> None:
        self.cls = cls
        checked = _Checked()
        both = checked.record(schema.record, cls, name_of(cls)) if is_class_of_records(cls) else None
        if both is None:
            raise InvalidArgument("document_type", "must be a dataclass or a TypedDict", shown(cls))
        checked.raise_problems()
        self._read, self._write = both.read or same, both.write or same
        self._is_instance = Mapping if typing.is_typeddict(cls) else cls

    def from_document(self, document: dict[str, Any]) -> D:
        """Return the instance that has the document's values."""
        instance: D = self._read(document)
        return instance

    def to_document(self, instance: D) -> Mapping[str, Any]:
        """Return the document that has the instance's values. Raises InvalidDocument for an instance of something
        else."""
        if not isinstance(instance, self._is_instance):
            raise InvalidDocument(
                "", f"must be of {name_of(self.cls)}, the table's document type", type(instance).__name__
            )
        document: Mapping[str, Any] = self._write(instance)
        return document


def document_type(cls: type[D], schema: Schema) -> DocumentType[D]:
    """Return a :class:`DocumentType`, kept: schemas are few, and stay."""
    if not isinstance(cls, type):
        raise InvalidArgument("document_type", "must be a dataclass or a TypedDict", type(cls).__name__)
    return _kept(cls, schema)  # type: ignore[arg-type]


@lru_cache(512)
def _kept(cls: type[D], schema: Schema) -> DocumentType[D]:
    return DocumentType(cls, schema)


def to_mapping(document: Any, schema: Schema) -> Mapping[str, Any]:
    """Return a document, perhaps an instance of a dataclass, in the codec's form. Raises InvalidArgument."""
    if dataclasses.is_dataclass(document) and not isinstance(document, type):
        return document_type(type(document), schema).to_document(document)
    mapping: Mapping[str, Any] = document
    return mapping


def to_plain(value: Any) -> Any:
    """Return a value with dataclasses as dicts, and members of enums as their symbols; for values at a path."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field_name(each): to_plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    match value:
        case Enum():
            return symbol_of(value)
        case dict():
            return {key: to_plain(each) for key, each in value.items()}
        case Branch():
            return Branch(value.name, to_plain(value.value))
        case list() | tuple() if type(value) in (list, tuple):
            return [to_plain(each) for each in value]
    return value


# --- checking ------------------------------------------------------------------------------------------------------


class _Checked:
    """One walk over a class and a schema. It collects the misfits."""

    def __init__(self) -> None:
        self._problems: list[InvalidArgument] = []
        # A record that is met within itself is converted by the functions that are being made.
        self._records: dict[tuple[int, Any], _Later] = {}

    def raise_problems(self) -> None:
        """Raise InvalidArgument for the first misfit, with the others in its notes."""
        if self._problems:
            first, *others = self._problems
            for each in others:
                first.add_note(f"also {each.message()}")
            raise first

    def _misfit(self, path: str, problem: str, hint: Any) -> Both:
        self._problems.append(InvalidArgument(f"document_type {path}", problem, shown(hint)))
        return AS_IT_IS

    # --- one value -------------------------------------------------------------------------------------------------

    def value(self, avro: AvroType, hint: Any, path: str) -> Both:
        """Return the conversions between values of ``avro`` and of the annotation ``hint``."""
        admitted = members(hint)
        if Any in admitted or object in admitted:
            return AS_IT_IS
        if isinstance(avro, AvroUnion):
            return self._union(avro, admitted, hint, path)
        member = next((each for each in admitted if fits(avro, each)), None)
        if member is None:
            return self._misfit(path, f"must admit {wanted(avro)}, as the schema says {named(avro)}", hint)
        match avro:
            case Array(items=items):
                return self._array(items, member, path)
            case Map(values=values):
                return self._map(values, member, path)
            case Record():
                return AS_IT_IS if origin(member) in MAPS else self.record(avro, member, path)
            case AvroEnum():
                return enum(member)
        return AS_IT_IS

    def _union(self, avro: AvroUnion, admitted: Sequence[Any], hint: Any, path: str) -> Both:
        found: list[tuple[AvroType, Any, Both]] = []
        for branch in avro.branches:
            fitting = [each for each in admitted if fits(branch, each) and _stands_for(each, branch, avro)]
            if not fitting:
                return self._misfit(path, f"must admit {wanted(branch)}, as the schema says {named(avro)}", hint)
            found.append((branch, fitting[0], self.value(branch, fitting[0], path)))
        if all(both == AS_IT_IS for _, _, both in found):
            return AS_IT_IS
        if avro.nullable is not None:
            [both] = [both for branch, _, both in found if branch is avro.nullable]
            return Both(or_none(both.read), or_none(both.write))
        return Both(branch_reader(found), branch_writer(found))

    def _array(self, items: AvroType, member: Any, path: str) -> Both:
        item = self.value(items, (typing.get_args(member) or (Any,))[0], f"{path}[]")
        if origin(member) is tuple:
            read, write = item.read or same, item.write or same
            return Both(lambda values: tuple(map(read, values)), lambda values: each_of(write, values))
        return Both(map_list(item.read), map_list(item.write))

    def _map(self, values: AvroType, member: Any, path: str) -> Both:
        arguments = typing.get_args(member)
        if arguments and arguments[0] not in (str, Any):
            return self._misfit(path, "must have str keys, as those of a map are", member)
        value = self.value(values, arguments[1] if arguments else Any, f"{path}{{}}")
        return Both(map_dict(value.read), map_dict(value.write))

    # --- records ---------------------------------------------------------------------------------------------------

    def record(self, avro: Record, cls: Any, path: str) -> Both:
        """Return the conversions between records and instances of a dataclass, or dicts of a TypedDict."""
        known = self._records.get((id(avro), cls))
        if known is not None:
            return known.both
        later = self._records[id(avro), cls] = _Later()
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except NameError as error:
            return self._misfit(path, f"has an annotation that cannot be resolved: {error}", cls)
        both = (
            self._typed_dict(avro, cls, hints, path)
            if typing.is_typeddict(cls)
            else self._dataclass(avro, cls, hints, path)
        )
        later.made = both
        return both

    def _dataclass(self, avro: Record, cls: Any, hints: dict[str, Any], path: str) -> Both:
        parts: list[Part] = []
        for each in dataclasses.fields(cls):
            if not each.init:
                continue
            declared = avro.field(field_name(each))
            if declared is not None:
                both = self.value(declared.type, hints[each.name], f"{path}.{each.name}")
                parts.append(Part(each.name, declared.name, both.read, both.write))
            elif each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
                problem = f"is no field of the schema's {simple_name(avro.name)}, and has no default"
                self._misfit(f"{path}.{each.name}", problem, hints[each.name])
            else:
                parts.append(Part(each.name, field_name(each), None, None, each))
        return Both(instance_reader(cls, parts), instance_writer(cls, parts))

    def _typed_dict(self, avro: Record, cls: Any, hints: dict[str, Any], path: str) -> Both:
        reads: dict[str, Convert] = {}
        writes: dict[str, Convert] = {}
        for name, hint in hints.items():
            declared = avro.field(name)
            if declared is not None:
                both = self.value(declared.type, hint, f"{path}.{name}")
                reads |= {name: both.read} if both.read is not None else {}
                writes |= {name: both.write} if both.write is not None else {}
            elif is_required(cls, name, hint):
                problem = f"is no field of the schema's {simple_name(avro.name)}, and not NotRequired"
                self._misfit(f"{path}.{name}", problem, hint)
        return Both(keys_converter(reads), keys_converter(writes))


def _stands_for(member: Any, branch: AvroType, union: AvroUnion) -> bool:
    """Whether an instance of the class ``member`` says that it is of this ``branch``. If the class would do for
    several, its name tells; a name that several have tells nothing."""
    rivals: list[Record | AvroEnum] = []
    if isinstance(branch, Record) and origin(member) not in MAPS:
        rivals = [each for each in union.branches if isinstance(each, Record)]
    elif isinstance(branch, AvroEnum) and isinstance(member, type) and issubclass(member, Enum):
        rivals = [each for each in union.branches if isinstance(each, AvroEnum) and fits(each, member)]
    named_so = [each for each in rivals if simple_name(each.name) == name_of(member)]
    return len(rivals) <= 1 or (len(named_so) == 1 and named_so[0] is branch)


class _Later:
    """Functions that are still being made, for a record that holds itself."""

    def __init__(self) -> None:
        self.made = AS_IT_IS

    @property
    def both(self) -> Both:
        return Both(lambda value: (self.made.read or same)(value), lambda value: (self.made.write or same)(value))
