"""Whether a commit has happened whose answer was lost: exactly one of yes and never, and the data agrees."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from cortado import errors
from cortado.proto.v1 import cluster_pb2, common_pb2, kv_pb2, transactions_pb2
from support.cluster import Cluster, running_cluster
from support.grpc_errors import from_rpc_error, was_answered
from support.server_process import ServerProcess, running_server, wait_until
from support.wire import Wire, put_pair, refused, timestamp_of

pytestmark = pytest.mark.process

RACES = 50
FUTURE = b"\0\0" + (1 << 47).to_bytes(6) + bytes(12)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("settle") / "data") as server:
        yield server
        assert "Traceback" not in server.log, server.log


@pytest.fixture(scope="module")
def wire(server: ServerProcess) -> Wire:
    return Wire(server.endpoint)


def new_id(wire: Wire) -> bytes:
    return bytes(timestamp_of(wire.cluster.Clock(cluster_pb2.ClockRequest()).now)) + os.urandom(8)


def commit_request(key: bytes, request_id: bytes, **more: Any) -> transactions_pb2.CommitRequest:
    """Counts under ``key``, so that a second time would show."""
    add = common_pb2.Operation(add_pair=common_pb2.KvAdd(namespace="settled", key=key, delta=1))
    return transactions_pb2.CommitRequest(operations=[add], request_id=request_id, **more)


def settle(wire: Wire, request_id: bytes, timeout_s: float = 20) -> transactions_pb2.SettleResponse:
    request = transactions_pb2.SettleRequest(request_id=request_id)
    return wire.transactions.Settle(request, timeout=timeout_s)  # type: ignore[no-any-return]


def count(wire: Wire, key: bytes) -> int:
    value = wire.kv.Get(kv_pb2.KvGetRequest(namespace="settled", key=key), timeout=20).pair.value
    return int.from_bytes(value)


def test_a_commit_that_happened_is_answered_as_it_was(wire: Wire) -> None:
    once = new_id(wire)
    done = wire.transactions.Commit(commit_request(b"happened", once))
    for _ in range(2):
        settled = settle(wire, once)
        assert settled.happened
        assert settled.timestamp == done.header.timestamp
        assert transactions_pb2.CommitResponse.FromString(settled.reply) == done
    assert wire.transactions.Commit(commit_request(b"happened", once)) == done
    assert count(wire, b"happened") == 1


def test_a_commit_that_never_came_never_will(wire: Wire) -> None:
    once = new_id(wire)
    for _ in range(2):
        settled = settle(wire, once)
        assert not settled.happened
        assert not settled.HasField("timestamp")
        assert settled.reply == b""
    for _ in range(2):
        error = refused(lambda: wire.transactions.Commit(commit_request(b"never", once)))
        assert isinstance(error, errors.TransactionAborted)
        assert error.cause == "settled"
    assert not settle(wire, once).happened
    assert count(wire, b"never") == 0


def test_a_commit_that_was_refused_never_happens_after_it_was_settled(wire: Wire) -> None:
    once = new_id(wire)
    check = common_pb2.KvCheck(namespace="settled", key=b"lock", condition=common_pb2.Condition(absent=True))
    request = commit_request(b"refused", once)
    request.operations.add().check_pair.CopyFrom(check)
    wire.commit(put_pair("settled", b"lock"))
    assert isinstance(refused(lambda: wire.transactions.Commit(request)), errors.ConditionFailed)
    assert not settle(wire, once).happened
    wire.commit(common_pb2.Operation(delete_pair=common_pb2.KvDelete(namespace="settled", key=b"lock")))
    assert isinstance(refused(lambda: wire.transactions.Commit(request)), errors.TransactionAborted)
    assert count(wire, b"refused") == 0


def test_any_other_write_with_an_id_can_be_settled(wire: Wire) -> None:
    happened, never = new_id(wire), new_id(wire)
    put = kv_pb2.KvPutRequest(namespace="settled", key=b"put", value=b"v", request_id=happened)
    done = wire.kv.Put(put)
    assert kv_pb2.KvPutResponse.FromString(settle(wire, happened).reply) == done
    assert not settle(wire, never).happened
    put.request_id = never
    assert isinstance(refused(lambda: wire.kv.Put(put)), errors.TransactionAborted)


MALFORMED: dict[str, tuple[bytes, type[errors.CortadoError], str]] = {
    "none": (b"", errors.InvalidArgument, "request_id: must have 20 bytes"),
    "two bytes": (b"xx", errors.InvalidArgument, "(got 2 bytes)"),
    "21 bytes": (bytes(21), errors.InvalidArgument, "(got 21 bytes)"),
    "of a time far ahead": (FUTURE, errors.ClockOutOfBounds, "request_id begins with a timestamp that is ahead"),
    "of an epoch to come": (b"\0\7" + bytes(18), errors.ClockOutOfBounds, "request_id begins with a timestamp"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_an_id_that_is_none_is_refused_and_leaves_nothing(wire: Wire, what: str) -> None:
    request_id, kind, message = MALFORMED[what]
    before = wire.cluster.Status(cluster_pb2.StatusRequest()).last_index
    error = refused(lambda: settle(wire, request_id))
    assert isinstance(error, kind), repr(error)
    assert message in error.message()
    assert wire.cluster.Status(cluster_pb2.StatusRequest()).last_index == before


def test_what_is_forgotten_is_neither_known_nor_cancelled(tmp_path: Path) -> None:
    """Its id may belong to a commit that happened: to say never would be a lie, and so would a record of that."""
    with running_server(tmp_path / "data", "--limit.remember-requests-max", "3") as server:
        wire = Wire(server.endpoint)
        happened, never = new_id(wire), new_id(wire)
        wire.transactions.Commit(commit_request(b"forgotten", happened))
        for i in range(10):
            wire.transactions.Commit(commit_request(b"%d" % i, new_id(wire)))
        # Results are forgotten as entries are applied.
        wait_until(lambda: has_applied_all(wire), "all of it is applied")
        for once in (happened, never):
            for _ in range(2):
                error = refused(lambda once=once: settle(wire, once))
                assert isinstance(error, errors.OutcomeUnknown), repr(error)
                assert "too old" in error.message()
        error = refused(lambda: wire.transactions.Commit(commit_request(b"forgotten", happened)))
        assert isinstance(error, errors.OutcomeUnknown)
        assert count(wire, b"forgotten") == 1


def has_applied_all(wire: Wire) -> bool:
    """Whether the node has put all of its log into the state."""
    status = wire.cluster.Status(cluster_pb2.StatusRequest())
    return bool(status.applied_index == status.last_index)


def outcome(call: Any) -> Any:
    """Return a call's answer, or the error that the server ended it with."""
    error = call.exception()
    if error is None:
        return call.result()
    assert was_answered(error), error
    return from_rpc_error(error)


