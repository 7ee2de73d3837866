"""Large transactions over the table of the indexers: staged by tasks, some of them twice, and committed, aborted or
left to expire, while others write, build indexes, read at every timestamp, validate and watch.

====================  =======================================================================================
makers                begin, stage chunks of rows by several tasks and tries: some tries are given up, come twice or
                      late; commit the tries that were staged whole, or abort, or never come back
readers               all rows at a time, on any replica, in either direction, in slices or one by one
validators            commit where no row has changed since a time: then none has
watchers              everything that changes in the rows, across leaders and crashes
====================  =======================================================================================

The verdict: a commit has the rows of the tries that it names, all of them at its timestamp or none anywhere; each read
at a time agrees with the log in the end; and nothing stays staged.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar
from unittest.mock import patch

from cortado.errors import (
    CortadoError,
    DataLoss,
    NotLeader,
    OutcomeUnknown,
    TryAgain,
)
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.keys.keyspace import STAGED_SPACE, row_key, row_range
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, logical_of
from cortado.store.mvcc.versions import PAYLOAD, PUT_KIND, timestamp_of
from cortado.store.replica.duties import large_transactions as duty
from cortado.store.staging.records import LargeState, Record, abort, begin, commit
from cortado.store.staging.stage import Met, attempt_of, stage
from cortado.store.tables.bulk import evaluate_bulk
from cortado.store.tables.chunk import prepare_chunk
from cortado.store.tables.operations import AvroRows, BulkChunk, BulkMode, BulkWritten
from support.simulation.checkers import Truth, truth_of, value_at
from support.simulation.groups import NAMESPACE
from support.simulation.history import History
from support.simulation.indexers import DATABASE, TABLE, encoded
from support.simulation.rpc import Lost, Refused
from support.simulation.workload import logical
from support.watch_history import Resolved, Seen, problems

if TYPE_CHECKING:
    from cortado.store.host.host import Host as NodeHost
    from support.simulation.cluster import Cluster

T = TypeVar("T")

KEY: Final = [KeyPart("id", KeyType.INT64)]
ROWS: Final = 30
MAKERS: Final = 3
TTLS_MS: Final = (1_000, 2_000, 6_000)
PATIENCE_MS: Final = 1_000.0
CALL_MS: Final = 8_000.0
PIECE_ITEMS: Final = 3
PIECE_BYTES: Final = 500
VALIDATED: Final = b"validated"


@dataclass(eq=False)
class Made:
    """A large transaction: the rows that each of its tries has staged for sure, as codes by row; and the answers to
    it."""

    name: str
    transaction_id: bytes
    staged: dict[int, dict[int, str]] = field(default_factory=dict)
    codes: set[str] = field(default_factory=set)
    """All that it has sent."""
    named: tuple[int, ...] = ()
    outcome: str = "open"
    ts: Timestamp = ZERO


@dataclass(frozen=True, slots=True)
class Look:
    """A replica's answer about all rows, or some, at a time."""

    node: str
    ts: Timestamp
    rows: Mapping[bytes, bytes | None]
    how: str


