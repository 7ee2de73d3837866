"""The rules by which data of one schema, the *writer*, can be read with another, the *reader*.

::

    report(reader, writer)  every incompatibility, with its path       for users
    fits(reader, writer)    the verdict alone                          for choosing a union's branch
    choose_branch           which branch of the reader's union takes a writer's type

The verdict and the decoder (:mod:`cortado.schema.resolution`) rest on the same choices, so that every document of a
compatible pair decodes: a property test holds them to it. The rules are Avro's, but stricter: Avro accepts data that
fails to decode later, or decodes to another value than was written; the list is in docs/schema-evolution.md.

Recursive records are compared by assuming that a pair fits until it is refuted, and again from the start while a round
refuted any pair (a greatest fixpoint). Source: Apache Avro specification 1.12, *Schema Resolution*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from cortado.errors import InvalidSchema
from cortado.schema.model import (
    NO_DEFAULT,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Kind,
    Logical,
    LogicalKind,
    Map,
    Primitive,
    Record,
    Union,
)
from cortado.schema.names import branch_name, describe_type, listed, simple_name

_COMPARISONS_MAX: Final = 200_000
"""Types compared in one question; a thousand records of the same simple name in two unions would be a million."""


class IncompatibilityKind(StrEnum):
    """Stable names: Avro's and Confluent's first, then Cortado's own."""

    TYPE_MISMATCH = "TYPE_MISMATCH"
    NAME_MISMATCH = "NAME_MISMATCH"
    FIXED_SIZE_MISMATCH = "FIXED_SIZE_MISMATCH"
    MISSING_ENUM_SYMBOLS = "MISSING_ENUM_SYMBOLS"
    MISSING_UNION_BRANCH = "MISSING_UNION_BRANCH"
    READER_FIELD_MISSING_DEFAULT_VALUE = "READER_FIELD_MISSING_DEFAULT_VALUE"
    LOGICAL_TYPE_CHANGED = "LOGICAL_TYPE_CHANGED"
    DECIMAL_SCALE_CHANGED = "DECIMAL_SCALE_CHANGED"
    DECIMAL_PRECISION_NARROWED = "DECIMAL_PRECISION_NARROWED"
    PINNED_FIELD_REMOVED = "PINNED_FIELD_REMOVED"
    PINNED_FIELD_RETYPED = "PINNED_FIELD_RETYPED"
    PINNED_DEFAULT_CHANGED = "PINNED_DEFAULT_CHANGED"


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """Why a schema may not follow another one.

    ``path`` is a place such as ``Flight.stops[].delay`` (``[]`` an array's items, ``{}`` a map's values, ``(long)`` a
    union's branch), ``kind`` an :class:`IncompatibilityKind`, ``version`` the earlier version that it was found with.
    """

    path: str
    kind: str
    message: str
    version: int = 0


