"""Columns of stored rows by the compiled walk, if the kernel packed the rows and knows all types of their schema.

::

    schema, paths  ->  program (store/mvcc/walks.py), made once
    bodies         ->  arrays of each wanted field  ->  FlatColumn, BytesColumn

Unknown types are arrays, maps, unions of more than null and a type, nulls by themselves, and records within themselves.
Only fields of a record can be wanted, not the record as a whole. In these cases, and if a body does not fit its schema,
the columnar codec makes the columns, or names the error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from cortado.schema.columnar.column import BytesColumn, Column, FlatColumn
from cortado.schema.columnar.ranges import decimal_bound, is_uuid_text, range_of
from cortado.schema.limits import READ_BYTES_MAX
from cortado.schema.model import NULL, AvroType, Enum, Fixed, Kind, Primitive, Record, Schema, Union
from cortado.store.mvcc import walks
from cortado.store.mvcc.packed import PackedPayloads
from cortado.store.mvcc.walks import Program, Slot, Walked

_OPERATIONS_MAX: Final = 4_096
"""For larger schemas the codec is as fast."""
_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1
_BOUND_MAX: Final = 2**62
_FLAT: Final = {
    Kind.BOOLEAN: np.dtype(np.bool_),
    Kind.INT: np.dtype(np.int32),
    Kind.LONG: np.dtype(np.int64),
    Kind.FLOAT: np.dtype("<f4"),
    Kind.DOUBLE: np.dtype("<f8"),
}


def walked_columns(
    payloads: PackedPayloads, writer: Schema, paths: Collection[str] | None
) -> Mapping[str, Column] | None:
    """Return the writer's columns at ``paths`` (None: all its fields), from payloads that it wrote; None if the codec
    must make them."""
    if payloads.kernel is None:
        return None
    plan = _plan(writer, None if paths is None else tuple(paths))
    if plan is None or (len(payloads) and int(payloads.lengths().max()) > READ_BYTES_MAX):
        return None
    walked = payloads.kernel.walk(plan.program, payloads.bodies, payloads.ends)
    if walked is None:
        return None
    rows = len(payloads)
    found = [_column(type_, rows, each) for type_, each in zip(plan.types, walked, strict=True)]
    return dict(zip(plan.paths, found, strict=True))


def _column(type_: AvroType, rows: int, walked: Walked) -> Column:
    if walked.offsets is None:
        return FlatColumn(type_, rows, walked.values, validity=walked.validity)
    return BytesColumn(type_, rows, walked.offsets, walked.values, validity=walked.validity)


class _Unknown(Exception):
    """The kernel does not know this."""


class _Plan:
    """A program, and the field of each of its slots."""

    def __init__(self, record: Record, paths: tuple[str, ...]) -> None:
        self._wanted = {path: place for place, path in enumerate(paths)}
        self._operations: list[tuple[int, ...]] = []
        self._slots: dict[int, tuple[AvroType, Slot]] = {}
        self._around: list[str] = []
        self._fields(record, "", is_nullable=False)
        if len(self._slots) != len(paths) or not self._operations:
            raise _Unknown
        self.paths = paths
        self.types = tuple(self._slots[place][0] for place in range(len(paths)))
        operations = np.array(self._operations, np.int64).reshape(-1)
        self.program = Program(operations, tuple(self._slots[place][1] for place in range(len(paths))))

    def _fields(self, record: Record, prefix: str, *, is_nullable: bool) -> None:
        if record.name in self._around or not record.fields:
            raise _Unknown
        self._around.append(record.name)
        for field in record.fields:
            self._field(field.type, prefix + field.name, is_nullable=is_nullable)
        self._around.pop()

    def _field(self, type_: AvroType, path: str, *, is_nullable: bool) -> None:
        if len(self._operations) >= _OPERATIONS_MAX:
            raise _Unknown
        present = -1
        if isinstance(type_, Union):
            inner = type_.nullable
            if inner is None:
                raise _Unknown
            present, type_, is_nullable = 1 - type_.branches.index(NULL), inner, True
        if isinstance(type_, Record):
            place = len(self._operations)
            if present >= 0:
                self._operations.append(())
            self._fields(type_, f"{path}.", is_nullable=is_nullable)
            if present >= 0:
                behind = len(self._operations) - place - 1
                self._operations[place] = (walks.RECORD, present, -1, 0, 0, behind)
            return
        slot = self._wanted.get(path, -1)
        code, low, high, size, dtype = _operation(type_)
        if slot >= 0:
            self._slots[slot] = type_, Slot(dtype, is_nullable)
        self._operations.append((code, present, slot, low, high, size))


def _operation(type_: AvroType) -> tuple[int, int, int, int, np.dtype[np.generic] | None]:
    """Code, LOW, HIGH, SIZE, and the dtype of its values."""
    match type_:
        case Enum() | Primitive(kind=Kind.INT | Kind.LONG):
            low, high = range_of(type_) or (_LONG_MIN, _LONG_MAX)
            is_long = isinstance(type_, Primitive) and type_.kind is Kind.LONG
            # n bytes hold the numbers from -2^(7n - 1) on, to below 2^(7n - 1).
            safe_bytes = min(8, (min(high, ~low) + 1).bit_length() // 7)
            return walks.NUMBER, low, high, safe_bytes, _FLAT[Kind.LONG if is_long else Kind.INT]
        case Primitive(kind=Kind.BOOLEAN):
            return walks.BOOLEAN, 0, 0, 1, _FLAT[Kind.BOOLEAN]
        case Primitive(kind=Kind.FLOAT | Kind.DOUBLE):
            dtype = _FLAT[type_.kind]
            return walks.REAL, 0, 0, dtype.itemsize, dtype
        case Primitive(kind=Kind.STRING):
            return walks.UUID if is_uuid_text(type_) else walks.TEXT, 0, 0, 0, None
        case Primitive(kind=Kind.BYTES):
            bound = decimal_bound(type_)
            return (walks.BYTES, 0, 0, 0, None) if bound is None else (walks.DECIMAL, 0, *_decimal(bound)[::-1], None)
        case Fixed(size=size) if size > 0:
            bound = decimal_bound(type_)
            if bound is None:
                return walks.FIXED, 0, 0, size, None
            safe_bytes, known = _decimal(bound)
            return walks.FIXED_DECIMAL, safe_bytes, known, size, None
    raise _Unknown


def _decimal(bound: int) -> tuple[int, int]:
    """Return how many bytes stay within the bound whatever their value, and the bound if the walk can compare with
    it."""
    return (bound.bit_length() - 1) // 8, bound if bound <= _BOUND_MAX else 0


@lru_cache(maxsize=1024)
def _plan(schema: Schema, paths: tuple[str, ...] | None) -> _Plan | None:
    try:
        return _Plan(schema.record, tuple(field.name for field in schema.record.fields) if paths is None else paths)
    except _Unknown:
        return None
