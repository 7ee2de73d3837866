"""The remembered part of a write's reply is the part that only that write knew: the header is made anew by the
answering node."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from cortado.proto import v1
from cortado.proto.v1 import common_pb2, kv_pb2, transactions_pb2
from cortado.store.replica.write.proposals import Proposal
from cortado.store.server.convert import timestamp_message
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.transactions_service import TransactionsService
from support.nodes import run, running_node


def test_a_repeated_write_is_answered_as_the_first_and_its_header_is_not_remembered() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            service = KeyValueService(node)
            request_id = bytes(node.process.clock.now()) + bytes(8)
            put = kv_pb2.KvPutRequest(namespace="a", key=b"k", request_id=request_id)
            first = await service.put(put)
            await service.put(kv_pb2.KvPutRequest(namespace="a", key=b"other"))
            await node.meta.reads.applied_to(node.meta.read_ts())
            assert await service.put(put) == first
            remembered, reply = node.meta.known_requests.first(request_id, b""), kv_pb2.KvPutResponse.FromString(first)
            assert remembered is not None and not isinstance(remembered, Proposal)
            assert reply.header.node_id == node.process.identity.node_id
            assert reply.header.timestamp == timestamp_message(remembered.ts)
            assert remembered.reply == kv_pb2.KvPutResponse(etag=reply.etag).SerializeToString()

    run(scenario)


def test_the_reply_of_a_commit_that_was_settled_has_its_header() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            service, request_id = TransactionsService(node), bytes(node.process.clock.now()) + bytes(8)
            commit = transactions_pb2.CommitRequest(request_id=request_id)
            put = commit.operations.add().put_pair
            put.namespace, put.key = "a", b"k"
            first = await service.commit(commit)
            settled = await service.settle(transactions_pb2.SettleRequest(request_id=request_id))
            assert isinstance(settled, transactions_pb2.SettleResponse)
            assert settled.reply == first

    run(scenario)


def test_every_reply_begins_with_its_header() -> None:
    modules = [import_module(f"{v1.__name__}.{each.name}") for each in pkgutil.iter_modules(v1.__path__)]
    files = [each.DESCRIPTOR for each in modules if hasattr(each, "DESCRIPTOR")]
    methods = [method for file in files for service in file.services_by_name.values() for method in service.methods]
    fields = [field for method in methods for field in method.output_type.fields]
    headers = [each for each in fields if each.message_type is common_pb2.Header.DESCRIPTOR]
    assert {(each.name, each.number) for each in headers} == {("header", 1)}
