"""A peer's items in a range of stored keys, on the wire: requested if part of that range is damaged here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import InvalidArgument, Unavailable
from cortado.proto.internal.peers_pb2 import Hello, ReadRangeRequest, ReadRangeResponse
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.engine.interface import KEY_BYTES_MAX, Space
from cortado.store.keys.packing import cut, join
from cortado.store.peers.bounds import RANGE_BOUNDS
from cortado.store.peers.connecting import Target, ask
from cortado.store.peers.frames import Kind
from cortado.store.process.range_copies import Answer, Ask
from cortado.store.replica.write.request_table.records import REQUEST_ID_BYTES

_END_BYTES_MAX: Final = KEY_BYTES_MAX + 1
_CODE_OF_SPACE: Final = {Space.DATA: 1, Space.REQUESTS: 2}
_SPACE_OF_CODE: Final = {code: space for space, code in _CODE_OF_SPACE.items()}


def range_request(hello: Hello, group_id: int, ask: Ask) -> ReadRangeRequest:
    return ReadRangeRequest(
        hello=hello, group_id=group_id, space=_CODE_OF_SPACE[ask.space], start=ask.start, end=ask.end
    )


def asked(request: ReadRangeRequest) -> Ask:
    """Raise InvalidArgument."""
    space = _SPACE_OF_CODE.get(request.space)
    if space is None:
        raise InvalidArgument("space", "must be 1 or 2", str(request.space))
    if not 0 < len(request.start) <= _END_BYTES_MAX or not 0 < len(request.end) <= _END_BYTES_MAX:
        raise InvalidArgument("start", f"must have 1 to {_END_BYTES_MAX} bytes, as must end")
    if request.start >= request.end:
        raise InvalidArgument("end", "must be above start", request.end.hex())
    return Ask(space, request.start, request.end)


def range_response(answer: Answer) -> ReadRangeResponse:
    keys, key_lengths = join([key for key, _ in answer.items])
    values, value_lengths = join([value for _, value in answer.items])
    return ReadRangeResponse(
        applied_index=answer.index,
        last_timestamp=bytes(answer.last_ts),
        request_floor=answer.request_floor,
        keys=keys,
        key_lengths=key_lengths,
        values=values,
        value_lengths=value_lengths,
        damaged=answer.damaged,
        damaged_right_keys=sorted(answer.right_keys),
        end=answer.end,
    )


def answered(message: bytes, node_id: str) -> Answer:
    """Raise Unavailable if it is no answer."""
    try:
        RANGE_BOUNDS.check(message)
        reply = ReadRangeResponse.FromString(message)
        if len(reply.last_timestamp) != TIMESTAMP_BYTES:
            raise ValueError(f"a timestamp of {len(reply.last_timestamp)} bytes")
        if len(reply.request_floor) != REQUEST_ID_BYTES:
            raise ValueError(f"a request floor of {len(reply.request_floor)} bytes")
        keys: Sequence[bytes] = cut(reply.keys, reply.key_lengths)
        items = list(zip(keys, cut(reply.values, reply.value_lengths), strict=True))
    except (DecodeError, ValueError, InvalidArgument) as malformed:
        raise Unavailable(f"node {node_id} sent a range that does not decode: {malformed}") from None
    last_ts = Timestamp.from_bytes(reply.last_timestamp)
    damaged, right_keys = list(reply.damaged), frozenset(reply.damaged_right_keys)
    return Answer(reply.applied_index, last_ts, reply.request_floor, items, damaged, reply.end, right_keys)


async def read_range(target: Target, request: ReadRangeRequest) -> Answer:
    """Over a connection of its own. Raises Unavailable, PeerRefused."""
    node_id, silence_ms = target.node_id, target.limits.silence_ms
    try:
        async with asyncio.timeout(silence_ms / 1000):
            answer = await ask(target, Kind.READ_RANGE, request.SerializeToString(), Kind.RANGE)
    except TimeoutError:
        raise Unavailable(f"node {node_id} did not send its items for {silence_ms} ms") from None
    return answered(answer, node_id)
