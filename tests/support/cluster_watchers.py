"""Watchers of a cluster of real processes, each in a thread, that record the changes they see.

Two kinds: one watches one node by a plain stub, and when its stream ends begins there again, as soon as the node is
back, from its last resolved mark; the other watches through the client, which does all of that by itself.
"""

from __future__ import annotations

import threading

import grpc

from cortado.errors import CortadoError
from cortado.proto.v1 import common_pb2, watch_pb2, watch_pb2_grpc
from cortado.store.client import Changed, Client
from cortado.store.client import Resolved as ClientResolved
from cortado.store.client.values import timestamp_of, timestamp_to_proto
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.keys.packing import cut, cut_equal
from support.watch_history import Resolved, Seen

_LOCAL_POOL = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
_AGAIN_S = 0.1


def seen_of(packed: watch_pb2.KvPackedChanges) -> list[Seen]:
    """Return the changes of a packed reply."""
    deletes = set(packed.deletes)
    return [
        Seen(Timestamp.from_bytes(version), key, None if place in deletes else value)
        for place, (version, key, value) in enumerate(
            zip(
                cut_equal(packed.versions, TIMESTAMP_BYTES),
                cut(packed.keys, packed.key_lengths),
                cut(packed.values, packed.value_lengths),
                strict=True,
            )
        )
    ]


def request(namespace: str, after: Timestamp, interval_ms: int = 100) -> watch_pb2.WatchKeyValueRequest:
    """Return a request for all keys of a namespace."""
    return watch_pb2.WatchKeyValueRequest(
        namespace=namespace,
        options=watch_pb2.WatchOptions(
            after=common_pb2.ReadAt(timestamp=timestamp_to_proto(after)), resolved_interval_ms=interval_ms
        ),
        packed=True,
    )


def everything(address: str, namespace: str, until: Timestamp) -> list[Seen]:
    """Return all changes that were ever committed in a namespace, up to ``until``, as one node tells them."""
    found: list[Seen] = []
    with grpc.insecure_channel(address, options=_LOCAL_POOL) as channel:
        for reply in watch_pb2_grpc.WatchStub(channel).KeyValue(request(namespace, ZERO), timeout=60):
            found += seen_of(reply.packed)
            if reply.HasField("resolved") and timestamp_of(reply.resolved) >= until:
                return [each for each in found if each.ts <= until]
    raise AssertionError("the stream ended")


class _Watcher(threading.Thread):
    def __init__(self, after: Timestamp) -> None:
        super().__init__(daemon=True)
        self.after = after
        self.history: list[Seen | Resolved] = []
        self.resolved = after
        self.problem: BaseException | None = None
        self.streams = 0
        self._stop_event = threading.Event()

    def run(self) -> None:
        try:
            while not self._stop_event.is_set():
                self._watch()
                self._stop_event.wait(_AGAIN_S)
        except BaseException as problem:
            if not self._stop_event.is_set():
                self.problem = problem

    def _watch(self) -> None:
        raise NotImplementedError

    def _resolve(self, ts: Timestamp) -> None:
        self.history.append(Resolved(ts))
        self.resolved = ts


class NodeWatcher(_Watcher):
    """Watches one node. When a stream ends, changes above its last mark are dropped, since they come again."""

    def __init__(self, address: str, namespace: str, after: Timestamp) -> None:
        super().__init__(after)
        self._address = address
        self._namespace = namespace
        self._call: grpc.Future | None = None

    def _watch(self) -> None:
        with grpc.insecure_channel(self._address, options=_LOCAL_POOL) as channel:
            replies = watch_pb2_grpc.WatchStub(channel).KeyValue(request(self._namespace, self.resolved))
            self._call = replies
            try:
                for reply in replies:
                    self.history += seen_of(reply.packed)
                    if reply.HasField("resolved"):
                        self._resolve(timestamp_of(reply.resolved))
            except grpc.RpcError as ended:
                assert ended.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED), ended
        self.streams += 1
        self.history = [each for each in self.history if each.ts <= self.resolved]

    def stop(self) -> None:
        self._stop_event.set()
        if self._call is not None:
            self._call.cancel()
        self.join(10)


class ClientWatcher(_Watcher):
    """Through the client. Nothing is dropped: nothing may come twice."""

    def __init__(self, client: Client, namespace: str, after: Timestamp) -> None:
        super().__init__(after)
        self._watcher = client.kv(namespace).watch(after=after, resolved_ms=100)

    def _watch(self) -> None:
        try:
            for event in self._watcher:
                if isinstance(event, ClientResolved):
                    self._resolve(event.ts)
                else:
                    value = event.value if isinstance(event, Changed) else None
                    self.history.append(Seen(event.ts, event.key, value))
        except CortadoError as ended:
            # A watch that found no node in time goes on when it is asked again.
            assert ended.code == "UNAVAILABLE", ended
        self.streams += 1

    def stop(self) -> None:
        self._stop_event.set()
        self._watcher.close()
        self.join(10)
