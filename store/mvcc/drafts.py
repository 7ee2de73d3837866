"""Many versions encoded ahead, except for their timestamp (needs numpy).

A commit's timestamp is known at append, when nothing may take long. Nearly all bytes of its versions are known before.
So they are encoded at a stand-in timestamp, put into the order of their keys, and joined as an entry of the log has
them. The bytes that a timestamp changes are then written over that, by columns::

    keys      key | suffix 12 ...                                the suffix
    values    kind | payload | CRC of the key 4 | CRC 4 ...      both checksums

A CRC is linear: if covered bytes change by ``d`` (exclusive or), it changes by ``d`` carried on over as many bytes of
zeros as follow. So all keys' checksums change by the same word, and a value's by one that depends on the length of its
payload.

Source: ``crc32_combine`` of zlib (Mark Adler) rests on the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from struct import Struct
from typing import Final, NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt

from cortado.invariants import invariant
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.keys.packing import join
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.cut_later import CutLater
from cortado.store.mvcc.many_versions import encode_many
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.versions import CHECKSUMS_BYTES, Item, checksum, suffix_of

DRAFT_FROM: Final = 1_000
"""Fewer versions are encoded in their turn, in a millisecond, and may share an entry with others."""

_KIND_BYTES: Final = 1
_ONES: Final = 0xFFFF_FFFF
_STAND_IN: Final = ZERO


class Drafted(NamedTuple):
    """A draft at a commit's timestamp: the ``items``, in key order, and the same joined, keys and values apart
    (:mod:`cortado.store.keys.packing`)."""

    items: CutLater[Item]
    keys: bytearray
    key_lengths: bytes
    values: bytearray
    value_lengths: bytes


class Draft(Mutations):
    """Mutations in the order of their keys, with their versions made ahead. To be made on any thread."""

    def __init__(self, mutations: Mutations) -> None:
        changes = sorted(zip(mutations.keys, mutations.payloads, strict=True), key=itemgetter(0))
        super().__init__([key for key, _ in changes], [payload for _, payload in changes], mutations.expiries)
        _check_order(self.keys)
        items = encode_many(self.keys, self.payloads, _STAND_IN, self.expiries)
        self._keys = _Joined([key for key, _ in items], TIMESTAMP_BYTES)
        self._values = _Joined([value for _, value in items], CHECKSUMS_BYTES)
        self._checksums = self._values.ends_of_all().view("<u4").reshape(-1, 2)
        # How many bytes of a value come before its key's checksum, each number once.
        self._covered, self._which = np.unique(self._values.lengths - CHECKSUMS_BYTES, return_inverse=True)

        self._size_bytes = super().size_bytes

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    @property
    def bounds(self) -> tuple[LogicalKey, LogicalKey]:
        return self.keys[0], self.keys[-1]

    def at(self, ts: Timestamp) -> Drafted:
        """Return the engine's items after a commit at ``ts``, exactly as ``encode_versions`` returns them."""
        suffix = suffix_of(ts)
        changed = checksum(suffix) ^ checksum(suffix_of(_STAND_IN))
        checksums = self._checksums ^ np.array([changed, 0], "<u4")
        checksums[:, 1] ^= np.array(_changes(changed, self._covered.tolist()), "<u4")[self._which]
        keys = self._keys.with_ends(np.void(suffix))
        values = self._values.with_ends(checksums.view(f"V{CHECKSUMS_BYTES}").ravel())
        items = CutLater(len(self), lambda: list(zip(self._keys.cut(keys), self._values.cut(values), strict=True)))
        return Drafted(items, keys, self._keys.packed_lengths, values, self._values.packed_lengths)


def drafted(mutations: Mutations) -> Mutations:
    """Return a :class:`Draft` of them if they are many, else themselves."""
    return Draft(mutations) if len(mutations) >= DRAFT_FROM else mutations


class _Joined:
    """Pieces end to end; the last ``end_bytes`` of each are to be replaced."""

    def __init__(self, pieces: Sequence[bytes], end_bytes: int) -> None:
        self._joined, self.packed_lengths = join(pieces)
        self.lengths = np.frombuffer(self.packed_lengths, "<u4").astype(np.int64)
        self._end_bytes = end_bytes
        self._ends = np.cumsum(self.lengths) - end_bytes
        self._cut = Struct("%ds" * len(pieces) % tuple(self.lengths.tolist()))

    def ends_of_all(self) -> npt.NDArray[np.void]:
        return _windows(self._joined, self._end_bytes)[self._ends]

    def with_ends(self, ends: npt.NDArray[np.void] | np.void) -> bytearray:
        """Return all pieces end to end, with other ends: one for each, or the same for all."""
        joined = bytearray(self._joined)
        _windows(joined, self._end_bytes)[self._ends] = ends
        return joined

    def cut(self, joined: bytearray) -> tuple[bytes, ...]:
        return self._cut.unpack(joined)


def _windows(joined: bytes | bytearray, size_bytes: int) -> npt.NDArray[np.void]:
    """Return the bytes from each place on, as one element."""
    return np.ndarray(len(joined) - size_bytes + 1, f"V{size_bytes}", joined, strides=(1,))


def _check_order(keys: Sequence[LogicalKey]) -> None:
    """With any timestamp behind them they are in the same order."""
    is_free = not any(map(bytes.startswith, keys[1:], keys))
    invariant(is_free, "no logical key of a commit is the beginning of another", len(keys))


def _changes(changed: int, covered: Sequence[int]) -> list[int]:
    """Return how much a value's checksum changes if its key's changes by ``changed``, for each number of bytes between
    the key and the key's checksum; they rise."""
    changes, passed, register = [], 0, changed
    for count in covered:
        register = _over_zeros(register, count - passed)
        passed = count
        changes.append(_over_zeros(register ^ changed, 4))
    return changes


def _over_zeros(register: int, count: int) -> int:
    """Return a CRC's register after ``count`` bytes of zeros."""
    after: int = google_crc32c.extend(register ^ _ONES, bytes(count))
    return after ^ _ONES
