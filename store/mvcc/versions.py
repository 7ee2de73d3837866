"""The bytes of a version, and their checksum.

::

    engine key    logical key | inverted timestamp 12            newest first: each byte of the timestamp ^ 0xFF
    engine value  kind 1 | payload | CRC of the key 4 | CRC 4    kind: "P" put, "D" delete (its payload is empty)

Some other kinds are reserved (docs/formats/values.md); a reader that meets one refuses it by name.

Both checksums are CRC-32C, little-endian. The last one covers engine key, kind, payload and the key's CRC, so a value
under a wrong key is found too. It stands behind what it covers, and then the CRC over everything, itself included, is
one constant, whatever the data: a version is checked without being taken apart. Four more constant bytes bring the
CRC's register back to where it began; with those between them, a whole run of versions is checked by one call over
their concatenation. Any single damaged version is still found for certain, since nothing that follows can undo a wrong
register.

The key's own CRC is looked at where the last one is wrong, and then tells what is lost. Where it holds, the version
stands where it should, and only what is under it is lost. Where it does not, the key may be another one's, and a key
that is not found near it may exist.
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
DELETE_KIND: Final = DELETE[0]

PAYLOAD: Final = slice(1, -8)
"""Of an engine value."""
_CHECKSUM_BYTES: Final = 4

RESIDUE: Final = 0x48674BC7
"""CRC-32C over any bytes followed by their own CRC-32C, little-endian."""
RESET: Final = bytes.fromhex("6cd087d3")
"""Brings a CRC that stands at RESIDUE back to that of no bytes, which is 0."""

checksum = google_crc32c.value
_extend = google_crc32c.extend
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
    of_keys = list(map(checksum, engine_keys))
    bodies = list(map(add, bodies, map(_pack_checksum, of_keys)))
    of_all = map(_pack_checksum, map(_extend, of_keys, bodies))
    return list(zip(engine_keys, map(add, bodies, of_all), strict=True))


def encode_version(key: LogicalKey, payload: bytes | None, ts: Timestamp) -> Item:
    """As :func:`encode_versions` for one, at a third of its cost: most writes are of one key."""
    engine_key = key + bytes(ts).translate(INVERTED)
    of_key = checksum(engine_key)
    body = (DELETE if payload is None else PUT + payload) + _pack_checksum(of_key)
    return engine_key, body + _pack_checksum(_extend(of_key, body))


def encode_content(engine_key: bytes, content: bytes) -> Item:
    """An engine item of a kind and payload that stand together, as a backup has them."""
    of_key = checksum(engine_key)
    body = content + _pack_checksum(of_key)
    return engine_key, body + _pack_checksum(_extend(of_key, body))


def decode_version(engine_key: bytes, engine_value: bytes) -> Version | None:
    """A stored version; None for a delete. Raises DataLoss, naming the key, where its checksum is wrong or its kind is
    not known."""
    if checksum(engine_key + engine_value) != RESIDUE:
        raise damaged(engine_key, engine_value)
    if engine_value[0] == PUT_KIND:
        return Version(engine_key, engine_value[PAYLOAD])
    check_deleted(engine_key, engine_value)
    return None


def check_deleted(engine_key: bytes, engine_value: bytes) -> None:
    """Of a version that is no put. Raises DataLoss where it is no delete either."""
    if engine_value[0] != DELETE_KIND:
        kind = repr(engine_value[:1].decode("latin-1"))
        raise DataLoss(dump(engine_key), f"a stored version is of the kind {kind}, which this version does not know")


def damaged(engine_key: bytes, engine_value: bytes) -> DataLoss:
    """What to raise for a version with a wrong checksum: names its key."""
    return DataLoss(dump(engine_key), f"a stored version of {len(engine_value)} bytes has a wrong checksum")


def is_key_right(engine_key: bytes, engine_value: bytes) -> bool:
    """Of a version whose checksum is wrong: whether the key is as it was written, so that nothing else is in doubt."""
    of_key = _pack_checksum(checksum(engine_key))
    if engine_value[-2 * _CHECKSUM_BYTES : -_CHECKSUM_BYTES] == of_key:
        return True
    # Or the key's CRC alone has changed.
    rest = engine_value[: -2 * _CHECKSUM_BYTES] + of_key + engine_value[-_CHECKSUM_BYTES:]
    return len(rest) == len(engine_value) and checksum(engine_key + rest) == RESIDUE
