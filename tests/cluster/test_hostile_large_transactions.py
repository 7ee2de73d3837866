"""Large transactions of hostile or mistaken callers: one precise error each, nothing half done, and the server well
afterwards."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Any

import pytest

from cortado import errors
from cortado.proto.v1 import cluster_pb2, collection_pb2, documents_pb2, kv_pb2, large_transactions_pb2_grpc, tables_pb2
from cortado.proto.v1 import large_transactions_pb2 as pb
from cortado.store.staging.records import ATTEMPTS_MAX, TABLES_MAX, TASK_MAX, TRY_MAX, UNRESOLVED_MAX
from support.server_process import ServerProcess, running_server, wait_until
from support.wire import Wire, delete_document, int_key, put_document, refused, table_name, update_document

pytestmark = pytest.mark.process

UPSERT = documents_pb2.BULK_MODE_UPSERT


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("hostile") / "data") as server:
        yield server
        assert "Traceback" not in server.log, server.log
        assert "defect" not in server.log, server.log


@pytest.fixture(scope="module")
def wire(server: ServerProcess) -> Wire:
    wire = Wire(server.endpoint)
    wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="db"))
    for name in ("t", "other"):
        wire.register(f"db.{name}", {"name": "a", "type": "long"}, {"name": "b", "type": "string"})
        index = tables_pb2.Index(name="by_b", parts=[tables_pb2.KeyPart(path="b")], unique=True)
        wire.create_table("db", name, ["a"], index)
    return wire


@pytest.fixture
def large(wire: Wire) -> Iterator[Large]:
    """Afterwards no transaction is open or unresolved, and indexes agree with the rows."""
    large = Large(wire)
    yield large
    for each in large.listed():
        if each.state == pb.LargeTransaction.OPEN:
            large.abort(each.transaction_id)
    wait_until(lambda: all(each.is_resolved for each in large.listed()), "all are resolved")
    for name in ("t", "other"):
        for reply in wire.tables.CheckTable(tables_pb2.CheckTableRequest(database="db", name=name)):
            assert not reply.problems
    assert wire.cluster.Status(cluster_pb2.StatusRequest()).state == "serving"


class Large:
    """The calls of one connection."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.stub: Any = large_transactions_pb2_grpc.LargeTransactionsStub(wire.channel)

    def begin(self, tables: Sequence[str] = ("db.t",), transaction_id: bytes | None = None, **more: Any) -> bytes:
        names = [each.partition(".") for each in tables]
        request = pb.BeginLargeTransactionRequest(
            transaction_id=os.urandom(16) if transaction_id is None else transaction_id,
            tables=[pb.TransactionTable(database=database, table=table) for database, _, table in names],
            **more,
        )
        return bytes(self.stub.Begin(request, timeout=10).transaction.transaction_id)

    def commit(self, transaction_id: bytes, tasks: Sequence[int] = (0,), attempts: Sequence[int] = (0,)) -> Any:
        request = pb.CommitLargeTransactionRequest(transaction_id=transaction_id, tasks=tasks, attempts=attempts)
        return self.stub.Commit(request, timeout=30).transaction

    def abort(self, transaction_id: bytes) -> Any:
        return self.stub.Abort(pb.AbortLargeTransactionRequest(transaction_id=transaction_id), timeout=10).transaction

    def listed(self) -> list[Any]:
        return list(self.stub.List(pb.ListLargeTransactionsRequest(), timeout=10).transactions)

    def stage(
        self, transaction_id: bytes, *chunks: dict[int, str], table: str = "db.t", task: int = 0, attempt: int = 0
    ) -> int:
        """How many rows were staged."""
        staging = documents_pb2.Staging(transaction_id=transaction_id, task=task, attempt=attempt)
        start = documents_pb2.BulkStart(table=table_name(table), mode=UPSERT, staging=staging)
        requests = [documents_pb2.BulkRequest(start=start)]
        for number, rows in enumerate(chunks, start=1):
            json_rows = [json.dumps({"a": a, "b": b}) for a, b in rows.items()]
            chunk = documents_pb2.BulkChunk(sequence=number, json_rows=json_rows)
            requests.append(documents_pb2.BulkRequest(chunk=chunk))
        return sum(reply.written for reply in self.wire.documents.Bulk(iter(requests), timeout=30))


@pytest.mark.parametrize("length", [0, 1, 15, 17, 32, 10_000])
def test_ids_have_sixteen_bytes(large: Large, length: int) -> None:
    odd = b"x" * length
    calls: list[Callable[[], Any]] = [
        lambda: large.begin(transaction_id=odd),
        lambda: large.commit(odd),
        lambda: large.abort(odd),
        lambda: large.stage(odd, {1: "one"}),
    ]
    for call in calls:
        error = refused(call)
        assert isinstance(error, errors.InvalidArgument)
        assert (error.field, error.value) == ("transaction_id", f"{length} bytes")


