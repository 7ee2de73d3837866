"""A catalogue and tables over a store of versions: the parts that a node holds together, in one object and one thread.

Every write is evaluated at the newest state and applied at once, so tests read like the story they tell. ``WORLDS`` are
the stores that the same tests run over: a dictionary, and the real store of versions over the engine's twin in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cortado.schema.documents import decode_document, encode_document
from cortado.schema.fields import select_fields
from cortado.store.auth.owners import ANYBODY, Asker
from cortado.store.catalog.catalog import Catalog, CatalogCache
from cortado.store.catalog.declare import IndexDeclaration, PartDeclaration, create_database, create_table
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.catalog.registry import register_schema
from cortado.store.clock.timestamp import Timestamp
from cortado.store.jobs.job import Job
from cortado.store.keys.types import KeyValue
from cortado.store.mvcc.evaluation import Condition, Evaluation
from cortado.store.mvcc.expiry import Expiry
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.store import VersionStore
from cortado.store.tables import read
from cortado.store.tables.build import IndexBegun, Pace, begin_build, build_step, drop_index
from cortado.store.tables.bulk import evaluate_bulk
from cortado.store.tables.check import CheckProblem, check_step, plan_check
from cortado.store.tables.operations import (
    AvroDocument,
    AvroRows,
    BulkChunk,
    BulkMode,
    BulkWritten,
    Delete,
    Operation,
    Put,
    PutMode,
    Update,
)
from cortado.store.tables.repair import Repaired, evaluate_repair
from cortado.store.tables.scan import Budget, Scan, ScanPage, ScanPlan, plan_scan, scan_step
from cortado.store.tables.view import TableView
from cortado.store.tables.write import evaluate_delete, evaluate_put, evaluate_update
from cortado.store.transactions.commit import evaluate_commit
from cortado.store.transactions.operations import Commit
from support.dict_reader import DictStore
from support.memory_engine import MemoryEngine

DATABASE = "shop"


class EngineStore:
    """The real store of versions over the engine's twin in memory, with :class:`DictStore`'s way to write."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()
        self.store = VersionStore(self.engine)
        self.scan_chunk = self.store.scan_chunk
        self.now = Timestamp(0, 1_000, 0)

    def snapshot(self, read_ts: Timestamp | None = None) -> Reader:
        return self.store.snapshot(self.now if read_ts is None else read_ts)

    def write(self, evaluate: Callable[[Reader, Timestamp], Evaluation]) -> tuple[Timestamp, Evaluation]:
        ts = self.now = self.now.next()
        evaluation = evaluate(self.snapshot(), ts)
        with self.engine.write() as transaction:
            self.store.apply(transaction, evaluation.mutations, ts)
        return ts, evaluation


WORLDS = [DictStore, EngineStore]


def part(path: str) -> PartDeclaration:
    """Return the part of ``a`` or ``a desc``."""
    name, _, direction = path.partition(" ")
    return PartDeclaration(name, direction == "desc")


def index(name: str, *paths: str, unique: bool = False) -> IndexDeclaration:
    return IndexDeclaration(name, tuple(map(part, paths)), unique)


