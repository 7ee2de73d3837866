"""Puts of many new rows, and of their index entries, that lie in buffers: no object for a row until one is asked for.

::

    PackedWrite    PackedRows   t <table> i <index> ...     entries of an index       one after another:
                   PackedRows   t <table> r ...             the rows                  their ranges do not overlap

A write is :class:`~cortado.store.mvcc.mutations.Changes`, in the order of its keys. The kernel makes the engine's items
at a commit's timestamp, end to end as an entry of the log has them. Several writes share an entry: pieces whose ranges
of keys overlap are merged, and the others stand one after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cortado.invariants import invariant
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.packing import cut
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.cut_later import CutLater
from cortado.store.mvcc.drafts import Drafted
from cortado.store.mvcc.row_maker import KeysInOrder, RowMaker
from cortado.store.mvcc.versions import CHECKSUMS_BYTES, EXPIRY_BYTES, NO_EXPIRIES, Item, content_of, suffix_of

T = TypeVar("T")


class PackedRows:
    """Puts, one at least: their ``keys`` in order, and payloads that are ``head`` and a body each. Bodies lie end to
    end, in the order of the rows, and end at ``body_ends``."""

    def __init__(
        self, maker: RowMaker, keys: KeysInOrder, head: bytes, bodies: bytes, body_ends: NDArray[np.int64]
    ) -> None:
        self.maker = maker
        self._keys = keys
        self._head = head
        self._bodies = bodies
        self._body_ends = body_ends
        key_lengths = np.diff(keys.ends, prepend=0)[keys.places]
        body_lengths = np.diff(body_ends, prepend=0)[keys.places]
        self._key_lengths, self._body_lengths = _packed(key_lengths), _packed(body_lengths)
        self._engine_key_lengths = _packed(key_lengths + TIMESTAMP_BYTES)
        # Neither refers to these rows: only the cycle collector would free such a circle, with all its buffers.
        cut_keys = partial(_cut_keys, maker, keys, self._key_lengths)
        cut_payloads = partial(_cut_payloads, maker, head, bodies, body_ends, keys.places, self._body_lengths)
        self.keys: Sequence[LogicalKey] = CutLater(len(self), cut_keys)
        self.payloads: Sequence[bytes | None] = CutLater(len(self), cut_payloads)

    def __len__(self) -> int:
        return len(self._keys.ends)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all keys and payloads."""
        return len(self._keys.joined) + len(self._bodies) + len(self._head) * len(self)

    @property
    def bounds(self) -> tuple[LogicalKey, LogicalKey]:
        """Return the first and the last key in their order."""
        return self._key_at(0), self._key_at(-1)

    def at(self, ts: Timestamp, expires_ms: int = 0) -> Drafted:
        """Return the engine's items after a commit at ``ts``, exactly as ``encode_versions`` returns them, in the order
        of their keys. They expire at the wall time ``expires_ms``, 0 for never."""
        head = content_of(self._head, expires_ms)
        made = self.maker.encode_puts(self._keys, suffix_of(ts), head, self._bodies, self._body_ends)
        value_lengths = _packed(_lengths(self._body_lengths) + (len(head) + CHECKSUMS_BYTES))
        return _drafted(*made, self._engine_key_lengths, value_lengths)

    def _key_at(self, at: int) -> LogicalKey:
        ends, row = self._keys.ends, int(self._keys.places[at])
        return LogicalKey(self._keys.joined[int(ends[row - 1]) if row else 0 : int(ends[row])])


