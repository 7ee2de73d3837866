"""Commits of transactions for two nodes that are asked the same: plain ones, and such as go the general way."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from cortado.proto.v1 import common_pb2, transactions_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key, kv_range, namespace_key
from cortado.store.server.convert import timestamp_message
from cortado.store.transactions.footprint import Footprint

_SERIALIZABLE: Final = transactions_pb2.ISOLATION_SERIALIZABLE


class CommitAsker:
    """Draws commits: each method returns the method that is called, and its request. Half of them rest on the newest
    time that it knows, and have keys of their own; the others have keys of all, or began long ago."""

    def __init__(self, source: random.Random, request_id: Callable[[], bytes], etags: Sequence[str]) -> None:
        self._random = source
        self._request_id = request_id
        self._etags = etags
        self._asked: list[bytes] = []
        self._namespace = "n"

    def plain(self) -> tuple[str, bytes]:
        request = self._plain().SerializeToString()
        self._asked.append(request)
        return "Transactions/Commit", request

    def _plain(self) -> transactions_pb2.CommitRequest:
        source = self._random
        if source.random() < 0.1:
            self._namespace = source.choice("nnm")
        namespace = self._namespace
        request = transactions_pb2.CommitRequest(request_id=self._request_id())
        keys = [self._key() for _ in range(source.choice((1, 1, 1, 2, 10, 16)))]
        deletes = source.choice((0.0, 0.0, 0.3, 1.0))
        for key in keys:
            self._operation(request, namespace, key, is_delete=source.random() < deletes)
        if source.random() < 0.9:
            request.start.CopyFrom(timestamp_message(self._start()))
            if source.random() < 0.5:
                self._reads(request, namespace, [*keys, *(self._key() for _ in range(source.randrange(3)))])
        return request

    def _operation(
        self, request: transactions_pb2.CommitRequest, namespace: str, key: bytes, *, is_delete: bool
    ) -> common_pb2.Operation:
        operation = request.operations.add()
        if is_delete:
            operation.delete_pair.namespace, operation.delete_pair.key = namespace, key
        else:
            put = operation.put_pair
            put.namespace, put.key, put.value = namespace, key, self._random.randbytes(self._random.choice((0, 3, 90)))
        return operation

    def _reads(self, request: transactions_pb2.CommitRequest, namespace: str, keys: Sequence[bytes]) -> None:
        request.isolation = _SERIALIZABLE
        request.footprints.append(
            Footprint([namespace_key(namespace), *(kv_key(namespace, key) for key in keys)]).encode()
        )

    def _key(self) -> bytes:
        source = self._random
        return source.choice((b"a", b"b", b"key-%d" % source.randrange(20), *[b"own-%d" % source.randrange(900)] * 6))

    def _start(self) -> Timestamp:
        source, times = self._random, [Timestamp.parse(each) for each in self._etags]
        newest = max(times)
        match source.randrange(20):
            case 0 | 1 | 2 | 3:
                return source.choice(times[-200:])
            case 4:
                return source.choice(times)
            case 5:
                return Timestamp(newest.epoch, newest.wall_ms + source.choice((0, 1, 90_000)), source.randrange(40))
            case _:
                return newest

    def other(self) -> tuple[str, bytes]:
        """Draw a commit that is not plain, or is refused by itself."""
        request, source = self._plain(), self._random
        pair: Any = {"namespace": "n", "key": self._key()}
        match source.randrange(16):
            case 0 | 1 if self._asked:
                return "Transactions/Commit", source.choice(self._asked[-100:])
            case 2 if self._asked:
                request = transactions_pb2.CommitRequest.FromString(source.choice(self._asked[-100:]))
                request.operations.add(delete_pair=common_pb2.KvDelete(**pair))
            case 3:
                request.operations.add(put_pair=common_pb2.KvPut(**pair)).put_pair.condition.absent = True
            case 4:
                request.operations.add(delete_pair=common_pb2.KvDelete(**pair)).delete_pair.condition.present = True
            case 5:
                request.operations.add(put_pair=common_pb2.KvPut(**pair)).put_pair.expiry.ttl_ms = 100
            case 6:
                request.operations.add(add_pair=common_pb2.KvAdd(namespace="n", key=b"sum", delta=1))
            case 7:
                pair["namespace"] = "m" if request.operations[0].put_pair.namespace == "n" else "n"
                request.operations.add(put_pair=common_pb2.KvPut(**pair))
            case 8:
                pair["key"] = source.choice((b"", b"k" * 490))
                request.operations.add(put_pair=common_pb2.KvPut(**pair))
            case 9:
                for number in range(17):
                    self._operation(request, "n", b"more-%d" % number, is_delete=False)
            case 10:
                request.request_id = source.choice((b"", b"short"))
            case 11:
                request.footprints.append(Footprint((), [kv_range("n", b"a", b"c")]).encode())
            case 12:
                request.footprints.append(b"none")
            case 13:
                request.isolation = 7
            case 14:
                del request.operations[:]
            case _:
                request.operations.add()
        return "Transactions/Commit", request.SerializeToString()
