"""Runs put together by hand equal the bytes of protobuf, and of the functions for one write."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cortado.proto.v1 import calls_pb2, common_pb2, documents_pb2, kv_pb2
from cortado.store.clock.timestamp import LOGICAL_MAX, WALL_MS_MAX, Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Version
from cortado.store.mvcc.versions import encode_in_turn, encode_version, suffix_of
from cortado.store.replica.write.request_table.records import HASH_BYTES, Remembered, encode_each, encode_remembered
from cortado.store.server.convert import timestamp_message
from cortado.store.server.runs import wire
from cortado.store.server.runs.wire import (
    document_reply,
    get_replies,
    multi_get_reply,
    put_etags,
    reply_of,
    with_headers,
)
from cortado.store.tables.rows import encode_payload
from cortado.store.wire.varint import varint

WALLS = st.one_of(st.integers(0, 300), st.integers(0, WALL_MS_MAX))
LOGICALS = st.one_of(st.integers(0, 300), st.integers(0, LOGICAL_MAX - 20))
TIMES = st.builds(Timestamp, st.integers(0, 65_535), WALLS, LOGICALS)
HEADERS = st.builds(
    common_pb2.Header,
    cluster_id=st.text(max_size=200),
    node_id=st.text(max_size=20),
    term=st.integers(0, (1 << 64) - 1),
    region_id=st.integers(0, 3),
    region_epoch=st.integers(0, 300),
)
VALUES = st.one_of(st.binary(max_size=300), st.just(bytes(20_000)))


def behind(first: Timestamp, place: int) -> Timestamp:
    return Timestamp(first.epoch, first.wall_ms, first.logical + place)


def headed(header: common_pb2.Header, ts: Timestamp) -> common_pb2.Header:
    whole = common_pb2.Header()
    whole.CopyFrom(header)
    whole.timestamp.CopyFrom(timestamp_message(ts))
    return whole


@given(st.integers(0, (1 << 64) - 1))
def test_varints(number: int) -> None:
    assert b"\x08" + varint(number) == calls_pb2.Call(id=number or 1).SerializeToString() or number == 0


@given(st.integers(0, (1 << 64) - 1), VALUES)
def test_a_reply_in_its_envelope(call_id: int, reply: bytes) -> None:
    batch = calls_pb2.ReplyBatch()
    batch.replies.add(id=call_id, reply=reply)
    assert reply_of(call_id, reply) == batch.SerializeToString()


@given(HEADERS, TIMES, st.integers(1, 20))
def test_replies_to_puts(header: common_pb2.Header, first: Timestamp, count: int) -> None:
    found = with_headers(headed(header, first), first, put_etags(first, count))
    times = [behind(first, place) for place in range(count)]
    expected = [kv_pb2.KvPutResponse(header=headed(header, ts), etag=str(ts)).SerializeToString() for ts in times]
    assert found == expected


@given(
    HEADERS,
    TIMES,
    st.lists(st.tuples(st.binary(min_size=1, max_size=300), st.none() | st.tuples(VALUES, TIMES, WALLS)), max_size=5),
)
def test_replies_to_gets(
    header: common_pb2.Header, read_ts: Timestamp, pairs: list[tuple[bytes, tuple[bytes, Timestamp, int] | None]]
) -> None:
    versions = [None if pair is None else Version(b"k" + suffix_of(pair[1]), pair[0], pair[2]) for _, pair in pairs]
    found = get_replies(headed(header, read_ts), [key for key, _ in pairs], versions)
    expected = []
    for key, pair in pairs:
        reply = kv_pb2.KvGetResponse(header=headed(header, read_ts))
        if pair is not None:
            reply.pair.CopyFrom(kv_pb2.KvPair(key=key, value=pair[0], etag=str(pair[1]), expires_ms=pair[2]))
        expected.append(reply.SerializeToString())
    assert found == expected
    several = kv_pb2.KvMultiGetResponse(header=headed(header, read_ts))
    for key, pair in pairs:
        several.pairs.add(
            **{} if pair is None else {"key": key, "value": pair[0], "etag": str(pair[1]), "expires_ms": pair[2]}
        )
    head = wire.headed(headed(header, read_ts))
    assert multi_get_reply(head, [key for key, _ in pairs], versions) == several.SerializeToString()


@given(HEADERS, TIMES, st.integers(0, (1 << 32) - 1), VALUES, TIMES, WALLS)
def test_replies_to_gets_of_documents(
    header: common_pb2.Header, read_ts: Timestamp, schema_id: int, body: bytes, ts: Timestamp, expires_ms: int
) -> None:
    version = Version(b"k" + suffix_of(ts), encode_payload(schema_id, body), expires_ms)
    document = common_pb2.Document(schema_id=schema_id, avro=body)
    found = documents_pb2.FoundDocument(document=document, etag=str(ts), expires_ms=expires_ms)
    expected = documents_pb2.GetDocumentResponse(header=headed(header, read_ts), found=found)
    assert document_reply(wire.headed(headed(header, read_ts)), version) == expected.SerializeToString()


@given(
    TIMES,
    st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.none() | st.binary(max_size=100)), max_size=20),
    st.sets(st.integers(0, 19)),
    st.booleans(),
)
def test_items_of_runs(
    first: Timestamp, pairs: list[tuple[bytes, bytes | None]], none_written: set[int], expires: bool
) -> None:
    keys, payloads = [LogicalKey(key) for key, _ in pairs], [payload for _, payload in pairs]
    places = [place for place in range(20) if place not in none_written][: len(pairs)]
    del keys[len(places) :], payloads[len(places) :]
    expiries = dict.fromkeys(keys, 7_000) if expires else {}
    rows = zip(places, keys, payloads, strict=True)
    expected = [encode_version(key, payload, behind(first, at), expiries.get(key, 0)) for at, key, payload in rows]
    assert encode_in_turn(keys, payloads, first, places, expiries) == expected


@given(
    TIMES,
    st.binary(min_size=4, max_size=4),
    st.lists(st.tuples(st.binary(min_size=20, max_size=20), st.binary(max_size=100)), max_size=20),
)
def test_records_of_requests(first: Timestamp, segment: bytes, asked: list[tuple[bytes, bytes]]) -> None:
    hashes = [bytes([place]) * HASH_BYTES for place in range(len(asked))]
    found = encode_each(segment, [each for each, _ in asked], hashes, first, [reply for _, reply in asked])
    for place, (request_id, reply) in enumerate(asked):
        remembered = Remembered(hashes[place], behind(first, place), reply)
        assert found[place] == (request_id, encode_remembered(segment + request_id, remembered))
