"""Requests to the scan kernel about rows that it has packed: texts of their keys, columns of their Avro bodies, and
groups by these (:mod:`cortado.store.mvcc.kernel`).

The kernel knows no schemas. It takes a *program*: an operation for each field, in the order in which the fields lie in
a body, so that a body is walked once, whichever fields are wanted::

    {id: long, name: [null, string], at: {x: int, y: [null, double]}}     wanted: name, at.y

    NUMBER            -                 checked, and passed by
    TEXT    nullable  slot 0
    NUMBER            -
    REAL    nullable  slot 1            a record's fields follow each other; RECORD stands before those of one that may
                                        be null, and says how many operations to pass by then

A walk checks every byte, as :mod:`cortado.schema.columnar.decode` does, and has no errors of its own: if a byte is not
sound, or of an unknown form, there are no columns at all, and that codec reads the bodies again.

These types are not in the kernel's package, since programs are made also without a compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

# Operations.
NUMBER: Final = 0
"""A varint, from LOW to HIGH, as any of up to SIZE bytes is."""
BOOLEAN: Final = 1
"""A byte, 0 or 1; SIZE is 1."""
REAL: Final = 2
"""SIZE bytes, 4 or 8, of any content."""
TEXT: Final = 3
"""A length, and that many bytes of UTF-8."""
BYTES: Final = 4
UUID: Final = 5
"""A TEXT of 36 characters."""
DECIMAL: Final = 6
"""BYTES of a number below HIGH, above its negative; of more than SIZE bytes with HIGH 0: unknown."""
FIXED: Final = 7
"""SIZE bytes."""
FIXED_DECIMAL: Final = 8
"""SIZE bytes of a number as DECIMAL has it; LOW is DECIMAL's SIZE."""
RECORD: Final = 9
"""A union of null and a record, whose fields are the next SIZE operations."""

# Numbers of an operation.
CODE: Final = 0
PRESENT: Final = 1
"""The branch that is not null, of a union of null and the type; -1 without a union."""
SLOT: Final = 2
"""The slot for the values; -1 for a field that is not wanted."""
LOW: Final = 3
HIGH: Final = 4
SIZE: Final = 5
OPERATION_NUMBERS: Final = 6


@dataclass(frozen=True, slots=True)
class Slot:
    """The result of one wanted field. ``dtype`` is that of its values; None for ranges of bytes."""

    dtype: np.dtype[Any] | None
    is_nullable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """``operations`` has OPERATION_NUMBERS numbers each, in 64 bits, one operation after the other."""

    operations: NDArray[np.int64]
    slots: tuple[Slot, ...]


class Walked(NamedTuple):
    """One column: a slot of all rows. Row ``i`` of bytes is ``values[offsets[i]:offsets[i + 1]]``; a null row has a
    zero, or nothing. ``validity`` is None if no row is null."""

    values: NDArray[Any]
    offsets: NDArray[np.int32] | None
    validity: NDArray[np.bool_] | None


class Grouped(NamedTuple):
    """For each row its group's number, and for each group its first row."""

    places: NDArray[np.int64]
    first_rows: NDArray[np.intp]


class ColumnKernel(Protocol):
    def texts(self, keys: bytes, ends: NDArray[np.int64], before: int) -> tuple[bytes, NDArray[np.uint32]] | None:
        """Return the texts that keys have behind their first ``before`` bytes: end to end, and the length of each. The
        keys lie end to end and end at ``ends``. None if another reader must read them."""

    def walk(self, program: Program, bodies: bytes, ends: NDArray[np.int64]) -> list[Walked] | None:
        """Return each slot, for bodies that lie end to end and end at ``ends``; None if another reader must read
        them."""

    def group(self, columns: Sequence[Walked], rows: int) -> Grouped | None:
        """Return the groups of rows, one row at least, that are equal in all of some columns: null to null, and numbers
        to those of the same bits. None if another way must find them."""
