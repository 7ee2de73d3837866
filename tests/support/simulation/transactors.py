"""Clients that run transactions, through the services of any node: each read at the time of the first
one, on any replica, with the own writes over it and a footprint; and one commit in the end.

====================  =======================================================================================
lists ``e*``          read, scanned and appended to, in both isolations: see :mod:`support.list_append`
accounts ``a*``       money moves between two; an empty account is deleted: the sum is right at every time
the counter ``n``     added to within bounds, within a transaction or by itself
====================  =======================================================================================

An answer that is lost leads to another attempt with the same request id, or to *settling*: a commit that has not
happened by then never will, even if an attempt comes late.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from cortado.errors import (
    CortadoError,
    DataLoss,
    NotLeader,
    OutcomeUnknown,
    OutOfBounds,
    SnapshotTooOld,
    TimestampInFuture,
    TransactionAborted,
    TryAgain,
    WriteConflict,
)
from cortado.proto.v1 import common_pb2, kv_pb2, transactions_pb2
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.server.convert import timestamp_message, timestamp_value
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.transactions_service import TransactionsService
from support.list_append import Transaction, problems
from support.simulation.checkers import Truth, value_at
from support.simulation.groups import NAMESPACE
from support.simulation.history import History, ReadCall
from support.simulation.rpc import Lost, Refused

if TYPE_CHECKING:
    from cortado.store.host.host import Host as NodeHost
    from support.simulation.cluster import Cluster

T = TypeVar("T")

LISTS: Final = (b"e0", b"e1", b"e2", b"e3")
ACCOUNTS: Final = (b"a0", b"a1", b"a2", b"a3")
COUNTER: Final = b"n"
TOTAL: Final = 100
BOUNDS: Final = (0, 10)
COUNTER_BYTES: Final = 8
CALL_MS: Final = 6_000.0
PATIENCE_MS: Final = 500.0
IDLE_PART: Final = 0.2


class GaveUp(Exception):
    """No node answered in time; nothing was sent that writes."""


@dataclass
class Begun:
    """A transaction that runs: its reads and its planned writes."""

    noted: Transaction
    start: Timestamp | None = None
    operations: list[common_pb2.Operation] = field(default_factory=list)
    footprints: list[bytes] = field(default_factory=list)
    own: set[bytes] = field(default_factory=set)
    """The keys that it writes."""
    deltas: list[int] = field(default_factory=list)
    """Its additions to the counter."""
    sums: Sequence[int] = ()
    ts: Timestamp = ZERO


class Transactor:
    """One, as a task on the clients' loop."""

    def __init__(self, cluster: Cluster, history: History, name: str, source: random.Random) -> None:
        self.name = name
        self._cluster = cluster
        self._history = history
        self._random = source
        self._leader = ""
        self._number = 0
        self.is_stopped = False
        self.begun: list[Begun] = []
        """All that sent a commit, and those that only read."""

    async def run(self) -> None:
        while not self.is_stopped:
            await self._cluster.sleep(self._random.expovariate(1 / 60))
            await self.once()

    async def once(self) -> None:
        """Run one transaction, of a random kind."""
        self._number += 1
        noted = Transaction(f"{self.name}.{self._number}", is_serializable=self._random.random() < 0.6)
        txn = Begun(noted)
        kinds = (self._lists, self._transfer, self._audit, self._count)
        kind = self._random.choices(kinds, (6, 3, 1, 1))[0]
        try:
            await kind(txn)
        except GaveUp:
            return
        self.begun.append(txn)
        retention_ms = self._cluster.options.retention_ms
        if retention_ms != KEEP_ALL and self._random.random() < IDLE_PART:
            # So long that the changes since it began are unknown by now (T7).
            await self._cluster.sleep(self._random.uniform(0.5, 2.5) * retention_ms)
        if not txn.operations:
            txn.noted.outcome = "committed"
            self._cluster.counts["transactions that only read"] += 1
            return
        await self._commit(txn)
        self._cluster.counts[f"transactions {txn.noted.outcome}"] += 1

    # --- their transactions ------------------------------------------------------------------------------------

    async def _lists(self, txn: Begun) -> None:
        for number in range(self._random.choice((1, 2, 2, 3))):
            pick, key = self._random.random(), self._random.choice(LISTS)
            if pick < 0.3:
                for each, tokens in (await self._scan(txn, b"e", LISTS)).items():
                    txn.noted.steps.append((each, _tokens(tokens), None))
                continue
            held = await self._get(txn, key)
            txn.noted.steps.append((key, _tokens(held), None))
            if pick < 0.75:
                token = f"{txn.noted.name}/{number}".encode()
                txn.noted.steps.append((key, (), token))
                self._put(txn, key, b" ".join([*_tokens(held), token]))
        if self._random.random() < 0.1:
            self._add(txn)

    async def _transfer(self, txn: Begun) -> None:
        """Move some money, or all of it, between two accounts; open all accounts if there are none."""
        if self._random.random() < 0.3:
            held = await self._scan(txn, b"a", ACCOUNTS)
            self._check_sum(held, txn)
            if not any(held.values()):
                for key in ACCOUNTS:
                    self._put(txn, key, b"%d" % (TOTAL // len(ACCOUNTS)))
                return
        source, target = self._random.sample(ACCOUNTS, 2)
        taken, given = [int(await self._get(txn, key) or 0) for key in (source, target)]
        amount = taken if self._random.random() < 0.5 else self._random.randint(0, taken)
        if amount:
            self._put(txn, source, b"%d" % (taken - amount) if taken > amount else None)
            self._put(txn, target, b"%d" % (given + amount))
            if self._random.random() < 0.3:
                self._check_sum(await self._scan(txn, b"a", ACCOUNTS), txn)

    async def _audit(self, txn: Begun) -> None:
        self._check_sum({key: await self._get(txn, key) for key in ACCOUNTS}, txn)

    async def _count(self, txn: Begun) -> None:
        self._add(txn)

    def _put(self, txn: Begun, key: bytes, value: bytes | None) -> None:
        txn.own.add(key)
        if value is None:
            delete = common_pb2.KvDelete(namespace=NAMESPACE, key=key)
            txn.operations.append(common_pb2.Operation(delete_pair=delete))
        else:
            put = common_pb2.KvPut(namespace=NAMESPACE, key=key, value=value)
            txn.operations.append(common_pb2.Operation(put_pair=put))

    def _add(self, txn: Begun) -> None:
        delta = self._random.choice((-2, -1, 1, 1, 3))
        txn.deltas.append(delta)
        add = common_pb2.KvAdd(namespace=NAMESPACE, key=COUNTER, delta=delta, min=BOUNDS[0], max=BOUNDS[1])
        txn.operations.append(common_pb2.Operation(add_pair=add))

    def _check_sum(self, held: Mapping[bytes, bytes | None], txn: Begun) -> None:
        total = _total(held.values())
        if total not in (0, TOTAL):
            self._cluster.violation(f"{txn.noted.name} saw accounts that do not exist together: {total} in {held}")

    # --- reads -------------------------------------------------------------------------------------------------

    async def _get(self, txn: Begun, key: bytes) -> bytes | None:
        async def get(node: NodeHost, at: common_pb2.ReadAt) -> kv_pb2.KvGetResponse:
            reply = await KeyValueService(node).get(kv_pb2.KvGetRequest(namespace=NAMESPACE, key=key, at=at))
            assert isinstance(reply, kv_pb2.KvGetResponse)
            return reply

        reply, note = await self._read(txn, get)
        value = reply.pair.value if reply.HasField("pair") else None
        note({key: value})
        return value

    async def _scan(self, txn: Begun, prefix: bytes, keys: Sequence[bytes]) -> dict[bytes, bytes | None]:
        """Scan all keys of a prefix, or the first of them in either direction; in one page or several."""
        request = kv_pb2.KvScanRequest(
            namespace=NAMESPACE,
            range=kv_pb2.KvRange(prefix=prefix),
            reverse=self._random.random() < 0.5,
            limit=self._random.choice((0, 0, 2)) if prefix == b"e" else 0,
            page_size=self._random.choice((0, 0, 1)),
        )
        held: dict[bytes, bytes | None] = {}
        while True:

            async def scan(node: NodeHost, at: common_pb2.ReadAt) -> kv_pb2.KvScanResponse:
                # A page token is good for the request that it was given for, its time among that.
                request.at.CopyFrom(at)
                return kv_pb2.KvScanResponse.FromString(await KeyValueService(node).scan_page(request))

            if txn.start is None:
                await self._get(txn, keys[0])
            reply, note = await self._read(txn, scan)
            page = {pair.key: pair.value for pair in reply.pairs}
            note(page)
            held.update(page)
            request.page_token = reply.next_page_token
            if not request.page_token:
                break
        if request.limit and len(held) == request.limit:
            edge = list(held)[-1]
            return {key: held.get(key) for key in keys if (key >= edge if request.reverse else key <= edge)}
        return {key: held.get(key) for key in keys}

    async def _read(
        self, txn: Begun, read: Callable[[NodeHost, common_pb2.ReadAt], Awaitable[T]]
    ) -> tuple[T, Callable[[Mapping[bytes, bytes | None]], None]]:
        """Return a reply at the transaction's time, which the first read gives, and a function that notes its values.
        Raises GaveUp."""
        cluster, history = self._cluster, self._history
        start_ms, floor = cluster.now_ms, history.acknowledged_max
        at = common_pb2.ReadAt(own_writes=txn.operations, footprint=True)
        if txn.start is not None:
            at.timestamp.CopyFrom(timestamp_message(txn.start))
        while cluster.now_ms < start_ms + CALL_MS / 2 and not self.is_stopped:
            node_id = self._pick() if txn.start is None else self._random.choice(cluster.node_ids)
            try:
                reply = await cluster.rpc(node_id, lambda node: read(node, at), PATIENCE_MS)
            except (Refused, Lost, TryAgain, NotLeader, OutcomeUnknown, TimestampInFuture, DataLoss) as error:
                self._follow(error)
                await cluster.sleep(self._random.uniform(5, 120))
                continue
            except SnapshotTooOld:
                cluster.counts["transactions too old"] += 1
                break
            except CortadoError as error:
                cluster.problem(f"{self.name}: a read on {node_id} failed: {error!r}")
                break
            if txn.start is None:
                txn.start = timestamp_value(reply.header.timestamp)  # type: ignore[attr-defined]
                if txn.start < floor:
                    cluster.violation(f"a transaction began at {txn.start}, after {floor} was acknowledged")
            txn.footprints.append(reply.footprint)  # type: ignore[attr-defined]
            cluster.counts["reads of transactions"] += 1
            call = ReadCall(self.name, "at", node_id, txn.start, {}, start_ms, cluster.now_ms, floor)
            return reply, partial(self._note, txn, call)
        raise GaveUp

    def _note(self, txn: Begun, call: ReadCall, values: Mapping[bytes, bytes | None]) -> None:
        """Note a read of stored values: the transaction's own writes lie over them."""
        call.values = {key: value for key, value in values.items() if key not in txn.own}
        self._history.reads.append(call)

    # --- the commit --------------------------------------------------------------------------------------------

    async def _commit(self, txn: Begun) -> None:
        """Send it until its outcome is known, or time is up."""
        begins = txn.start or self._history.acknowledged_max
        request = transactions_pb2.CommitRequest(
            isolation=transactions_pb2.ISOLATION_SERIALIZABLE if txn.noted.is_serializable else 0,
            operations=txn.operations,
            request_id=bytes(begins) + self._random.randbytes(8),
        )
        if txn.start is not None:
            request.start.CopyFrom(timestamp_message(txn.start))
            if txn.noted.is_serializable:
                request.footprints.extend(txn.footprints)
        txn.noted.outcome = "aborted"
        deadline_ms = self._cluster.now_ms + CALL_MS
        while self._cluster.now_ms < deadline_ms:
            try:
                self._committed(txn, await self._send(request))
                return
            except WriteConflict as conflict:
                # The conflict is with a change that is there, and stays: final, for any answer of another attempt.
                self._cluster.counts[f"conflicts: {conflict.kind}"] += 1
                txn.noted.outcome = "aborted"
                return
            except OutOfBounds:
                if txn.noted.outcome == "aborted":
                    return
                txn.noted.outcome = "unknown"
            except (Refused, TryAgain, DataLoss, NotLeader) as error:
                self._follow(error)
            except (Lost, OutcomeUnknown):
                self._leader = ""
                txn.noted.outcome = "unknown"
            except SnapshotTooOld:
                # T7: the changes since it began are unknown by now; the answer of an earlier attempt never came.
                self._cluster.counts["commits too old"] += 1
                if txn.noted.outcome == "aborted":
                    return
                txn.noted.outcome = "unknown"
            except CortadoError as error:
                self._cluster.problem(f"{txn.noted.name} failed: {error!r}")
                return
            if txn.noted.outcome == "unknown" and self._random.random() < 0.5:
                await self._settle(txn, request, deadline_ms)
                return
            await self._cluster.sleep(self._random.uniform(5, 120))

    async def _send(self, request: transactions_pb2.CommitRequest) -> transactions_pb2.CommitResponse:
        reply = await self._cluster.rpc(
            self._pick(), lambda node: TransactionsService(node).commit(request), PATIENCE_MS
        )
        return transactions_pb2.CommitResponse.FromString(reply)

    def _committed(self, txn: Begun, reply: transactions_pb2.CommitResponse) -> None:
        txn.noted.outcome = "committed"
        txn.ts, txn.sums = timestamp_value(reply.header.timestamp), reply.sums
        self._leader = reply.header.node_id
        if txn.start is not None and txn.ts <= txn.start:
            self._cluster.violation(f"{txn.noted.name} was committed at {txn.ts}, and began at {txn.start}")
        self._history.acknowledged(txn.ts, self._cluster.now_ms)

    async def _settle(self, txn: Begun, request: transactions_pb2.CommitRequest, deadline_ms: float) -> None:
        """Ask for its outcome until a node knows it; then nothing of it happens any more."""
        settle = transactions_pb2.SettleRequest(request_id=request.request_id)
        while self._cluster.now_ms < deadline_ms:
            try:
                found = await self._cluster.rpc(
                    self._pick(), lambda node: TransactionsService(node).settle(settle), PATIENCE_MS
                )
            except (Refused, TryAgain, DataLoss, NotLeader, Lost, OutcomeUnknown) as error:
                self._follow(error)
                if isinstance(error, OutcomeUnknown) and "too old" in error.message():
                    return
                await self._cluster.sleep(self._random.uniform(5, 120))
                continue
            except CortadoError as error:
                self._cluster.problem(f"settling {txn.noted.name} failed: {error!r}")
                return
            assert isinstance(found, transactions_pb2.SettleResponse)
            if found.happened:
                self._committed(txn, transactions_pb2.CommitResponse.FromString(found.reply))
                self._cluster.counts["transactions found committed"] += 1
                return
            txn.noted.outcome = "aborted"
            self._cluster.counts["transactions cancelled"] += 1
            await self._come_late(request)
            return

    async def _come_late(self, request: transactions_pb2.CommitRequest) -> None:
        """Send another attempt, which was on its way while the transaction was settled."""
        await self._cluster.sleep(self._random.uniform(1, 60))
        try:
            await self._send(request)
        except TransactionAborted:
            self._cluster.counts["attempts that came after they were settled"] += 1
        except (Refused, Lost, CortadoError) as error:
            self._follow(error)

    # --- choice of a node --------------------------------------------------------------------------------------

    def _pick(self) -> str:
        known = self._leader in self._cluster.node_ids and self._random.random() < 0.9
        return self._leader if known else self._random.choice(self._cluster.node_ids)

    def _follow(self, error: Exception) -> None:
        is_known = isinstance(error, NotLeader) and error.leader
        self._leader = self._cluster.node_at(error.leader) if is_known else ""  # type: ignore[attr-defined]


def _tokens(value: bytes | None) -> tuple[bytes, ...]:
    return tuple((value or b"").split())


def _total(balances: Iterable[bytes | None]) -> int:
    return sum([int(each or 0) for each in balances])


# --- verdicts ------------------------------------------------------------------------------------------------------


def check_transactions(truth: Truth, transactors: Sequence[Transactor]) -> list[str]:
    """Check that an order explains the lists, the sum of the money is unchanged, and the counter is the sum of its
    additions."""
    begun = [txn for each in transactors for txn in each.begun]
    final = {key: _tokens(truth[key][-1][1]) for key in LISTS if key in truth}
    return [*problems([txn.noted for txn in begun], final), *_check_accounts(truth), *_check_counter(truth, begun)]


def _check_accounts(truth: Truth) -> list[str]:
    times = sorted({ts for key in ACCOUNTS for ts, _ in truth.get(key, ())})
    for ts in times:
        held = {key: value_at(truth, key, ts) for key in ACCOUNTS}
        if _total(held.values()) != TOTAL:
            return [f"the sum of the accounts is not {TOTAL}: at {ts} there is {held}"]
    return []


def _check_counter(truth: Truth, begun: Sequence[Begun]) -> list[str]:
    adding = {txn.ts: txn for txn in begun if txn.deltas and txn.ts != ZERO}
    before = 0
    for ts, value in truth.get(COUNTER, ()):
        total = int.from_bytes(value or bytes(COUNTER_BYTES), signed=True)
        txn = adding.pop(ts, None)
        if not BOUNDS[0] <= total <= BOUNDS[1]:
            return [f"the counter is out of its bounds: {total} at {ts}"]
        if txn is not None and (list(txn.sums) != [total] or total != before + txn.deltas[0]):
            return [f"the counter is {total} at {ts} after {before}: {txn}"]
        before = total
    return [f"lost: acknowledged at {ts}, and the counter does not show it: {txn}" for ts, txn in adding.items()]
