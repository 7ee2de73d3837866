"""Runs of pairs: ``KeyValue.Put``, ``KeyValue.Delete``, ``KeyValue.Get`` and ``KeyValue.MultiGet``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Final

from cortado.errors import CortadoError, DataLoss
from cortado.proto.v1 import common_pb2, kv_pb2
from cortado.store.catalog.stored import generation_of
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import LOGICAL_KEY_BYTES_MAX, kv_key, kv_keys
from cortado.store.keys.names import check_namespace
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.operations import DEFAULT_LIMITS, PIECE_BYTES
from cortado.store.mvcc.reader import Reader
from cortado.store.replica.replica import Replica
from cortado.store.replica.write.run import EvaluateRun, RunEffects
from cortado.store.server.runs.gathering import CallRun, PlainCall
from cortado.store.server.runs.reading import PlainReads
from cortado.store.server.runs.wire import get_replies, headed, multi_get_reply, put_etags
from cortado.store.server.runs.writing import PlainWrites
from cortado.store.server.service import KEYS_ON_THE_LOOP

_GONE: Final = kv_pb2.KvDeleteResponse().SerializeToString()
_EXISTED: Final = kv_pb2.KvDeleteResponse(existed=True).SerializeToString()


@lru_cache(maxsize=1_024)
def _key_bytes_max(namespace: str) -> int:
    """Return the size limit of a user key in it, each zero counted twice; below 0 if no namespace may have that
    name."""
    try:
        return LOGICAL_KEY_BYTES_MAX - len(kv_key(check_namespace(namespace), b""))
    except CortadoError:
        return -1


def fits(namespace: str, key: bytes) -> bool:
    """Return whether a pair may have this key."""
    return bool(key) and len(key) + key.count(0) <= _key_bytes_max(namespace)


KEYS_OF_RUN_MAX: Final = 1_024
"""The keys that all calls of one run look up: some microseconds each, in one piece."""
REPLY_BYTES_MAX: Final = PIECE_BYTES // 2
"""The size of a reply with several pairs. The general way may end a larger one early, and leave pairs out."""


class PlainPuts(PlainWrites):
    """Pairs without conditions that do not expire, of one namespace."""

    name = "cortado.v1.KeyValue/Put"
    request_bytes_max = DEFAULT_LIMITS.value_bytes_max

    def key_of_request(self, request: kv_pb2.KvPutRequest) -> Hashable | None:
        if request.HasField("condition") or request.HasField("expiry"):
            return None
        namespace = request.namespace
        return namespace if fits(namespace, request.key) else None

    def replica_of(self, run: CallRun) -> Replica:
        return self.host.replica_of_namespace(run.key)

    def evaluation(self, run: CallRun) -> EvaluateRun:
        requests = [call.request for call in run.calls]

        def evaluate(reader: Reader, first: Timestamp) -> RunEffects:
            keys = kv_keys(run.key, [each.key for each in requests], generation_of(reader, run.key))
            return RunEffects(keys, [each.value for each in requests], put_etags(first, len(keys)))

        return evaluate


class PlainDeletes(PlainWrites):
    """Pairs of one namespace, without conditions."""

    name = "cortado.v1.KeyValue/Delete"
    request_bytes_max = DEFAULT_LIMITS.value_bytes_max

    def key_of_request(self, request: kv_pb2.KvDeleteRequest) -> Hashable | None:
        namespace = request.namespace
        return namespace if not request.HasField("condition") and fits(namespace, request.key) else None

    def replica_of(self, run: CallRun) -> Replica:
        return self.host.replica_of_namespace(run.key)

    def evaluation(self, run: CallRun) -> EvaluateRun:
        user_keys = [call.request.key for call in run.calls]

        def evaluate(reader: Reader, _first: Timestamp) -> RunEffects | None:
            keys, there = kv_keys(run.key, user_keys, generation_of(reader, run.key)), dict[LogicalKey, int]()
            try:
                for place, key in enumerate(keys):
                    # A second delete of a key finds nothing.
                    if key not in there and reader.get(key) is not None:
                        there[key] = place
            except DataLoss:
                return None
            replies = [_GONE] * len(keys)
            for place in there.values():
                replies[place] = _EXISTED
            return RunEffects(list(there), [None] * len(there), replies, list(there.values()))

        return evaluate


class PlainGets(PlainReads):
    """Pairs of one namespace."""

    name = "cortado.v1.KeyValue/Get"

    def key_of(self, call: PlainCall) -> Hashable | None:
        request = call.request
        if request.HasField("at"):
            return None
        namespace: str = request.namespace
        return namespace if fits(namespace, request.key) else None

    def replica_of(self, run: CallRun) -> Replica:
        return self.host.replica_of_namespace(run.key)

    def replies(self, run: CallRun, reader: Reader, header: common_pb2.Header) -> Sequence[bytes]:
        keys = [call.request.key for call in run.calls]
        # Pairs beyond a piece go the general way: others of the loop go on in between.
        found = reader.get_many(kv_keys(run.key, keys, generation_of(reader, run.key)), max_bytes=PIECE_BYTES)
        return get_replies(header, keys, found)


class PlainMultiGets(PlainReads):
    """Some pairs each, of one namespace."""

    name = "cortado.v1.KeyValue/MultiGet"

    @property
    def calls_max(self) -> int:
        return min(super().calls_max, KEYS_OF_RUN_MAX // KEYS_ON_THE_LOOP)

    def key_of(self, call: PlainCall) -> Hashable | None:
        request = call.request
        namespace, keys = request.namespace, request.keys
        if request.HasField("at") or not 0 < len(keys) <= KEYS_ON_THE_LOOP:
            return None
        return namespace if all(fits(namespace, key) for key in keys) else None

    def replica_of(self, run: CallRun) -> Replica:
        return self.host.replica_of_namespace(run.key)

    def replies(self, run: CallRun, reader: Reader, header: common_pb2.Header) -> Sequence[bytes | None]:
        asked = [list(call.request.keys) for call in run.calls]
        keys = kv_keys(run.key, list(chain.from_iterable(asked)), generation_of(reader, run.key))
        found = iter(reader.get_many(keys, max_bytes=PIECE_BYTES))
        head, replies = headed(header), list[bytes | None]()
        for user_keys in asked:
            versions = list(islice(found, len(user_keys)))
            if len(versions) < len(user_keys):
                break
            reply = multi_get_reply(head, user_keys, versions)
            replies.append(reply if len(reply) <= REPLY_BYTES_MAX else None)
        return replies
