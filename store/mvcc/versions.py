"""The bytes of a version, and their checksum.

::

    engine key    logical key | inverted timestamp 12            newest first: each byte of the timestamp ^ 0xFF
    engine value  kind 1 | payload | CRC of the key 4 | CRC 4    kind: "P" put, "D" delete (its payload is empty)
    of a put that expires:  "E" | wall_ms 6 | payload | CRC of the key 4 | CRC 4

A put that expires is seen by reads before that wall time, in the epoch that it was written in: its *expiry* is the
timestamp (epoch of the version, wall_ms, 0), and a read at or above it sees no version, as behind a delete. So a
version that is expired at one timestamp is expired at all later ones, and every replica says the same.

Some other kinds are reserved (docs/formats/values.md); a reader that meets one refuses it by name.

Both checksums are CRC-32C, little-endian. The last one covers engine key, kind, payload and the key's CRC, so a value
under a wrong key is found too. It stands behind the bytes that it covers. Then the CRC over all of them, itself
included, is one constant, whatever the data: a version is checked without being taken apart. Four more constant bytes
bring the CRC's register back to its start; with those between them, a whole run of versions is checked by one call over
their concatenation. Any single damaged version is still found for certain, since nothing that follows can undo a wrong
register.

The key's own CRC is checked if the last one is wrong, and then tells the loss. If it holds, the version has its true
key, and only its value is lost. If it does not, the key may be another one's, and a key that is not found near it may
exist.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from operator import add, itemgetter
from struct import Struct
from types import MappingProxyType
from typing import Final, TypeAlias

import google_crc32c

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import LOGICAL_MAX, TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.codec import INVERTED
from cortado.store.keys.dump import dump
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Version, logical_of, suffix_from

Item: TypeAlias = tuple[bytes, bytes]
_engine_key: Final[Callable[[Item], LogicalKey]] = itemgetter(0)
"""An engine key and its value."""

PUT: Final = b"P"
DELETE: Final = b"D"
EXPIRING: Final = b"E"
PUT_KIND: Final = PUT[0]
DELETE_KIND: Final = DELETE[0]
EXPIRING_KIND: Final = EXPIRING[0]

CHECKSUMS_BYTES: Final = 8
VALUE_OVERHEAD_BYTES: Final = 1 + CHECKSUMS_BYTES
"""A value's kind and its two checksums."""
PAYLOAD: Final = slice(1, -8)
"""The payload within an engine value; for a put that expires, the payload behind its expiry."""
EXPIRY_BYTES: Final = 6
EXPIRY: Final = slice(1, 1 + EXPIRY_BYTES)
EXPIRING_PAYLOAD: Final = slice(1 + EXPIRY_BYTES, -8)
EPOCH: Final = slice(-TIMESTAMP_BYTES, 2 - TIMESTAMP_BYTES)
"""The epoch within an engine key, inverted as all of its timestamp."""
_WALL_END: Final = 2 + EXPIRY_BYTES
_CHECKSUM_BYTES: Final = 4

Expiries: TypeAlias = Mapping[LogicalKey, int]
"""The wall times in milliseconds at which puts expire, by key."""
NO_EXPIRIES: Final[Expiries] = MappingProxyType({})

RESIDUE: Final = 0x48674BC7
"""CRC-32C over any bytes followed by their own CRC-32C, little-endian."""
RESET: Final = bytes.fromhex("6cd087d3")
"""Brings a CRC that stands at RESIDUE back to that of no bytes, which is 0."""

checksum = google_crc32c.value
_extend = google_crc32c.extend
_pack_checksum = Struct("<I").pack
_pack_suffix = Struct(">QI").pack
_FIRST_INVERTED: Final = (1 << 64) - 1


def suffix_of(ts: Timestamp) -> bytes:
    """Return the suffix of an engine key behind the logical key: a later timestamp has smaller bytes."""
    return _pack_suffix(_FIRST_INVERTED - (ts.epoch << 48 | ts.wall_ms), LOGICAL_MAX - ts.logical)