def test_tasks_and_attempts_are_bounded_and_each_is_there_once(large: Large) -> None:
    name = large.begin()
    many = list(range(ATTEMPTS_MAX + 1))
    for tasks, attempts, kind in (
        (many, [0] * len(many), errors.TooLarge),
        ([1, 1], [0, 1], errors.InvalidArgument),
        ([1, 2], [0], errors.InvalidArgument),
        ([], [0], errors.InvalidArgument),
        ([TASK_MAX + 1], [0], errors.InvalidArgument),
        ([0], [TRY_MAX + 1], errors.InvalidArgument),
        ([2**32 - 1], [2**32 - 1], errors.InvalidArgument),
    ):
        assert isinstance(refused(lambda tasks=tasks, attempts=attempts: large.commit(name, tasks, attempts)), kind)
    for task, attempt in ((TASK_MAX + 1, 0), (0, TRY_MAX + 1)):
        error = refused(lambda task=task, attempt=attempt: large.stage(name, {1: "one"}, task=task, attempt=attempt))
        assert isinstance(error, errors.InvalidArgument)
    assert large.stage(name, {1: "one"}, task=TASK_MAX, attempt=TRY_MAX) == 1
    # No other task has staged rows.
    tasks = list(range(TASK_MAX - ATTEMPTS_MAX + 1, TASK_MAX + 1))
    done = large.commit(name, tasks, [TRY_MAX] * len(tasks))
    assert done.state == pb.LargeTransaction.COMMITTED
    wait_until(lambda: all(each.is_resolved for each in large.listed()), "it is resolved")
    taken = refused(lambda: large.wire.commit(put_document("db.t", {"a": 2, "b": "one"})))
    assert isinstance(taken, errors.UniqueViolation)


def test_what_it_may_write_must_be_there(large: Large) -> None:
    for tables, kind in (
        ([], errors.InvalidArgument),
        (["."], errors.CortadoError),
        (["db."], errors.CortadoError),
        ([".t"], errors.CortadoError),
        (["db.none"], errors.NotFound),
        (["none.t"], errors.NotFound),
        (["db.\x00"], errors.CortadoError),
        ([f"db.t{number}" for number in range(TABLES_MAX + 1)], errors.TooLarge),
    ):
        error = refused(lambda tables=tables: large.begin(tables))
        assert isinstance(error, kind), error
        assert not isinstance(error, errors.Internal)
    for more in ({"ttl_ms": 999}, {"ttl_ms": 600_001}, {"ttl_ms": 2**32 - 1}, {"label": "x" * 201}):
        assert isinstance(refused(lambda more=more: large.begin(**more)), errors.InvalidArgument | errors.TooLarge)
    assert [each for each in large.listed() if each.state == pb.LargeTransaction.OPEN] == []


def test_rows_are_staged_into_its_tables_alone_and_while_it_is_open(large: Large) -> None:
    name = large.begin()
    assert isinstance(refused(lambda: large.stage(name, {1: "one"}, table="db.other")), errors.InvalidArgument)
    assert isinstance(refused(lambda: large.stage(os.urandom(16), {1: "one"})), errors.NotFound)
    large.commit(name)
    assert isinstance(refused(lambda: large.stage(name, {1: "one"})), errors.InvalidArgument)
    other = large.begin()
    large.abort(other)
    assert isinstance(refused(lambda: large.stage(other, {1: "one"})), errors.TransactionAborted)


def test_a_commit_in_the_middle_of_a_stream_ends_that(large: Large) -> None:
    name = large.begin()
    staging = documents_pb2.Staging(transaction_id=name)
    start = documents_pb2.BulkStart(table=table_name("db.t"), mode=UPSERT, staging=staging)

    answered = Event()

    def requests() -> Iterator[documents_pb2.BulkRequest]:
        yield documents_pb2.BulkRequest(start=start)
        yield documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=1, json_rows=['{"a": 41, "b": "41"}']))
        assert answered.wait(10)
        large.commit(name)
        yield documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=2, json_rows=['{"a": 42, "b": "42"}']))

    def stream() -> None:
        for _ in large.wire.documents.Bulk(requests(), timeout=30):
            answered.set()

    assert isinstance(refused(stream), errors.InvalidArgument)
    large.wire.commit(update_document("db.t", int_key(41), {"b": "changed"}))
    absent = refused(lambda: large.wire.commit(update_document("db.t", int_key(42), {"b": "x"})))
    assert isinstance(absent, errors.NotFound)


def test_two_that_want_the_same_rows_in_another_order_are_both_refused_and_neither_waits_for_ever(large: Large) -> None:
    first, second = large.begin(), large.begin()
    large.stage(first, {51: "51"})
    large.stage(second, {52: "52"})
    for name, row in ((first, 52), (second, 51)):
        error = refused(lambda name=name, row=row: large.stage(name, {row: "mine"}))
        assert isinstance(error, errors.KeyLocked)
        assert error.transaction == (second if name == first else first).hex()
    large.abort(second)
    assert large.stage(first, {52: "mine"}) == 1
    assert large.commit(first).state == pb.LargeTransaction.COMMITTED