class LargeTransactors:
    """Makers, readers, validators and a watcher, as tasks on the clients' loop."""

    def __init__(self, cluster: Cluster, history: History, source: random.Random, *, watches: bool) -> None:
        self._cluster = cluster
        self._history = history
        self._random = source
        self._watches = watches
        self._number = 0
        self._times: list[Timestamp] = []
        self.is_stopped = False
        self.table_id = 0
        self.made: list[Made] = []
        self.looks: list[Look] = []
        self.validated: list[tuple[Timestamp, Timestamp]] = []
        self.watched: list[Seen | Resolved] = []
        self._resolved = ZERO

    async def run(self) -> None:
        while not self.is_stopped and not self.table_id:
            await self._cluster.sleep(200)
            await self._find_table()
        works = [self._make] * MAKERS + [self._look, self._look, self._validate]
        for work in [*works, *([self._watch] if self._watches else [])]:
            self._cluster.world.create_task(self._repeat(work), name="client")

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        while not self.is_stopped:
            await self._cluster.sleep(self._random.expovariate(1 / 80))
            await work()

    async def _find_table(self) -> None:
        async def find(node: NodeHost) -> int:
            table = node.meta.catalog(node.meta.reader(node.meta.read_ts())).find_table(DATABASE, TABLE)
            return 0 if table is None else table.table_id

        with suppress(Refused, Lost, CortadoError):
            self.table_id = await self._cluster.rpc(self._random.choice(self._cluster.node_ids), find, PATIENCE_MS)

    # --- makers ------------------------------------------------------------------------------------------------

    async def _make(self) -> None:
        self._number += 1
        made = Made(f"x{self._number}", self._random.randbytes(16))
        ttl_ms = self._random.choice(TTLS_MS)
        tables = [(DATABASE, TABLE)]

        def evaluate(node: NodeHost) -> Evaluate:
            def begins(reader: Reader, ts: Timestamp) -> Evaluation:
                catalog, unresolved = node.meta.catalog(reader), node.meta.store.unresolved
                return begin(catalog, ts, made.transaction_id, tables, ttl_ms, made.name, unresolved)

            return begins

        begun = await self._change(evaluate)
        if begun is None:
            return
        self.made.append(made)
        rows = self._random.sample(range(ROWS), self._random.randint(3, 9))
        for task in range(self._random.randint(1, 3)):
            await self._task(made, task, rows[task::3])
            await self._cluster.sleep(self._random.uniform(0, 300))
            if self._random.random() < 0.5:
                await self._keep(made)
        pick = self._random.random()
        if pick < 0.65:
            await self._commit(made)
        elif pick < 0.85:
            await self._end(made, lambda reader: abort(reader, made.transaction_id, "operator"))
        else:
            self._cluster.counts["large transactions left alone"] += 1

    async def _task(self, made: Made, task: int, rows: Sequence[int]) -> None:
        """Run a task. It may run again, and counts by the last try that was staged whole."""
        for number in range(self._random.choice((1, 1, 2, 3))):
            attempt = attempt_of(task, number)
            mine = self._random.sample(rows, self._random.randint(1, len(rows)))
            is_whole = True
            for place in range(0, len(mine), 2):
                chunk = {row: f"{made.name}.{task}.{number}.{row}" for row in mine[place : place + 2]}
                made.codes |= set(chunk.values())
                is_whole &= await self._chunk(made, attempt, chunk)
                if not is_whole:
                    break
                made.staged.setdefault(attempt, {}).update(chunk)
            if is_whole and self._random.random() < 0.9:
                others = [each for each in made.named if each >> 12 != task]
                made.named = (*others, attempt)

    async def _chunk(self, made: Made, attempt: int, rows: Mapping[int, str]) -> bool:
        """Send it until its outcome is known, or time is up. Returns whether all of it is staged."""
        request_id = bytes(self._history.acknowledged_max) + self._random.randbytes(8)
        mode = self._random.choice((BulkMode.UPSERT, BulkMode.UPSERT, BulkMode.INSERT))
        levels = [self._random.randrange(3) for _ in rows]

        async def send(node: NodeHost) -> bytes:
            return await _staged(node, made.transaction_id, attempt, rows, levels, mode, request_id)

        deadline_ms, is_known = self._cluster.now_ms + CALL_MS / 2, True
        while self._cluster.now_ms < deadline_ms:
            try:
                reply = await self._cluster.rpc(self._pick(), send, PATIENCE_MS)
                if self._random.random() < 0.2:
                    self._cluster.world.create_task(self._late(send), name="client")
                self._cluster.counts["large chunks staged"] += not reply
                return not reply
            except (Lost, OutcomeUnknown):
                is_known = False
            except (Refused, TryAgain, NotLeader, DataLoss) as error:
                self._cluster.counts["large chunks that met a lock"] += type(error).__name__ == "KeyLocked"
            except CortadoError as error:
                self._cluster.counts[f"large chunks refused: {type(error).__name__}"] += 1
                return False
            await self._cluster.sleep(self._random.uniform(5, 200))
        self._cluster.counts["large chunks of which nobody knows"] += not is_known
        return False

    async def _late(self, send: Callable[[NodeHost], Awaitable[bytes]]) -> None:
        """Send the same message again, as one that was on its way."""
        await self._cluster.sleep(self._random.uniform(1, 2_000))
        with suppress(Refused, Lost, CortadoError):
            await self._cluster.rpc(self._random.choice(self._cluster.node_ids), send, PATIENCE_MS)

    async def _keep(self, made: Made) -> None:
        with suppress(Refused, Lost, CortadoError):
            await self._cluster.rpc(self._pick(), lambda node: node.meta.leases.keep(made.transaction_id), PATIENCE_MS)

    async def _commit(self, made: Made) -> None:
        made.outcome = "unknown"

        def evaluate(node: NodeHost) -> Evaluate:
            return lambda reader, ts: commit(
                reader, ts, node.meta.catalog(reader), made.transaction_id, sorted(made.named)
            )

        self._ended(made, await self._change(evaluate))
        if self._random.random() < 0.2:
            self._ended(made, await self._change(evaluate))

    async def _end(self, made: Made, end: Callable[[Reader], Evaluation]) -> None:
        made.outcome = "unknown"
        self._ended(made, await self._change(lambda _node: lambda reader, _ts: end(reader)))

    def _ended(self, made: Made, record: Record | None) -> None:
        if record is None or record.state is LargeState.OPEN:
            return
        if made.outcome not in ("unknown", str(record.state)) or (made.ts != ZERO and made.ts != record.commit_ts):
            self._cluster.violation(f"{made.name} was {made.outcome} at {made.ts}, and then {record}")
        made.outcome = str(record.state)
        self._cluster.counts[f"large transactions {record.state}"] += 1
        self._cluster.counts[f"large transactions aborted: {record.cause}"] += bool(record.cause)
        if record.commit_ts is not None:
            made.ts = record.commit_ts
            self._times.append(record.commit_ts)
            self._history.acknowledged(record.commit_ts, self._cluster.now_ms)

    async def _change(self, change: Callable[[NodeHost], Evaluate]) -> Record | None:
        """Change a record at a leader. Returns None if no node answered."""

        async def make(node: NodeHost) -> Record:
            result = await node.meta.write(change(node))
            assert isinstance(result.value, Record)
            return result.value

        deadline_ms = self._cluster.now_ms + CALL_MS
        while self._cluster.now_ms < deadline_ms:
            with suppress(Refused, Lost, CortadoError):
                return await self._cluster.rpc(self._pick(), make, PATIENCE_MS)
            await self._cluster.sleep(self._random.uniform(5, 200))
        return None

    def _pick(self) -> str:
        leader = self._cluster.leader()
        if leader is not None and leader.node_id in self._cluster.node_ids and self._random.random() < 0.9:
            return leader.node_id
        return self._random.choice(self._cluster.node_ids)

    # --- readers -----------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        pick, known = self._random.random(), [each.ts for each in self.looks[-50:]] + self._times[-10:]
        at = self._random.choice(known) if known and pick < 0.6 else None
        how = self._random.choice(("up", "down", "slices", "points"))

        async def read(node: NodeHost) -> tuple[Timestamp, dict[bytes, bytes | None]]:
            if at is not None:
                ts = await node.meta.reads.resolve(at)
            else:
                # As every read does: a replica that cannot tell which rows are staged serves no caller.
                node.meta.reads.check_open()
                ts = node.meta.applied.last_ts if pick < 0.8 else await node.meta.reads.linearize()
            return ts, _rows_at(node, self.table_id, ts, how)

        node_id = self._random.choice(self._cluster.node_ids)
        with suppress(Refused, Lost, CortadoError):
            ts, rows = await self._cluster.rpc(node_id, read, PATIENCE_MS)
            self.looks.append(Look(node_id, ts, rows, how))
            self._cluster.counts["looks at all rows"] += 1

    async def _validate(self) -> None:
        """Read, wait a while, and write only if nothing has changed."""
        bounds = row_range(self.table_id, KEY)
        keys = [row_key(self.table_id, KEY, [number]) for number in range(ROWS)]
        by_keys = self._random.random() < 0.5
        with suppress(Refused, Lost, CortadoError):
            start = await self._cluster.rpc(self._pick(), lambda node: node.meta.reads.linearize(), PATIENCE_MS)
            await self._cluster.sleep(self._random.uniform(5, 400))

            def evaluate(reader: Reader, _ts: Timestamp) -> Evaluation:
                changed = reader.changed_since(keys if by_keys else (), () if by_keys else [bounds], start)
                mutations = Mutations()
                if changed is None:
                    mutations.put(logical(NAMESPACE, VALIDATED), b"%d" % self._random.getrandbits(60))
                return Evaluation(mutations, changed)

            result = await self._cluster.rpc(self._pick(), lambda node: node.meta.write(evaluate), PATIENCE_MS)
            self._cluster.counts[f"rows found {'changed' if result.value is not None else 'unchanged'}"] += 1
            if result.value is None:
                self.validated.append((start, result.ts))

    # --- watchers ----------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        after, for_ms = self._resolved, self._random.choice((1.0, 50.0, 400.0))
        node_id = self._random.choice(self._cluster.node_ids)
        with suppress(Refused, Lost, CortadoError):
            told = await self._cluster.rpc(
                node_id, lambda node: _watch_rows(node, self.table_id, after, for_ms), 3_000.0
            )
            self._resolved = max([after, *[each.ts for each in told if isinstance(each, Resolved)]])
            # Changes above the last mark are asked for again.
            self.watched += [each for each in told if each.ts <= self._resolved]
            self._cluster.counts["changes of rows watched"] += sum(isinstance(each, Seen) for each in told)