def timestamp_of(suffix: bytes) -> Timestamp:
    return Timestamp.from_bytes(suffix.translate(INVERTED))


def encode_versions(
    keys: Sequence[LogicalKey], payloads: Iterable[bytes | None], ts: Timestamp, expiries: Expiries = NO_EXPIRIES
) -> list[Item]:
    """Engine items for logical keys and their payloads (None: a delete), all at ``ts``, in the order given."""
    suffix = suffix_of(ts)
    return _encode([key + suffix for key in keys], contents_of(keys, payloads, expiries))


def encode_in_turn(
    keys: Sequence[LogicalKey],
    payloads: Sequence[bytes | None],
    first: Timestamp,
    places: Sequence[int] | None = None,
    expiries: Expiries = NO_EXPIRIES,
) -> list[Item]:
    """Return engine items of one write after the other: at ``first``, and at the timestamps behind it in its
    millisecond. ``places`` are those of each key's write, from 0; None if each write has one key."""
    inverted, left = _FIRST_INVERTED - (first.epoch << 48 | first.wall_ms), LOGICAL_MAX - first.logical
    turns = range(len(keys)) if places is None else places
    engine_keys = [key + _pack_suffix(inverted, left - place) for place, key in zip(turns, keys, strict=True)]
    return _encode(engine_keys, contents_of(keys, payloads, expiries))


def _encode(engine_keys: list[bytes], contents: Iterable[bytes]) -> list[Item]:
    of_keys = list(map(checksum, engine_keys))
    bodies = list(map(add, contents, map(_pack_checksum, of_keys)))
    of_all = map(_pack_checksum, map(_extend, of_keys, bodies))
    return list(zip(engine_keys, map(add, bodies, of_all), strict=True))


def encode_version(key: LogicalKey, payload: bytes | None, ts: Timestamp, expires_ms: int = 0) -> Item:
    """Encode one version as :func:`encode_versions` does, at a third of its cost: most writes are of one key. It
    expires at the wall time ``expires_ms``, 0 for never."""
    engine_key = key + suffix_of(ts)
    of_key = checksum(engine_key)
    body = content_of(payload, expires_ms) + _pack_checksum(of_key)
    return engine_key, body + _pack_checksum(_extend(of_key, body))


def content_of(payload: bytes | None, expires_ms: int = 0) -> bytes:
    """Return the stored content of a mutation: its kind, with its expiry, and its payload."""
    if payload is None:
        return DELETE
    return _expiring(expires_ms, payload) if expires_ms else PUT + payload


def contents_of(
    keys: Sequence[LogicalKey], payloads: Iterable[bytes | None], expiries: Expiries = NO_EXPIRIES
) -> list[bytes]:
    """Return :func:`content_of` of each."""
    contents = [DELETE if payload is None else PUT + payload for payload in payloads]
    if not expiries:
        return contents
    return [
        _expiring(expiries[key], content[1:]) if key in expiries and content[0] == PUT_KIND else content
        for key, content in zip(keys, contents, strict=True)
    ]


def _expiring(expires_ms: int, payload: bytes) -> bytes:
    return EXPIRING + expires_ms.to_bytes(EXPIRY_BYTES) + payload


def encode_content(engine_key: bytes, content: bytes) -> Item:
    """Return an engine item of a kind and payload that stand together, as a backup has them."""
    of_key = checksum(engine_key)
    body = content + _pack_checksum(of_key)
    return engine_key, body + _pack_checksum(_extend(of_key, body))


def decode_version(engine_key: bytes, engine_value: bytes, as_of: bytes) -> Version | None:
    """Return a stored version; None for a delete, and for a put that has expired by the time of the suffix ``as_of``.
    Raises DataLoss, naming the key, if its checksum is wrong or its kind is unknown."""
    if checksum(engine_key + engine_value) != RESIDUE:
        raise damaged(engine_key, engine_value)
    if engine_value[0] == PUT_KIND:
        return Version(engine_key, engine_value[PAYLOAD])
    return unexpired(engine_key, engine_value, as_of)


