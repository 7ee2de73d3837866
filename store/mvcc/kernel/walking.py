"""Columns of bodies, walked by the kernel: memory for what is wanted, and what was written there."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortado.store.mvcc.kernel import bodies as compiled
from cortado.store.mvcc.walks import OPERATION_NUMBERS, Program, Slot, Walked

_BYTES_MAX: Final = 2**31 - 1
"""That offsets of 32 bits tell."""


class _Memory:
    """What one slot is written to."""

    def __init__(self, slot: Slot, rows: int) -> None:
        self.is_flat = slot.dtype is not None
        self.values: NDArray[np.generic] = np.empty(rows, np.int64 if slot.dtype is None else slot.dtype)
        self.offsets = np.zeros(1 if self.is_flat else rows + 1, np.int32)
        self.validity = np.ones(rows if slot.is_nullable else 0, np.bool_)

    def numbers(self) -> tuple[int, ...]:
        """As :mod:`cortado.store.mvcc.kernel.bodies` numbers them."""
        width = self.values.itemsize if self.is_flat else 0
        return (_address(self.values), _address(self.offsets), _address(self.validity), width, 0)

    def walked(self, bodies_at: int, nulls: int) -> Walked:
        validity = self.validity if nulls else None
        if self.is_flat:
            return Walked(self.values, None, validity)
        data = np.empty(int(self.offsets[-1]), np.uint8)
        compiled.gather(bodies_at, _address(self.values), _address(self.offsets), len(self.values), _address(data))
        return Walked(data, self.offsets, validity)


class CompiledWalker:
    """A :class:`~cortado.store.mvcc.walks.BodyWalker`. On any thread, and on several at once."""

    def walk(self, program: Program, bodies: bytes, ends: NDArray[np.int64]) -> list[Walked] | None:
        """See :class:`~cortado.store.mvcc.walks.BodyWalker`."""
        rows = len(ends)
        if not rows or len(bodies) != ends[-1] or len(bodies) > _BYTES_MAX:
            return None
        memory = [_Memory(slot, rows) for slot in program.slots]
        slots = np.array([each.numbers() for each in memory], np.int64).reshape(-1)
        operations, ends = program.operations, np.ascontiguousarray(ends, np.int64)
        body_bytes = np.frombuffer(bodies, np.uint8)
        bodies_at = _address(body_bytes)
        scratch = np.empty(2 * compiled.BLOCK_ROWS, np.int64)
        told = _address(operations), _address(slots), len(operations) // OPERATION_NUMBERS
        if compiled.walk(told, bodies_at, _address(ends), rows, _address(scratch)) != compiled.DONE:
            return None
        nulls = slots[compiled.NULLS :: compiled.SLOT_NUMBERS].tolist()
        return [each.walked(bodies_at, count) for each, count in zip(memory, nulls, strict=True)]


def _address(array: NDArray[np.generic]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