async def _staged(
    node: NodeHost,
    transaction_id: bytes,
    attempt: int,
    rows: Mapping[int, str],
    levels: Sequence[int],
    mode: BulkMode,
    request_id: bytes,
) -> bytes:
    """Stage as the service does. Returns empty bytes if all rows were staged."""
    meta = node.meta
    catalog = meta.catalog(meta.reader(meta.read_ts()))
    bodies = [encoded(catalog, row, code, level) for (row, code), level in zip(rows.items(), levels, strict=True)]
    lengths = b"".join(len(body).to_bytes(4, "little") for _, body in bodies)
    chunk = BulkChunk(DATABASE, TABLE, AvroRows(bodies[0][0], b"".join(body for _, body in bodies), lengths), mode)
    prepared = prepare_chunk(catalog, chunk)

    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        written = evaluate_bulk(reader, commit_ts, meta.catalog(reader), chunk, prepared)
        is_unchanged = mode is not BulkMode.UPSERT
        return stage(reader, meta.store.unresolved, transaction_id, attempt, written, is_unchanged=is_unchanged)

    def reply(_ts: Timestamp, written: object) -> bytes:
        assert isinstance(written, BulkWritten)
        return b"refused" * len(written.errors)

    result = await meta.write(
        evaluate, size_bytes=64, request_id=request_id, request_hash=request_id[-8:] * 2, encode_reply=reply
    )
    return result.reply