def newest_in(items: Sequence[Item], key: LogicalKey) -> tuple[bool, Version | None]:
    """Return whether there is a version of ``key`` among ``items``, in the order of their keys, and the newest one, as
    :func:`decode_version` returns it at its own time. Raises DataLoss."""
    for engine_key, engine_value in islice(items, bisect_left(items, key, key=_engine_key), None):
        if not engine_key.startswith(key):
            break
        # Keys that go on behind this one may come before its versions.
        if logical_of(engine_key) == key:
            return True, decode_version(engine_key, engine_value, suffix_from(engine_key))
    return False, None


def unexpired(engine_key: bytes, engine_value: bytes, as_of: bytes) -> Version | None:
    """Decode an intact version that is no plain put as :func:`decode_version` does."""
    if engine_value[0] != EXPIRING_KIND:
        check_deleted(engine_key, engine_value)
        return None
    if has_expired(engine_key, engine_value, as_of):
        return None
    return Version(engine_key, engine_value[EXPIRING_PAYLOAD], expiry_of(engine_value))


def has_expired(engine_key: bytes, engine_value: bytes, as_of: bytes) -> bool:
    """Return whether an expiring put has expired at the time of the suffix ``as_of``. All bytes are inverted, so that
    later ones are smaller; the rest of an expiry's suffix would be the largest there is."""
    return as_of[:_WALL_END] <= engine_key[EPOCH] + engine_value[EXPIRY].translate(INVERTED)


def expiry_of(engine_value: bytes) -> int:
    """Return the wall time in milliseconds at which a version expires, 0 for never."""
    return int.from_bytes(engine_value[EXPIRY]) if engine_value[0] == EXPIRING_KIND else 0


def latest_expiry(items: Sequence[Item]) -> int:
    """Return the last wall time at which one of these versions expires; 0 if none does."""
    values = [value for _, value in items]
    # The kinds of all but plain puts are below that of these.
    return max(map(expiry_of, values)) if values and min(values) < PUT else 0


def expiry_ts(engine_key: bytes, engine_value: bytes) -> Timestamp:
    """From when on a put that expires is not seen any more."""
    return Timestamp(timestamp_of(engine_key[-TIMESTAMP_BYTES:]).epoch, expiry_of(engine_value), 0)


def payload_of(engine_value: bytes) -> bytes | None:
    """Return a version's payload, whether it has expired or not; None for a delete."""
    kind = engine_value[0]
    if kind == PUT_KIND:
        return engine_value[PAYLOAD]
    return engine_value[EXPIRING_PAYLOAD] if kind == EXPIRING_KIND else None


def check_deleted(engine_key: bytes, engine_value: bytes) -> None:
    """Raise DataLoss if a version that is no put is no delete either."""
    if engine_value[0] != DELETE_KIND:
        kind = repr(engine_value[:1].decode("latin-1"))
        raise DataLoss(dump(engine_key), f"a stored version is of the kind {kind}, which this version does not know")


def damaged(engine_key: bytes, engine_value: bytes) -> DataLoss:
    """Return the error for a version with a wrong checksum; it names the key."""
    return DataLoss(dump(engine_key), f"a stored version of {len(engine_value)} bytes has a wrong checksum")


def is_key_right(engine_key: bytes, engine_value: bytes) -> bool:
    """Return whether the key of a version with a wrong checksum is as it was written, so that no other key is in
    doubt."""
    of_key = _pack_checksum(checksum(engine_key))
    if engine_value[-2 * _CHECKSUM_BYTES : -_CHECKSUM_BYTES] == of_key:
        return True
    # Or the key's CRC alone has changed.
    rest = engine_value[: -2 * _CHECKSUM_BYTES] + of_key + engine_value[-_CHECKSUM_BYTES:]
    return len(rest) == len(engine_value) and checksum(engine_key + rest) == RESIDUE
