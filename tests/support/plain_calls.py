"""Plain calls of a message, and their answers."""

from __future__ import annotations

from typing import Any

from cortado.errors import CortadoError
from cortado.proto.v1 import calls_pb2, kv_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.wire.rpc_errors import from_status
from support.nodes import NOW_MS
from support.run_twins import METHOD


def put(number: int, key: bytes = b"k", value: bytes = b"v", **fields: Any) -> calls_pb2.Call:
    request_id = b"".join((b"\0\0", (NOW_MS - 1).to_bytes(6), bytes(4), number.to_bytes(8)))
    request = kv_pb2.KvPutRequest(**{"namespace": "n", "key": key, "value": value, "request_id": request_id} | fields)
    return calls_pb2.Call(id=number, method=METHOD + "Put", request=request.SerializeToString())


def delete(number: int, key: bytes = b"k", **fields: Any) -> calls_pb2.Call:
    request_id = kv_pb2.KvPutRequest.FromString(put(number).request).request_id
    request = kv_pb2.KvDeleteRequest(**{"namespace": "n", "key": key, "request_id": request_id} | fields)
    return calls_pb2.Call(id=number, method=METHOD + "Delete", request=request.SerializeToString())


def existed(reply: calls_pb2.CallReply) -> bool:
    assert not reply.status, error(reply)
    return kv_pb2.KvDeleteResponse.FromString(reply.reply).existed


def get(number: int, key: bytes = b"k", namespace: str = "n") -> calls_pb2.Call:
    request = kv_pb2.KvGetRequest(namespace=namespace, key=key).SerializeToString()
    return calls_pb2.Call(id=number, method=METHOD + "Get", request=request)


def multi_get(number: int, *keys: bytes, **fields: Any) -> calls_pb2.Call:
    request = kv_pb2.KvMultiGetRequest(**{"namespace": "n", "keys": keys} | fields)
    return calls_pb2.Call(id=number, method=METHOD + "MultiGet", request=request.SerializeToString())


def values(reply: calls_pb2.CallReply) -> list[bytes | None]:
    """Return the values of a reply to a :func:`multi_get`."""
    assert not reply.status, error(reply)
    return [pair.value if pair.etag else None for pair in kv_pb2.KvMultiGetResponse.FromString(reply.reply).pairs]


def request_id(call: calls_pb2.Call) -> bytes:
    return kv_pb2.KvPutRequest.FromString(call.request).request_id


def etag(reply: calls_pb2.CallReply) -> Timestamp:
    assert not reply.status, error(reply)
    return Timestamp.parse(kv_pb2.KvPutResponse.FromString(reply.reply).etag)


def error(reply: calls_pb2.CallReply) -> CortadoError:
    assert reply.status
    return from_status(reply.status)


def value(reply: calls_pb2.CallReply) -> bytes | None:
    assert not reply.status, error(reply)
    found = kv_pb2.KvGetResponse.FromString(reply.reply)
    return found.pair.value if found.HasField("pair") else None


def given(call: calls_pb2.Call, **fields: Any) -> calls_pb2.Call:
    for name, each in fields.items():
        setattr(call, name, each)
    return call
