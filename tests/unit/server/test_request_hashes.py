"""One id names one request: its kind, which stands for the method, and all of its fields."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument
from cortado.proto.v1 import kv_pb2
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.service import request_hash
from support.nodes import run, running_node


def test_two_kinds_of_request_with_the_same_bytes_are_two_requests() -> None:
    put = kv_pb2.KvPutRequest(namespace="a", key=b"k")
    delete = kv_pb2.KvDeleteRequest(namespace="a", key=b"k")
    assert put.SerializeToString() == delete.SerializeToString()
    assert request_hash(put) != request_hash(delete)
    assert request_hash(put) == request_hash(kv_pb2.KvPutRequest(namespace="a", key=b"k"))


def test_an_id_that_was_used_for_one_method_is_refused_by_another() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            service = KeyValueService(node)
            request_id = bytes(node.process.clock.now()) + bytes(8)
            range_ = kv_pb2.KvDeleteRangeRequest(namespace="a", request_id=request_id)
            await service.delete_range(range_)
            put = kv_pb2.KvPutRequest(namespace="a", key=b"k", request_id=request_id)
            with pytest.raises(InvalidArgument, match="was used for another request before"):
                await service.put(put)

    run(scenario)
