"""The contents of a message, told from its bytes: against a parser's result for the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message import DecodeError, Message
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument, TooLarge
from cortado.proto.bounds import MessageBounds, is_repeated, repeated_fields
from cortado.proto.internal import raft_pb2
from cortado.proto.v1 import (
    calls_pb2,
    common_pb2,
    documents_pb2,
    kv_pb2,
    statistics_pb2,
    tables_pb2,
    transactions_pb2,
)

LIMIT = 5
Key, Value = common_pb2.Key, common_pb2.Value
TYPES: list[type[Message]] = [
    kv_pb2.KvScanRequest,
    calls_pb2.CallBatch,
    transactions_pb2.CommitRequest,
    documents_pb2.MultiGetRequest,
    documents_pb2.BulkRequest,
    documents_pb2.ScanRequest,
    tables_pb2.CreateTableRequest,
    # Replies, for their fields: fixed ones, packed and not, and messages within messages.
    statistics_pb2.ReadStatisticsResponse,
    raft_pb2.RaftMessage,
]
ROOMY = 1 << 20


def bounds_of(message: type[Message], limit: int = LIMIT) -> MessageBounds:
    limits = dict.fromkeys(repeated_fields(message.DESCRIPTOR), limit)
    return MessageBounds(message, limits, bytes_max=ROOMY)


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def field(number: int, wire_type: int, value: bytes) -> bytes:
    length = varint(len(value)) if wire_type == 2 else b""
    return varint(number << 3 | wire_type) + length + value


def encoded(descriptor: Any, depth: int = 3) -> st.SearchStrategy[bytes]:
    """Draw bytes of a message, as no library would write them: any field any number of times, in any order, known or
    not."""
    parts: list[st.SearchStrategy[bytes]] = [
        st.integers(50, 90).map(lambda number: field(number, 0, b"\x81\x01")),
        st.integers(50, 90).map(lambda number: field(number, 2, b"unknown")),
    ]
    for each in descriptor.fields:
        if each.message_type is not None:
            if depth:
                inside = encoded(each.message_type, depth - 1)
                parts.append(inside.map(lambda body, number=each.number: field(number, 2, body)))
        elif each.cpp_type == each.CPPTYPE_STRING:
            parts.append(st.sampled_from([b"", b"text"]).map(lambda body, number=each.number: field(number, 2, body)))
        elif each.cpp_type == each.CPPTYPE_DOUBLE:
            parts += [st.just(field(each.number, 1, bytes(8))), st.just(field(each.number, 2, bytes(8 * LIMIT)))]
        else:
            parts.append(st.just(field(each.number, 0, b"\x80\x01")))
            packed = st.integers(0, LIMIT + 2).map(lambda count: b"\x80\x01" * count)
            parts.append(packed.map(lambda body, number=each.number: field(number, 2, body)))
    one = st.one_of(parts)
    run = st.tuples(one, st.integers(1, LIMIT + 3)).map(lambda drawn: drawn[0] * drawn[1])
    return st.lists(st.one_of(one, run), max_size=6).map(b"".join)


def counts(message: Message) -> Iterator[int]:
    """Yield how many items each repeated field has, in every message within."""
    for declared, value in message.ListFields():
        if is_repeated(declared):
            yield len(value)
        if declared.message_type is not None:
            for inside in value if is_repeated(declared) else [value]:
                yield from counts(inside)


@pytest.mark.parametrize("message", TYPES, ids=lambda message: message.DESCRIPTOR.name)
@given(data=st.data())
def test_what_holds_too_much_is_refused_and_nothing_else(message: type[Message], data: st.DataObject) -> None:
    whole = data.draw(encoded(message.DESCRIPTOR))
    most = max(counts(message.FromString(whole)), default=0)
    try:
        bounds_of(message).check(whole)
    except TooLarge as refusal:
        assert refusal.limit == LIMIT and refusal.length is not None and refusal.length > LIMIT
        assert most > LIMIT or has_dropped_some(message)
    else:
        # Fields that a parser joins may have as many again, in pieces that are too short to hold too much by
        # themselves.
        assert most <= 2 * LIMIT


def has_dropped_some(message: type[Message]) -> bool:
    """Return whether a parser may drop objects: it keeps the last one given of a oneof, though it makes objects of
    all."""
    return message.DESCRIPTOR.name in ("CommitRequest", "MultiGetRequest", "RaftMessage", "BulkRequest", "ScanRequest")


@pytest.mark.parametrize("message", TYPES, ids=lambda message: message.DESCRIPTOR.name)
@given(junk=st.binary(max_size=300), times=st.integers(1, 50))
def test_any_bytes_are_a_message_or_are_refused_as_none(message: type[Message], junk: bytes, times: int) -> None:
    whole = junk * times
    try:
        bounds_of(message).check(whole)
    except InvalidArgument:
        return
    try:
        parsed = message.FromString(whole)
    except DecodeError:
        return
    assert max(counts(parsed), default=0) <= 2 * LIMIT


@pytest.mark.parametrize(
    "encoding",
    [field(3, 3, b"") * 400 + field(3, 4, b"") * 400, b"\x12", b"\x12\x05abc", b"\xff" * 40, b"\x12" + b"\x80" * 12],
    ids=["groups", "no length", "too short", "no tag", "a length without end"],
)
def test_what_a_walk_cannot_follow_is_refused_as_no_message(encoding: bytes) -> None:
    whole = field(1, 2, b"") + field(3, 2, b"") * LIMIT + encoding
    with pytest.raises(InvalidArgument, match="is no serialized"):
        bounds_of(transactions_pb2.CommitRequest).check(whole)


def refusal_of(bounds: MessageBounds, message: Message | bytes) -> str:
    with pytest.raises(TooLarge) as refused:
        bounds.check(message if isinstance(message, bytes) else message.SerializeToString())
    return str(refused.value)


def test_a_refusal_names_the_field_its_count_and_the_limit() -> None:
    commit = transactions_pb2.CommitRequest()
    for parts in (1, LIMIT + 2):
        commit.operations.add(update=common_pb2.DocumentUpdate(key=Key(parts=[Value(int64=1)] * parts)))
    assert refusal_of(bounds_of(transactions_pb2.CommitRequest), commit) == (
        "operations[1].update.key.parts: must be at most 5 (got 7)"
    )
    one_more = transactions_pb2.CommitRequest(footprints=[b""] * (LIMIT + 1))
    assert refusal_of(bounds_of(transactions_pb2.CommitRequest), one_more) == "footprints: must be at most 5 (got 6)"
    reply = documents_pb2.SplitResponse(rows=range(2 * LIMIT))
    assert refusal_of(bounds_of(documents_pb2.SplitResponse), reply) == "rows: must be at most 5 (got 10)"


def test_many_more_than_the_limit_are_not_counted_to_their_end() -> None:
    bounds = bounds_of(transactions_pb2.CommitRequest)
    assert refusal_of(bounds, b"\x1a\x00" * 300_000) == "operations: must be at most 5 (got more than 5)"


def test_pieces_of_one_message_count_together() -> None:
    """A parser joins the pieces of a field that may come once."""
    bounds = bounds_of(documents_pb2.ScanRequest, 100)
    piece = field(3, 2, field(1, 2, field(1, 2, b"") * 90))
    bounds.check(piece)
    assert refusal_of(bounds, piece * 40) == "range.start.parts: must be at most 100 (got 180)"


def test_fields_that_nobody_knows_are_bounded_as_well() -> None:
    bounds = bounds_of(transactions_pb2.CommitRequest)
    bounds.check(field(70, 0, b"\x01") * 500)
    assert refusal_of(bounds, field(70, 0, b"\x01") * 300_000) == f"request: has more than {bounds.fields_max} fields"


def test_a_message_of_too_many_bytes_is_refused_without_a_look_at_it() -> None:
    whole = kv_pb2.KvPutRequest(value=bytes(ROOMY)).SerializeToString()
    assert refusal_of(bounds_of(kv_pb2.KvPutRequest), whole) == f"request: has {len(whole)} bytes, the most is {ROOMY}"


def test_a_repeated_field_needs_a_limit() -> None:
    with pytest.raises(KeyError, match=r"cortado\.v1\.BulkStart\.columns"):
        MessageBounds(documents_pb2.BulkRequest, {}, bytes_max=ROOMY)
