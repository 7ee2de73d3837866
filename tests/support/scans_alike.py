"""Histories of versions for the scan kernel, and whole scans of them by either path, slice by slice."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine, LentMap, Space, Tree
from cortado.store.keys.keyspace import is_of_rows, kv_key, row_key
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc.slices import Slice, SliceReader
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_version, suffix_of

LOWEST, HIGHEST = LogicalKey(b"\x01"), LogicalKey(b"\xfe")
EXPIRES_MS = 40
SIZES = [0, 1, 3, 4, 5, 7, 8, 9, 30, 60, 100, 300, 1_000, 1_500, 1_900, 2_000, 2_100, 4_080, 5_000, 20_000]

Row: TypeAlias = tuple[bytes, bytes, bytes, int]
"""Key, suffix, payload, and when it expires (0: never)."""


def at(number: int) -> Timestamp:
    return Timestamp(0, 1 + number // 4, number % 4)


def a_key(draw: Random) -> LogicalKey:
    if draw.random() < 0.5:
        return row_key(1, (KeyPart("a", KeyType.INT64),), [draw.randrange(300)])
    return kv_key("n", b"k" * draw.randrange(120) + b"%d" % draw.randrange(60))


@dataclass
class History:
    """Commits, each at a timestamp of its own; now and then versions are removed, so that pages are freed."""

    engine: Engine
    draw: Random
    commits: int = 0
    stored: list[bytes] = field(default_factory=list)

    def commit(self, keys: int, size_max: int = 20_000) -> None:
        draw = self.draw
        self.commits += 1
        sizes = [size for size in SIZES if size <= size_max] + [size_max]
        with self.engine.write() as txn:
            for key in sorted({a_key(draw) for _ in range(keys)}):
                kind = draw.random()
                size = draw.choice(sizes)
                payload = None if kind < 0.2 else draw.randbytes(min(size, 64)) * (size // 64 + 1)
                if payload is not None:
                    payload = (b"head" if is_of_rows(key) else b"") + payload[:size]
                expires = draw.randrange(1, EXPIRES_MS) if 0.2 < kind < 0.35 else 0
                item = encode_version(key, payload, at(self.commits), expires)
                txn.put(Space.DATA, *item)
                self.stored.append(item[0])
            if draw.random() < 0.3:
                for stored in draw.sample(self.stored, len(self.stored) // 10):
                    txn.delete(Space.DATA, stored)


def by_python(
    store: VersionStore, within: tuple[LogicalKey, LogicalKey], ts: Timestamp, *, reverse: bool, rows: int, size: int
) -> list[Row]:
    (start, end), found = within, list[Row]()
    while True:
        chunk = store.stored_chunk(start, end, ts, reverse=reverse, max_rows=rows, max_bytes=size)
        expiries = [chunk.expiries.get(key, 0) for key in chunk.keys]
        found += zip(chunk.keys, chunk.suffixes, chunk.payloads, expiries, strict=True)
        if chunk.resume is None:
            return found
        start, end = (start, chunk.resume) if reverse else (chunk.resume, end)


def by_kernel(
    kernel: SliceReader,
    mapped: LentMap,
    within: tuple[LogicalKey, LogicalKey],
    ts: Timestamp,
    *,
    reverse: bool,
    rows: int,
    size: int,
) -> list[Row] | None:
    """Return the rows that the kernel reads, or None if it meets something that it does not know."""
    (start, end), found = within, list[Row]()
    while start < end:
        chunk = kernel.read(mapped, Slice(start, end, suffix_of(ts), suffix_of(ts), reverse, rows, size))
        if chunk is None:
            return None
        expiries = [chunk.expiries.get(key, 0) for key in chunk.keys]
        found += zip(chunk.keys, chunk.suffixes, chunk.payloads, expiries, strict=True)
        if chunk.resume is None:
            return found
        assert (chunk.resume < end) if reverse else (chunk.resume > start), "a slice goes on"
        start, end = (start, chunk.resume) if reverse else (chunk.resume, end)
    return found


def tree_of(mapped: LentMap) -> Tree:
    """Return the tree as it is now. The caller reads it while it knows that no writer runs."""
    with mapped.tree(Space.DATA) as tree:
        assert tree is not None
        return tree
