"""One slice of a scan, read by the kernel: a lent tree, scratch memory, and the packed rows, as a ScanChunk.

The scratch is the thread's own and used again; callers get copies of exactly the packed bytes. The kernel runs inside
the scope of the lent tree, and nowhere else (:mod:`cortado.store.engine.mapped`).
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import local
from typing import Any, Final

import numpy as np

from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.engine.interface import LentMap, Space, Tree
from cortado.store.engine.page_check import DEPTH_MAX
from cortado.store.keys.keyspace import ROW_HEAD_BYTES, is_of_rows
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.kernel import rows as compiled
from cortado.store.mvcc.kernel.making import CompiledRows
from cortado.store.mvcc.kernel.tree import LEVEL
from cortado.store.mvcc.kernel.walking import CompiledColumns
from cortado.store.mvcc.packed import PackedPayloads
from cortado.store.mvcc.reader import PackedKeys, ScanChunk
from cortado.store.mvcc.slices import Slice
from cortado.store.mvcc.versions import NO_EXPIRIES

VERSIONS_PER_ROW: Final = 16
"""How many versions a slice may look at, for each row that it may have: so its time is bounded."""
_KEY_BYTES_MAX: Final = 512
_EIGHT: Final = slice(0, 8)
_FOUR: Final = slice(8, 12)
_PAYLOAD_ROOM: Final = 1 << 20
_COLUMNS: Final = CompiledColumns()


class _Scratch:
    """Memory of one thread."""

    def __init__(self) -> None:
        self.terms = np.zeros(compiled.TERM_BYTES, np.uint8)
        self.terms_address: int = self.terms.ctypes.data
        self.terms[compiled.LAST_AT : compiled.LAST_AT + TIMESTAMP_BYTES] = 0xFF
        self.state = np.zeros(compiled.STATE_NUMBERS, np.int64)
        self.place = np.zeros(LEVEL * (DEPTH_MAX + 1), np.int64)
        self.rows = 0
        self.key_bytes = 0
        self.room = 0

    def fit(self, rows: int, bytes_max: int) -> None:
        """Make memory for this many rows, and for keys and payloads of this many bytes."""
        if rows <= self.rows and bytes_max + _PAYLOAD_ROOM <= self.room:
            return
        if rows > self.rows:
            self.rows = rows
            self.suffixes = np.empty(rows * TIMESTAMP_BYTES, np.uint8)
            self.heads = np.empty(rows * ROW_HEAD_BYTES, np.uint8)
            self.key_ends, self.body_ends, self.expiries = (np.empty(rows, np.int64) for _ in range(3))
        if bytes_max + _KEY_BYTES_MAX > self.key_bytes:
            self.key_bytes = bytes_max + _KEY_BYTES_MAX
            self.keys = np.empty(self.key_bytes, np.uint8)
        self.make_room(max(self.room, bytes_max + _PAYLOAD_ROOM))

    def make_room(self, payload_bytes: int) -> None:
        self.room = payload_bytes
        self.bodies = np.empty(payload_bytes, np.uint8)
        arrays = (
            self.state, self.place, self.keys, self.key_ends, self.suffixes,
            self.heads, self.bodies, self.body_ends, self.expiries,
        )  # fmt: skip
        self._addresses = tuple(each.ctypes.data for each in arrays)

    def out(self) -> tuple[int, ...]:
        """Return addresses, as :mod:`cortado.store.mvcc.kernel.rows` numbers them."""
        return self._addresses

    def term(self, place: int, value: bytes) -> int:
        self.terms[place : place + len(value)] = np.frombuffer(value, np.uint8)
        return len(value)


class RowKernel:
    """A :class:`~cortado.store.mvcc.slices.SliceReader`. On any thread, and on several at once."""

    def __init__(self) -> None:
        self._threads = local()
        self.row_maker = CompiledRows()

    def read(self, mapped: LentMap, wanted: Slice) -> ScanChunk | None:
        """Read a slice. See :class:`~cortado.store.mvcc.slices.SliceReader`."""
        with mapped.tree(Space.DATA) as tree:
            return None if tree is None else self.read_tree(tree, wanted)

    def read_tree(self, tree: Tree, wanted: Slice) -> ScanChunk | None:
        """Read as :meth:`read`, from a tree in whose scope the caller is."""
        if len(wanted.start) > _KEY_BYTES_MAX or len(wanted.end) > _KEY_BYTES_MAX or wanted.start >= wanted.end:
            return None
        scratch = self._scratch()
        scratch.fit(wanted.rows_max, wanted.bytes_max)
        scratch.state[compiled.START_BYTES] = scratch.term(compiled.START_AT, wanted.start)
        scratch.state[compiled.END_BYTES] = scratch.term(compiled.END_AT, wanted.end)
        scratch.term(compiled.READ_AT, wanted.read_suffix)
        times = (
            np.uint64(int.from_bytes(wanted.read_suffix[_EIGHT])),
            np.uint64(int.from_bytes(wanted.read_suffix[_FOUR])),
            np.uint64(int.from_bytes(wanted.as_of[_EIGHT])),
        )
        found = self._run(tree, times, wanted, scratch)
        if found == compiled.NO_ROOM:
            room = scratch.room
            scratch.make_room(int(scratch.state[compiled.NEEDED]))
            found = self._run(tree, times, wanted, scratch)
            chunk = _packed(wanted, scratch) if found == compiled.DONE else None
            # One large value is no reason to keep as much for ever.
            scratch.make_room(room)
            return chunk
        return _packed(wanted, scratch) if found == compiled.DONE else None

    def _run(self, tree: Tree, times: tuple[Any, ...], wanted: Slice, scratch: _Scratch) -> int:
        limits = (
            int(wanted.reverse), wanted.rows_max, wanted.bytes_max, VERSIONS_PER_ROW * wanted.rows_max,
            _head_bytes(wanted), scratch.room, int(wanted.keys_only),
        )  # fmt: skip
        return int(compiled.read_rows(tree, times, limits, scratch.terms_address, scratch.out()))

    def _scratch(self) -> _Scratch:
        scratch: _Scratch | None = getattr(self._threads, "scratch", None)
        if scratch is None:
            scratch = self._threads.scratch = _Scratch()
        return scratch


def _head_bytes(wanted: Slice) -> int:
    """Return the bytes packed apart from each payload: the ids of rows' schemas. Python reads a slice that goes on into
    payloads without them."""
    return ROW_HEAD_BYTES if is_of_rows(wanted.start) else 0


def _packed(wanted: Slice, scratch: _Scratch) -> ScanChunk:
    state = scratch.state
    count = int(state[compiled.ROWS])
    resume_bytes = int(state[compiled.RESUME_BYTES])
    at = compiled.RESUME_AT
    resume = None if resume_bytes < 0 else LogicalKey(scratch.terms[at : at + resume_bytes].tobytes())
    key_ends = scratch.key_ends[:count]
    keys = PackedKeys(
        scratch.keys[: key_ends[-1] if count else 0].tobytes(),
        key_ends.copy(),
        scratch.suffixes[: count * TIMESTAMP_BYTES].tobytes(),
    )
    if wanted.keys_only:
        return ScanChunk.of_packed(keys, (), resume, NO_EXPIRIES)
    ends = scratch.body_ends[:count].copy()
    head_bytes = _head_bytes(wanted)
    heads = scratch.heads[: count * head_bytes].tobytes()
    payloads = PackedPayloads(heads, head_bytes, scratch.bodies[: ends[-1] if count else 0].tobytes(), ends, _COLUMNS)
    expiries: Mapping[LogicalKey, int] = NO_EXPIRIES
    if state[compiled.EXPIRING]:
        expires_ms = scratch.expiries[:count].tolist()
        expiries = {key: ms for key, ms in zip(keys.logical_keys(), expires_ms, strict=True) if ms}
    return ScanChunk.of_packed(keys, payloads, resume, expiries)
