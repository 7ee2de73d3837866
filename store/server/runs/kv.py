"""Runs of ``KeyValue.Put`` and ``KeyValue.Get``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from cortado.errors import CortadoError
from cortado.store.catalog.generations import generation_of
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import LOGICAL_KEY_BYTES_MAX, kv_key, kv_keys, namespace_range
from cortado.store.kv.operations import DEFAULT_LIMITS, PIECE_BYTES
from cortado.store.mvcc.reader import Reader
from cortado.store.names import check_namespace
from cortado.store.node.host import Host
from cortado.store.node.proposals import RunResult
from cortado.store.node.replica import Replica
from cortado.store.node.request_table.records import REQUEST_ID_BYTES
from cortado.store.node.run import Puts
from cortado.store.node.run_submission import submit_run
from cortado.store.observe.requests import Requests
from cortado.store.server.authority import Authority
from cortado.store.server.runs.answering import LetIn, RunMethod
from cortado.store.server.runs.gathering import CALL_BYTES, RUN_CALLS_MAX, CallRun, Outcome, PlainCall
from cortado.store.server.runs.wire import get_replies, put_etags, with_headers
from cortado.store.server.service import Service, request_hashes

GET: Final = "cortado.v1.KeyValue/Get"
PUT: Final = "cortado.v1.KeyValue/Put"
_NONE: Final[frozenset[bytes]] = frozenset()


def kv_runs(host: Host, requests: Requests, authority: Authority | None = None) -> dict[str, RunMethod]:
    """The methods whose plain calls run together, by name."""
    return {PUT: PlainPuts(PUT, host, requests, authority), GET: PlainGets(GET, host, requests, authority)}


@lru_cache(maxsize=1_024)
def _key_bytes_max(namespace: str) -> int:
    """Of a user key in it, each zero counted twice; below 0 where no namespace has that name."""
    try:
        return LOGICAL_KEY_BYTES_MAX - len(kv_key(check_namespace(namespace), b""))
    except CortadoError:
        return -1


def _fits(namespace: str, key: bytes) -> bool:
    return bool(key) and len(key) + key.count(0) <= _key_bytes_max(namespace)


def _replica(host: Host, namespace: str) -> Replica:
    return host.replica_of(namespace_range(namespace)[0])


class PlainPuts(RunMethod):
    """One proposal for all of them."""

    @property
    def calls_max(self) -> int:
        limits = self.host.limits
        return min(RUN_CALLS_MAX, limits.batch_commands_max, limits.writes_max)

    def key_of(self, call: PlainCall) -> str | None:
        request, size_bytes = call.request, call.size_bytes
        is_small = size_bytes <= min(DEFAULT_LIMITS.value_bytes_max, self.host.limits.command_bytes_max - CALL_BYTES)
        if not is_small or len(request.request_id) != REQUEST_ID_BYTES:
            return None
        if request.HasField("condition") or request.HasField("expiry"):
            return None
        namespace: str = request.namespace
        return namespace if _fits(namespace, request.key) else None

    def request_id_of(self, call: PlainCall) -> bytes:
        request_id: bytes = call.request.request_id
        return request_id

    def left_out(self, run: CallRun) -> frozenset[bytes]:
        return _replica(self.host, run.key).known_requests.not_new(list(run.request_ids))

    async def outcomes(self, run: CallRun, of: LetIn) -> Sequence[Outcome]:
        requests = [call.request for call in run.calls]

        def evaluate(reader: Reader, first: Timestamp) -> Puts:
            keys = kv_keys(run.key, [each.key for each in requests], generation_of(reader, run.key))
            return Puts(keys, [each.value for each in requests], put_etags(first, len(keys)))

        of.run = submitted = submit_run(
            _replica(self.host, run.key),
            evaluate,
            size_bytes=run.size_bytes,
            request_ids=list(run.request_ids),
            hashes=request_hashes(requests),
        )
        try:
            # Retries that have joined wait for the same future: who is cancelled takes nobody with him.
            await asyncio.shield(submitted.done)
        finally:
            submitted.waiters -= len(run) - run.given_up
        if isinstance(outcome := submitted.outcome, RunResult):
            header = Service(self.host).header(outcome.first)
            return with_headers(header, outcome.first, outcome.replies)
        return [_refusal(submitted.outcome_at(place)) for place in range(len(run))]


def _refusal(outcome: object) -> CortadoError:
    assert isinstance(outcome, CortadoError)
    return outcome


class PlainGets(RunMethod):
    """One timestamp and one reader for all of them."""

    @property
    def calls_max(self) -> int:
        return min(RUN_CALLS_MAX, self.host.limits.reads_max)

    def key_of(self, call: PlainCall) -> str | None:
        request = call.request
        if request.HasField("at"):
            return None
        namespace: str = request.namespace
        return namespace if _fits(namespace, request.key) else None

    def request_id_of(self, _call: PlainCall) -> bytes:
        return b""

    def left_out(self, _run: CallRun) -> frozenset[bytes]:
        return _NONE

    async def outcomes(self, run: CallRun, _of: LetIn) -> Sequence[Outcome]:
        with self.host.reads.place(count=len(run)):
            replica = _replica(self.host, run.key)
            read_ts = await replica.reads.resolve(None)
            reader = replica.reader(read_ts)
            keys = [call.request.key for call in run.calls]
            try:
                # What does not fit into a piece is read by itself: others of the loop go on in between.
                found = reader.get_many(kv_keys(run.key, keys, generation_of(reader, run.key)), max_bytes=PIECE_BYTES)
            except CortadoError:
                # One of them is damaged, say: each finds out for itself.
                return [None] * len(run)
        header = Service(self.host).header(read_ts)
        return [*get_replies(header, keys, found), *([None] * (len(run) - len(found)))]
