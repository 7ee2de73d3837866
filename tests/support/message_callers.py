"""Callers that send many calls in one message, by hand, and check all answers while leaders are killed.

A message mixes puts, deletes and gets of registers, reads of many keys, transfers between accounts, and write skews.
Some of its calls are damaged, repeat earlier requests, or are taken back. A caller repeats each unknown request under
its id, until the request is settled.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import grpc

from cortado.errors import CortadoError, OutcomeUnknown, TryAgain, WriteConflict
from cortado.proto.v1 import calls_pb2, calls_pb2_grpc, common_pb2, kv_pb2, transactions_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key, namespace_key
from cortado.store.server.convert import timestamp_message, timestamp_value
from cortado.store.transactions.footprint import Footprint
from cortado.store.wire.rpc_errors import from_status
from support.linearizability import Call

NAMESPACE = "n"
ACCOUNTS = [b"account %d" % number for number in range(10)]
BALANCE = 100
REGISTERS = [b"register %d" % number for number in range(12)]
SKEWS = [(b"left %d" % number, b"right %d" % number) for number in range(4)]
"""Pairs of keys. At most one key of a pair may be set."""
READ_TOGETHER = [*ACCOUNTS, *(key for pair in SKEWS for key in pair)]
KV = "cortado.v1.KeyValue/"
COMMIT = "cortado.v1.Transactions/Commit"
_REPLY_S = 15.0


class Stream:
    """A stream of calls, and the replies that came."""

    def __init__(self, endpoint: str) -> None:
        self._channel = grpc.insecure_channel(endpoint, [("grpc.use_local_subchannel_pool", 1)])
        self._sent: SimpleQueue[calls_pb2.CallBatch | None] = SimpleQueue()
        self._changed = threading.Condition()
        self._ids = 0
        self.replies: dict[int, calls_pb2.CallReply] = {}
        self.is_over = False
        self._stream = calls_pb2_grpc.CallsStub(self._channel).Exchange(iter(self._sent.get, None))
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        try:
            for batch in self._stream:
                with self._changed:
                    self.replies.update({each.id: each for each in batch.replies})
                    self._changed.notify_all()
        except grpc.RpcError:
            pass
        with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def number(self) -> int:
        self._ids += 1
        return self._ids

    def send(self, calls: Sequence[calls_pb2.Call], cancelled: Sequence[int] = ()) -> None:
        self._sent.put(calls_pb2.CallBatch(calls=calls, cancelled=cancelled))

    def wait(self, ids: Iterable[int]) -> bool:
        """Wait for the replies of these calls; return whether all came."""
        wanted = set(ids)
        with self._changed:
            self._changed.wait_for(lambda: self.is_over or wanted <= self.replies.keys(), _REPLY_S)
            return wanted <= self.replies.keys()

    def close(self) -> None:
        self._sent.put(None)
        self._stream.cancel()
        self._channel.close()


@dataclass(eq=False)
class Asked:
    """A write and its result."""

    method: str
    request: bytes
    key: bytes = b""
    value: bytes | None = None
    marks: Sequence[bytes] = ()
    """Keys that it puts, and no caller deletes."""
    begun_s: float = 0.0
    result: object = None
    is_register: bool = False

    def call(self, number: int, **more: Any) -> calls_pb2.Call:
        return calls_pb2.Call(id=number, method=self.method, request=self.request, **more)


class MessageCaller(threading.Thread):
    """It asks one of the ``endpoints`` after another until one leads."""

    def __init__(self, endpoints: Sequence[str], seed: int, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._endpoints = endpoints
        self._name = number
        self._random = random.Random(f"{seed}/{number}")
        self._stop_event = stop
        self._stream: Stream | None = None
        self._newest: Timestamp | None = None
        self._read: tuple[dict[bytes, int], Timestamp] | None = None
        self._values = 0
        self.history: list[tuple[bytes, Call]] = []
        self.done: list[Asked] = []
        self.open: list[Asked] = []
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            while self.open or not self._stop_event.is_set():
                self._message(is_last=self._stop_event.is_set())
        except BaseException as problem:
            self.problem = problem
        finally:
            self._hang_up()

    # --- connections ---------------------------------------------------------------------------------------------

    def _connected(self) -> Stream:
        while self._stream is None:
            stream = Stream(self._random.choice(self._endpoints))
            number = stream.number()
            request = kv_pb2.KvGetRequest(namespace=NAMESPACE, key=b"nothing").SerializeToString()
            stream.send([calls_pb2.Call(id=number, method=KV + "Get", request=request, timeout_ms=3_000)])
            if stream.wait([number]) and not stream.replies[number].status:
                header = kv_pb2.KvGetResponse.FromString(stream.replies[number].reply).header
                self._newest, self._stream = timestamp_value(header.timestamp), stream
            else:
                stream.close()
        return self._stream

    def _hang_up(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    # --- questions ----------------------------------------------------------------------------------------------

    def _value(self) -> bytes:
        self._values += 1
        return b"%d-%d" % (self._name, self._values)

    def _request_id(self) -> bytes:
        ts = self._newest
        assert ts is not None
        head = ts.epoch.to_bytes(2, "big") + ts.wall_ms.to_bytes(6, "big") + ts.logical.to_bytes(4, "big")
        return head + self._random.randbytes(8)

    def _put(self) -> Asked:
        key, value = self._random.choice(REGISTERS), self._value()
        request = kv_pb2.KvPutRequest(namespace=NAMESPACE, key=key, value=value, request_id=self._request_id())
        return Asked(KV + "Put", request.SerializeToString(), key, value, is_register=True)

    def _delete(self) -> Asked:
        key = self._random.choice(REGISTERS)
        request = kv_pb2.KvDeleteRequest(namespace=NAMESPACE, key=key, request_id=self._request_id())
        return Asked(KV + "Delete", request.SerializeToString(), key, is_register=True)

    def _marks(self) -> Asked:
        marks = [b"mark %b %d" % (self._value(), place) for place in range(self._random.randrange(1, 16))]
        return self._commit({mark: mark for mark in marks}, marks=marks)

    def _transfer(self) -> Asked:
        assert self._read is not None
        balances, start = self._read
        payer, payee = self._random.sample(ACCOUNTS, 2)
        paid, marks = self._random.randrange(1, 10), [b"mark " + self._value()]
        values = {payer: b"%d" % (balances[payer] - paid), payee: b"%d" % (balances[payee] + paid)}
        reads = [payer, payee] if self._random.random() < 0.5 else None
        return self._commit(values | dict.fromkeys(marks, b""), start, reads, marks)

    def _skew(self) -> Asked:
        assert self._read is not None
        values, start = self._read
        pair = self._random.choice(SKEWS)
        is_free = not any(values[key] for key in pair)
        changed = {self._random.choice(pair): b"1"} if is_free else {key: b"0" for key in pair if values[key]}
        return self._commit(changed, start, pair)

    def _commit(
        self,
        values: dict[bytes, bytes],
        start: Timestamp | None = None,
        reads: Sequence[bytes] | None = None,
        marks: Sequence[bytes] = (),
    ) -> Asked:
        request = transactions_pb2.CommitRequest(request_id=self._request_id())
        for key, value in values.items():
            request.operations.add(put_pair=common_pb2.KvPut(namespace=NAMESPACE, key=key, value=value))
        if start is not None:
            request.start.CopyFrom(timestamp_message(start))
        if reads is not None:
            request.isolation = transactions_pb2.ISOLATION_SERIALIZABLE
            footprint = Footprint([namespace_key(NAMESPACE), *(kv_key(NAMESPACE, key) for key in reads)])
            request.footprints.append(footprint.encode())
        return Asked(COMMIT, request.SerializeToString(), marks=marks)

    def _damaged(self, number: int) -> calls_pb2.Call:
        method = self._random.choice((KV + "Put", KV + "Get", KV + "MultiGet", COMMIT, "", "cortado.v1.Documents/Put"))
        return calls_pb2.Call(id=number, method=method, request=self._random.randbytes(self._random.randrange(60)))

    # --- a message -----------------------------------------------------------------------------------------------

    def _message(self, *, is_last: bool) -> None:
        stream, source = self._connected(), self._random
        calls: list[calls_pb2.Call] = []
        writes: dict[int, Asked] = {}
        reads: dict[int, Sequence[bytes]] = {}
        again: dict[int, Asked] = {}
        if is_last or source.random() < 0.5:
            writes |= {stream.number(): asked for asked in self.open[:30]}
        if not is_last:
            again = {stream.number(): asked for asked in source.sample(self.done, min(len(self.done), 3))}
            kinds = [self._put, self._put, self._delete, self._marks]
            kinds += [] if self._read is None else [self._transfer, self._transfer, self._skew]
            writes |= {stream.number(): source.choice(kinds)() for _ in range(source.choice((2, 10, 40)))}
            calls += [self._damaged(stream.number()) for _ in range(source.randrange(3))]
        now_s = time.monotonic()
        for number, asked in (*writes.items(), *again.items()):
            asked.begun_s = asked.begun_s or now_s
            calls.append(asked.call(number, timeout_ms=5 if source.random() < 0.03 else 0))
        for keys in (READ_TOGETHER, source.choices(REGISTERS, k=source.randrange(1, 18))):
            reads[stream.number()] = keys
            request = kv_pb2.KvMultiGetRequest(namespace=NAMESPACE, keys=keys).SerializeToString()
            calls.append(calls_pb2.Call(id=max(reads), method=KV + "MultiGet", request=request))
        source.shuffle(calls)
        stream.send(calls)
        cancelled = [number for number in writes if source.random() < 0.02]
        if cancelled:
            stream.send([], cancelled)
        is_whole = stream.wait({*writes, *again, *reads}.difference(cancelled))
        end_s = time.monotonic()
        for number, asked in writes.items():
            self._told(asked, stream.replies.get(number), end_s)
        for number, asked in again.items():
            self._told_again(asked, stream.replies.get(number))
        for number, keys in reads.items():
            self._was_read(keys, stream.replies.get(number), now_s, end_s)
        if not is_whole or any(number in stream.replies and stream.replies[number].status for number in reads):
            self._hang_up()

    @staticmethod
    def _result(asked: Asked, reply: calls_pb2.CallReply) -> object:
        if asked.method.endswith("Delete"):
            return kv_pb2.KvDeleteResponse.FromString(reply.reply).existed
        # Puts and commits have their etag in one place.
        return kv_pb2.KvPutResponse.FromString(reply.reply).etag

    def _told(self, asked: Asked, reply: calls_pb2.CallReply | None, end_s: float) -> None:
        error = from_status(reply.status) if reply is not None and reply.status else None
        is_open = reply is None or (
            isinstance(error, TryAgain | OutcomeUnknown) and not isinstance(error, WriteConflict)
        )
        if is_open:
            self.open += [] if asked in self.open else [asked]
            return
        if asked in self.open:
            self.open.remove(asked)
        if error is not None:
            assert isinstance(error, WriteConflict), f"{asked}: {error!r}"
            return
        assert reply is not None
        asked.result = self._result(asked, reply)
        self.done.append(asked)
        if asked.is_register:
            self.history.append((asked.key, Call("put", asked.begun_s, end_s, asked.value)))

    def _told_again(self, asked: Asked, reply: calls_pb2.CallReply | None) -> None:
        if reply is None:
            return
        if reply.status:
            error = from_status(reply.status)
            assert isinstance(error, TryAgain | OutcomeUnknown), f"{asked} was acknowledged, and then {error!r}"
        else:
            assert self._result(asked, reply) == asked.result, f"{asked} has two answers"

    def _was_read(self, keys: Sequence[bytes], reply: calls_pb2.CallReply | None, begun_s: float, end_s: float) -> None:
        if reply is None:
            return
        if reply.status:
            error: CortadoError = from_status(reply.status)
            assert isinstance(error, TryAgain), error
            return
        found = kv_pb2.KvMultiGetResponse.FromString(reply.reply)
        if keys is not READ_TOGETHER:
            values = [pair.value if pair.etag else None for pair in found.pairs]
            self.history += [(k, Call("get", begun_s, end_s, value)) for k, value in zip(keys, values, strict=True)]
            return
        numbers = {key: int(pair.value or b"0") for key, pair in zip(keys, found.pairs, strict=True)}
        check_together(numbers)
        self._newest = timestamp_value(found.header.timestamp)
        self._read = numbers, self._newest


def check_together(numbers: dict[bytes, int]) -> None:
    """Check numbers that were read at one time."""
    assert sum(numbers[key] for key in ACCOUNTS) == BALANCE * len(ACCOUNTS), numbers
    assert not any(numbers[left] and numbers[right] for left, right in SKEWS), numbers