def _rows_at(node: NodeHost, table_id: int, ts: Timestamp, how: str) -> dict[bytes, bytes | None]:
    reader = node.meta.reader(ts)
    start, end = row_range(table_id, KEY)
    keys = [row_key(table_id, KEY, [number]) for number in range(ROWS)]
    rows: dict[bytes, bytes | None] = dict.fromkeys(keys)
    if how == "points":
        for key in keys:
            version = reader.get(key)
            rows[key] = None if version is None else version.payload
    elif how == "slices" and ts <= node.meta.applied.last_ts:
        resume: LogicalKey | None = start
        while resume is not None:
            chunk = node.meta.store.scan_chunk(resume, end, ts, max_rows=3)
            rows.update(zip(chunk.keys, chunk.payloads, strict=True))
            resume = chunk.resume
    else:
        rows.update((key, version.payload) for key, version in reader.scan(start, end, reverse=how == "down"))
    return rows


async def _watch_rows(node: NodeHost, table_id: int, after: Timestamp, for_ms: float) -> list[Seen | Resolved]:
    told: list[Seen | Resolved] = []
    # As the service does: a replica that cannot read staged rows serves no caller.
    node.meta.reads.check_open()
    loop = asyncio.get_running_loop()
    end_s = loop.time() + for_ms / 1_000
    with node.meta.watches.watch(*row_range(table_id, KEY), after, resolved_interval_ms=20) as watch:
        async with aclosing(watch.batches()) as batches:
            async for batch in batches:
                for key, value in batch.items:
                    payload = value[PAYLOAD] if value[0] == PUT_KIND else None
                    told.append(Seen(timestamp_of(key[-TIMESTAMP_BYTES:]), logical_of(key), payload))
                if batch.resolved is not None:
                    told.append(Resolved(batch.resolved))
                if loop.time() >= end_s and len(told) > 1:
                    break
    return told


