"""A keyspace in a dictionary: the versions and snapshots of the engine, in a page.

``DictStore`` holds every version of every logical key; ``snapshot(ts)`` is a :class:`Reader`, and ``scan_chunk`` cuts
ranges as the real store does, so that everything above the seam can be tested without a disk.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Changed, Reader, ScanChunk, Version

Reply = TypeVar("Reply")


class DictStore:
    """Versions by logical key, oldest first. ``write`` plays the node: evaluate at the newest state, then apply."""

    def __init__(self) -> None:
        self.versions: dict[LogicalKey, list[tuple[Timestamp, bytes | None]]] = {}
        self.expiries: dict[tuple[LogicalKey, Timestamp], int] = {}
        self.keys: list[LogicalKey] = []
        self.now = Timestamp(0, 1_000, 0)

    def tick(self) -> Timestamp:
        self.now = self.now.next()
        return self.now

    def apply(self, mutations: Mutations, ts: Timestamp) -> None:
        assert len(set(mutations.keys)) == len(mutations.keys), "a key appears at most once"
        for key, payload in zip(mutations.keys, mutations.payloads, strict=True):
            assert 0 < len(key) <= 499
            if key not in self.versions:
                bisect.insort(self.keys, key)
                self.versions[key] = []
            self.versions[key].append((ts, payload))
            if key in mutations.expiries:
                self.expiries[key, ts] = mutations.expiries[key]

    def write(self, evaluate: Callable[[Reader, Timestamp], Evaluation]) -> tuple[Timestamp, Evaluation]:
        ts = self.tick()
        evaluation = evaluate(self.snapshot(), ts)
        self.apply(evaluation.mutations, ts)
        return ts, evaluation

    def snapshot(self, read_ts: Timestamp | None = None) -> DictReader:
        return DictReader(self, self.now if read_ts is None else read_ts)

    def get(self, key: LogicalKey, ts: Timestamp) -> Version | None:
        for version_ts, payload in reversed(self.versions.get(key, [])):
            if version_ts <= ts:
                expires_ms = self.expiries.get((key, version_ts), 0)
                has_expired = expires_ms and Timestamp(version_ts.epoch, expires_ms, 0) <= ts
                return None if payload is None or has_expired else Version(version_ts, payload, expires_ms)
        return None

    def live(
        self, start: LogicalKey, end: LogicalKey, ts: Timestamp, *, reverse: bool = False
    ) -> Iterator[tuple[LogicalKey, Version]]:
        found = self.keys[bisect.bisect_left(self.keys, start) : bisect.bisect_left(self.keys, end)]
        for key in reversed(found) if reverse else found:
            version = self.get(key, ts)
            if version is not None:
                yield key, version

    def scan_chunk(
        self,
        start: LogicalKey,
        end: LogicalKey,
        ts: Timestamp,
        *,
        reverse: bool = False,
        max_rows: int = 2000,
        max_bytes: int = 1 << 20,
    ) -> ScanChunk:
        expiries: dict[LogicalKey, int] = {}
        chunk = ScanChunk([], [], [], None, expiries)
        used_bytes = 0
        for key, version in self.live(start, end, ts, reverse=reverse):
            if len(chunk.keys) >= max_rows or used_bytes >= max_bytes:
                resume = LogicalKey(chunk.keys[-1]) if reverse else key
                return ScanChunk(chunk.keys, chunk.suffixes, chunk.payloads, resume, expiries)
            chunk.keys.append(key)
            chunk.suffixes.append(bytes(byte ^ 0xFF for byte in bytes(version.ts)))
            chunk.payloads.append(version.payload)
            if version.expires_ms:
                expiries[key] = version.expires_ms
            used_bytes += len(key) + len(version.payload)
        return chunk


class DictReader:
    """The state of a :class:`DictStore` at one timestamp."""

    def __init__(self, store: DictStore, read_ts: Timestamp) -> None:
        self._store = store
        self._read_ts = read_ts

    @property
    def read_ts(self) -> Timestamp:
        return self._read_ts

    @property
    def as_of(self) -> Timestamp:
        return self._read_ts

    def get(self, key: LogicalKey) -> Version | None:
        return self._store.get(key, self._read_ts)

    def get_many(self, keys: Sequence[LogicalKey], *, max_bytes: int | None = None) -> list[Version | None]:
        found: list[Version | None] = []
        for key in keys:
            found.append(self.get(key))
            if max_bytes is not None and found[-1] is not None:
                max_bytes -= len(found[-1].payload)
                if max_bytes <= 0:
                    break
        return found

    def scan(
        self, start: LogicalKey, end: LogicalKey, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[LogicalKey, Version]]:
        for count, found in enumerate(self._store.live(start, end, self._read_ts, reverse=reverse)):
            if limit is not None and count >= limit:
                return
            yield found

    def changed_since(
        self, keys: Sequence[LogicalKey], ranges: Sequence[tuple[LogicalKey, LogicalKey]], ts: Timestamp
    ) -> Changed | None:
        for key, versions in self._store.versions.items():
            if key in keys or any(start <= key < end for start, end in ranges):
                for version_ts, _ in versions:
                    if ts < version_ts <= self._read_ts:
                        return Changed(key, version_ts)
        return None
