"""New rows by the kernel: memory for their keys and items, and checks that all ranges lie within their arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.keys.keyspace import LOGICAL_KEY_BYTES_MAX
from cortado.store.mvcc.kernel import new_rows as compiled
from cortado.store.mvcc.kernel.walking import CompiledColumns, address_of
from cortado.store.mvcc.row_maker import KeyColumn, KeysInOrder, Tails
from cortado.store.mvcc.versions import CHECKSUMS_BYTES

_DESCENDING_MASK: Final = 0xFF


class CompiledRows(CompiledColumns):
    """A :class:`~cortado.store.mvcc.row_maker.RowMaker`. On any thread, and on several at once."""

    def lay_keys(
        self, prefix: bytes, parts: Sequence[KeyColumn], rows: int, tails: Tails | None = None
    ) -> KeysInOrder | None:
        """Lay keys. See :class:`~cortado.store.mvcc.row_maker.RowMaker`."""
        held, held_tails = [_HeldPart(part, rows) for part in parts], _HeldTails(tails, rows)
        numbers = np.array([each.numbers() for each in held], np.int64).reshape(-1)
        room = rows * len(prefix) + sum(each.room for each in held) + held_tails.room
        keys, ends = np.empty(room, np.uint8), np.empty(rows, np.int64)
        begin = np.frombuffer(prefix, np.uint8)
        told = (address_of(begin), len(prefix), LOGICAL_KEY_BYTES_MAX), (address_of(numbers), len(held))
        if compiled.lay_keys(*told, held_tails.numbers, rows, address_of(keys), address_of(ends)) != compiled.DONE:
            return None
        joined = keys[: ends[-1]].tobytes()
        places = self.order([joined], ends)
        return None if places is None else KeysInOrder(joined, ends, places)

    def order(self, pieces: Sequence[bytes | bytearray], ends: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Order keys. See :class:`~cortado.store.mvcc.row_maker.RowMaker`."""
        keys = np.frombuffer(pieces[0] if len(pieces) == 1 else b"".join(pieces), np.uint8)
        ends = _checked(keys, ends)
        rows = len(ends)
        places, scratch = np.empty(rows, np.int64), np.empty(2 * rows, np.int64)
        found = compiled.order_keys(address_of(keys), address_of(ends), rows, address_of(places), address_of(scratch))
        return places if found == compiled.DONE else None

    def encode_puts(
        self, keys: KeysInOrder, suffix: bytes, head: bytes, bodies: bytes, body_ends: NDArray[np.int64]
    ) -> tuple[bytearray, bytearray]:
        """Encode puts. See :class:`~cortado.store.mvcc.row_maker.RowMaker`."""
        rows = len(keys.ends)
        key_bytes, body_bytes = np.frombuffer(keys.joined, np.uint8), np.frombuffer(bodies, np.uint8)
        key_ends, body_ends = _checked(key_bytes, keys.ends), _checked(body_bytes, body_ends)
        if not rows == len(body_ends) == len(keys.places) or len(suffix) != TIMESTAMP_BYTES:
            raise ValueError(f"{rows} keys, {len(body_ends)} bodies, {len(keys.places)} places")
        engine_keys = bytearray(len(keys.joined) + rows * TIMESTAMP_BYTES)
        values = bytearray(len(bodies) + rows * (len(head) + CHECKSUMS_BYTES))
        constants, out = [np.frombuffer(each, np.uint8) for each in (suffix, head)], (engine_keys, values)
        compiled.encode_puts(
            (address_of(key_bytes), address_of(key_ends), address_of(keys.places), rows),
            (*map(address_of, constants), len(head)),
            (address_of(body_bytes), address_of(body_ends)),
            tuple(address_of(np.frombuffer(each, np.uint8)) for each in out),
        )
        return engine_keys, values

    def gather(self, joined: bytes | bytearray, ends: NDArray[np.int64], places: NDArray[np.int64]) -> bytearray:
        """Gather pieces. See :class:`~cortado.store.mvcc.row_maker.RowMaker`."""
        pieces = np.frombuffer(joined, np.uint8)
        ends = _checked(pieces, ends)
        gathered = bytearray(len(joined))
        out = np.frombuffer(gathered, np.uint8)
        compiled.gather(address_of(pieces), address_of(ends), address_of(places), len(ends), address_of(out))
        return gathered


class _HeldPart:
    """One part of keys, each array in one piece, and the most bytes that it takes in all of them."""

    def __init__(self, part: KeyColumn, rows: int) -> None:
        self._part = part
        self._values = np.ascontiguousarray(part.values, np.uint8)
        self._offsets = np.zeros(1, np.int32)
        self._validity = None if part.validity is None else np.ascontiguousarray(part.validity, np.bool_)
        if self._validity is not None and self._validity.shape != (rows,):
            raise ValueError(f"a validity of shape {self._validity.shape} for {rows} rows")
        self._width = 0
        if part.offsets is None:
            if self._values.ndim != 2 or len(self._values) != rows or not self._values.shape[1]:
                raise ValueError(f"a part of shape {self._values.shape} for {rows} rows")
            self._width = self._values.shape[1]
            self.room = rows * (1 + self._width)
            return
        self._offsets = np.ascontiguousarray(part.offsets, np.int32)
        whole = len(self._offsets) == rows + 1 and not self._offsets[0] and self._offsets[-1] == len(self._values)
        if not whole or (np.diff(self._offsets) < 0).any():
            raise ValueError(f"{len(self._offsets)} offsets of {len(self._values)} bytes for {rows} rows")
        # Each byte may be an escaped zero; a tag stands before each text, and an end of two bytes behind it.
        self.room = 2 * len(self._values) + 3 * rows

    def numbers(self) -> tuple[int, ...]:
        """Return numbers, as :mod:`cortado.store.mvcc.kernel.new_rows` orders them."""
        mask = _DESCENDING_MASK if self._part.is_descending else 0
        validity = 0 if self._validity is None else address_of(self._validity)
        return self._part.tag, address_of(self._values), address_of(self._offsets), self._width, mask, validity


class _HeldTails:
    """The tails of keys, each array in one piece, and the most bytes that they take."""

    def __init__(self, tails: Tails | None, rows: int) -> None:
        self.room = 0
        self.numbers = (0, 0, compiled.NO_ROWS)
        if tails is None:
            return
        self._pieces = np.frombuffer(tails.joined, np.uint8)
        self._ends = _checked(self._pieces, tails.ends)
        if len(self._ends) != rows:
            raise ValueError(f"{len(self._ends)} tails for {rows} rows")
        self.room = len(self._pieces)
        which = compiled.ROWS_WITH_NULL if tails.of_rows_with_null else compiled.ALL_ROWS
        self.numbers = address_of(self._pieces), address_of(self._ends), which


def _checked(joined: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ends in one piece. Raises ValueError if they are not those of the joined pieces."""
    ends = np.ascontiguousarray(ends, np.int64)
    if not len(ends) or ends[-1] != len(joined) or ends[0] < 0 or (np.diff(ends) < 0).any():
        raise ValueError(f"{len(ends)} ends do not divide {len(joined)} bytes")
    return ends