@contextmanager
def small_pieces(cluster: Cluster) -> Iterator[None]:
    """Put a few rows in place by an entry, so that faults come between two; count the rows that others move."""
    moved = Met.moved

    def counted(self: Met, evaluation: Evaluation) -> Evaluation:
        cluster.counts["staged rows that a writer moved"] += len(self._items)
        return moved(self, evaluation)

    with ExitStack() as stack:
        stack.enter_context(patch.object(duty, "_PIECE_ITEMS", PIECE_ITEMS))
        stack.enter_context(patch.object(duty, "_PIECE_BYTES", PIECE_BYTES))
        stack.enter_context(patch.object(Met, "moved", counted))
        yield


# --- verdicts ------------------------------------------------------------------------------------------------------


def check_large(data: Mapping[bytes, bytes], left: Mapping[bytes, bytes], large: LargeTransactors) -> list[str]:
    """Check the answers: ``data`` is all that was ever applied, ``left`` is stored in the end."""
    if not large.table_id:
        return []
    start, end = row_range(large.table_id, KEY)
    truth = truth_of(data, lambda key: key if start <= key < end else None)
    found = [f"{key!r} is still staged" for key in left if key[:1] == STAGED_SPACE]
    for made in large.made:
        found += _check_made(truth, made, large.table_id)
    for look in large.looks:
        wrong = [key for key, value in look.rows.items() if value_at(truth, key, look.ts) != value]
        if wrong:
            found.append(
                f"{look.node} told ({look.how}) at {look.ts} of {len(wrong)} rows what they are not: {wrong[0]!r} "
                f"{look.rows[wrong[0]]!r}, it is {value_at(truth, wrong[0], look.ts)!r}"
            )
    changes = sorted(ts for versions in truth.values() for ts, _ in versions)
    for began, ts in large.validated:
        between = [each for each in changes if began < each < ts]
        if between:
            found.append(f"no row was to have changed between {began} and {ts}, and did at {between[0]}")
    committed = [Seen(ts, key, value) for key, versions in truth.items() for ts, value in versions]
    found += [f"a watcher of rows: {each}" for each in problems(large.watched, ZERO, committed)[:3]]
    return found[:10]


def _check_made(truth: Truth, made: Made, table_id: int) -> list[str]:
    """Check that its rows are those of the tries that it names, all at one time, or nowhere."""
    codes = {code.encode(): code for code in made.codes}
    there: dict[Timestamp, dict[bytes, str]] = {}
    for key, versions in truth.items():
        for ts, payload in versions:
            for token in _tokens(payload):
                if token in codes:
                    there.setdefault(ts, {})[key] = codes[token]
    named: dict[bytes, str] = {}
    for attempt in made.named:
        rows = made.staged.get(attempt, {})
        named |= {bytes(row_key(table_id, KEY, [row])): code for row, code in rows.items()}
    if made.outcome == "committed":
        if there != ({made.ts: named} if named else {}):
            return [f"{made.name} was committed at {made.ts}, and is not there as it was staged: {there}, {named}"]
        return []
    if not there:
        return []
    if made.outcome != "unknown" or list(there.values()) != [named]:
        return [f"{made.name} is {made.outcome}, and there is {there} of it; it named {named}"]
    return []


def _tokens(payload: bytes | None) -> list[bytes]:
    """Return the codes in a payload. A code is a string of its own within the row's Avro body: an x, and its parts."""
    if payload is None or b"x" not in payload:
        return []
    code = payload[payload.index(b"x") :]
    length = next((place for place, byte in enumerate(code) if chr(byte) not in "x.0123456789"), len(code))
    return [code[:length]]


def is_quiet(leader: Any) -> bool:
    """Return whether the leader has no unresolved large transaction, and builds no index, which may have waited."""
    return not leader.node.meta.store.unresolved and not leader.node.meta.jobs.running
