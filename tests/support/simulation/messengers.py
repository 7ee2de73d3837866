"""Clients whose calls come many to a message, on a stream as a server serves one: plain puts, deletes, gets, and
commits of transactions, which go together as runs, or not.

A :class:`Messenger` writes keys that all messengers share, and reads them and the registers of other clients, all in
one message. It does not write those: that number of calls at once is more than the search for an order can take. Their
answers are judged by timestamps. Unanswered calls go into the next message again, under the same request id, beside new
ones; now and then one request stands twice in a message. Each put and each get is a call of the history by itself. How
a node answers is the seed's choice (:data:`MODES`), or the caller's of :func:`~support.simulation.run.simulate`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from cortado.errors import DataLoss, OutcomeUnknown, SnapshotTooOld, TryAgain, WriteConflict
from cortado.proto.v1 import calls_pb2, kv_pb2, transactions_pb2
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.observe.requests import Requests
from cortado.store.replica.write.proposals import WriteResult
from cortado.store.server.calls_service import CallsService
from cortado.store.server.convert import timestamp_message
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.runs.methods import run_methods
from cortado.store.server.transactions_service import TransactionsService
from cortado.store.wire.rpc_errors import from_status
from support.simulation.groups import NAMESPACE
from support.simulation.history import History, ReadCall, WriteCall
from support.simulation.rpc import Lost, Refused
from support.simulation.workload import CALL_MS, NOTHING_DELETED, REGISTERS, Client

if TYPE_CHECKING:
    from cortado.store.host.host import Host as NodeHost
    from support.simulation.cluster import Cluster

FORCED: Final = "forced"
FORBIDDEN: Final = "forbidden"
MIXED: Final = "mixed"
MODES: Final = (FORCED, FORBIDDEN, MIXED)
"""Nodes answer plain calls as runs, one alone, too; each by itself; or each life of a node one way or the other."""
OWN: Final = (b"m0", b"m1", b"m2", b"m3", b"m4")
_KV: Final = kv_pb2.DESCRIPTOR.services_by_name["KeyValue"]
_TRANSACTIONS: Final = transactions_pb2.DESCRIPTOR.services_by_name["Transactions"]


class Services:
    """Serves the streams of each life of a node."""

    def __init__(self, mode: str, source: random.Random, counts: Counter[str]) -> None:
        self.mode = mode
        self._random = source
        self._counts = counts
        self._by_node: WeakKeyDictionary[NodeHost, CallsService] = WeakKeyDictionary()

    def of(self, node: NodeHost) -> CallsService:
        """Return the service of this life."""
        found = self._by_node.get(node)
        if found is None:
            is_on = self.mode == FORCED or (self.mode == MIXED and self._random.random() < 0.7)
            requests = Requests()
            runs = run_methods(node, requests) if is_on else {}
            services = [(_KV, KeyValueService(node)), (_TRANSACTIONS, TransactionsService(node))]
            found = CallsService(services, requests=requests, runs=runs)
            self._by_node[node] = found
            self._counts[f"lives that answer {'runs' if is_on else 'each call by itself'}"] += 1
        return found


@dataclass(slots=True, eq=False)
class _Write:
    """One put, delete or commit under way."""

    call: WriteCall
    method: str
    request: bytes
    may_have_happened: bool = False

    @property
    def is_open(self) -> bool:
        return self.call.outcome == "open"


class Messenger(Client):
    """One caller, one message at a time, as a task on the clients' loop."""

    def __init__(
        self, cluster: Cluster, history: History, name: str, source: random.Random, services: Services
    ) -> None:
        super().__init__(cluster, history, name, source)
        self._services = services
        self._open: list[_Write] = []

    async def once(self) -> None:
        """Send one message."""
        if self._seen is ZERO:
            await self._linearizable((REGISTERS[0],))
            return
        source = self._random
        self._open += [self._new_write(key) for key in source.sample(OWN, source.randrange(6))]
        if source.random() < 0.5:
            self._open += [self._new_commit() for _ in range(source.randrange(1, 4))]
        gets = [(key,) for key in source.sample(REGISTERS + OWN, source.randrange(0, 4))]
        several = [tuple(source.sample(REGISTERS + OWN, 3)) for _ in range(source.choice((0, 0, 2)))]
        await self._exchange([*gets, *several])
        self._open = [put for put in self._open if put.is_open]

    def _new_write(self, key: bytes) -> _Write:
        self._number += 1
        is_delete = self._random.random() < 0.25
        token = None if is_delete else f"{self.name}.{self._number}".encode()
        now_ms, floor = self._cluster.now_ms, self._history.acknowledged_max
        call = WriteCall(self.name, "delete" if is_delete else "put", (key,), token, None, now_ms, floor)
        self._history.writes.append(call)
        request_id = bytes(self._seen) + self._random.randbytes(8)
        if token is None:
            delete = kv_pb2.KvDeleteRequest(namespace=NAMESPACE, key=key, request_id=request_id)
            return _Write(call, "KeyValue/Delete", delete.SerializeToString())
        request = kv_pb2.KvPutRequest(namespace=NAMESPACE, key=key, value=token, request_id=request_id)
        return _Write(call, "KeyValue/Put", request.SerializeToString())

    def _new_commit(self) -> _Write:
        """Begin a transaction that rests on the last time that this client has seen."""
        self._number += 1
        token, keys = (
            f"{self.name}.{self._number}".encode(),
            tuple(self._random.sample(OWN, self._random.randrange(1, 3))),
        )
        now_ms, floor = self._cluster.now_ms, self._history.acknowledged_max
        call = WriteCall(self.name, "commit", keys, token, None, now_ms, floor, began=self._seen)
        self._history.writes.append(call)
        request = transactions_pb2.CommitRequest(
            start=timestamp_message(self._seen), request_id=bytes(self._seen) + self._random.randbytes(8)
        )
        for key in keys:
            put = request.operations.add().put_pair
            put.namespace, put.key, put.value = NAMESPACE, key, token
        return _Write(call, "Transactions/Commit", request.SerializeToString())

    async def _exchange(self, gets: list[tuple[bytes, ...]]) -> None:
        source, node_id = self._random, self._pick()
        order: list[_Write | tuple[bytes, ...]] = [
            *self._open,
            *(put for put in self._open if source.random() < 0.1),
            *gets,
        ]
        # Gets among the puts: runs of both are gathered at once.
        source.shuffle(order)
        message = calls_pb2.CallBatch(calls=[_call(number, asked) for number, asked in enumerate(order, 1)])
        for put in self._open:
            put.call.attempts += 1
        start_ms, floor = self._cluster.now_ms, self._history.acknowledged_max
        try:
            replies = await self._cluster.rpc(node_id, lambda node: self._answers(node, message), self._patience_ms)
        except Refused as error:
            self._follow(error)
        except Lost:
            self._leader = ""
            for put in self._open:
                put.may_have_happened = True
        else:
            for number, asked in enumerate(order, 1):
                if isinstance(asked, _Write):
                    self._wrote(asked, node_id, replies[number])
                else:
                    self._got(asked, node_id, replies[number], start_ms, floor)
        self._give_up()

    async def _answers(self, node: NodeHost, message: calls_pb2.CallBatch) -> dict[int, calls_pb2.CallReply]:
        """Return the replies to a stream with only this message, on the node's loop."""

        async def messages() -> AsyncIterator[calls_pb2.CallBatch]:
            yield message

        found: dict[int, calls_pb2.CallReply] = {}
        async with aclosing(self._services.of(node).exchange(messages())) as replies:
            async for batch in replies:
                found.update({reply.id: reply for reply in calls_pb2.ReplyBatch.FromString(batch).replies})
        assert sorted(found) == [call.id for call in message.calls]
        return found

    def _wrote(self, put: _Write, node_id: str, reply: calls_pb2.CallReply) -> None:
        call = put.call
        if not reply.status:
            ts, found = _answered(put.method, reply.reply)
            if not put.is_open:
                # It stood twice in the message.
                if call.outcome != "acknowledged" or call.ts != ts:
                    self._cluster.violation(f"one request was answered {ts}, and otherwise: {call}")
                return
            self._cluster.counts[f"{call.kind}s of messages acknowledged"] += 1
            self._acknowledged(call, node_id, WriteResult(ts, found))
            return
        error = from_status(reply.status)
        match error:
            case TryAgain():
                self._follow(error)
            case OutcomeUnknown():
                put.may_have_happened = True
                if error.request_id and bytes.fromhex(error.request_id) not in put.request:
                    self._cluster.violation(f"an unknown outcome names {error.request_id}: {call}")
                if "too old" in error.message() and put.is_open:
                    call.outcome = "unknown"
            case DataLoss():
                self._cluster.counts["writes that met damage"] += 1
            case WriteConflict() | SnapshotTooOld() if call.kind == "commit":
                self._cluster.counts["commits of messages refused"] += 1
                if call.outcome == "acknowledged":
                    self._cluster.violation(f"one request was answered {call.ts}, and refused: {call}")
                if put.is_open:
                    call.outcome, call.end_ms = "refused", self._cluster.now_ms
            case _:
                self._cluster.problem(f"{self.name}: a put of a message failed: {error!r}")

    def _got(
        self, keys: tuple[bytes, ...], node_id: str, reply: calls_pb2.CallReply, start_ms: float, floor: Timestamp
    ) -> None:
        if reply.status:
            error = from_status(reply.status)
            self._cluster.counts["linearizable reads refused or lost"] += 1
            if not isinstance(error, TryAgain | OutcomeUnknown | DataLoss):
                self._cluster.problem(f"{self.name}: a get of a message failed: {error!r}")
            return
        # The replies to a get of one key and of several are alike.
        answer = kv_pb2.KvMultiGetResponse.FromString(reply.reply)
        read_at = answer.header.timestamp
        ts = Timestamp(read_at.epoch, read_at.wall_ms, read_at.logical)
        found = {pair.key: pair.value for pair in answer.pairs if pair.etag}
        values = {key: found.get(key) for key in keys}
        now_ms = self._cluster.now_ms
        call = ReadCall(self.name, "linearizable", node_id, ts, values, start_ms, now_ms, floor)
        self._history.reads.append(call)
        self._cluster.counts["gets of messages"] += 1
        if ts < floor:
            self._cluster.violation(f"a stale read at {ts}, after {floor} was acknowledged: {call}")
        self._seen = max(self._seen, ts)
        self._history.acknowledged(ts, now_ms)

    def _give_up(self) -> None:
        """Drop calls that are asked no more, and record their outcomes."""
        for put in self._open:
            call = put.call
            is_late = self._cluster.now_ms >= call.start_ms + CALL_MS
            if put.is_open and (is_late or (put.may_have_happened and not self._is_patient)):
                if put.may_have_happened:
                    call.outcome = "unknown"
                    self._cluster.counts["outcomes unknown"] += 1
                else:
                    call.outcome, call.end_ms = "did not happen", self._cluster.now_ms


def _answered(method: str, reply: bytes) -> tuple[Timestamp, bytes]:
    """Return when a write was committed, and whether it changed nothing."""
    if method != "KeyValue/Delete":
        # The reply to a commit has its etag in the same place.
        return Timestamp.parse(kv_pb2.KvPutResponse.FromString(reply).etag), b""
    answer = kv_pb2.KvDeleteResponse.FromString(reply)
    at = answer.header.timestamp
    return Timestamp(at.epoch, at.wall_ms, at.logical), b"" if answer.existed else NOTHING_DELETED


def _call(number: int, asked: _Write | tuple[bytes, ...]) -> calls_pb2.Call:
    if isinstance(asked, _Write):
        return calls_pb2.Call(id=number, method=f"cortado.v1.{asked.method}", request=asked.request)
    if len(asked) > 1:
        several = kv_pb2.KvMultiGetRequest(namespace=NAMESPACE, keys=asked).SerializeToString()
        return calls_pb2.Call(id=number, method="cortado.v1.KeyValue/MultiGet", request=several)
    request = kv_pb2.KvGetRequest(namespace=NAMESPACE, key=asked[0]).SerializeToString()
    return calls_pb2.Call(id=number, method="cortado.v1.KeyValue/Get", request=request)
