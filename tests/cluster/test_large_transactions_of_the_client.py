"""Large transactions through the client, and with stubs alone, against a real server."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator

import pytest

from cortado.errors import (
    AlreadyExists,
    ConditionFailed,
    KeyLocked,
    NotFound,
    TransactionAborted,
    Unsupported,
    WriteConflict,
)
from cortado.proto.v1 import collection_pb2, common_pb2, documents_pb2
from cortado.proto.v1 import large_transactions_pb2 as pb
from cortado.proto.v1.large_transactions_pb2_grpc import LargeTransactionsStub
from cortado.store.cli.app import run
from cortado.store.client import Client, Index, Table
from support.faces import FACES, open_client
from support.server_process import ServerProcess, wait_until
from support.wire import Wire, table_name, timestamp_of

pytestmark = pytest.mark.process

FIELDS = [{"name": "id", "type": "long"}, {"name": "n", "type": "long"}]
ROWS = 2_500


@pytest.fixture(params=FACES)
def client(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint, timeout_s=10) as opened:
        yield opened


@pytest.fixture
def orders(client: Client, database: str) -> Table:
    """Has the rows 0 to 9, each with n = 0."""
    name = f"{database}.orders"
    client.schemas.register(name, {"type": "record", "name": "Order", "fields": FIELDS})
    client.create_table(name, ["id"], indexes=[Index("by_n", ["n"])])
    table = client.table(name)
    table.put_many(rows(range(10)))
    return table


def rows(ids: range, n: int = 0) -> list[dict[str, int]]:
    return [{"id": each, "n": n} for each in ids]


def stored(table: Table, at: object = None) -> list[tuple[int, int]]:
    return [(each.value["id"], each.value["n"]) for each in table.scan(at=at)]  # type: ignore[arg-type]


def test_rows_of_every_kind_of_load_are_visible_at_its_timestamp_and_not_before(client: Client, orders: Table) -> None:
    import pyarrow as pa

    name = orders.full_name
    with client.large_transaction([name], label="nightly") as txn:
        staged = txn.table(name)
        assert staged.put_many(rows(range(5, ROWS), 1), chunk_rows=500).written == ROWS - 5
        staged.put_json(rows(range(ROWS, ROWS + 10), 1))
        staged.put_arrow([pa.RecordBatch.from_pylist(rows(range(ROWS + 10, ROWS + 20), 1))])
        before = client.now()
        assert len(stored(orders)) == 10
        [listed] = [each for each in client.large_transactions.list() if each.transaction_id == txn.transaction_id]
        assert (listed.state, listed.label, listed.tables) == ("open", "nightly", (name,))
        for refused in (
            lambda: staged.get(1),
            lambda: staged.put({"id": 1, "n": 1}),
            lambda: list(staged.scan()),
            lambda: staged.delete(1),
        ):
            with pytest.raises(Unsupported, match="in a large transaction"):
                refused()
    expected = [(each, 0) for each in range(5)] + [(each, 1) for each in range(5, ROWS + 20)]
    assert stored(orders, txn.timestamp) == stored(orders) == expected
    assert len(stored(orders, before)) == 10
    assert len(list(orders.scan(index="by_n", prefix=1))) == ROWS + 15
    assert client.verify_indexes(name).problems == ()
    assert txn.commit() == txn.timestamp


def test_nothing_of_one_that_ends_by_an_exception_happens(client: Client, orders: Table) -> None:
    name = orders.full_name
    with pytest.raises(ZeroDivisionError), client.large_transaction([name]) as txn:
        txn.table(name).put_many(rows(range(100), 1))
        _ = 1 / 0
    with pytest.raises(ConditionFailed), client.large_transaction([name]) as other:
        other.table(name).put_many(rows(range(9, 20), 1), mode="insert")
    with pytest.raises(AlreadyExists), client.large_transaction([name]) as third:
        third.table(name).put_many(rows(range(20, 30)))
        third.table(name).put_many(rows(range(29, 31)))
    with pytest.raises(NotFound), client.large_transaction([f"{name}s"]):
        pass
    for each in (txn, other, third):
        assert client.large_transactions.get(each.transaction_id).cause == "operator"
        with pytest.raises(TransactionAborted):
            each.commit()
    assert stored(orders) == [(each, 0) for each in range(10)]
    orders.put({"id": 1, "n": 5})


def test_who_writes_what_it_has_staged_waits_until_it_ends(client: Client, orders: Table) -> None:
    name = orders.full_name
    with client.large_transaction([name]) as txn:
        txn.table(name).put_many(rows(range(3), 1))
        hasty = client.with_timeout(1).table(name)
        with pytest.raises(KeyLocked) as locked:
            hasty.put({"id": 1, "n": 2})
        assert locked.value.transaction == txn.transaction_id
        waiting = threading.Thread(target=orders.put, args=({"id": 1, "n": 2},))
        waiting.start()
        # It is loaded with the others: locks are of rows.
        orders.put({"id": 7, "n": 2})
    waiting.join(30)
    assert stored(orders)[:3] == [(0, 1), (1, 2), (2, 1)]
    assert stored(orders, txn.timestamp)[:3] == [(0, 1), (1, 1), (2, 1)]


def test_tasks_of_several_clients_stage_and_the_attempts_count_that_are_named(
    client: Client, orders: Table, server: ServerProcess
) -> None:
    name, parts = orders.full_name, client.large_transactions
    begun = parts.begin([name], ttl_s=5)
    with Client(server.endpoint) as other:
        for task, attempt, n in ((0, 0, 1), (0, 1, 2), (1, 0, 3), (2, 5, 4)):
            with other.large_transactions.staging(begun.transaction_id, task=task, attempt=attempt, ttl_s=5) as one:
                one.table(name).put_many(rows(range(10 * task, 10 * task + 5 + attempt), n))
    at = parts.commit(begun.transaction_id, {0: 1, 1: 0})
    expected = [(each, 2) for each in range(6)] + [(each, 0) for each in range(6, 10)]
    assert stored(orders, at) == stored(orders) == expected + [(each, 3) for each in range(10, 15)]
    assert parts.commit(begun.transaction_id, {}) == at, "the first one stands"
    assert parts.abort(begun.transaction_id).state == "committed"


def test_an_application_commits_a_version_once_however_often_it_comes(client: Client, orders: Table) -> None:
    name, parts = orders.full_name, client.large_transactions
    for n in (1, 2):
        begun = parts.begin([name])
        with parts.staging(begun.transaction_id) as staging:
            staging.table(name).put_many(rows(range(3), n))
        if n == 1:
            parts.commit(begun.transaction_id, {0: 0}, application=name, version=7)
            continue
        with pytest.raises(TransactionAborted) as repeated:
            parts.commit(begun.transaction_id, {0: 0}, application=name, version=7)
        assert repeated.value.cause == "repeated"
    assert stored(orders)[:3] == [(0, 1), (1, 1), (2, 1)]


def test_one_whose_stager_is_gone_is_aborted_and_one_that_is_kept_alive_is_not(client: Client, orders: Table) -> None:
    name, parts = orders.full_name, client.large_transactions
    gone = parts.begin([name], ttl_s=1)
    with client.large_transaction([name], ttl_s=1) as kept:
        kept.table(name).put_many(rows(range(3), 1))
        wait_until(lambda: parts.get(gone.transaction_id).state == "aborted", "it has expired")
    assert parts.get(gone.transaction_id).cause == "expired"
    with pytest.raises(TransactionAborted), parts.staging(gone.transaction_id) as staging:
        staging.table(name).put_many(rows(range(3), 2))
    assert stored(orders)[:3] == [(0, 1), (1, 1), (2, 1)]


def test_a_row_that_has_changed_since_it_began_is_a_conflict_where_that_matters(client: Client, orders: Table) -> None:
    name = orders.full_name
    with pytest.raises(WriteConflict), client.large_transaction([name]) as txn:
        orders.put({"id": 3, "n": 9})
        txn.table(name).put_many(rows(range(3, 4), 1), mode="replace")
    with client.large_transaction([name]) as txn:
        orders.put({"id": 3, "n": 10})
        txn.table(name).put_many(rows(range(3, 4), 1))
    assert stored(orders)[3] == (3, 1)


def test_an_operator_lists_and_aborts_them(
    client: Client,
    orders: Table,
    server: ServerProcess,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CORTADO_ENDPOINTS", server.endpoint)
    name, parts = orders.full_name, client.large_transactions
    begun = parts.begin([name], label="stuck")
    assert run(["txn", "list", "-o", "json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["label"] for each in listed if each["transaction_id"] == begun.transaction_id] == ["stuck"]
    assert run(["txn", "list"]) == 0
    assert name in capsys.readouterr().out
    assert run(["txn", "abort", begun.transaction_id, "--dry-run"]) == 0
    assert "would abort" in capsys.readouterr().out
    assert parts.get(begun.transaction_id).state == "open"
    for _ in range(2):
        assert run(["txn", "abort", begun.transaction_id, "--yes"]) == 0
        assert "aborted: operator" in capsys.readouterr().out
    assert run(["txn", "abort", "ab" * 16, "--yes"]) == 3
    assert run(["txn", "abort", "nonsense", "--yes"]) == 2


def test_stubs_are_enough_to_stage_to_keep_alive_and_to_commit(
    client: Client, orders: Table, server: ServerProcess
) -> None:
    wire = Wire(server.endpoint)
    database, _, table = orders.full_name.partition(".")
    calls = LargeTransactionsStub(wire.channel)
    own = os.urandom(16)
    tables = [pb.TransactionTable(database=database, table=table)]
    begin = pb.BeginLargeTransactionRequest(transaction_id=own, tables=tables, label="by stubs")
    assert calls.Begin(begin, timeout=10).transaction == calls.Begin(begin, timeout=10).transaction
    staging = documents_pb2.Staging(transaction_id=own, task=1)
    start = documents_pb2.BulkStart(
        table=table_name(orders.full_name), mode=documents_pb2.BULK_MODE_UPSERT, staging=staging
    )
    lines = [json.dumps(each) for each in rows(range(3), 8)]
    chunk = documents_pb2.BulkChunk(sequence=1, json_rows=lines)
    requests = [documents_pb2.BulkRequest(start=start), documents_pb2.BulkRequest(chunk=chunk)]
    [reply] = wire.documents.Bulk(iter(requests), timeout=10)
    assert (reply.written, list(reply.errors)) == (3, [])
    wire.collection.KeepLease(collection_pb2.KeepLeaseRequest(lease_id=own), timeout=10)
    assert stored(orders)[:3] == [(0, 0), (1, 0), (2, 0)]
    commit = pb.CommitLargeTransactionRequest(transaction_id=own, tasks=[1], attempts=[0])
    done = calls.Commit(commit, timeout=10).transaction
    assert done.state == pb.LargeTransaction.COMMITTED
    assert stored(orders, timestamp_of(done.committed))[:3] == [(0, 8), (1, 8), (2, 8)]
    assert calls.Commit(commit, timeout=10).transaction.committed == done.committed
    assert own in [each.transaction_id for each in calls.List(pb.ListLargeTransactionsRequest()).transactions]
    assert common_pb2.Timestamp() != done.committed