def test_whoever_writes_a_locked_row_is_told_by_whom_it_is_locked(large: Large) -> None:
    wire = large.wire
    wire.commit(put_document("db.t", {"a": 61, "b": "61"}))
    name = large.begin()
    large.stage(name, {61: "sixty-one", 62: "62"})
    for operation in (
        put_document("db.t", {"a": 61, "b": "x"}),
        put_document("db.t", {"a": 62, "b": "y"}),
        put_document("db.t", {"a": 63, "b": "62"}),
        update_document("db.t", int_key(61), {"b": "z"}),
        delete_document("db.t", int_key(61)),
    ):
        error = refused(lambda operation=operation: wire.commit(operation))
        assert isinstance(error, errors.KeyLocked), error
        assert error.transaction == name.hex()
    index = tables_pb2.Index(name="later", parts=[tables_pb2.KeyPart(path="b")])
    wire.tables.CreateIndex(tables_pb2.CreateIndexRequest(database="db", table="t", index=index), timeout=10)
    assert large.commit(name).state == pb.LargeTransaction.COMMITTED

    def is_ready() -> bool:
        request = tables_pb2.DescribeTableRequest(database="db", name="t")
        indexes = wire.tables.DescribeTable(request).table.indexes
        return any(each.name == "later" and each.ready.wall_ms for each in indexes)

    wait_until(is_ready, "it is built")
    wire.tables.DropIndex(tables_pb2.DropIndexRequest(database="db", table="t", index="later"))


def test_a_table_that_goes_takes_its_transactions_with_it_and_a_renamed_one_does_not(large: Large) -> None:
    tables = large.wire.tables
    renamed, dropped = large.begin(), large.begin(["db.other"])
    large.stage(renamed, {71: "71"})
    large.stage(dropped, {71: "71"}, table="db.other")
    tables.RenameTable(tables_pb2.RenameTableRequest(database="db", name="t", new_name="u"))
    assert large.stage(renamed, {72: "72"}, table="db.u") == 1
    assert large.commit(renamed).state == pb.LargeTransaction.COMMITTED
    tables.RenameTable(tables_pb2.RenameTableRequest(database="db", name="u", new_name="t"))
    tables.DropTable(tables_pb2.DropTableRequest(database="db", name="other"))
    done = large.commit(dropped)
    assert (done.state, done.cause) == (pb.LargeTransaction.ABORTED, "table")
    tables.UndropTable(tables_pb2.UndropTableRequest(database="db", name="other"))
    large.wire.commit(put_document("db.other", {"a": 71, "b": "71"}))


def test_an_epoch_that_begins_between_staging_and_commit_changes_nothing(large: Large) -> None:
    name = large.begin()
    large.stage(name, {81: "81"})
    epoch = large.listed()[-1].start.epoch
    large.wire.cluster.BumpEpoch(cluster_pb2.BumpEpochRequest(from_epoch=epoch), timeout=10)
    done = large.commit(name)
    assert done.state == pb.LargeTransaction.COMMITTED
    assert done.committed.epoch == done.start.epoch + 1
    large.wire.cluster.BumpEpoch(cluster_pb2.BumpEpochRequest(from_epoch=done.committed.epoch), timeout=10)
    wait_until(lambda: all(each.is_resolved for each in large.listed()), "it is resolved")
    large.wire.commit(update_document("db.t", int_key(81), {"b": "eighty-one"}))


def test_whose_lease_is_given_back_is_aborted(large: Large) -> None:
    name = large.begin()
    large.stage(name, {91: "91"})
    large.wire.collection.ReleaseLease(collection_pb2.ReleaseLeaseRequest(lease_id=name), timeout=10)
    wait_until(lambda: any(each.cause == "expired" for each in large.listed()), "it is aborted")
    assert large.abort(name).cause == "expired"
    large.wire.commit(put_document("db.t", {"a": 91, "b": "91"}))


def test_so_many_are_open_and_no_more(large: Large) -> None:
    begun = [large.begin() for _ in range(UNRESOLVED_MAX)]
    error = refused(large.begin)
    assert isinstance(error, errors.ResourceExhausted)
    assert isinstance(refused(lambda: large.begin(transaction_id=begun[0], label="another")), errors.AlreadyExists)
    assert large.begin(transaction_id=begun[0]) == begun[0]
    assert large.wire.kv.Put(kv_pb2.KvPutRequest(namespace="n", key=b"k", value=b"v"), timeout=10)
    large.abort(begun[0])
    wait_until(lambda: any(each.is_resolved and each.transaction_id == begun[0] for each in large.listed()), "it ends")
    begun[0] = large.begin()