PROMOTIONS: Final = {
    (Kind.INT, Kind.LONG),
    (Kind.INT, Kind.FLOAT),
    (Kind.INT, Kind.DOUBLE),
    (Kind.LONG, Kind.FLOAT),
    (Kind.LONG, Kind.DOUBLE),
    (Kind.FLOAT, Kind.DOUBLE),
    (Kind.STRING, Kind.BYTES),
}
"""(writer's kind, reader's kind). Avro also has bytes to string, which fails for bytes that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class _Inner:
    """Two types to compare next; ``step`` is how the path goes on."""

    reader: AvroType
    writer: AvroType
    step: str


_Difference: TypeAlias = Incompatibility | _Inner


def sources_of(reader: Record, writer: Record) -> list[Field | None]:
    """For each of the reader's fields the writer's that it is read from: by its name, else by its aliases in order."""
    written = {field.name: field for field in writer.fields}
    return [
        next((written[name] for name in (field.name, *field.aliases) if name in written), None)
        for field in reader.fields
    ]


def logical_differences(reader: Logical | None, writer: Logical | None, path: str) -> Iterator[Incompatibility]:
    """Yield why one logical type cannot be read as another, the types below them being readable."""
    if reader == writer:
        return
    decimal = LogicalKind.DECIMAL
    if reader is None or writer is None or reader.kind is not decimal or writer.kind is not decimal:
        was, now = ("none" if each is None else each.kind.value for each in (writer, reader))
        message = f"the logical type was {was} and would be {now}: the same bytes would mean something else"
        yield Incompatibility(path, IncompatibilityKind.LOGICAL_TYPE_CHANGED, message)
        return
    if reader.scale != writer.scale:
        message = f"the scale was {writer.scale} and would be {reader.scale}: every value would be another one"
        yield Incompatibility(path, IncompatibilityKind.DECIMAL_SCALE_CHANGED, message)
    if reader.precision < writer.precision:
        message = f"the precision was {writer.precision} and would be {reader.precision}: values may not fit"
        yield Incompatibility(path, IncompatibilityKind.DECIMAL_PRECISION_NARROWED, message)


class ReaderWriter:
    """Questions about one pair of schemas. ``reader`` and ``writer`` in its methods are types within the pair."""

    def __init__(self) -> None:
        self._proven: set[tuple[str, str]] = set()
        self._refuted: set[tuple[str, str]] = set()
        self._assumed: set[tuple[str, str]] = set()
        self._reported: set[tuple[str, str]] = set()
        self._comparisons = 0

    def fits(self, reader: AvroType, writer: AvroType) -> bool:
        """Return whether every value of ``writer`` can be read as ``reader``."""
        while True:
            known = len(self._refuted)
            self._assumed = set()
            verdict = self._fits(reader, writer)
            if len(self._refuted) == known:
                # Every assumption of this round was checked, and each needs only the others.
                self._proven |= self._assumed - self._refuted
                return verdict

    def report(self, reader: AvroType, writer: AvroType, path: str) -> Iterator[Incompatibility]:
        """Yield every reason why ``reader`` cannot read all that ``writer`` writes; none if and only if it fits.

        A pair of records that is met again, at another path, is reported once.
        """
        if isinstance(writer, Union):
            for branch in writer.branches:
                place = path if writer.nullable is not None else f"{path}({branch_name(branch)})"
                yield from self.report(reader, branch, place)
            return
        if isinstance(reader, Union):
            yield from self._report_in_union(reader, writer, path)
            return
        if isinstance(reader, Record) and isinstance(writer, Record):
            pair = (reader.name, writer.name)
            if pair in self._reported:
                return
            self._reported.add(pair)
        for difference in _compare(reader, writer, path):
            if isinstance(difference, Incompatibility):
                yield difference
            else:
                yield from self.report(difference.reader, difference.writer, path + difference.step)

    def choose_branch(self, reader: Union, writer: AvroType) -> AvroType | None:
        """Return the branch that ``writer``'s values are read as: the same type if it fits, else the first that does.

        If none fits, the branch of the same name or kind, with which some values may be readable; else None.
        """
        same = [branch for branch in reader.branches if branch_name(branch) == branch_name(writer)]
        others = [branch for branch in reader.branches if branch not in same]
        for branch in [*same, *others]:
            if self.fits(branch, writer):
                return branch
        for branch in [*same, *others]:
            if type(branch) is type(writer) and not isinstance(branch, Primitive) and _names_match(branch, writer):
                return branch
        return same[0] if same else None

    def _report_in_union(self, reader: Union, writer: AvroType, path: str) -> Iterator[Incompatibility]:
        chosen = self.choose_branch(reader, writer)
        if chosen is None:
            message = f"no branch takes {describe_type(writer)}; there is {describe_type(reader)}"
            yield Incompatibility(path, IncompatibilityKind.MISSING_UNION_BRANCH, message)
        elif not self.fits(chosen, writer):
            yield from self.report(chosen, writer, path)

    def _fits(self, reader: AvroType, writer: AvroType) -> bool:
        self._comparisons += 1
        if self._comparisons > _COMPARISONS_MAX:
            problem = f"takes more than {_COMPARISONS_MAX} comparisons of types: too many branches with the same name"
            raise InvalidSchema("schema", problem)
        if isinstance(writer, Union):
            return all(self._fits(reader, branch) for branch in writer.branches)
        if isinstance(reader, Union):
            return any(self._fits(branch, writer) for branch in reader.branches)
        if not isinstance(reader, Record) or not isinstance(writer, Record):
            return self._no_difference(reader, writer)
        pair = (reader.name, writer.name)
        if pair in self._refuted:
            return False
        if pair not in self._proven and pair not in self._assumed:
            self._assumed.add(pair)
            if not self._no_difference(reader, writer):
                self._refuted.add(pair)
                return False
        return True

    def _no_difference(self, reader: AvroType, writer: AvroType) -> bool:
        return all(
            isinstance(difference, _Inner) and self._fits(difference.reader, difference.writer)
            for difference in _compare(reader, writer, "")
        )


def _compare(reader: AvroType, writer: AvroType, path: str) -> Iterator[_Difference]:
    """Differences between two types, neither a union, at this level, and the pairs of types within them."""
    match reader, writer:
        case Primitive(), Primitive():
            if reader.kind is writer.kind or (writer.kind, reader.kind) in PROMOTIONS:
                yield from logical_differences(reader.logical, writer.logical, path)
            else:
                yield _type_mismatch(reader, writer, path)
        case Array(), Array():
            yield _Inner(reader.items, writer.items, "[]")
        case Map(), Map():
            yield _Inner(reader.values, writer.values, "{}")
        case Fixed(), Fixed():
            yield from _name_mismatch(reader, writer, path)
            if reader.size != writer.size:
                message = f"the size was {writer.size} and would be {reader.size}"
                yield Incompatibility(path, IncompatibilityKind.FIXED_SIZE_MISMATCH, message)
            else:
                yield from logical_differences(reader.logical, writer.logical, path)
        case Enum(), Enum():
            yield from _name_mismatch(reader, writer, path)
            known = set(reader.symbols)
            missing = [symbol for symbol in writer.symbols if symbol not in known]
            if missing and reader.default is None:
                message = f"{reader.name} lacks {listed(missing)}, and has no default for them"
                yield Incompatibility(path, IncompatibilityKind.MISSING_ENUM_SYMBOLS, message)
        case Record(), Record():
            yield from _name_mismatch(reader, writer, path)
            yield from _compare_fields(reader, writer, path)
        case _:
            yield _type_mismatch(reader, writer, path)


def _compare_fields(reader: Record, writer: Record, path: str) -> Iterator[_Difference]:
    for field, source in zip(reader.fields, sources_of(reader, writer), strict=True):
        if source is not None:
            yield _Inner(field.type, source.type, f".{field.name}")
        elif field.default is NO_DEFAULT:
            message = "the reader has this field and no default for it, and the writer does not write it"
            kind = IncompatibilityKind.READER_FIELD_MISSING_DEFAULT_VALUE
            yield Incompatibility(f"{path}.{field.name}", kind, message)


def _names_match(reader: AvroType, writer: AvroType) -> bool:
    """Return whether two types of the same kind go together: if they are named, by simple name or by alias."""
    match reader, writer:
        case (Record() | Enum() | Fixed(), Record() | Enum() | Fixed()):
            return simple_name(reader.name) == simple_name(writer.name) or writer.name in reader.aliases
        case _:
            return True


def _name_mismatch(
    reader: Record | Enum | Fixed, writer: Record | Enum | Fixed, path: str
) -> Iterator[Incompatibility]:
    if not _names_match(reader, writer):
        message = f"the name was {writer.name} and would be {reader.name}, without an alias to the old one"
        yield Incompatibility(path, IncompatibilityKind.NAME_MISMATCH, message)


def _type_mismatch(reader: AvroType, writer: AvroType, path: str) -> Incompatibility:
    message = f"{describe_type(writer)} cannot be read as {describe_type(reader)}"
    return Incompatibility(path, IncompatibilityKind.TYPE_MISMATCH, message)
