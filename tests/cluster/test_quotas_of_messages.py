"""Quotas that are used up in the middle of a message of many calls: each call counts once, the rest is refused by name,
acknowledged writes are stored, refused ones are not, and callers of other namespaces notice nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from cortado.errors import QuotaExceeded
from cortado.proto.v1 import calls_pb2, common_pb2, kv_pb2, transactions_pb2
from cortado.store.client import Client
from cortado.store.wire.rpc_errors import from_status
from support.message_callers import COMMIT, KV, Stream
from support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.process

CALLS = 250
RATE = 100
NUMBERS = itertools.count()


class Messages:
    """Sends messages to a namespace, and keeps the keys that were acknowledged."""

    def __init__(self, client: Client, stream: Stream, namespace: str) -> None:
        self._stream, self._namespace, self._begun = stream, namespace, bytes(client.now())
        self.acknowledged: set[bytes] = set()

    def _request_id(self) -> bytes:
        return self._begun + next(NUMBERS).to_bytes(8)

    def put(self, key: bytes) -> calls_pb2.Call:
        request = kv_pb2.KvPutRequest(namespace=self._namespace, key=key, value=b"v", request_id=self._request_id())
        return self._call(KV + "Put", request.SerializeToString())

    def commit(self, key: bytes) -> calls_pb2.Call:
        request = transactions_pb2.CommitRequest(request_id=self._request_id())
        request.operations.add(put_pair=common_pb2.KvPut(namespace=self._namespace, key=key, value=b"v"))
        return self._call(COMMIT, request.SerializeToString())

    def get(self, key: bytes) -> calls_pb2.Call:
        return self._call(KV + "Get", kv_pb2.KvGetRequest(namespace=self._namespace, key=key).SerializeToString())

    def multi_get(self, key: bytes) -> calls_pb2.Call:
        request = kv_pb2.KvMultiGetRequest(namespace=self._namespace, keys=[key] * 3)
        return self._call(KV + "MultiGet", request.SerializeToString())

    def _call(self, method: str, request: bytes) -> calls_pb2.Call:
        return calls_pb2.Call(id=self._stream.number(), method=method, request=request)

    def send(self, of_calls: list[Callable[[bytes], calls_pb2.Call]]) -> list[bool]:
        """Send a call of each in one message; return which are served. All others have to name the quota."""
        keys = [b"%d" % next(NUMBERS) for _ in of_calls]
        calls = [make(key) for make, key in zip(of_calls, keys, strict=True)]
        self._stream.send(calls)
        assert self._stream.wait([call.id for call in calls])
        served = []
        for call, key in zip(calls, keys, strict=True):
            status = self._stream.replies.pop(call.id).status
            served.append(not status)
            if not status and call.method in (KV + "Put", COMMIT):
                self.acknowledged.add(key)
            if status:
                refusal = from_status(status)
                assert isinstance(refusal, QuotaExceeded)
                assert (refusal.quota, refusal.limit) == (f"namespace:{self._namespace}", RATE)
        return served


@pytest.fixture
def stream(server: ServerProcess) -> Iterator[Stream]:
    stream = Stream(server.endpoint)
    yield stream
    stream.close()


def test_a_message_beyond_its_quota_is_served_as_far_as_the_quota_goes(
    client: Client, stream: Stream, database: str
) -> None:
    client.kv(database).put(b"first", b"")
    messages = Messages(client, stream, database)
    refused = 0
    client.admin.quotas.set(f"namespace:{database}", calls_per_second=RATE)
    try:
        # From here on the quota is known at the node, and used up.
        wait_until(lambda: not all(messages.send([messages.get] * CALLS)), "the quota holds")
        began = client.admin.quotas.get(f"namespace:{database}").refused
        for kind in ([messages.put], [messages.commit], [messages.get, messages.multi_get, messages.put]):
            served: list[bool] = []
            while not any(served):
                served = messages.send((kind * CALLS)[:CALLS])
                refused += served.count(False)
        told = client.admin.quotas.get(f"namespace:{database}").refused - began
    finally:
        client.admin.quotas.remove(f"namespace:{database}")
    assert told == refused > 0
    wait_until(lambda: all(messages.send([messages.get] * CALLS)), "the quota is gone")
    assert {pair.key for pair in client.kv(database).scan()} == {b"first", *messages.acknowledged}


def test_callers_of_another_namespace_are_not_refused_in_the_same_message(
    client: Client, stream: Stream, database: str
) -> None:
    client.kv(database).put(b"first", b"")
    limited, free = Messages(client, stream, database), Messages(client, stream, f"{database}-free")
    client.admin.quotas.set(f"namespace:{database}", calls_per_second=RATE)
    try:
        wait_until(lambda: not all(limited.send([limited.put] * CALLS)), "the quota holds")
        served = limited.send([limited.put, free.put] * CALLS)
        assert all(served[1::2])
        assert not all(served[::2])
    finally:
        client.admin.quotas.remove(f"namespace:{database}")
