"""How a transaction ends: at its commit, after a lost answer, and when a function runs until it commits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cortado.errors import (
    ConditionFailed,
    CortadoError,
    InvalidArgument,
    OutcomeUnknown,
    SnapshotTooOld,
    TransactionAborted,
    Unavailable,
    Unsupported,
)
from cortado.proto.v1 import common_pb2, transactions_pb2
from cortado.store.client import AsyncClient, Client
from cortado.store.client.runtime import Environment
from cortado.store.clock.timestamp import Timestamp
from support.commits import COMMITTED, CONFLICT, answering, run_adds
from support.faces import FACES, open_client, run_core
from support.fake_server import FakeServer, Handler, header

# No server answers the first attempt, so the refusal of the second one decides nothing.
LOST = (ConnectionError, ConditionFailed("k", "absent", "present"))


def settled(*, happened: bool) -> Handler:
    reply = transactions_pb2.SettleResponse(header=header(3_000))
    if happened:
        reply = transactions_pb2.SettleResponse(
            header=header(3_000),
            happened=True,
            timestamp=common_pb2.Timestamp(wall_ms=2_000),
            reply=COMMITTED.SerializeToString(),
        )
    return lambda request, context: reply


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().running() as running:
        running.handlers["Transactions.Commit"] = answering(None)
        yield running


@pytest.fixture(params=FACES)
def client(server: FakeServer, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint, timeout_s=5) as opened:
        yield opened


def write(client: Client) -> Any:
    with client.transaction() as txn:
        txn.kv("n").add(b"k", 5)
    return txn


# --- an answer that is lost -------------------------------------------------------------------------------------


def test_a_commit_whose_answer_is_lost_is_sent_again_under_its_id(server: FakeServer, client: Client) -> None:
    server.handlers["Transactions.Commit"] = answering(ConnectionError, None)
    assert write(client).etag == "0.2000.0"
    first, second = server.calls("Transactions.Commit")
    assert first == second


def test_an_outcome_that_stays_open_is_asked_for_and_it_happened(server: FakeServer, client: Client) -> None:
    server.handlers |= {"Transactions.Commit": answering(*LOST), "Transactions.Settle": settled(happened=True)}
    txn = write(client)
    assert (txn.etag, txn.timestamp, txn.sums) == ("0.2000.0", Timestamp(0, 2_000, 0), [5])
    [settle] = server.calls("Transactions.Settle")
    assert settle.request_id == server.calls("Transactions.Commit")[0].request_id


@pytest.mark.parametrize("refusal", [LOST[1], CONFLICT])
def test_an_outcome_that_stays_open_is_asked_for_and_it_never_will_happen(
    server: FakeServer, client: Client, refusal: CortadoError
) -> None:
    """A conflict is asked for, too. One that rests on a condition may be gone when the first attempt arrives."""
    server.handlers |= {
        "Transactions.Commit": answering(ConnectionError, refusal),
        "Transactions.Settle": settled(happened=False),
    }
    with pytest.raises(TransactionAborted) as aborted:
        write(client)
    assert aborted.value.cause == "settled"


def test_the_outcome_is_unknown_only_where_nobody_can_be_asked_for_it_either(
    server: FakeServer, client: Client
) -> None:
    server.handlers |= {
        "Transactions.Commit": answering(*LOST),
        "Transactions.Settle": answering(Unsupported("settling")),
    }
    with pytest.raises(OutcomeUnknown, match="asking what became of it failed, too: settling") as unknown:
        write(client)
    assert unknown.value.request_id == server.calls("Transactions.Commit")[0].request_id.hex()


def test_settling_takes_its_time_from_that_of_the_commit(server: FakeServer) -> None:
    """Answers are lost until the time of the commit is over. The rest of it is for settling."""
    now_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    server.handlers |= {
        "Transactions.Commit": answering(ConnectionError),
        "Transactions.Settle": settled(happened=True),
    }
    environment = Environment(monotonic_s=lambda: now_s, sleep_s=sleep, random=lambda: 1.0)
    with Client(server.endpoint, timeout_s=8, environment=environment) as client:
        assert write(client).etag == "0.2000.0"
    assert 4 < now_s <= 6


# --- the commit is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("refusal", [CONFLICT, ConditionFailed("k", "absent", "present")])
def test_a_refused_commit_is_the_end_of_a_transaction(
    server: FakeServer, client: Client, refusal: CortadoError
) -> None:
    server.handlers["Transactions.Commit"] = answering(refusal)
    txn = client.transaction()
    txn.kv("n").put(b"k", b"v")
    with pytest.raises(type(refusal)):
        txn.commit()
    with pytest.raises(Unsupported, match="its commit had no success"):
        txn.commit()
    assert (len(server.calls("Transactions.Commit")), txn.etag) == (1, "")


def test_a_commit_that_is_cancelled_is_the_end_of_a_transaction(server: FakeServer) -> None:
    """Its outcome is unknown, as of any write that is cancelled."""
    asked, answer = threading.Event(), threading.Event()

    def slow(request: Any, context: Any) -> transactions_pb2.CommitResponse:
        asked.set()
        assert answer.wait(10)
        return COMMITTED

    async def cancelled() -> None:
        async with AsyncClient(server.endpoint, timeout_s=10) as client:
            txn = client.transaction()
            await txn.kv("n").put(b"k", b"v")
            commit = asyncio.create_task(txn.commit())
            await asyncio.to_thread(asked.wait, 10)
            commit.cancel()
            with pytest.raises(asyncio.CancelledError):
                await commit
            with pytest.raises(Unsupported, match="after its end"):
                await txn.commit()
            answer.set()

    server.handlers["Transactions.Commit"] = slow
    asyncio.run(cancelled())
    assert len(server.calls("Transactions.Commit")) == 1


# --- run --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "runs"),
    [
        ((None,), 1),
        ((CONFLICT, CONFLICT, None), 3),
        ((TransactionAborted("settled"), None), 2),
        ((SnapshotTooOld("0.1.0", "0.2.0"), CONFLICT, None), 3),
    ],
)
def test_a_function_runs_again_where_others_were_faster(
    server: FakeServer, client: Client, ends: tuple[Any, ...], runs: int
) -> None:
    server.handlers["Transactions.Commit"] = answering(*ends)
    assert run_adds(client) == list(range(1, runs + 1))
    ids = [request.request_id for request in server.calls("Transactions.Commit")]
    assert len(set(ids)) == runs, "each is a transaction of its own"


def test_a_function_runs_again_where_its_commit_was_cancelled_and_not_where_it_happened(
    server: FakeServer, client: Client
) -> None:
    server.handlers |= {"Transactions.Commit": answering(*LOST), "Transactions.Settle": settled(happened=True)}
    assert run_adds(client) == [1]
    server.handlers |= {
        "Transactions.Commit": answering(*LOST, None),
        "Transactions.Settle": settled(happened=False),
    }
    assert run_adds(client) == [1, 2]


@pytest.mark.parametrize(
    ("refusal", "runs"),
    [
        (ConditionFailed("k", "absent", "present"), 1),
        (CONFLICT, 3),
        (SnapshotTooOld("0.1.0", "0.2.0"), 2),
    ],
)
def test_what_will_not_change_and_the_last_attempt_are_raised(
    server: FakeServer, client: Client, refusal: CortadoError, runs: int
) -> None:
    server.handlers["Transactions.Commit"] = answering(refusal)
    with pytest.raises(type(refusal)):
        run_adds(client, attempts=3)
    assert len(server.calls("Transactions.Commit")) == runs


def test_an_exception_of_the_function_rolls_back_and_is_raised(server: FakeServer) -> None:
    def fail(txn: Any) -> None:
        txn.kv("n").put(b"k", b"v")
        raise KeyError

    with Client(server.endpoint, timeout_s=5) as client:
        with pytest.raises(KeyError):
            client.run(fail)
        assert client.run(lambda txn: txn.kv("n").put(b"k", b"v"), isolation="serializable") is None
        assert client.run(lambda txn: "nothing written") == "nothing written"
    assert len(server.calls("Transactions.Commit")) == 1


def test_a_function_of_the_other_face_is_refused_and_nothing_is_sent(server: FakeServer) -> None:
    async def awaits(txn: Any) -> None:
        await txn.kv("n").put(b"k", b"v")

    def calls(txn: Any) -> None:
        txn.kv("n")

    with Client(server.endpoint, timeout_s=5) as client:
        with pytest.raises(InvalidArgument, match="fn: must be no coroutine function"):
            client.run(awaits)
        with pytest.raises(InvalidArgument, match="fn: must be a coroutine function"):
            run_core(client, client._core.run(calls))  # type: ignore[arg-type]
    assert server.calls("Transactions.Commit") == []


def test_a_function_may_end_its_transaction_itself(server: FakeServer) -> None:
    def commits(txn: Any) -> str:
        txn.kv("n").put(b"k", b"v")
        return str(txn.commit())

    def gives_up(txn: Any) -> str:
        txn.kv("n").put(b"k", b"v")
        txn.rollback()
        return "given up"

    with Client(server.endpoint, timeout_s=5) as client:
        assert client.run(commits) == "0.2000.0"
        assert client.run(gives_up) == "given up"
    assert len(server.calls("Transactions.Commit")) == 1


def test_what_cannot_be_reached_is_not_a_matter_of_conflicts(server: FakeServer) -> None:
    server.stop()
    with Client(server.endpoint, timeout_s=0.2) as client, pytest.raises(Unavailable):
        run_adds(client)
