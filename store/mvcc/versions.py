"""The bytes of a version, and their checksum.

::

    engine key    logical key | inverted timestamp 12            newest first: each byte of the timestamp ^ 0xFF
    engine value  kind 1 | payload | CRC-32C 4, little-endian    kind: "P" put, "D" delete (its payload is empty)

The CRC covers engine key, kind and payload, so a value under a wrong key is found too. It stands little-endian behind
what it covers, and then the CRC over everything, itself included, is one constant, whatever the data: a version is
checked without being taken apart. Four more constant bytes bring the CRC's register back to where it began; with those
between them, a whole run of versions is checked by one call over their concatenation. Any single damaged version is
still found for certain, since nothing that follows can undo a wrong register.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from struct import Struct
from typing import Final, TypeAlias

import google_crc32c

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import INVERTED
from cortado.store.keys.dump import dump
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Version

Item: TypeAlias = tuple[bytes, bytes]
"""An engine key and its value."""

PUT: Final = b"P"
DELETE: Final = b"D"
PUT_KIND: Final = PUT[0]

RESIDUE: Final = 0x48674BC7
"""CRC-32C over any bytes followed by their own CRC-32C, little-endian."""
RESET: Final = bytes.fromhex("6cd087d3")
"""Brings a CRC that stands at RESIDUE back to that of no bytes, which is 0."""

checksum = google_crc32c.value
_pack_checksum = Struct("<I").pack


def suffix_of(ts: Timestamp) -> bytes:
    """What follows the logical key in an engine key: a later timestamp has smaller bytes."""
    return bytes(ts).translate(INVERTED)


def timestamp_of(suffix: bytes) -> Timestamp:
    return Timestamp.from_bytes(suffix.translate(INVERTED))


def encode_versions(keys: Iterable[LogicalKey], payloads: Iterable[bytes | None], ts: Timestamp) -> list[Item]:
    """Engine items for logical keys and their payloads (None: a delete), all at ``ts``, in the order given."""
    suffix = suffix_of(ts)
    engine_keys = [key + suffix for key in keys]
    bodies = [DELETE if payload is None else PUT + payload for payload in payloads]
    checksums = map(_pack_checksum, map(checksum, map(add, engine_keys, bodies)))
    return list(zip(engine_keys, map(add, bodies, checksums), strict=True))


def encode_version(key: LogicalKey, payload: bytes | None, ts: Timestamp) -> Item:
    """As :func:`encode_versions` for one, at a third of its cost: most writes are of one key."""
    engine_key = key + bytes(ts).translate(INVERTED)
    body = DELETE if payload is None else PUT + payload
    return engine_key, body + _pack_checksum(checksum(engine_key + body))


def decode_version(engine_key: bytes, engine_value: bytes) -> Version | None:
    """A stored version; None for a delete. Raises DataLoss, naming the key, where its checksum is wrong."""
    if checksum(engine_key + engine_value) != RESIDUE:
        raise damaged(engine_key, engine_value)
    return Version(engine_key, engine_value[1:-4]) if engine_value[0] == PUT_KIND else None


def damaged(engine_key: bytes, engine_value: bytes) -> DataLoss:
    """What to raise for a version with a wrong checksum: names its key."""
    return DataLoss(dump(engine_key), f"a stored version of {len(engine_value)} bytes has a wrong checksum")