class TableWorld:
    """A database named ``shop`` and the operations of tests in it."""

    def __init__(self, store: DictStore | EngineStore | None = None) -> None:
        self.store = DictStore() if store is None else store
        self.cache = CatalogCache()
        self.store.write(lambda reader, ts: create_database(self.catalog(reader), DATABASE))

    # --- catalogue ---------------------------------------------------------------------------------------------

    def catalog(self, reader: Reader | None = None) -> Catalog:
        return Catalog(self.store.snapshot() if reader is None else reader, self.cache)

    def view(self, table: str) -> TableView:
        return TableView(self.catalog(), DATABASE, table)

    def register(self, subject: str, schema: Mapping[str, Any]) -> int:
        """Register a schema, and return the new version's schema id."""
        _, done = self.store.write(
            lambda reader, ts: register_schema(self.catalog(reader), f"{DATABASE}.{subject}", json.dumps(schema))
        )
        return done.reply.version.schema.schema_id  # type: ignore[attr-defined, no-any-return]

    def create(
        self,
        table: str,
        schema: Mapping[str, Any],
        key: Sequence[str],
        indexes: Sequence[IndexDeclaration] = (),
    ) -> TableDescriptor:
        """Create a table with a subject of its own."""
        self.register(table, schema)
        parts = list(map(part, key))
        self.store.write(
            lambda reader, ts: create_table(
                self.catalog(reader), DATABASE, table, key=parts, indexes=indexes, commit_ts=ts
            )
        )
        return self.catalog().table(DATABASE, table)

    # --- indexes of tables that have rows --------------------------------------------------------------------

    def begin_index(self, table: str, declaration: IndexDeclaration, asker: Asker = ANYBODY) -> int:
        """Begin to build an index; the job's number."""
        _, done = self.store.write(
            lambda reader, ts: begin_build(self.catalog(reader), ts, DATABASE, table, declaration, asker)
        )
        assert isinstance(done.reply, IndexBegun)
        return done.reply.job.job_id

    def build(self, job_id: int, rows: int = 1_000) -> Job:
        """Run one step of the job, of ``rows`` rows."""
        pace = Pace(clock_ms=lambda: 0.0, rows=rows)
        _, done = self.store.write(lambda reader, ts: build_step(reader, ts, self.catalog(reader), job_id, pace))
        assert isinstance(done.reply, Job)
        return done.reply

    def drop_index(self, table: str, name: str) -> None:
        self.store.write(lambda reader, ts: drop_index(self.catalog(reader), ts, DATABASE, table, name))

    # --- writes ------------------------------------------------------------------------------------------------

    def avro(self, table: str, document: Mapping[str, Any], schema_id: int = 0) -> AvroDocument:
        catalog = self.catalog()
        newest_id, newest = catalog.newest_schema(f"{DATABASE}.{table}")
        schema = catalog.schema(schema_id) if schema_id else newest
        return AvroDocument(schema_id or newest_id, encode_document(schema, document))

    def put(
        self,
        table: str,
        document: Mapping[str, Any],
        mode: PutMode = PutMode.UPSERT,
        condition: Condition | None = None,
        schema_id: int = 0,
    ) -> Timestamp:
        return self.run(Put(DATABASE, table, self.avro(table, document, schema_id), mode, condition))[0]

    def update(
        self,
        table: str,
        key: Sequence[KeyValue],
        changes: Mapping[str, Any],
        condition: Condition | None = None,
        *,
        json: bool = False,
    ) -> Any:
        """Update a row, and return the reply."""
        return self.run(Update(DATABASE, table, key, changes, condition, json))[1].reply

    def delete(self, table: str, key: Sequence[KeyValue], condition: Condition | None = None) -> Any:
        return self.run(Delete(DATABASE, table, key, condition))[1].reply

    def run(self, operation: Operation) -> tuple[Timestamp, Evaluation]:
        match operation:
            case Put():
                return self.store.write(lambda reader, ts: evaluate_put(reader, ts, self.catalog(reader), operation))
            case Update():
                return self.store.write(lambda reader, ts: evaluate_update(reader, ts, self.catalog(reader), operation))
            case Delete():
                return self.store.write(lambda reader, ts: evaluate_delete(reader, ts, self.catalog(reader), operation))

    def batch(self, operations: Sequence[Operation]) -> Timestamp:
        return self.store.write(
            lambda reader, ts: evaluate_commit(reader, ts, self.catalog(reader), Commit(operations))
        )[0]

    def rows(self, table: str, documents: Sequence[Mapping[str, Any]], schema_id: int = 0) -> AvroRows:
        encoded = [self.avro(table, document, schema_id) for document in documents]
        return avro_rows(schema_id or self.view(table).newest_id, [each.body for each in encoded])

    def bulk(
        self,
        table: str,
        documents: Sequence[Mapping[str, Any]],
        mode: BulkMode | PutMode = BulkMode.UPSERT,
        unchanged_since: Timestamp | None = None,
        schema_id: int = 0,
    ) -> BulkWritten:
        rows = self.rows(table, documents, schema_id)
        return self.bulk_rows(BulkChunk(DATABASE, table, rows, BulkMode(mode), unchanged_since))

    def bulk_parts(
        self,
        table: str,
        documents: Sequence[Mapping[str, Any]],
        columns: tuple[str, ...],
        mode: BulkMode,
        unchanged_since: Timestamp | None = None,
        expiry: Expiry | None = None,
        schema_id: int = 0,
    ) -> BulkWritten:
        """Write rows of these fields alone: an update, or a delete."""
        newest_id, newest = self.catalog().newest_schema(f"{DATABASE}.{table}")
        schema = self.catalog().schema(schema_id) if schema_id else newest
        parts = select_fields(schema, columns, table)
        rows = avro_rows(schema_id or newest_id, [encode_document(parts, each) for each in documents])
        return self.bulk_rows(BulkChunk(DATABASE, table, rows, mode, unchanged_since, expiry, columns))

    def bulk_rows(self, chunk: BulkChunk) -> BulkWritten:
        _, done = self.store.write(lambda reader, ts: evaluate_bulk(reader, ts, self.catalog(reader), chunk))
        assert isinstance(done.reply, BulkWritten)
        return done.reply

    # --- reads -------------------------------------------------------------------------------------------------

    def get(self, table: str, *key: KeyValue, at: Timestamp | None = None, schema_id: int = 0) -> dict[str, Any] | None:
        view = self.view(table)
        row = read.get(self.store.snapshot(at), view, key)
        return None if row is None else read.document_of(view, row, schema_id)

    def plan(self, table: str, *, at: Timestamp | None = None, **options: Any) -> ScanPlan:
        return plan_scan(self.catalog(), Scan(DATABASE, table, **options), self.store.now if at is None else at)

    def pages(self, plan: ScanPlan, rows: int = 1_000_000) -> list[ScanPage]:
        """Return all pages of a scan with at most ``rows`` rows in each."""
        pages = [scan_step(self.store, plan, None, budget(rows))]
        while (token := pages[-1].next) is not None:
            pages.append(scan_step(self.store, plan, token, budget(rows)))
        return pages

    def scan(self, table: str, *, page_rows: int = 1_000_000, **options: Any) -> list[dict[str, Any]]:
        """Return the documents of a scan, read as they were written (or projected)."""
        plan = self.plan(table, **options)
        return [document for page in self.pages(plan, page_rows) for document in self.documents(plan, page)]

    def documents(self, plan: ScanPlan, page: ScanPage) -> list[dict[str, Any]]:
        found = []
        for run in page.runs:
            if run.schema_id:
                schema = plan.view.stored_schema(run.schema_id)
            else:
                assert plan.conversion.projection is not None
                schema = plan.conversion.projection.schema
            start = 0
            for length in run.lengths.tolist():
                found.append(decode_document(schema, run.bodies[start : start + length]))
                start += length
        return found

    def repair(self, table: str) -> Repaired:
        """Repair the problems that a check has found."""
        suspects = [each.suspect for each in self.check(table) if each.suspect is not None]
        _, done = self.store.write(
            lambda reader, ts: evaluate_repair(reader, self.catalog(reader), DATABASE, table, suspects)
        )
        assert isinstance(done.reply, Repaired)
        return done.reply

    def check(self, table: str, rows: int = 1_000) -> list[CheckProblem]:
        """Return all problems of a table."""
        plan = plan_check(self.catalog(), DATABASE, table, self.store.now)
        page = check_step(self.store, plan, None, rows)
        problems = page.problems
        while page.next is not None:
            page = check_step(self.store, plan, page.next, rows)
            problems += page.problems
        return problems


def budget(rows: int = 1_000_000) -> Budget:
    return Budget(rows=rows, bytes=1 << 30, ms=1e9, clock_ms=lambda: 0.0)


def avro_rows(schema_id: int, bodies: Sequence[bytes]) -> AvroRows:
    return AvroRows(schema_id, b"".join(bodies), b"".join(len(body).to_bytes(4, "little") for body in bodies))
