"""Texts of keys, columns of bodies, and groups of rows, by the kernel: memory for each, and its results."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import randbits
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cortado.store.mvcc.kernel import bodies as compiled
from cortado.store.mvcc.kernel import groups as compiled_groups
from cortado.store.mvcc.kernel import texts as compiled_texts
from cortado.store.mvcc.walks import OPERATION_NUMBERS, Grouped, Program, Slot, Walked

_BYTES_MAX: Final = 2**31 - 1
"""The most that offsets of 32 bits can tell."""
_SEED: Final = randbits(62)


class _Memory:
    """The arrays to which one slot is written."""

    def __init__(self, slot: Slot, rows: int) -> None:
        self.is_flat = slot.dtype is not None
        self.values: NDArray[np.generic] = np.empty(rows, np.int64 if slot.dtype is None else slot.dtype)
        self.offsets = np.zeros(1 if self.is_flat else rows + 1, np.int32)
        self.validity = np.ones(rows if slot.is_nullable else 0, np.bool_)

    def numbers(self) -> tuple[int, ...]:
        """Return numbers, as :mod:`cortado.store.mvcc.kernel.bodies` orders them."""
        width = self.values.itemsize if self.is_flat else 0
        return (address_of(self.values), address_of(self.offsets), address_of(self.validity), width, 0)

    def walked(self, bodies_at: int, nulls: int) -> Walked:
        validity = self.validity if nulls else None
        if self.is_flat:
            return Walked(self.values, None, validity)
        data = np.empty(int(self.offsets[-1]), np.uint8)
        compiled.gather(
            bodies_at, address_of(self.values), address_of(self.offsets), len(self.values), address_of(data)
        )
        return Walked(data, self.offsets, validity)


class CompiledColumns:
    """A :class:`~cortado.store.mvcc.walks.ColumnKernel`. On any thread, and on several at once."""

    def texts(self, keys: bytes, ends: NDArray[np.int64], before: int) -> tuple[bytes, NDArray[np.uint32]] | None:
        """Cut texts. See :class:`~cortado.store.mvcc.walks.ColumnKernel`."""
        key_bytes, ends = np.frombuffer(keys, np.uint8), np.ascontiguousarray(ends, np.int64)
        if len(ends) and ends[-1] != len(keys):
            return None
        found, lengths = np.empty(len(keys), np.uint8), np.empty(len(ends), np.uint32)
        given = address_of(key_bytes), address_of(ends), len(ends), before
        filled = compiled_texts.cut_texts(given, address_of(found), address_of(lengths))
        return None if filled == compiled_texts.STRANGE else (found[:filled].tobytes(), lengths)

    def walk(self, program: Program, bodies: bytes, ends: NDArray[np.int64]) -> list[Walked] | None:
        """Walk bodies. See :class:`~cortado.store.mvcc.walks.ColumnKernel`."""
        rows = len(ends)
        if not rows or len(bodies) != ends[-1] or len(bodies) > _BYTES_MAX:
            return None
        memory = [_Memory(slot, rows) for slot in program.slots]
        slots = np.array([each.numbers() for each in memory], np.int64).reshape(-1)
        operations, ends = program.operations, np.ascontiguousarray(ends, np.int64)
        body_bytes = np.frombuffer(bodies, np.uint8)
        bodies_at = address_of(body_bytes)
        scratch = np.empty(2 * compiled.BLOCK_ROWS, np.int64)
        told = address_of(operations), address_of(slots), len(operations) // OPERATION_NUMBERS
        if compiled.walk(told, bodies_at, address_of(ends), rows, address_of(scratch)) != compiled.DONE:
            return None
        nulls = slots[compiled.NULLS :: compiled.SLOT_NUMBERS].tolist()
        return [each.walked(bodies_at, count) for each, count in zip(memory, nulls, strict=True)]

    def group(self, columns: Sequence[Walked], rows: int) -> Grouped | None:
        """Group rows. See :class:`~cortado.store.mvcc.walks.ColumnKernel`."""
        held = [_Held.of(column) for column in columns]
        numbers = np.array([each.numbers() for each in held], np.int64).reshape(-1)
        # At least half empty.
        slots = np.zeros(2 << rows.bit_length(), np.int32)
        places, first_rows = np.empty(rows, np.int64), np.empty(rows, np.int64)
        table = address_of(slots), len(slots) - 1, _SEED
        out = address_of(places), address_of(first_rows)
        groups = compiled_groups.group(address_of(numbers), len(held), rows, table, out)
        return None if groups == compiled_groups.CROWDED else Grouped(places, first_rows[:groups].copy())


class _Held(NamedTuple):
    """A column to group by, each array in one piece."""

    values: NDArray[np.generic]
    offsets: NDArray[np.int32] | None
    validity: NDArray[np.bool_] | None

    @classmethod
    def of(cls, column: Walked) -> _Held:
        offsets, validity = column.offsets, column.validity
        return cls(
            np.ascontiguousarray(column.values),
            None if offsets is None else np.ascontiguousarray(offsets, np.int32),
            None if validity is None else np.ascontiguousarray(validity),
        )

    def numbers(self) -> tuple[int, ...]:
        """Return numbers, as :mod:`cortado.store.mvcc.kernel.groups` orders them."""
        offsets, validity = (0 if each is None else address_of(each) for each in (self.offsets, self.validity))
        return address_of(self.values), offsets, validity, self.values.itemsize if self.offsets is None else 0


def address_of(array: NDArray[np.generic]) -> int:
    """Return the address of an array's first byte, for the compiled functions."""
    address: int = array.__array_interface__["data"][0]
    return address
