"""The replies to runs, put together by hand: byte for byte what protobuf makes of the messages.

::

    KvPutResponse   0a len Header  12 len etag
    KvGetResponse   0a len Header  12 len KvPair        0a len key  12 len value  1a len etag  20 expires_ms
    KvMultiGetResponse   0a len Header  12 len KvPair   for each key; the KvPair of an absent one is empty
    GetDocumentResponse  0a len Header  12 len FoundDocument
    FoundDocument   0a len Document  12 len etag  18 expires_ms        Document  08 schema_id  12 len avro
    Header          cluster_id, node_id, term  22 len Timestamp  region_id, region_epoch
    Timestamp       08 epoch  10 wall_ms  18 logical    each of them where it is not 0

A test compares them with protobuf's own bytes (tests/property/server/test_run_bytes.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from cortado.proto.v1 import common_pb2
from cortado.store.clock.timestamp import WALL_MS_MAX, Timestamp
from cortado.store.keys.codec import INVERTED
from cortado.store.mvcc.reader import Version
from cortado.store.tables.rows import decode_payload
from cortado.store.wire.varint import varint

_ABSENT: Final = b"\x12\x00"
_ONE_BYTE: Final = [bytes((number,)) for number in range(0x80)]
_timestamp: Final = Struct(">QI").unpack


def reply_of(call_id: int, reply: bytes) -> bytes:
    """Return a ReplyBatch with this one reply, which is copied once."""
    head = b"\x08" + varint(call_id) if call_id else b""
    if reply:
        head += b"\x12" + varint(len(reply))
    return b"\x0a%b%b%b" % (varint(len(head) + len(reply)), head, reply)


def put_etags(first: Timestamp, count: int) -> list[bytes]:
    """Return the remembered replies of puts at ``first`` and the timestamps behind it: KvPutResponse, without the
    header."""
    start = b"%d.%d." % (first.epoch, first.wall_ms)
    etags = [start + b"%d" % logical for logical in range(first.logical, first.logical + count)]
    return [b"\x12" + _ONE_BYTE[len(etag)] + etag for etag in etags]


def with_headers(header: common_pb2.Header, first: Timestamp, replies: Sequence[bytes]) -> list[bytes]:
    """Return each reply behind its header: ``header``, with the timestamp of its place."""
    before = common_pb2.Header(cluster_id=header.cluster_id, node_id=header.node_id, term=header.term)
    after = common_pb2.Header(region_id=header.region_id, region_epoch=header.region_epoch)
    start, end = before.SerializeToString() + b"\x22", after.SerializeToString()
    wall = b"\x08" + varint(first.epoch) if first.epoch else b""
    wall += b"\x10" + varint(first.wall_ms) if first.wall_ms else b""
    found = []
    for logical, reply in enumerate(replies, first.logical):
        ts = wall + b"\x18" + varint(logical) if logical else wall
        encoded = start + _ONE_BYTE[len(ts)] + ts + end
        found.append(b"\x0a" + varint(len(encoded)) + encoded + reply)
    return found


def headed(header: common_pb2.Header) -> bytes:
    """Return the first field of each reply to reads at one timestamp."""
    encoded = header.SerializeToString()
    return b"\x0a" + varint(len(encoded)) + encoded


def _etag(version: Version) -> bytes:
    high, low = _timestamp(version.suffix.translate(INVERTED))
    return b"%d.%d.%d" % (high >> 48, high & WALL_MS_MAX, low)


def get_replies(header: common_pb2.Header, keys: Iterable[bytes], versions: Iterable[Version | None]) -> list[bytes]:
    """Return the replies to gets of the ``keys``, all read at one timestamp."""
    head, found = headed(header), []
    for key, version in zip(keys, versions, strict=False):
        if version is None:
            found.append(head)
            continue
        found.append(head + _pair(key, version))
    return found


def multi_get_reply(head: bytes, keys: Iterable[bytes], versions: Iterable[Version | None]) -> bytes:
    """Return the reply with the pairs of the ``keys``, behind the ``head``."""
    pairs = [_ABSENT if found is None else _pair(key, found) for key, found in zip(keys, versions, strict=True)]
    return head + b"".join(pairs)


def _pair(key: bytes, version: Version) -> bytes:
    etag, value = _etag(version), version.payload
    sized = b"\x12" + varint(len(value)) + value if value else b""
    pair = b"\x0a" + varint(len(key)) + key + sized + b"\x1a" + _ONE_BYTE[len(etag)] + etag
    if version.expires_ms:
        pair += b"\x20" + varint(version.expires_ms)
    return b"\x12" + varint(len(pair)) + pair


def document_reply(head: bytes, version: Version) -> bytes:
    """Return the reply with a stored document as it is, behind the ``head``. Raises DataLoss if there is not even a
    schema id."""
    schema_id, body = decode_payload(version.payload)
    written_by = b"\x08" + varint(schema_id) if schema_id else b""
    document = written_by + b"\x12" + varint(len(body)) + body
    etag = _etag(version)
    found = b"\x0a" + varint(len(document)) + document + b"\x12" + _ONE_BYTE[len(etag)] + etag
    if version.expires_ms:
        found += b"\x18" + varint(version.expires_ms)
    return head + b"\x12" + varint(len(found)) + found
