"""Reads of a range, or of keys, with writes of a committed large transaction that are not all in place yet.

::

    staged          the staged writes that count                 read first
    ───────────
    stored          as any other read finds it                   read behind it

Rows move from staged to stored in one step, and never back; so a row that is found in neither was in neither. A row
that is found in both is the same (:mod:`cortado.store.mvcc.staged`). Reads of staged rows are not noted for followers:
a leader notes none at all while there is a large transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import ScanChunk, Version
from cortado.store.mvcc.staged import Made
from cortado.store.mvcc.versions import PUT_KIND, decode_version, suffix_of


class StagedSlice(NamedTuple):
    """All staged values of ``[low, high)`` that a read sees, by the keys that they are for."""

    seen: Mapping[LogicalKey, Made]
    low: LogicalKey
    high: LogicalKey


def merged(
    staged: StagedSlice,
    chunk: ScanChunk,
    bounds: tuple[LogicalKey, LogicalKey],
    as_of: Timestamp,
    *,
    reverse: bool,
) -> ScanChunk:
    """Return the rows of a slice of the range ``bounds``: the rows in place, read of all of ``staged`` and behind it,
    and the staged ones over them."""
    low, high = staged.low, staged.high
    if chunk.resume is not None:
        low, high = (chunk.resume, high) if reverse else (low, chunk.resume)
    expired = suffix_of(as_of)
    over = {key: _version(key, seen, expired) for key, seen in staged.seen.items() if low <= key < high}
    is_end = low == bounds[0] if reverse else high == bounds[1]
    resume = None if is_end else low if reverse else high
    return laid_over(chunk, over, resume, reverse=reverse)


def laid_over(
    chunk: ScanChunk,
    over: Mapping[LogicalKey, Version | None],
    resume: LogicalKey | None,
    *,
    reverse: bool,
) -> ScanChunk:
    """Return a slice's rows with others over them, None for absent ones."""
    if not over:
        return ScanChunk(chunk.keys, list(chunk.suffixes), chunk.payloads, resume, chunk.expiries)
    rows = dict(zip(chunk.keys, zip(chunk.suffixes, chunk.payloads, strict=True), strict=True))
    expiries = {key: expires_ms for key, expires_ms in chunk.expiries.items() if key not in over}
    for key, version in over.items():
        if version is None:
            rows.pop(key, None)
            continue
        rows[key] = version.suffix, version.payload
        if version.expires_ms:
            expiries[key] = version.expires_ms
    keys = sorted(rows, reverse=reverse)
    return ScanChunk(keys, [rows[key][0] for key in keys], [rows[key][1] for key in keys], resume, expiries)


def _version(key: LogicalKey, seen: Made, as_of: bytes) -> Version | None:
    if seen.content[0] == PUT_KIND:
        return Version(seen.suffix, seen.content[1:])
    return decode_version(*seen.item(key), as_of)
