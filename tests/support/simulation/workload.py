"""The calls of clients: writes that are retried under one request id, and reads of every kind, on any replica.

A client behaves as Cortado's own does. It follows leader hints, backs off, retries safe calls with the same request id,
and says *unknown* when that is the truth. Some are impatient and never retry. Every value is written once, so a read
tells which write it saw.

====================  =======================================================================================
registers ``r*``      put, delete, compare-and-set, get: linearizable per key
lists ``l*``          append a token; one appended twice or lost stays visible for ever: exactly-once
unique ``u*``         put if absent, by several clients at once: one wins
batches ``b*``        one token into all keys at once: a read at one timestamp sees one token
====================  =======================================================================================
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from cortado.errors import Conflict as ConflictError
from cortado.errors import (
    CortadoError,
    DataLoss,
    DidNotHappen,
    NotLeader,
    OutcomeUnknown,
    SnapshotTooOld,
    TimestampInFuture,
    TryAgain,
    Unavailable,
)
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.keyspace import kv_key, namespace_range
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.operations import KvDelete, KvPut, evaluate_delete, evaluate_put
from cortado.store.mvcc.evaluation import Absent, Evaluate, Evaluation, ValueIs
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.replica.read.read_timestamps import Stale
from support.pair_commits import evaluate_pairs
from support.simulation.groups import NAMESPACE
from support.simulation.history import History, ReadCall, WriteCall
from support.simulation.rpc import Lost, Refused

if TYPE_CHECKING:
    from cortado.store.host.host import Host as NodeHost
    from cortado.store.replica.replica import Replica
    from support.simulation.cluster import Cluster

REGISTERS: Final = (b"r0", b"r1", b"r2")
LISTS: Final = (b"l0", b"l1")
BATCH: Final = (b"b0", b"b1", b"b2")

PATIENCE_MS: Final = (150.0, 500.0, 1_500.0)
CALL_MS: Final = 6_000.0
LIST_BYTES_MAX: Final = 400


def logical(namespace: str, key: bytes) -> LogicalKey:
    return kv_key(namespace, key)


class Client:
    """One caller, one call at a time, as a task on the clients' loop. Its pairs are of one namespace, so one group
    holds them all."""

    def __init__(
        self, cluster: Cluster, history: History, name: str, source: random.Random, namespace: str = NAMESPACE
    ) -> None:
        self.name = name
        self._namespace = namespace
        self._first_key = namespace_range(namespace)[0]
        self._cluster = cluster
        self._history = history
        self._random = source
        self._leader = ""
        self._seen = ZERO
        self._number = 0
        # Some never retry: unknown outcomes stay unknown.
        self._is_patient = source.random() < 0.75
        # How long it waits for an answer before it asks another node.
        self._patience_ms = source.choice(PATIENCE_MS)
        self.is_stopped = False
        self.done = 0

    async def run(self) -> None:
        while not self.is_stopped:
            await self._cluster.sleep(self._random.expovariate(1 / 60))
            await self.once()
            self.done += 1

    async def once(self) -> None:
        """Make one call, of a random kind."""
        pick = self._random.random()
        if pick < 0.5:
            await self._write()
        elif pick < 0.7:
            await self._read_newest()
        elif pick < 0.88:
            await self._read_at()
        else:
            await self._read_stale()

    # --- writes ------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        self._number += 1
        token = f"{self.name}.{self._number}".encode()
        pick = self._random.random()
        if pick < 0.3:
            key = self._random.choice(LISTS)
            await self.write("append", (key,), token, None, _append(self._namespace, key, token))
        elif pick < 0.5:
            key = self._random.choice(REGISTERS)
            await self.write("put", (key,), token, None, _put(self._namespace, KvPut(key, token), token))
        elif pick < 0.6:
            key = self._random.choice(REGISTERS)
            await self.write("delete", (key,), None, None, _delete(self._namespace, key))
        elif pick < 0.75:
            key = self._random.choice(REGISTERS)
            found = await self._linearizable((key,))
            held = None if found is None else found[key]
            if held is not None:
                put = _put(self._namespace, KvPut(key, token, ValueIs(held)), token)
                await self.write("cas", (key,), token, held, put)
        elif pick < 0.88:
            # A few names a second, so that clients meet.
            key = b"u%d" % int(self._cluster.now_ms / 400)
            put = _put(self._namespace, KvPut(key, token, Absent()), token)
            await self.write("insert", (key,), token, None, put)
        else:
            await self.write("batch", BATCH, token, None, _batch(self._namespace, token))

    async def write(
        self, kind: str, keys: tuple[bytes, ...], value: bytes | None, expected: bytes | None, evaluate: Evaluate
    ) -> WriteCall:
        """Call until the outcome is known or time is up, and note the answer."""
        call = WriteCall(
            self.name,
            kind,  # type: ignore[arg-type]
            keys,
            value,
            expected,
            self._cluster.now_ms,
            self._history.acknowledged_max,
        )
        self._history.writes.append(call)
        if self._seen is ZERO:
            await self._linearizable((REGISTERS[0],))
        # Without a timestamp of the cluster there is no request id, and then nothing may be retried.
        request_id = bytes(self._seen) + self._random.randbytes(8) if self._seen is not ZERO else b""
        request_hash = b"%s" % (value or b"delete")
        deadline_ms = call.start_ms + CALL_MS
        may_have_happened = False
        while True:
            call.attempts += 1
            node = self._pick()
            try:
                result = await self._cluster.rpc(
                    node,
                    lambda node: self._replica(node).write(
                        evaluate,
                        size_bytes=64,
                        request_id=request_id,
                        request_hash=request_hash[:16],
                        encode_reply=_as_bytes,
                    ),
                    self._patience_ms,
                )
            except (Refused, TryAgain) as error:
                self._follow(error)
            except DataLoss:
                # Damaged there; it is repaired, or another node leads: as good a reason to come again as any.
                self._cluster.counts["writes that met damage"] += 1
            except (Lost, OutcomeUnknown) as error:
                self._leader = ""
                may_have_happened = True
                if isinstance(error, OutcomeUnknown) and "too old" in error.message():
                    self._cluster.counts["requests too old"] += 1
                    break
            except (ConflictError, DidNotHappen) as error:
                call.end_ms = self._cluster.now_ms
                call.outcome = "refused"
                if not isinstance(error, ConflictError):
                    self._cluster.problem(f"{self.name}: {kind} was refused: {error!r}")
                return call
            except CortadoError as error:
                self._cluster.problem(f"{self.name}: {kind} failed: {error!r}")
                may_have_happened = True
                break
            else:
                self._acknowledged(call, node, result)
                return call
            if self._cluster.now_ms >= deadline_ms or (may_have_happened and not (self._is_patient and request_id)):
                break
            await self._cluster.sleep(self._random.uniform(5, 120))
        if may_have_happened:
            call.outcome = "unknown"
            self._cluster.counts["outcomes unknown"] += 1
        else:
            call.outcome, call.end_ms = "did not happen", self._cluster.now_ms
            self._cluster.counts["writes given up"] += 1
        return call

    def _acknowledged(self, call: WriteCall, node: str, result: object) -> None:
        now_ms = self._cluster.now_ms
        call.end_ms, call.outcome = now_ms, "acknowledged"
        call.ts, call.reply, call.repeated = result.ts, result.reply, result.repeated  # type: ignore[attr-defined]
        self._leader = node
        self._cluster.counts["writes acknowledged"] += 1
        if call.repeated:
            self._cluster.counts["retries answered from the table"] += 1
        # A write without an effect (a delete of nothing) is a read of the newest state.
        if call.reply == NOTHING_DELETED or call.ts == call.floor:
            if call.ts < call.floor:
                self._cluster.violation(f"{call.kind} at {call.ts} rests on a state before {call.floor}: {call}")
        elif call.ts <= call.floor:
            self._cluster.violation(f"a write at {call.ts} came after one at {call.floor} was acknowledged: {call}")
        self._seen = max(self._seen, call.ts)
        self._cluster.check_true_time(call.ts, node)
        self._history.acknowledged(call.ts, now_ms)

    # --- reads -------------------------------------------------------------------------------------------------

    async def _read_newest(self) -> None:
        keys = BATCH if self._random.random() < 0.3 else (self._random.choice(REGISTERS + LISTS),)
        await self._linearizable(keys)

    async def _linearizable(self, keys: tuple[bytes, ...]) -> dict[bytes, bytes | None] | None:
        deadline_ms = self._cluster.now_ms + CALL_MS / 2
        while self._cluster.now_ms < deadline_ms and not self.is_stopped:
            found = await self._read(
                "linearizable", self._pick(), keys, lambda node: self._replica(node).reads.linearize()
            )
            if found is not None:
                return found
            await self._cluster.sleep(self._random.uniform(5, 120))
        return None

    async def _read_at(self) -> None:
        """Read at a timestamp that was seen before, on any replica; or a little ahead of the log, at the leader."""
        if self._seen is ZERO:
            return
        keys = (*BATCH, *self._random.sample(REGISTERS, 2), self._random.choice(LISTS))
        if self._random.random() < 0.35:
            ahead_ms = self._random.randrange(0, 200)

            async def resolve_ahead(node: NodeHost) -> Timestamp:
                now = node.process.clock.now()
                return await self._replica(node).reads.resolve(
                    Timestamp(now.epoch, now.wall_ms + ahead_ms, self._random.randrange(9))
                )

            await self._read("ahead", self._pick(), keys, resolve_ahead)
            return
        at = self._seen
        if self._history.reads and self._random.random() < 0.6:
            at = self._random.choice(self._history.reads[-200:]).ts
        node = self._random.choice(self._cluster.node_ids)
        await self._read("at", node, keys, lambda node: self._replica(node).reads.resolve(at))

    async def _read_stale(self) -> None:
        stale_ms = self._random.choice((100, 500, 2_000, 5_000))
        node = self._random.choice(self._cluster.node_ids)
        keys = (*BATCH, self._random.choice(REGISTERS))
        await self._read("stale", node, keys, self._stale(stale_ms), stale_ms)

    def _stale(self, stale_ms: int) -> Callable[[NodeHost], Awaitable[Timestamp]]:
        return lambda node: self._replica(node).reads.resolve(Stale(stale_ms))

    async def _read(
        self,
        kind: str,
        node_id: str,
        keys: tuple[bytes, ...],
        resolve: Callable[[NodeHost], Awaitable[Timestamp]],
        stale_ms: float = 0.0,
    ) -> dict[bytes, bytes | None] | None:
        """Make one attempt. Returns None if it was refused or lost."""
        cluster, history = self._cluster, self._history
        start_ms, floor = cluster.now_ms, history.acknowledged_max

        async def read(node: NodeHost) -> tuple[Timestamp, list[bytes | None]]:
            ts = await resolve(node)
            reader = self._replica(node).reader(ts)
            versions = [reader.get(logical(self._namespace, key)) for key in keys]
            return ts, [None if version is None else version.payload for version in versions]

        try:
            ts, payloads = await cluster.rpc(node_id, read, self._patience_ms)
        except (Refused, Lost, TryAgain, OutcomeUnknown) as error:
            cluster.counts[f"{kind} reads refused or lost"] += 1
            self._follow(error)
            return None
        except TimestampInFuture:
            cluster.counts["reads too far ahead"] += 1
            return None
        except SnapshotTooOld:
            cluster.counts["reads too old"] += 1
            return None
        except DataLoss:
            cluster.counts["reads that met damage"] += 1
            return None
        except CortadoError as error:
            cluster.problem(f"{self.name}: a {kind} read on {node_id} failed: {error!r}")
            return None
        values = dict(zip(keys, payloads, strict=True))
        call = ReadCall(self.name, kind, node_id, ts, values, start_ms, cluster.now_ms, floor, stale_ms)  # type: ignore[arg-type]
        history.reads.append(call)
        cluster.counts[f"{kind} reads"] += 1
        if kind == "linearizable":
            self._leader = node_id
            self._seen = max(self._seen, ts)
            if ts < floor:
                cluster.violation(f"a stale read at {ts}, after {floor} was acknowledged: {call}")
            history.acknowledged(ts, cluster.now_ms)
        elif kind == "stale":
            self._check_stale(call)
        return values

    def _check_stale(self, call: ReadCall) -> None:
        # The replica measures with a clock that drifts.
        must_see = self._history.floor_at(call.start_ms - call.stale_ms * 1.001 - 1)
        if call.ts < must_see:
            self._cluster.violation(f"staler than {call.stale_ms} ms: {must_see} was acknowledged before: {call}")

    # --- choice of a node --------------------------------------------------------------------------------------

    def _replica(self, node: NodeHost) -> Replica:
        return node.replica_of(self._first_key)

    def _pick(self) -> str:
        if self._leader and self._random.random() < 0.9:
            return self._leader
        return self._random.choice(self._cluster.node_ids)

    def _follow(self, error: Exception) -> None:
        self._leader = ""
        if isinstance(error, NotLeader) and error.leader:
            self._leader = self._cluster.node_at(error.leader)
        elif isinstance(error, Unavailable | NotLeader):
            self._cluster.counts["told that there is no leader"] += 1


NOTHING_DELETED: Final = b"nothing"


def _as_bytes(_ts: Timestamp, reply: object) -> bytes:
    assert isinstance(reply, bytes)
    return reply


def _replying(evaluation: Evaluation, reply: bytes) -> Evaluation:
    return Evaluation(evaluation.mutations, reply, evaluation.control)


def _put(namespace: str, put: KvPut, token: bytes) -> Evaluate:
    return lambda reader, ts: _replying(evaluate_put(reader, ts, namespace, put), token)


def _delete(namespace: str, key: bytes) -> Evaluate:
    def evaluate(reader: Reader, _ts: Timestamp) -> Evaluation:
        evaluation = evaluate_delete(reader, namespace, KvDelete(key))
        return _replying(evaluation, b"deleted" if evaluation.mutations.keys else NOTHING_DELETED)

    return evaluate


def _batch(namespace: str, token: bytes) -> Evaluate:
    puts = [KvPut(key, token) for key in BATCH]
    return lambda reader, ts: _replying(evaluate_pairs(reader, ts, namespace, puts), token)


def _append(namespace: str, key: bytes, token: bytes) -> Evaluate:
    """Append, and reply with the whole list after it. A long list begins anew, with a mark that says so."""
    logical_key = logical(namespace, key)

    def evaluate(reader: Reader, _ts: Timestamp) -> Evaluation:
        version = reader.get(logical_key)
        tokens = b"" if version is None else version.payload
        after = appended(tokens, token)
        mutations = Mutations()
        mutations.put(logical_key, after)
        return Evaluation(mutations, after)

    return evaluate


def appended(tokens: bytes, token: bytes) -> bytes:
    """Return the list after ``token``: past its bound only the newest half of it is kept."""
    after = tokens + token + b" "
    return after if len(after) <= LIST_BYTES_MAX else after[after.index(b" ", LIST_BYTES_MAX // 2) + 1 :]