def commits_and_settlings(wire: Wire, order: str, key: bytes, once: bytes) -> tuple[list[Any], list[Any]]:
    """Both at once, sent in this order: "c" a commit, "s" a settling."""
    commit, settling = commit_request(key, once), transactions_pb2.SettleRequest(request_id=once)
    commits, settlings = [], []
    for each in order:
        if each == "c":
            commits.append(wire.transactions.Commit.future(commit, timeout=20))
        else:
            settlings.append(wire.transactions.Settle.future(settling, timeout=20))
    return [outcome(call) for call in commits], [outcome(call) for call in settlings]


def test_of_a_commit_and_its_settling_at_once_exactly_one_comes_first(wire: Wire) -> None:
    seen = set()
    for race in range(RACES):
        once, key = new_id(wire), b"race-%d" % race
        commits, settlings = commits_and_settlings(wire, ("cs", "sc", "scs", "csc")[race % 4], key, once)
        (happened,) = {each.happened for each in settlings}
        if happened:
            assert {each.SerializeToString() for each in commits} == {each.reply for each in settlings}
        else:
            assert all(isinstance(each, errors.TransactionAborted) for each in commits), commits
        assert count(wire, key) == int(happened)
        seen.add(happened)
    assert seen == {True, False}


# --- three nodes ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("settling")) as running:
        yield running
        assert "Traceback" not in running.logs, running.logs


def test_a_follower_settles_nothing_and_says_who_leads(cluster: Cluster) -> None:
    leader, follower = cluster.leader(), cluster.follower()
    once = new_id(Wire(cluster.addresses[leader]))
    error = refused(lambda: settle(Wire(cluster.addresses[follower]), once))
    assert isinstance(error, errors.NotLeader)
    assert cluster.addresses[leader] in str(error.fields())


def settled_in_the_end(cluster: Cluster, request_id: bytes) -> bool:
    """The present leader tells whether it has happened, to a client that asks until it knows."""
    found: list[bool] = []

    def is_settled() -> bool:
        for address in cluster.addresses.values():
            try:
                found.append(settle(Wire(address), request_id, timeout_s=2).happened)
            except grpc.RpcError:
                continue
            return True
        return False

    wait_until(is_settled, "somebody leads, and knows")
    return found[-1]


@pytest.mark.parametrize("hurt", ["kill", "cut"])
def test_what_a_lost_leader_left_unknown_the_next_one_knows(cluster: Cluster, hurt: str) -> None:
    """Commits that the leader does not answer: in its log, or on their way there. Each has happened, or never
    will; the counters agree, after the old leader is back, too."""
    for attempt in range(3):
        leader = cluster.leader()
        wire = Wire(cluster.addresses[leader])
        keys = {b"%s-%d-%d" % (hurt.encode(), attempt, i): new_id(wire) for i in range(40)}
        requests = {key: commit_request(key, once) for key, once in keys.items()}
        if hurt == "cut":
            # It appends them, and no majority ever hears of it.
            cluster.cut(leader)
        calls = {key: wire.transactions.Commit.future(request, timeout=20) for key, request in requests.items()}
        if hurt == "kill":
            for call in list(calls.values())[: 10 * attempt]:
                call.exception()
            cluster.kill(leader)
        known = {key: settled_in_the_end(cluster, once) for key, once in list(keys.items())[::-1]}
        cluster.mend()
        now = Wire(cluster.addresses[cluster.leader()])
        for key, request in requests.items():
            error = calls[key].exception()
            if error is None:
                assert known[key], "an acknowledged commit has happened"
            if known[key]:
                assert now.transactions.Commit(request, timeout=20).etag
            else:
                again = outcome(now.transactions.Commit.future(request, timeout=20))
                assert isinstance(again, errors.TransactionAborted)
            assert count(now, key) == int(known[key])
    cluster.assert_same_contents("settled")


def test_a_follower_says_of_a_large_commit_who_leads_and_the_leader_what_is_wrong(cluster: Cluster) -> None:
    leader, follower = cluster.leader(), cluster.follower()
    operations = [put_pair("settled", b"%d" % i) for i in range(500)] + [put_pair("settled", b"")]
    error = refused(lambda: Wire(cluster.addresses[follower]).commit(*operations))
    assert isinstance(error, errors.NotLeader)
    error = refused(lambda: Wire(cluster.addresses[leader]).commit(*operations))
    assert error.message() == "operations[500].key: must not be empty"
