"""The part of etcd's API that is measured, declared by hand: etcd's own stubs would be a dependency for six messages.

Field numbers are those of ``etcd/api/etcdserverpb/rpc.proto`` and ``mvccpb/kv.proto`` (etcd 3.4). Reads without
``serializable`` are linearizable, and every write is synced on a majority before it is answered. A call is a plain
unary gRPC call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_PACKAGE: Final = "etcdserverpb"


def _field(name: str, number: int, kind: Any, *, of: str = "", repeated: bool = False) -> _Field:
    label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    type_name = f".{_PACKAGE}.{of}" if of else None
    return _Field(name=name, number=number, type=kind, label=label, type_name=type_name)


def _declare() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="benchmarks/etcd.proto", package=_PACKAGE, syntax="proto3")

    def message(name: str, *fields: _Field, one_of: str = "") -> None:
        made = file.message_type.add(name=name)
        if one_of:
            made.oneof_decl.add(name=one_of)
        for field in fields:
            if one_of:
                field.oneof_index = 0
            made.field.append(field)

    message("KeyValue", _field("key", 1, _Field.TYPE_BYTES), _field("value", 5, _Field.TYPE_BYTES))
    message("PutRequest", _field("key", 1, _Field.TYPE_BYTES), _field("value", 2, _Field.TYPE_BYTES))
    message("PutResponse")
    message(
        "RangeRequest",
        _field("key", 1, _Field.TYPE_BYTES),
        _field("range_end", 2, _Field.TYPE_BYTES),
        _field("limit", 3, _Field.TYPE_INT64),
    )
    message(
        "RangeResponse",
        _field("kvs", 2, _Field.TYPE_MESSAGE, of="KeyValue", repeated=True),
        _field("count", 4, _Field.TYPE_INT64),
    )
    message("RequestOp", _field("request_put", 2, _Field.TYPE_MESSAGE, of="PutRequest"), one_of="request")
    message("TxnRequest", _field("success", 2, _Field.TYPE_MESSAGE, of="RequestOp", repeated=True))
    message("TxnResponse", _field("succeeded", 2, _Field.TYPE_BOOL))
    message("StatusRequest")
    message("ResponseHeader", _field("member_id", 2, _Field.TYPE_UINT64))
    message(
        "StatusResponse",
        _field("header", 1, _Field.TYPE_MESSAGE, of="ResponseHeader"),
        _field("leader", 4, _Field.TYPE_UINT64),
    )
    return file


# A pool of its own: a program may hold etcd's real messages too.
_POOL: Final = descriptor_pool.DescriptorPool()
_POOL.Add(_declare())


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


PutRequest: Final = _class("PutRequest")
RangeRequest: Final = _class("RangeRequest")
RequestOp: Final = _class("RequestOp")
TxnRequest: Final = _class("TxnRequest")
StatusRequest: Final = _class("StatusRequest")


class EtcdApi:
    """Calls on one channel, from any number of threads."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._put = _unary(channel, "KV/Put", "PutResponse")
        self._range = _unary(channel, "KV/Range", "RangeResponse")
        self._txn = _unary(channel, "KV/Txn", "TxnResponse")
        self._status = _unary(channel, "Maintenance/Status", "StatusResponse")

    def put(self, key: bytes, value: bytes, timeout_s: float = 10.0) -> None:
        self._put(PutRequest(key=key, value=value), timeout=timeout_s)

    def get(self, key: bytes) -> bytes | None:
        found = self._range(RangeRequest(key=key), timeout=10).kvs
        return bytes(found[0].value) if found else None

    def put_all(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """All or nothing."""
        puts = [RequestOp(request_put=PutRequest(key=key, value=value)) for key, value in pairs]
        assert self._txn(TxnRequest(success=puts), timeout=10).succeeded

    def scan(self, start: bytes, end: bytes, limit: int) -> int:
        """How many pairs came."""
        return len(self._range(RangeRequest(key=start, range_end=end, limit=limit), timeout=10).kvs)

    def leads(self) -> bool:
        """Whether the member at the other end leads."""
        status = self._status(StatusRequest(), timeout=2)
        return bool(status.leader) and status.leader == status.header.member_id


class AsyncEtcdApi:
    """The same for tasks of one loop, on a channel of ``grpc.aio``."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._put = _unary(channel, "KV/Put", "PutResponse")
        self._range = _unary(channel, "KV/Range", "RangeResponse")
        self._txn = _unary(channel, "KV/Txn", "TxnResponse")

    async def put(self, key: bytes, value: bytes) -> None:
        await self._put(PutRequest(key=key, value=value), timeout=10)

    async def get(self, key: bytes) -> bytes | None:
        found = (await self._range(RangeRequest(key=key), timeout=10)).kvs
        return bytes(found[0].value) if found else None

    async def put_all(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        puts = [RequestOp(request_put=PutRequest(key=key, value=value)) for key, value in pairs]
        assert (await self._txn(TxnRequest(success=puts), timeout=10)).succeeded

    async def scan(self, start: bytes, end: bytes, limit: int) -> int:
        return len((await self._range(RangeRequest(key=start, range_end=end, limit=limit), timeout=10)).kvs)


def _unary(channel: grpc.Channel | grpc.aio.Channel, method: str, reply: str) -> Callable[..., Any]:
    kind = _class(reply)
    return channel.unary_unary(
        f"/{_PACKAGE}.{method}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=kind.FromString,
    )
