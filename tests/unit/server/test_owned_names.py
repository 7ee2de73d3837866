"""The names and numbers of principals are their own: under the same names no principal reaches another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from cortado.errors import (
    CortadoError,
    HoldExpired,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    TransactionAborted,
)
from cortado.proto.v1 import collection_pb2, transactions_pb2
from cortado.store.client import Client, Index
from cortado.store.client.blocking.drive import run
from cortado.store.collection import leases
from cortado.store.server import transactions_service
from cortado.store.staging import records
from support.memory_engine import MemoryEngine
from support.served_node import Served, served_node

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
TABLES = ("shop.orders", "other.rows")
NUMBER_MAX = (1 << 63) - 1
CALL_S = 5.0
ID = bytes(range(16))


@dataclass
class World:
    served: Served
    admin: Client

    @contextmanager
    def principals(self, **grants: tuple[str, str]) -> Iterator[list[Client]]:
        """Yield a client for each principal; all of them are removed after the block."""
        clients: list[Client] = []
        try:
            for name, (role, resource) in grants.items():
                issued = self.admin.admin.auth.create(name)
                assert issued.token is not None
                self.admin.admin.auth.grant(name, role, resource)
                clients.append(Client(self.served.endpoint, token=issued.token.text, timeout_s=CALL_S))
            yield clients
        finally:
            for client in clients:
                client.close()
            for name in grants:
                self.admin.admin.auth.revoke(name)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with served_node(MemoryEngine()) as served:
        with Client(served.endpoint) as anybody:
            for name in TABLES:
                anybody.create_database(name.partition(".")[0])
                anybody.schemas.register(name, SCHEMA)
                anybody.create_table(name, key=["id"])
            token = anybody.admin.auth.enable("root").token
        assert token is not None
        with Client(served.endpoint, token=token.text, timeout_s=CALL_S) as admin:
            yield World(served, admin)


ALICE, MALLORY = ("writer", "table:shop.orders"), ("writer", "table:other.rows")


def _call(client: Client, service: str, method: str, request: object) -> Any:
    connection = client._core._connection
    stub = getattr(getattr(connection.stubs, service), method)
    return run(connection.call(stub, request, timeout_s=CALL_S))


# --- large transactions ----------------------------------------------------------------------------------------


def test_under_the_same_application_no_principal_aborts_anothers_transaction(world: World) -> None:
    with world.principals(alice=ALICE, mallory=MALLORY) as (alice, mallory):
        begun = alice.large_transactions.begin(["shop.orders"], application="copy", version=1)
        other = mallory.large_transactions.begin(["other.rows"], application="copy", version=1)
        with alice.large_transactions.staging(begun.transaction_id) as staging:
            staging.table("shop.orders").put_many([{"id": 1}])
        assert alice.large_transactions.commit(begun.transaction_id, {0: 0}, application="copy", version=1)
        assert alice.table("shop.orders").get(1) is not None
        assert mallory.large_transactions.abort(other.transaction_id).cause == "operator"


def test_no_number_of_a_principal_ends_the_commits_of_another(world: World) -> None:
    with world.principals(alice=ALICE, mallory=MALLORY) as (alice, mallory):
        first = mallory.large_transactions.begin(["other.rows"], application="numbers", version=1 << 62)
        mallory.large_transactions.commit(first.transaction_id, {}, application="numbers", version=1 << 62)
        begun = alice.large_transactions.begin(["shop.orders"], application="numbers", version=2)
        assert begun.state == "open"
        alice.large_transactions.commit(begun.transaction_id, {}, application="numbers", version=2)
        again = alice.large_transactions.begin(["shop.orders"], application="numbers", version=2)
        assert (again.state, again.cause) == ("aborted", "repeated")


def test_a_number_that_no_count_reaches_is_refused(world: World) -> None:
    with world.principals(alice=ALICE) as (alice,):
        large = alice.large_transactions
        with pytest.raises(InvalidArgument, match="version: must be at most 4611686018427387904") as first:
            large.begin(["shop.orders"], application="jumps", version=NUMBER_MAX)
        assert "its first one" in first.value.message()
        begun = large.begin(["shop.orders"], application="jumps", version=7)
        large.commit(begun.transaction_id, {}, application="jumps", version=7)
        most = 7 + (1 << 53)
        with pytest.raises(InvalidArgument, match=f"must be at most {most}: .*its last one is 7"):
            large.begin(["shop.orders"], application="jumps", version=most + 1)
        begun = large.begin(["shop.orders"], application="jumps", version=most)
        with pytest.raises(InvalidArgument, match="its last one is 7"):
            large.commit(begun.transaction_id, {}, application="jumps", version=most + 1)
        large.commit(begun.transaction_id, {}, application="jumps", version=most)


def test_a_transaction_of_another_principal_is_unknown_whatever_the_rights(world: World) -> None:
    """Also for one who writes the same table, and was told its id."""
    with world.principals(alice=ALICE, mallory=ALICE, olga=("operator", "cluster")) as (alice, mallory, olga):
        begun = alice.large_transactions.begin(["shop.orders"])
        known, unknown = begun.transaction_id, ID.hex()

        def stage(name: str) -> None:
            with mallory.large_transactions.staging(name) as staging:
                staging.table("shop.orders").put_many([{"id": 5}])

        attempts: list[Callable[[str], object]] = [
            lambda name: mallory.large_transactions.commit(name, {}),
            mallory.large_transactions.abort,
            stage,
        ]
        for attempt in attempts:
            answers = []
            for name in (known, unknown):
                with pytest.raises(NotFound) as refused:
                    attempt(name)
                answers.append(refused.value.message().replace(name, "ID"))
            assert answers[0] == answers[1]
        _call(mallory, "collection", "ReleaseLease", collection_pb2.ReleaseLeaseRequest(lease_id=bytes.fromhex(known)))
        assert world.admin.large_transactions.get(known).state == "open"
        assert olga.large_transactions.abort(known).state == "aborted"
        with pytest.raises(TransactionAborted):
            alice.large_transactions.commit(known, {})


def test_transactions_have_a_share_for_each_principal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "UNRESOLVED_MAX", 4)
    with world.principals(alice=ALICE, mallory=MALLORY) as (alice, mallory):
        begun = [(mallory, mallory.large_transactions.begin(["other.rows"])) for _ in range(2)]
        with pytest.raises(ResourceExhausted, match="principal mallory has 2 of 2 transactions"):
            mallory.large_transactions.begin(["other.rows"])
        begun.append((alice, alice.large_transactions.begin(["shop.orders"])))
        for client, each in begun:
            client.large_transactions.abort(each.transaction_id)


# --- leases ----------------------------------------------------------------------------------------------------


def test_a_lease_is_kept_and_ended_by_its_principal_alone_and_by_operators(world: World) -> None:
    with world.principals(alice=ALICE, mallory=MALLORY, olga=("operator", "cluster")) as (alice, mallory, olga):
        acquire = collection_pb2.AcquireLeaseRequest(lease_id=ID, ttl_ms=60_000)
        lease = _call(alice, "collection", "AcquireLease", acquire).lease
        assert lease.principal == "alice"
        release = collection_pb2.ReleaseLeaseRequest(lease_id=ID)
        keep = collection_pb2.KeepLeaseRequest(lease_id=ID)
        for lease_id in (ID, lease.lease_id):
            with pytest.raises(HoldExpired):
                _call(mallory, "collection", "KeepLease", collection_pb2.KeepLeaseRequest(lease_id=lease_id))
            assert not mallory.admin.gc.end_hold(lease_id.hex())
        theirs = _call(mallory, "collection", "AcquireLease", acquire).lease
        assert theirs.lease_id != lease.lease_id
        _call(mallory, "collection", "ReleaseLease", release)
        for lease_id in (ID, lease.lease_id):
            _call(alice, "collection", "KeepLease", collection_pb2.KeepLeaseRequest(lease_id=lease_id))
        assert [each.principal for each in olga.admin.gc.holds()] == ["alice"]
        assert olga.admin.gc.end_hold(lease.lease_id.hex())
        with pytest.raises(HoldExpired):
            _call(alice, "collection", "KeepLease", keep)


def test_a_consumers_place_is_its_principals(world: World) -> None:
    with world.principals(alice=ALICE, mallory=MALLORY) as (alice, mallory):
        with alice.hold() as early, alice.hold() as late:
            place = alice.admin.gc.advance_consumer("feed", early.timestamp)
            other = mallory.admin.gc.advance_consumer("feed", late.timestamp)
        kept = {each.principal: each.timestamp for each in world.admin.admin.gc.holds()}
        assert kept == {"alice": place.timestamp, "mallory": other.timestamp}
        assert other.timestamp > place.timestamp
        assert not mallory.admin.gc.end_hold(place.hold_id)
        assert alice.admin.gc.end_hold(place.hold_id)
        assert mallory.admin.gc.end_hold(other.hold_id)


def test_leases_have_a_share_for_each_principal_and_what_is_held_may_be_moved(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASES_MAX", 6)
    with world.principals(alice=ALICE, mallory=MALLORY) as (alice, mallory):
        with alice.hold() as at:
            begin = at.timestamp
        places = [mallory.admin.gc.advance_consumer(f"c{each}", begin) for each in range(3)]
        with pytest.raises(ResourceExhausted, match="principal mallory has 3 of 3 holds: the 3 left"):
            mallory.admin.gc.advance_consumer("c3", begin)
        places.append(alice.admin.gc.advance_consumer("feed", begin))
        mallory.admin.gc.advance_consumer("c0", begin)
        for each in places:
            assert world.admin.admin.gc.end_hold(each.hold_id)


def test_who_has_no_role_on_anything_holds_nothing(world: World) -> None:
    with world.principals(known=ALICE) as (known,):
        world.admin.admin.auth.revoke_grant("known", *ALICE)
        calls: list[Callable[[], object]] = [
            lambda: known.hold().__enter__(),
            lambda: known.admin.gc.end_hold(ID.hex()),
            lambda: known.large_transactions.abort(ID.hex()),
        ]
        for call in calls:
            with pytest.raises(PermissionDenied, match="any role on anything"):
                call()


def test_what_was_named_while_roles_were_off_goes_on_for_those_who_may() -> None:
    with served_node(MemoryEngine()) as served, Client(served.endpoint, timeout_s=CALL_S) as anybody:
        anybody.create_database("shop")
        anybody.schemas.register("shop.orders", SCHEMA)
        anybody.create_table("shop.orders", key=["id"])
        token = anybody.admin.auth.create("alice").token
        other = anybody.admin.auth.create("mallory").token
        anybody.admin.auth.grant("alice", *ALICE)
        anybody.admin.auth.grant("mallory", "reader", "namespace:n")
        done = anybody.large_transactions.begin(["shop.orders"], application="copy", version=3)
        anybody.large_transactions.commit(done.transaction_id, {}, application="copy", version=3)
        begun = anybody.large_transactions.begin(["shop.orders"])
        _call(anybody, "collection", "AcquireLease", collection_pb2.AcquireLeaseRequest(lease_id=ID, ttl_ms=600_000))
        place = anybody.admin.gc.advance_consumer("feed", begun.start)
        anybody.admin.gc.advance_consumer("owned", begun.start, owner="a query")
        root = anybody.admin.auth.enable("root").token
        assert root is not None
        assert token is not None
        assert other is not None
        with (
            Client(served.endpoint, token=token.text, timeout_s=CALL_S) as alice,
            Client(served.endpoint, token=other.text, timeout_s=CALL_S) as mallory,
        ):
            for name in (begun.transaction_id, ID.hex()):
                with pytest.raises(NotFound):
                    mallory.large_transactions.commit(name, {})
            again = alice.large_transactions.begin(["shop.orders"], application="copy", version=3)
            assert again.cause == "repeated"
            assert alice.large_transactions.commit(begun.transaction_id, {})
            for client in (mallory, alice):
                assert client.admin.gc.advance_consumer("feed", done.start).hold_id != place.hold_id
                assert not client.admin.gc.end_hold(ID.hex())
                _call(client, "collection", "KeepLease", collection_pb2.KeepLeaseRequest(lease_id=ID))
            alice.admin.gc.advance_consumer("owned", begun.start, owner="a query")
        with Client(served.endpoint, token=root.text, timeout_s=CALL_S) as admin:
            left = [(each.consumer, each.principal) for each in admin.admin.gc.holds()]
            assert sorted(left) == [("", ""), ("feed", ""), ("feed", "alice"), ("feed", "mallory"), ("owned", "alice")]
            assert admin.admin.gc.end_hold(place.hold_id)


def test_a_principal_that_shows_its_token_keeps_its_names_while_roles_are_off() -> None:
    with served_node(MemoryEngine()) as served, Client(served.endpoint, timeout_s=CALL_S) as anybody:
        token = anybody.admin.auth.create("alice").token
        assert token is not None
        with Client(served.endpoint, token=token.text, timeout_s=CALL_S) as alice, alice.hold():
            assert [each.principal for each in anybody.admin.gc.holds()] == ["alice"]
            anybody.admin.auth.grant("alice", "reader", "namespace:n")
            anybody.admin.auth.enable("root")
            request = collection_pb2.KeepLeaseRequest(lease_id=bytes(16))
            with pytest.raises(HoldExpired):
                _call(alice, "collection", "KeepLease", request)


# --- requests --------------------------------------------------------------------------------------------------


def test_a_principal_cancels_so_many_unknown_requests_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each writes the log, and pushes out remembered answers of other requests."""
    monkeypatch.setattr(transactions_service, "CANCELLED_AT_ONCE", 2)
    monkeypatch.setattr(transactions_service, "CANCELLED_MS", 1e9)

    def settle(client: Client, request_id: bytes = b"") -> bool:
        wanted = request_id or run(client._core._connection.new_request_id(CALL_S))
        request = transactions_pb2.SettleRequest(request_id=wanted)
        return bool(_call(client, "transactions", "Settle", request).happened)

    with served_node(MemoryEngine()) as served, Client(served.endpoint, timeout_s=CALL_S) as anybody:
        assert not any(settle(anybody) for _ in range(5))
        token = anybody.admin.auth.enable("root").token
        assert token is not None
        with Client(served.endpoint, token=token.text, timeout_s=CALL_S) as admin:
            world = World(served, admin)
            with world.principals(alice=ALICE, mallory=MALLORY) as (alice, mallory):
                known = run(mallory._core._connection.new_request_id(CALL_S))
                assert not settle(mallory, known)
                assert not settle(mallory)
                with pytest.raises(ResourceExhausted, match="has cancelled 2 unknown requests at once"):
                    settle(mallory)
                assert not settle(mallory, known)
                assert not settle(alice)
                with pytest.raises(ResourceExhausted):
                    settle(mallory)


# --- jobs ------------------------------------------------------------------------------------------------------


def test_a_job_of_a_table_that_is_not_seen_is_unknown(world: World) -> None:
    world.admin.create_index("shop.orders", Index("by_id", ["id"]))
    (job,) = [each for each in world.admin.admin.jobs.list() if "shop.orders" in each.target]
    with world.principals(reader=("reader", "table:shop.orders"), mallory=MALLORY) as (reader, mallory):
        assert reader.admin.jobs.get(job.job_id).target == job.target
        with pytest.raises(PermissionDenied, match=r"owner of table:shop\.orders"):
            reader.admin.jobs.pause(job.job_id)
        calls: list[Callable[[int], object]] = [
            mallory.admin.jobs.get,
            mallory.admin.jobs.pause,
            mallory.admin.jobs.cancel,
        ]
        for call in calls:
            answers = []
            for number in (job.job_id, 999):
                with pytest.raises(CortadoError) as refused:
                    call(number)
                answers.append((type(refused.value), refused.value.message().replace(str(number), "N")))
            assert answers[0] == answers[1]
            assert answers[0][0] is NotFound
