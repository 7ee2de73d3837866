"""A run of versions, as the server reads it, the network carries it, and a backup's files hold it.

::

    versions 4 | bytes of keys 4 | bytes of values 4
    length of each key 2 ... | length of each value 4 ... | timestamp of each 12 ... | keys | values

Numbers are big-endian, and columns stand end to end: neighbouring keys, and timestamps, are alike, and compress well.
A key is a logical one, a value the kind of a version (``P`` put, ``D`` delete) and its payload. Versions are in the
order in which an engine stores them: by key, and of one key the newest first.

Checksums of stored versions are not in it. They are verified where a run is read, and made anew where it is restored;
in between a checksum covers the whole run.
"""

from __future__ import annotations

import hashlib
import heapq
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from operator import ge, itemgetter
from typing import Final, NamedTuple, TypeAlias

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.codec import INVERTED
from cortado.store.keys.keyspace import LOGICAL_KEY_BYTES_MAX

KINDS: Final = b"PDE"
RUN_BYTES_MAX: Final = 16 << 20
"""A run has about 1 MiB; one version alone, the largest that is ever stored, a few more."""

_CUT_BYTES: Final = 1 << 20
_Version: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""The stored key, by which they sort, and a run's columns for it."""

_HEAD: Final = struct.Struct(">III")
_CHECKSUMS_BYTES: Final = 8
_key_of = itemgetter(slice(None, -TIMESTAMP_BYTES))
_suffix_of = itemgetter(slice(-TIMESTAMP_BYTES, None))
_content_of = itemgetter(slice(None, -_CHECKSUMS_BYTES))
_kind_of = itemgetter(0)


class Run(NamedTuple):
    """Versions by columns: ``keys`` are logical, ``timestamps`` have 12 bytes each, ``values`` begin with a kind."""

    keys: Sequence[bytes]
    timestamps: Sequence[bytes]
    values: Sequence[bytes]

    def up_to(self, ts: Timestamp) -> Run:
        """Without the versions above ``ts``."""
        last = bytes(ts)
        kept = [place for place, each in enumerate(self.timestamps) if each <= last]
        if len(kept) == len(self.keys):
            return self
        return Run(
            [self.keys[place] for place in kept],
            [self.timestamps[place] for place in kept],
            [self.values[place] for place in kept],
        )

    def encode(self) -> bytes:
        """Return the run as bytes, see above."""
        keys, values = b"".join(self.keys), b"".join(self.values)
        return _encoded(self.keys, keys, b"".join(self.timestamps), self.values, values)

    @property
    def stored_keys(self) -> list[bytes]:
        """The keys as an engine has them: with their timestamps, inverted."""
        suffixes = b"".join(self.timestamps).translate(INVERTED)
        return [
            key + suffixes[place : place + TIMESTAMP_BYTES]
            for key, place in zip(self.keys, range(0, len(suffixes), TIMESTAMP_BYTES), strict=True)
        ]


def encode_stored(engine_keys: Sequence[bytes], engine_values: Sequence[bytes]) -> bytes:
    """Return a run of versions as they are stored; their checksums were verified."""
    keys, values = list(map(_key_of, engine_keys)), list(map(_content_of, engine_values))
    timestamps = b"".join(map(_suffix_of, engine_keys)).translate(INVERTED)
    return _encoded(keys, b"".join(keys), timestamps, values, b"".join(values))


def _encoded(
    keys: Sequence[bytes], joined_keys: bytes, timestamps: bytes, values: Sequence[bytes], joined_values: bytes
) -> bytes:
    count = len(keys)
    head = _HEAD.pack(count, len(joined_keys), len(joined_values))
    lengths = struct.pack(f">{count}H{count}I", *map(len, keys), *map(len, values))
    return b"".join((head, lengths, timestamps, joined_keys, joined_values))


