"""Indexes that are built and dropped under writes and faults, and checks of them against the rows.

Writers write, change and delete the few rows of one table, one by one, in commits and in bulk. Beside them a builder
begins indexes, unique ones too, holds their jobs and lets them go on, cancels them, and drops indexes of any state.
Steps are of two rows, so that faults come between two of them. Again and again, on any replica, and in the end at the
leader, the table is checked.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from cortado.errors import CortadoError
from cortado.schema.documents import encode_document
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.declare import IndexDeclaration, PartDeclaration, create_database, create_table
from cortado.store.catalog.descriptors import IndexState
from cortado.store.catalog.registry import register_schema
from cortado.store.clock.timestamp import Timestamp
from cortado.store.jobs.job import jobs_of, pause, resume
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.tables.build import begin_build, cancel_build, drop_index
from cortado.store.tables.bulk import evaluate_bulk
from cortado.store.tables.check import CheckProblem, check_step, plan_check
from cortado.store.tables.chunk import prepare_chunk
from cortado.store.tables.operations import AvroDocument, AvroRows, BulkChunk, Delete, Operation, Put, Update
from cortado.store.transactions.commit import evaluate_commit
from cortado.store.transactions.operations import Commit
from support.simulation.rpc import Lost, Refused

if TYPE_CHECKING:
    from cortado.store.host.host import Host as NodeHost
    from support.simulation.cluster import Cluster

T = TypeVar("T")

DATABASE: Final = "sim"
TABLE: Final = "rows"
ROWS: Final = 12
STEP_ROWS: Final = 2
SCHEMA: Final = json.dumps(
    {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "code", "type": ["null", "string"], "default": None},
            {"name": "level", "type": "int"},
        ],
    }
)
DECLARED: Final = {
    "code": IndexDeclaration("code", (PartDeclaration("code"),), unique=True),
    "level": IndexDeclaration("level", (PartDeclaration("level", descending=True),)),
    "pair": IndexDeclaration("pair", (PartDeclaration("level"), PartDeclaration("code")), unique=True),
}
PATIENCE_MS: Final = 1_500.0


class Indexer:
    """Writers and a builder, as tasks on the clients' loop."""

    def __init__(self, cluster: Cluster, source: random.Random) -> None:
        self._cluster = cluster
        self._random = source
        self.is_stopped = False
        self._is_made = False

    async def run(self) -> None:
        """Make the table, and go on until stopped."""
        while not self.is_stopped and not self._is_made:
            await self._cluster.sleep(200)
            self._is_made = await self._make()
        for work in (self._write, self._write, self._build):
            self._cluster.world.create_task(self._repeat(work), name="client")
        await self._repeat(self._look)

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        while not self.is_stopped:
            await self._cluster.sleep(self._random.expovariate(1 / 60))
            await work()

    # --- writes ------------------------------------------------------------------------------------------------

    async def _make(self) -> bool:
        name = f"{DATABASE}.{TABLE}"
        key = [PartDeclaration("id")]
        await self._change(lambda catalog, _ts: create_database(catalog, DATABASE))
        await self._change(lambda catalog, _ts: register_schema(catalog, name, SCHEMA))
        await self._change(lambda catalog, ts: create_table(catalog, DATABASE, TABLE, key=key, commit_ts=ts))
        leader = self._cluster.leader()
        if leader is None:
            return False
        try:
            meta = leader.node.meta
            return meta.catalog(meta.reader(meta.read_ts())).find_table(DATABASE, TABLE) is not None
        except CortadoError:
            return False

    async def _write(self) -> None:
        pick = self._random.random()
        if pick < 0.3:
            await self._bulk()
            return
        wanted = [self._operation for _ in range(1 if pick < 0.8 else self._random.randint(2, 4))]
        asked = [make() for make in wanted]
        await self._asked(lambda catalog: [each(catalog) for each in asked])

    async def _asked(self, operations: Callable[[Catalog], list[Operation]]) -> None:
        async def commit(node: NodeHost) -> None:
            def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
                catalog = node.meta.catalog(reader)
                return evaluate_commit(reader, commit_ts, catalog, Commit(operations(catalog)))

            await node.meta.write(evaluate)

        await self._at_leader(commit)

    def _operation(self) -> Callable[[Catalog], Operation]:
        number, code, level = self._row()
        pick = self._random.random()
        if pick < 0.2:
            return lambda _catalog: Delete(DATABASE, TABLE, [number])
        if pick < 0.4:
            return lambda _catalog: Update(DATABASE, TABLE, [number], {"code": code})
        return lambda catalog: Put(DATABASE, TABLE, AvroDocument(*encoded(catalog, number, code, level)))

    def _row(self) -> tuple[int, str | None, int]:
        # Two rows with one code now and then, not always: else no unique index ever comes to its end.
        number = self._random.randrange(ROWS)
        code = self._random.choice((None, f"c{number}", f"c{number}", f"d{number}", f"d{number}"))
        if self._random.random() < 0.05:
            code = "shared"
        return number, code, self._random.randrange(3)

    async def _bulk(self) -> None:
        """Write in bulk as the service does: prepared against the applied state, and evaluated in its turn."""
        rows = [self._row() for _ in range(self._random.randint(1, 4))]

        async def load(node: NodeHost) -> None:
            meta = node.meta
            catalog = meta.catalog(meta.reader(meta.read_ts()))
            made = [encoded(catalog, *row) for row in rows]
            lengths = b"".join(len(body).to_bytes(4, "little") for _, body in made)
            chunk = BulkChunk(DATABASE, TABLE, AvroRows(made[0][0], b"".join(body for _, body in made), lengths))
            prepared = prepare_chunk(catalog, chunk)

            def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
                return evaluate_bulk(reader, commit_ts, meta.catalog(reader), chunk, prepared)

            await meta.write(evaluate)

        await self._at_leader(load)

    # --- indexes -----------------------------------------------------------------------------------------------

    async def _build(self) -> None:
        name = self._random.choice(sorted(DECLARED))
        declared = DECLARED[name]
        pick = self._random.random()
        if pick < 0.5:
            await self._change(lambda catalog, ts: begin_build(catalog, ts, DATABASE, TABLE, declared))
        elif pick < 0.65:
            await self._change(lambda catalog, ts: drop_index(catalog, ts, DATABASE, TABLE, name))
        else:
            turn = self._random.random()

            def change(catalog: Catalog, ts: Timestamp) -> Evaluation:
                unfinished = [each.job_id for each in jobs_of(catalog.reader) if not each.state.has_ended]
                job_id = unfinished[0] if unfinished else 0
                if turn < 0.2:
                    return cancel_build(catalog, ts, job_id)
                return pause(catalog.reader, job_id) if turn < 0.5 else resume(catalog.reader, job_id)

            await self._change(change)

    async def _change(self, change: Callable[[Catalog, Timestamp], Evaluation]) -> None:
        async def make(node: NodeHost) -> None:
            await node.meta.write(lambda reader, commit_ts: change(node.meta.catalog(reader), commit_ts))

        await self._at_leader(make)

    async def _at_leader(self, make: Callable[[NodeHost], Awaitable[None]]) -> None:
        leader = self._cluster.leader()
        if leader is None:
            return
        with suppress(Refused, Lost, CortadoError):
            await self._cluster.rpc(leader.node_id, make, PATIENCE_MS)

    # --- proofs ------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Look at the state that any replica has applied."""

        async def look(node: NodeHost) -> list[CheckProblem]:
            return check_table(node, self._cluster)

        try:
            found = await self._cluster.rpc(self._random.choice(self._cluster.node_ids), look, PATIENCE_MS)
        except (Refused, Lost, CortadoError):
            return
        for each in found:
            self._cluster.violation(f"the index {each.index} is not what the rows say: {each}")


def check_table(node: NodeHost, cluster: Cluster) -> list[CheckProblem]:
    """Return the problems of the table as a node has applied it. Raises the errors of reading it."""
    store, read_ts = node.meta.store, node.meta.applied.last_ts
    catalog = node.meta.catalog(store.snapshot(read_ts))
    if catalog.find_database(DATABASE) is None or catalog.find_table(DATABASE, TABLE) is None:
        return []
    for index in catalog.table(DATABASE, TABLE).indexes:
        cluster.counts[f"indexes seen {index.state}"] += 1
        if index.state is IndexState.READY and index.job_id:
            cluster.counts["indexes checked that were built"] += 1
    plan = plan_check(catalog, DATABASE, TABLE, read_ts)
    page = check_step(store, plan, None)
    problems = page.problems
    while page.next is not None:
        page = check_step(store, plan, page.next)
        problems += page.problems
    return problems


def encoded(catalog: Catalog, number: int, code: str | None, level: int) -> tuple[int, bytes]:
    schema_id, schema = catalog.newest_schema(f"{DATABASE}.{TABLE}")
    return schema_id, encode_document(schema, {"id": number, "code": code, "level": level})