class PackedWrite:
    """Puts in several pieces, one at least, whose ranges of keys do not overlap. All of them expire at the wall time
    ``expires_ms``, 0 for never."""

    def __init__(self, pieces: Sequence[PackedRows], expires_ms: int = 0) -> None:
        self._expires_ms = expires_ms
        self.pieces = sorted(pieces, key=attrgetter("bounds"))
        self.maker = self.pieces[0].maker
        self._count = sum(map(len, self.pieces))
        self.keys: Sequence[LogicalKey] = _chained([each.keys for each in self.pieces])
        self.payloads: Sequence[bytes | None] = _chained([each.payloads for each in self.pieces])

    def __len__(self) -> int:
        return self._count

    @property
    def expiries(self) -> Mapping[LogicalKey, int]:
        """Return the expiry of each key, if they expire."""
        return dict.fromkeys(self.keys, self._expires_ms) if self._expires_ms else NO_EXPIRIES

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all keys, payloads and expiries."""
        of_expiries = EXPIRY_BYTES * len(self) if self._expires_ms else 0
        return sum(each.size_bytes for each in self.pieces) + of_expiries

    @property
    def bounds(self) -> tuple[LogicalKey, LogicalKey]:
        """Return the first and the last key in their order."""
        return self.pieces[0].bounds[0], self.pieces[-1].bounds[1]

    def at(self, ts: Timestamp) -> tuple[Sequence[Drafted], Sequence[Item]]:
        """Return the engine's items after a commit at ``ts``, exactly as ``encode_versions`` returns them, in the order
        of their keys: each piece's, and those of all."""
        made = [each.at(ts, self._expires_ms) for each in self.pieces]
        return made, _chained([each.items for each in made])


def _chained(pieces: Sequence[Sequence[T]]) -> Sequence[T]:
    if len(pieces) == 1:
        return pieces[0]
    return CutLater(sum(map(len, pieces)), lambda: list(chain.from_iterable(pieces)))


def _cut_keys(maker: RowMaker, keys: KeysInOrder, lengths: bytes) -> Sequence[LogicalKey]:
    return list(map(LogicalKey, cut(maker.gather(keys.joined, keys.ends, keys.places), lengths)))


def _cut_payloads(
    maker: RowMaker, head: bytes, bodies: bytes, ends: NDArray[np.int64], places: NDArray[np.int64], lengths: bytes
) -> Sequence[bytes]:
    return [head + body for body in cut(maker.gather(bodies, ends, places), lengths)]


def joined(maker: RowMaker, writes: Sequence[Drafted]) -> Drafted:
    """Return the items of several writes, one at least, in the order of their keys: each write's are in that order."""
    apart: list[list[Drafted]] = []
    last = b""
    for each in sorted(writes, key=_first_key):
        if last < _first_key(each):
            apart.append([])
        apart[-1].append(each)
        last = max(last, _last_key(each))
    return _in_a_row([_merged(maker, each) for each in apart])


def _in_a_row(writes: Sequence[Drafted]) -> Drafted:
    if len(writes) == 1:
        return writes[0]
    return _drafted(
        bytearray().join([each.keys for each in writes]),
        bytearray().join([each.values for each in writes]),
        b"".join([each.key_lengths for each in writes]),
        b"".join([each.value_lengths for each in writes]),
    )


def _merged(maker: RowMaker, writes: Sequence[Drafted]) -> Drafted:
    if len(writes) == 1:
        return writes[0]
    _, keys, key_lengths, values, value_lengths = _in_a_row(writes)
    of_keys, of_values = _lengths(key_lengths), _lengths(value_lengths)
    key_ends = np.cumsum(of_keys)
    places = maker.order([keys], key_ends)
    invariant(places is not None, "no engine key comes twice in an entry", len(of_keys))
    assert places is not None
    return _drafted(
        maker.gather(keys, key_ends, places),
        maker.gather(values, np.cumsum(of_values), places),
        _packed(of_keys[places]),
        _packed(of_values[places]),
    )


def _drafted(keys: bytearray, values: bytearray, key_lengths: bytes, value_lengths: bytes) -> Drafted:
    def cut_items() -> list[Item]:
        return list(zip(cut(keys, key_lengths), cut(values, value_lengths), strict=True))

    items = CutLater(len(key_lengths) // 4, cut_items)
    return Drafted(items, keys, key_lengths, values, value_lengths)


def _first_key(write: Drafted) -> bytes:
    return bytes(write.keys[: int(_lengths(write.key_lengths[:4])[0])])


def _last_key(write: Drafted) -> bytes:
    return bytes(write.keys[-int(_lengths(write.key_lengths[-4:])[0]) :])


def _lengths(packed: bytes) -> NDArray[np.int64]:
    return np.frombuffer(packed, "<u4").astype(np.int64)


def _packed(lengths: NDArray[np.int64]) -> bytes:
    return lengths.astype("<u4").tobytes()
