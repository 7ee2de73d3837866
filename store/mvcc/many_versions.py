"""The bytes of many versions at once (needs numpy): :func:`~cortado.store.mvcc.versions.encode_versions`, by columns.

A CRC-32C goes on over a byte by a table lookup, and over four bytes by four lookups, so numpy continues many checksums
in a few calls. Only each key, and each payload, takes a call of its own::

    key        checksum, a call each        -> of the key
    kind       a lookup                     -> of key and kind
    payload    going on, a call each; none if it is empty, as in entries of an index that is not unique
    of the key four lookups                 -> the value's own

Source: *A Systematic Approach to Building High Performance, Software-based, CRC Generators* (Kounavis & Berry, 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import Final, TypeAlias

import google_crc32c
import numpy as np
import numpy.typing as npt

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.versions import (
    DELETE_KIND,
    EXPIRING_KIND,
    EXPIRY_BYTES,
    NO_EXPIRIES,
    PUT_KIND,
    Expiries,
    Item,
    checksum,
    encode_versions,
    suffix_of,
)

Checksums: TypeAlias = npt.NDArray[np.uint32]

MANY: Final = 64
"""From this number on it costs less than one by one."""

_POLYNOMIAL: Final = 0x82F6_3B78
_TAIL_BYTES: Final = 8
_LITTLE: Final = np.dtype("<u4")


def encode_many(
    keys: Sequence[LogicalKey], payloads: Sequence[bytes | None], ts: Timestamp, expiries: Expiries = NO_EXPIRIES
) -> list[Item]:
    """Exactly what ``encode_versions`` returns."""
    if len(keys) < MANY:
        return encode_versions(keys, payloads, ts, expiries)
    suffix = suffix_of(ts)
    engine_keys = [key + suffix for key in keys]
    of_keys = np.fromiter(map(checksum, engine_keys), np.uint32, len(engine_keys))
    kinds = np.full(len(keys), PUT_KIND, np.uint8)
    if None in payloads:
        kinds[[payload is None for payload in payloads]] = DELETE_KIND
    if expiries:
        expiring = [key in expiries and payload is not None for key, payload in zip(keys, payloads, strict=True)]
        kinds[expiring] = EXPIRING_KIND
        payloads = [
            expiries[key].to_bytes(EXPIRY_BYTES) + (payload or b"") if expires else payload
            for key, payload, expires in zip(keys, payloads, expiring, strict=True)
        ]
    contents = [payload or b"" for payload in payloads[: _filled(payloads)]]
    filled = len(contents)
    of_bodies = _over_kinds(of_keys, kinds)
    before = of_bodies[:filled].tolist()
    of_bodies[:filled] = np.fromiter(map(google_crc32c.extend, before, contents), np.uint32, filled)
    ends = np.empty((len(keys), 1 + _TAIL_BYTES), np.uint8)
    ends[:, 0] = kinds
    ends[:, 1:5] = _bytes_of(of_keys)
    ends[:, 5:] = _bytes_of(_over_checksums(of_bodies, of_keys))
    heads, tails = _cut(ends[:filled, :1]), _cut(ends[:filled, 1:])
    values = list(map(b"".join, zip(heads, contents, tails, strict=True)))
    return list(zip(engine_keys, values + _cut(ends[filled:]), strict=True))


def encode_contents(engine_keys: Sequence[bytes], contents: Sequence[bytes]) -> list[Item]:
    """Return the result of ``encode_content`` for each."""
    of_keys = np.fromiter(map(checksum, engine_keys), np.uint32, len(engine_keys))
    of_bodies = np.fromiter(map(google_crc32c.extend, of_keys.tolist(), contents), np.uint32, len(engine_keys))
    tails = np.empty((len(engine_keys), _TAIL_BYTES), np.uint8)
    tails[:, :4] = _bytes_of(of_keys)
    tails[:, 4:] = _bytes_of(_over_checksums(of_bodies, of_keys))
    return list(zip(engine_keys, map(add, contents, _cut(tails)), strict=True))


def _filled(payloads: Sequence[bytes | None]) -> int:
    """Return the place from which on all payloads are empty."""
    try:
        first = payloads.index(b"")
    except ValueError:
        return len(payloads)
    return len(payloads) if any(payloads[first:]) else first


def _over_kinds(before: Checksums, kinds: npt.NDArray[np.uint8]) -> Checksums:
    """Return the CRCs ``before``, each continued over a byte."""
    register = ~before
    looked: Checksums = _TABLES[0][(register ^ kinds) & np.uint32(0xFF)]
    return ~(looked ^ (register >> np.uint32(8)))


def _over_checksums(before: Checksums, followed_by: Checksums) -> Checksums:
    """Return the CRCs ``before``, each continued over four bytes."""
    lanes = _bytes_of(~before ^ followed_by)
    after: Checksums = _TABLES[3][lanes[:, 0]]
    for byte in (1, 2, 3):
        after ^= _TABLES[3 - byte][lanes[:, byte]]
    return ~after


def _bytes_of(checksums: Checksums) -> npt.NDArray[np.uint8]:
    return checksums.astype(_LITTLE, copy=False).view(np.uint8).reshape(-1, 4)


def _cut(rows: npt.NDArray[np.uint8]) -> list[bytes]:
    return np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").ravel().tolist()


def _make_tables() -> Checksums:
    """Return a byte's effect on the register, alone and with one, two and three bytes of zeros behind it."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ np.where(table & np.uint32(1), np.uint32(_POLYNOMIAL), np.uint32(0))
    tables = [table]
    for _ in range(3):
        tables.append(table[tables[-1] & np.uint32(0xFF)] ^ (tables[-1] >> np.uint32(8)))
    return np.stack(tables)


_TABLES: Final = _make_tables()
