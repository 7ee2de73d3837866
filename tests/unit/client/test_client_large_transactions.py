"""A large transaction of the client: begun, kept alive beside its block, committed or aborted at its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cortado.errors import ConditionFailed, InvalidArgument, OutcomeUnknown, TooLarge, TransactionAborted, Unsupported
from cortado.proto.v1 import collection_pb2, common_pb2, documents_pb2
from cortado.proto.v1 import large_transactions_pb2 as pb
from cortado.store.client import Client
from cortado.store.clock.timestamp import Timestamp
from cortado.store.wire.rpc_errors import to_row_error
from support.faces import FACES, open_client
from support.fake_server import FakeServer, break_off, header
from support.server_process import wait_until

AT = Timestamp(0, 5_000, 7)
TABLE = "shop.orders"
BATCH = (1, b"\x02", b"\x01\x00\x00\x00")


def answers(state: pb.LargeTransaction.State, **more: Any) -> Any:
    def answer(request: Any, _context: Any) -> pb.LargeTransactionResponse:
        found = pb.LargeTransaction(transaction_id=request.transaction_id, state=state, **more)
        return pb.LargeTransactionResponse(header=header(), transaction=found)

    return answer


COMMITTED = answers(pb.LargeTransaction.COMMITTED, committed=common_pb2.Timestamp(wall_ms=5_000, logical=7))


def staged(requests: Any, _context: Any) -> Iterator[documents_pb2.BulkResponse]:
    for request in requests:
        if request.HasField("chunk"):
            yield documents_pb2.BulkResponse(header=header(), sequence=request.chunk.sequence, written=1)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().running() as running:
        running.handlers["LargeTransactions.Begin"] = answers(pb.LargeTransaction.OPEN)
        running.handlers["LargeTransactions.Commit"] = COMMITTED
        running.handlers["LargeTransactions.Abort"] = answers(pb.LargeTransaction.ABORTED, cause="operator")
        running.handlers["Collection.KeepLease"] = lambda request, context: collection_pb2.KeepLeaseResponse(
            header=header()
        )
        running.handlers["Documents.Bulk"] = staged
        yield running


@pytest.fixture(params=FACES)
def client(server: FakeServer, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint) as opened:
        yield opened


def test_it_is_begun_kept_alive_and_committed_under_one_id(client: Client, server: FakeServer) -> None:
    with client.large_transaction([TABLE], label="nightly", ttl_s=1) as txn:
        assert txn.table(TABLE).put_batches([BATCH]).written == 1
        assert txn.timestamp is None
        wait_until(lambda: len(server.calls("Collection.KeepLease")) >= 2, "it was kept alive twice")
    assert txn.timestamp == AT
    [begun], [committed] = server.calls("LargeTransactions.Begin"), server.calls("LargeTransactions.Commit")
    kept = {each.lease_id for each in server.calls("Collection.KeepLease")}
    assert {begun.transaction_id, committed.transaction_id} == kept == {bytes.fromhex(txn.transaction_id)}
    assert (begun.ttl_ms, begun.label) == (1_000, "nightly")
    assert [(each.database, each.table) for each in begun.tables] == [("shop", "orders")]
    assert (list(committed.tasks), list(committed.attempts)) == ([0], [0])
    assert server.calls("LargeTransactions.Abort") == []


def test_a_bulk_load_in_it_says_for_what_it_is_and_one_beside_it_does_not(client: Client, server: FakeServer) -> None:
    starts = []

    def keep_start(requests: Any, context: Any) -> Iterator[documents_pb2.BulkResponse]:
        starts.append(next(requests).start)
        yield from staged(requests, context)

    server.handlers["Documents.Bulk"] = keep_start
    with client.large_transactions.staging("ab" * 16, task=7, attempt=3) as staging:
        staging.table(TABLE).put_batches([BATCH])
        client.table(TABLE).put_batches([BATCH])
    expected = documents_pb2.Staging(transaction_id=b"\xab" * 16, task=7, attempt=3)
    assert (starts[0].staging, starts[1].HasField("staging")) == (expected, False)


def test_an_exception_aborts_and_goes_on(client: Client, server: FakeServer) -> None:
    with pytest.raises(ZeroDivisionError), client.large_transaction([TABLE]) as txn:
        _ = 1 / 0
    [aborted] = server.calls("LargeTransactions.Abort")
    assert aborted.transaction_id.hex() == txn.transaction_id
    assert server.calls("LargeTransactions.Commit") == []
    server.handlers["LargeTransactions.Abort"] = lambda request, context: break_off(context)
    with pytest.raises(ZeroDivisionError), client.with_timeout(1).large_transaction([TABLE]):
        _ = 1 / 0


def test_a_refused_row_ends_the_load_since_the_transaction_would_lack_it(client: Client, server: FakeServer) -> None:
    def refuse_rows(requests: Any, _context: Any) -> Iterator[documents_pb2.BulkResponse]:
        for request in requests:
            if request.HasField("chunk"):
                errors = [to_row_error(0, ConditionFailed("k", "absent", "present"))]
                yield documents_pb2.BulkResponse(header=header(), sequence=request.chunk.sequence, errors=errors)

    server.handlers["Documents.Bulk"] = refuse_rows
    assert client.table(TABLE).put_batches([BATCH]).refused == 1
    with pytest.raises(ConditionFailed), client.large_transaction([TABLE]) as txn:
        txn.table(TABLE).put_batches([BATCH])
    assert len(server.calls("LargeTransactions.Abort")) == 1


def test_a_lost_answer_of_a_commit_is_asked_for_again(client: Client, server: FakeServer) -> None:
    lost = [1]

    def answer(request: Any, context: Any) -> Any:
        if lost:
            lost.pop()
            break_off(context)
        return COMMITTED(request, context)

    server.handlers["LargeTransactions.Commit"] = answer
    with client.large_transaction([TABLE]) as txn:
        pass
    first, again = server.calls("LargeTransactions.Commit")
    assert first == again
    assert txn.timestamp == AT


def test_a_commit_of_unknown_outcome_may_be_repeated_after_the_block(client: Client, server: FakeServer) -> None:
    server.handlers["LargeTransactions.Commit"] = lambda request, context: break_off(context)
    with pytest.raises(OutcomeUnknown), client.with_timeout(1).large_transaction([TABLE]) as txn:
        pass
    assert txn.timestamp is None
    assert server.calls("LargeTransactions.Abort") == []
    server.handlers["LargeTransactions.Commit"] = COMMITTED
    assert txn.commit() == txn.timestamp == AT


def test_one_that_was_aborted_says_why_when_it_is_to_be_committed(client: Client, server: FakeServer) -> None:
    server.handlers["LargeTransactions.Commit"] = answers(pb.LargeTransaction.ABORTED, cause="expired")
    with pytest.raises(TransactionAborted) as aborted, client.large_transaction([TABLE]):
        pass
    assert aborted.value.cause == "expired"


def test_it_is_used_in_its_block_once_and_through_no_view(client: Client, server: FakeServer) -> None:
    with client.large_transaction([TABLE]) as txn:
        table = txn.table(TABLE)
        with pytest.raises(Unsupported, match="watching in a large transaction"):
            table.watch()
    with pytest.raises(Unsupported, match="outside of its block"):
        table.put_batches([BATCH])
    with pytest.raises(Unsupported, match="entering a large transaction again"), txn:
        pass
    with pytest.raises(Unsupported, match="a large transaction through a view of the past"):
        client.at(AT).large_transaction([TABLE])
    with client.transaction() as small, pytest.raises(Unsupported, match="writing in a transaction"):
        small.table(TABLE).put_batches([BATCH])


@pytest.mark.parametrize(
    ("arguments", "options", "field"),
    [
        ((TABLE,), {}, "tables"),
        (([],), {}, "tables"),
        (([7],), {}, "tables[0]"),
        (([f"shop.t{i}" for i in range(101)],), {}, "tables"),
        (([TABLE],), {"label": "x" * 201}, "label"),
        (([TABLE],), {"ttl_s": 0.5}, "ttl_s"),
    ],
)
def test_wrong_arguments_of_a_begin_are_named_before_anything_is_sent(
    client: Client, server: FakeServer, arguments: Any, options: dict[str, Any], field: str
) -> None:
    for begin in (client.large_transaction, client.large_transactions.begin):
        with pytest.raises(InvalidArgument) as refused:
            begin(*arguments, **options)
        assert refused.value.field == field
    assert server.calls("LargeTransactions.Begin") == []


def test_wrong_arguments_of_the_parts_are_named_before_anything_is_sent(client: Client, server: FakeServer) -> None:
    parts = client.large_transactions
    whole = "ab" * 16
    for field, call in {
        "transaction_id": lambda: parts.commit("ab", {0: 0}),
        "task": lambda: parts.staging(whole, task=1 << 20),
        "attempt": lambda: parts.commit(whole, {0: 1 << 12}),
        "attempts": lambda: parts.commit(whole, [(0, 0)]),  # type: ignore[arg-type]
        "application": lambda: parts.commit(whole, {}, application="x" * 201),
        "version": lambda: parts.commit(whole, {}, version=1),
    }.items():
        with pytest.raises(InvalidArgument) as refused:
            call()
        assert refused.value.field == field
    with pytest.raises(TooLarge):
        parts.commit(whole, dict.fromkeys(range(100_001), 0))
    assert server.requests == []


def test_the_parts_send_what_they_are_given(client: Client, server: FakeServer) -> None:
    parts = client.large_transactions
    begun = parts.begin([TABLE, TABLE, "shop.items"], transaction_id="cd" * 16)
    assert (begun.transaction_id, begun.state, begun.committed) == ("cd" * 16, "open", None)
    [asked] = server.calls("LargeTransactions.Begin")
    assert [each.table for each in asked.tables] == ["orders", "items"]
    assert parts.commit("cd" * 16, {3: 1, 1: 0}, application="stream", version=9) == AT
    [committed] = server.calls("LargeTransactions.Commit")
    assert dict(zip(committed.tasks, committed.attempts, strict=True)) == {3: 1, 1: 0}
    assert (committed.application, committed.version) == ("stream", 9)
    assert parts.abort("cd" * 16).cause == "operator"