def decode_run(body: bytes, what: str, *, in_order: bool = True) -> Run:
    """Return the versions of a run. If not ``in_order``, they follow a backup, in the order of their commits. Raises
    DataLoss, naming ``what``, if these bytes are no run."""
    if len(body) < _HEAD.size:
        raise DataLoss(what, f"a run of {len(body)} bytes")
    count, key_bytes, value_bytes = _HEAD.unpack_from(body)
    expected = _HEAD.size + count * (6 + TIMESTAMP_BYTES) + key_bytes + value_bytes
    if expected != len(body):
        raise DataLoss(what, f"a run has {len(body)} bytes, and its head says {expected}")
    lengths = struct.unpack_from(f">{count}H{count}I", body, _HEAD.size)
    of_keys, of_values = lengths[:count], lengths[count:]
    if sum(of_keys) != key_bytes or sum(of_values) != value_bytes:
        raise DataLoss(what, "the lengths in a run are not those of its keys and values")
    begin = _HEAD.size + 6 * count
    timestamps = struct.unpack_from(f"{TIMESTAMP_BYTES}s" * count, body, begin)
    begin += TIMESTAMP_BYTES * count
    keys = struct.unpack_from("%ds" * count % of_keys, body, begin)
    values = struct.unpack_from("%ds" * count % of_values, body, begin + key_bytes)
    run = Run(keys, timestamps, values)
    _check(run, of_keys, of_values, what)
    if in_order:
        _check_order(run, what)
    return run


def _check(run: Run, of_keys: Sequence[int], of_values: Sequence[int], what: str) -> None:
    """Raises DataLoss for what no engine would take."""
    if not run.keys:
        return
    if min(of_keys) < 1 or max(of_keys) > LOGICAL_KEY_BYTES_MAX:
        raise DataLoss(what, f"a key of {min(of_keys)} or {max(of_keys)} bytes")
    if min(of_values) < 1 or bytes(set(map(_kind_of, run.values))).strip(KINDS):
        raise DataLoss(what, "a version of a kind that this version does not know")


def _check_order(run: Run, what: str) -> None:
    """Raises DataLoss for an order in which no engine could hold them."""
    stored = run.stored_keys
    if any(map(ge, stored, islice(stored, 1, None))):
        place = next(place for place, (key, following) in enumerate(pairwise(stored)) if key >= following)
        raise DataLoss(what, f"key {run.keys[place + 1].hex()} is out of its order")


def sorted_runs(run: Run) -> Iterator[Run]:
    """Versions in any order, in that of an engine and in runs of the usual size."""
    return _cut(sorted(zip(run.stored_keys, *run, strict=True)))


def merged_runs(sources: Sequence[Iterator[Run]]) -> Iterator[Run]:
    """Return the versions of several series of runs as one; no version may be in two. It holds a run of each."""
    return _cut(heapq.merge(*map(_versions, sources)))


def _versions(runs: Iterator[Run]) -> Iterator[_Version]:
    for run in runs:
        yield from zip(run.stored_keys, *run, strict=True)


def _cut(versions: Iterable[_Version]) -> Iterator[Run]:
    taken, size_bytes = list[_Version](), 0
    for version in versions:
        taken.append(version)
        size_bytes += len(version[1]) + len(version[3])
        if size_bytes >= _CUT_BYTES:
            yield _run_of(taken)
            taken, size_bytes = [], 0
    if taken:
        yield _run_of(taken)


def _run_of(versions: Sequence[_Version]) -> Run:
    _, keys, timestamps, values = zip(*versions, strict=True)
    return Run(keys, timestamps, values)


class ContentDigest:
    """A digest of versions that does not depend on how they are cut into runs: SHA-256 over the SHA-256 of each
    column."""

    def __init__(self) -> None:
        self._columns = [hashlib.sha256() for _ in range(5)]
        self.versions = 0

    def add(self, run: Run) -> None:
        """The next run."""
        count = len(run.keys)
        self.versions += count
        lengths = struct.pack(f">{count}H", *map(len, run.keys)), struct.pack(f">{count}I", *map(len, run.values))
        columns = (*lengths, b"".join(run.timestamps), b"".join(run.keys), b"".join(run.values))
        for digest, column in zip(self._columns, columns, strict=True):
            digest.update(column)

    def hexdigest(self) -> str:
        """Return the digest of all runs so far."""
        return hashlib.sha256(b"".join(each.digest() for each in self._columns)).hexdigest()
