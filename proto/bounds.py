"""How much a message may hold, told from its bytes before any of it becomes an object.

Two bytes are enough to ask for an object: eight million of them hold an event loop for seconds, and fill hundreds of
MiB, before anybody can count. So a message is walked first, field by field, as it lies there::

    12 05 ....  12 00  12 00  12 00 ...        three operations, a fourth ...
    tag length  tag length                     one step each; at the first one too many the walk ends

The walk enters a message within only where that one is long enough to hold too much, and does not begin where the
whole is not: requests of ordinary size cost a comparison. What it counts:

- the items of each repeated field and map, packed or not, against a limit that is given by the field's name. A field
  of a message that may come once counts over all places where that message is given, since a parser joins them;
- the fields that it passes, known or not, since a field that nobody knows takes time as well.

Depth follows from the declaration: no message may hold itself, and what ends within itself (a group) is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from cortado.errors import InvalidArgument, TooLarge

FIELDS_MAX: Final = 250_000
"""Fields that one walk passes, whatever the limits of the single ones multiply to."""
_FIELDS_BESIDE: Final = 1_000
"""Which no declaration of ours has: those of a newer one."""
_NEVER: Final = 1 << 62
_NOTHING_PLAIN: Final[Set[int]] = frozenset()

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NOT_ENDS: Final = bytes(range(0x80, 0x100))
"""The bytes of varints that are not their last."""
_WIRE_TYPES: Final = {
    FieldDescriptor.TYPE_DOUBLE: _FIXED64,
    FieldDescriptor.TYPE_FIXED64: _FIXED64,
    FieldDescriptor.TYPE_SFIXED64: _FIXED64,
    FieldDescriptor.TYPE_FLOAT: _FIXED32,
    FieldDescriptor.TYPE_FIXED32: _FIXED32,
    FieldDescriptor.TYPE_SFIXED32: _FIXED32,
    FieldDescriptor.TYPE_STRING: _BYTES,
    FieldDescriptor.TYPE_BYTES: _BYTES,
    FieldDescriptor.TYPE_MESSAGE: _BYTES,
}
_FIXED_BYTES: Final = {_FIXED64: 8, _FIXED32: 4}


@dataclass(slots=True)
class _Field:
    """``limit`` is None where it is not repeated; ``packed`` is the wire type of the items within a run of them."""

    name: str
    limit: int | None = None
    inside: _Shape | None = None
    packed: int | None = None


@dataclass(slots=True)
class _Shape:
    """A message's fields by their tags. One of fewer than ``safe_bytes`` cannot hold too much; ``most`` is how many
    fields it may have, those of messages within counted. Of the ``plain`` tags each is one byte, and begins what comes
    once and has nothing in it that is repeated."""

    fields: dict[int, _Field] = field(default_factory=dict)
    plain: set[int] = field(default_factory=set)
    safe_bytes: int = _NEVER
    most: int = 0


class _Malformed(Exception):
    """No message: a parser would say so as well."""


class _Excess(Exception):
    """``path`` has more items than its limit; ``count`` is None where they were too many to count."""

    def __init__(self, path: str, count: int | None, limit: int) -> None:
        super().__init__(path)
        self.path, self.count, self.limit = path, count, limit


class _TooManyFields(Exception):
    """The walk has taken as many steps as it may."""


@dataclass(slots=True)
class _Counts:
    """Of one message: its bytes, the items of its repeated fields, and the same of the messages within that may come
    once."""

    items: dict[str, int] = field(default_factory=dict)
    inside: dict[str, _Counts] = field(default_factory=dict)
    size_bytes: int = 0


class MessageBounds:
    """What messages of one type may hold; ``limits`` gives the items of each repeated field by the field's full name.

    Raises KeyError for a repeated field without a limit, ValueError for a message that may hold itself.
    """

    def __init__(self, message: type[Message], limits: Mapping[str, int], *, bytes_max: int, what: str = "") -> None:
        """``what`` names the whole in errors."""
        descriptor: Any = message.DESCRIPTOR
        self.name = descriptor.full_name
        self.bytes_max = bytes_max
        self._what = what or "request"
        self._shape = _shape_of(descriptor, limits, ())
        self.fields_max = min(self._shape.most + _FIELDS_BESIDE, FIELDS_MAX)
        self._safe_bytes = min(self._shape.safe_bytes, bytes_max + 1)

    def check(self, encoded: bytes) -> None:
        """Raises TooLarge, with the field, its count and the limit; InvalidArgument for what is no message."""
        if len(encoded) < self._safe_bytes:
            return
        if len(encoded) > self.bytes_max:
            problem = f"has {len(encoded)} bytes, the most is {self.bytes_max}"
            raise TooLarge(self._what, problem, "", len(encoded), self.bytes_max)
        if self._shape.safe_bytes > len(encoded):
            return
        try:
            _walk(encoded, 0, len(encoded), self._shape, _Counts(), self.fields_max)
        except _Excess as excess:
            count = f"more than {excess.limit}" if excess.count is None else str(excess.count)
            length = excess.limit + 1 if excess.count is None else excess.count
            raise TooLarge(excess.path, f"must be at most {excess.limit}", count, length, excess.limit) from None
        except _TooManyFields:
            problem = f"has more than {self.fields_max} fields"
            raise TooLarge(self._what, problem, "", self.fields_max + 1, self.fields_max) from None
        except (_Malformed, IndexError):
            raise InvalidArgument(self._what, f"is no serialized {self.name}") from None


# --- walking -------------------------------------------------------------------------------------------------------


def _walk(data: bytes, at: int, end: int, shape: _Shape, counts: _Counts, left: int) -> int:
    """Count what stands in ``[at, end)``; returns how many steps are left. Raises _Excess and the others."""
    fields = shape.fields
    # Items of one field most often follow one another: such a run is counted here, and stands in no table.
    run, run_count, run_limit, run_safe, run_plain = 0, 0, 0, 0, _NOTHING_PLAIN
    while at < end:
        left -= 1
        if left < 0:
            raise _TooManyFields
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = _varint(data, at - 1)
        wire_type = tag & 7
        if wire_type == _BYTES:
            length = data[at]
            at += 1
            if length >= 0x80:
                length, at = _varint(data, at - 1)
            if tag == run and run_count < run_limit:
                if length < run_safe:
                    run_count += 1
                    at += length
                    continue
                if at + length <= end and _is_plain(data, at, at + length, run_plain):
                    left -= 1
                    run_count += 1
                    at += length
                    continue
            begin = at
            at += length
        else:
            begin = at
            at = _end_of_scalar(data, at, wire_type)
        known = fields.get(tag)
        if known is None or at > end:
            continue
        if run:
            counts.items[fields[run].name] = run_count
            run = 0
        left = _count(data, begin, at, end, tag, known, counts, left)
        if wire_type == _BYTES and known.limit is not None and known.packed is None:
            run, run_count, run_limit = tag, counts.items[known.name], known.limit
            run_safe = _NEVER if known.inside is None else known.inside.safe_bytes
            run_plain = _NOTHING_PLAIN if known.inside is None else known.inside.plain
    if at > end:
        raise _Malformed
    if run:
        counts.items[fields[run].name] = run_count
    return left


def _count(data: bytes, begin: int, at: int, end: int, tag: int, known: _Field, counts: _Counts, left: int) -> int:
    """Count the field in ``[begin, at)``, and what is within it; returns how many steps are left."""
    name, inside = known.name, known.inside
    if known.limit is None:
        if inside is not None and inside.safe_bytes != _NEVER:
            # All that is given of it is one message. What was passed before it was long enough is safe by itself.
            given = counts.inside.setdefault(name, _Counts())
            given.size_bytes += at - begin
            if given.size_bytes >= inside.safe_bytes:
                return _enter(data, begin, at, inside, given, left, name)
        return left
    count = counts.items.get(name, 0) + (1 if known.packed is None else _packed_items(data, begin, at, known.packed))
    counts.items[name] = count
    if count > known.limit:
        raise _Excess(name, _count_all(data, at, end, tag, known, count, left), known.limit)
    if inside is not None and at - begin >= inside.safe_bytes:
        if _is_plain(data, begin, at, inside.plain):
            return left - 1
        return _enter(data, begin, at, inside, _Counts(), left, f"{name}[{count - 1}]")
    return left


def _is_plain(data: bytes, begin: int, end: int, plain: Set[int]) -> bool:
    """Whether the message in ``[begin, end)`` is one field and no more, of a ``plain`` tag: as most operations are."""
    if data[begin] not in plain:
        return False
    length, at = _varint(data, begin + 1)
    return at + length == end


def _end_of_scalar(data: bytes, at: int, wire_type: int) -> int:
    if wire_type == _VARINT:
        while data[at] >= 0x80:
            at += 1
        return at + 1
    if wire_type not in _FIXED_BYTES:
        raise _Malformed
    return at + _FIXED_BYTES[wire_type]


def _enter(data: bytes, begin: int, end: int, shape: _Shape, counts: _Counts, left: int, name: str) -> int:
    try:
        return _walk(data, begin, end, shape, counts, left)
    except _Excess as excess:
        excess.path = f"{name}.{excess.path}"
        raise


def _count_all(data: bytes, at: int, end: int, tag: int, known: _Field, count: int, left: int) -> int | None:
    """How many items of a field there are, where that can be told in the steps that are left."""
    only = _Shape({tag: _Field(known.name, _NEVER, None, known.packed)})
    counts = _Counts({known.name: count})
    try:
        _walk(data, at, end, only, counts, min(left, 4 * count))
    except (_TooManyFields, _Malformed, IndexError):
        return None
    return counts.items[known.name]


def _packed_items(data: bytes, begin: int, end: int, wire_type: int) -> int:
    if wire_type == _VARINT:
        return len(data[begin:end].translate(None, _NOT_ENDS))
    return (end - begin) // _FIXED_BYTES[wire_type]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at ``at``, and where it ends. Raises IndexError at the end of all."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _Malformed


# --- what a declaration allows -------------------------------------------------------------------------------------


def _shape_of(descriptor: Any, limits: Mapping[str, int], within: tuple[str, ...]) -> _Shape:
    if descriptor.full_name in within:
        raise ValueError(f"{descriptor.full_name} may hold itself, so its depth has no bound")
    shape = _Shape()
    for each in descriptor.fields:
        inside = None
        if each.message_type is not None:
            inside = _shape_of(each.message_type, limits, (*within, descriptor.full_name))
        limit = limits[each.full_name] if is_repeated(each) else None
        _add(shape, each, limit, inside)
    return shape


def _add(shape: _Shape, declared: Any, limit: int | None, inside: _Shape | None) -> None:
    wire_type = _WIRE_TYPES.get(declared.type, _VARINT)
    tag = declared.number << 3 | wire_type
    tag_bytes = (tag.bit_length() + 6) // 7
    shape.fields[tag] = _Field(declared.name, limit, inside)
    if limit is None and wire_type == _BYTES and tag < 0x80 and (inside is None or inside.safe_bytes == _NEVER):
        shape.plain.add(tag)
    within = 0 if inside is None else inside.most
    shape.most += (1 if limit is None else limit) * (1 + within)
    if inside is not None:
        shape.safe_bytes = min(shape.safe_bytes, tag_bytes + 1 + inside.safe_bytes)
    if limit is None:
        return
    shape.safe_bytes = min(shape.safe_bytes, (limit + 1) * (tag_bytes + 1))
    if wire_type != _BYTES:
        shape.fields[declared.number << 3 | _BYTES] = _Field(declared.name, limit, None, wire_type)
        shape.safe_bytes = min(shape.safe_bytes, tag_bytes + 1 + (limit + 1) * _FIXED_BYTES.get(wire_type, 1))


def is_repeated(declared: Any) -> bool:
    """By the way that every protobuf from 4.21 on has, without a warning."""
    known = getattr(declared, "is_repeated", None)
    return bool(declared.label == FieldDescriptor.LABEL_REPEATED) if known is None else bool(known)


def repeated_fields(descriptor: Any) -> set[str]:
    """The full names of all repeated fields of a message, and of those within it."""
    found = {each.full_name for each in descriptor.fields if is_repeated(each)}
    for each in descriptor.fields:
        if each.message_type is not None:
            found |= repeated_fields(each.message_type)
    return found
