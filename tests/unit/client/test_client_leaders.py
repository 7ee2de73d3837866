"""How the leader is found and followed, over several scripted servers in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest

from cortado.errors import ConditionFailed, DataLoss, DeadlineExceeded, NotLeader, OutcomeUnknown, Unavailable
from cortado.proto.v1 import cluster_pb2, documents_pb2, kv_pb2
from cortado.store.client import Client, Stale
from support.faces import open_client, run_core
from support.fake_server import FakeServer, break_off, header, refuse
from support.server_process import wait_until

TIMEOUT_S = 10.0

pytestmark = pytest.mark.slow


class FakeCluster:
    """Three servers: the one at ``leader`` answers; the others name it in ``term``, or no leader if it is None.

    ``named`` is the leader that the others believe in, if that is not the true one.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.servers = [FakeServer() for _ in range(3)]
        self.leader: int | None = 0
        self.named: int | None = None
        self.term = 1
        self.values: dict[bytes, bytes] = {}
        self.written: list[bytes] = []
        for place, server in enumerate(self.servers):
            server.handlers |= {
                "Cluster.Members": self._members,
                "KeyValue.Get": self._at_leader(place, self._get),
                "KeyValue.Put": self._at_leader(place, self._put),
                "KeyValue.Scan": self._scan(place),
            }
            stack.enter_context(server.running())

    @property
    def endpoint(self) -> str:
        return ",".join(server.endpoint for server in self.servers)

    def elect(self, place: int | None) -> None:
        self.leader = place
        self.term += 1

    def leader_address(self) -> str:
        place = self.leader if self.named is None else self.named
        return "" if place is None else self.servers[place].endpoint

    def check_leader(self, place: int, context: grpc.ServicerContext) -> None:
        if place != self.leader:
            refuse(context, NotLeader("this node does not lead", leader=self.leader_address()))

    def _members(self, request: Any, context: grpc.ServicerContext) -> cluster_pb2.MembersResponse:
        members = [
            cluster_pb2.MemberStatus(node_id=f"n{place}", address=server.endpoint, voter=True)
            for place, server in enumerate(self.servers)
        ]
        leads = next((each.node_id for each in members if each.address == self.leader_address()), "")
        return cluster_pb2.MembersResponse(header=header(term=self.term), members=members, leader=leads)

    def _at_leader(self, place: int, handler: Callable[[Any], Any]) -> Callable[[Any, grpc.ServicerContext], Any]:
        def handle(request: Any, context: grpc.ServicerContext) -> Any:
            if not (request.DESCRIPTOR.name == "KvGetRequest" and request.HasField("at")):
                self.check_leader(place, context)
            return handler(request)

        return handle

    def _get(self, request: kv_pb2.KvGetRequest) -> kv_pb2.KvGetResponse:
        value = self.values.get(request.key)
        pair = None if value is None else kv_pb2.KvPair(key=request.key, value=value, etag="0.1.1")
        return kv_pb2.KvGetResponse(header=header(), pair=pair)

    def _put(self, request: kv_pb2.KvPutRequest) -> kv_pb2.KvPutResponse:
        if request.request_id not in self.written:
            self.written.append(request.request_id)
            self.values[request.key] = request.value
        return kv_pb2.KvPutResponse(header=header(), etag="0.1000.1")

    def _scan(self, place: int) -> Any:
        def scan(request: kv_pb2.KvScanRequest, context: grpc.ServicerContext) -> Iterator[kv_pb2.KvScanResponse]:
            for number in range(int(request.page_token or b"0"), 6):
                self.check_leader(place, context)
                pair = kv_pb2.KvPair(key=b"%d" % number)
                token = b"%d" % (number + 1) if number < 5 else b""
                yield kv_pb2.KvScanResponse(header=header(), pairs=[pair], next_page_token=token)
                if number == 2 and place == 0:
                    self.elect(1)

        return scan


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with ExitStack() as stack:
        yield FakeCluster(stack)


@pytest.fixture(params=[("sync", False), ("sync", True), ("async", True)], ids=["alone", "merged", "async"])
def client(cluster: FakeCluster, request: pytest.FixtureRequest) -> Iterator[Client]:
    face, coalesce = request.param
    with open_client(face, cluster.endpoint, timeout_s=TIMEOUT_S, coalesce=coalesce) as opened:
        yield opened


def hang(server: FakeServer, release: threading.Event) -> None:
    """Make the server answer no request from now on, as a stopped one."""
    for name in list(server.handlers):
        if name != "Calls.Exchange":
            server.handlers[name] = lambda request, context: release.wait(10) and break_off(context)


def puts(server: FakeServer) -> list[bytes]:
    return [request.request_id for request in server.calls("KeyValue.Put")]


@pytest.mark.parametrize("leader", [0, 1, 2])
def test_calls_find_the_leader_by_what_a_follower_says(cluster: FakeCluster, client: Client, leader: int) -> None:
    cluster.leader = leader
    kv = client.kv("n")
    kv.put(b"k", b"v")
    found = kv.get(b"k")
    assert found is not None
    assert found.value == b"v"
    assert len(puts(cluster.servers[0])) == 1
    kv.put(b"k", b"w")
    # Once the leader is known, no other server is asked.
    assert len(puts(cluster.servers[0])) == (2 if leader == 0 else 1)
    assert len(set(puts(cluster.servers[leader]))) == 2


def test_one_endpoint_is_enough_to_find_the_leader(cluster: FakeCluster) -> None:
    cluster.leader = 2
    with Client(cluster.servers[0].endpoint) as client:
        client.kv("n").put(b"k", b"v")
    assert len(puts(cluster.servers[2])) == 1


def test_one_endpoint_is_enough_to_find_the_next_leader(cluster: FakeCluster) -> None:
    with Client(cluster.servers[0].endpoint, timeout_s=5) as client:
        kv = client.kv("n")
        kv.put(b"k", b"v")
        kv.put(b"k", b"v")
        wait_until(lambda: len(client._core._connection._route.addresses) == 3, "the members are known")
        cluster.elect(1)
        cluster.servers[0].stop()
        kv.put(b"k", b"w")
    assert cluster.values == {b"k": b"w"}
    assert len(puts(cluster.servers[1])) == 1


def test_a_dead_leader_is_left_for_the_next_and_a_write_keeps_its_id(cluster: FakeCluster, client: Client) -> None:
    kv = client.kv("n")
    kv.put(b"k", b"v")
    cluster.servers[0].handlers["KeyValue.Put"] = lambda request, context: (cluster.elect(1), break_off(context))
    kv.put(b"k", b"w")
    assert puts(cluster.servers[0])[-1] == puts(cluster.servers[1])[-1]
    assert cluster.values == {b"k": b"w"}


def test_followers_that_still_name_a_dead_leader_are_asked_until_they_know_better(
    cluster: FakeCluster, client: Client
) -> None:
    kv = client.kv("n")
    kv.put(b"k", b"v")
    cluster.elect(1)
    cluster.named = 0
    cluster.servers[0].stop()
    timer = threading.Timer(0.5, lambda: setattr(cluster, "named", None))
    timer.start()
    # At its deadline it would raise.
    kv.put(b"k", b"w")
    timer.join()
    assert cluster.values == {b"k": b"w"}


def test_an_election_is_waited_for(cluster: FakeCluster, client: Client) -> None:
    kv = client.kv("n")
    kv.put(b"k", b"v")
    cluster.elect(None)
    timer = threading.Timer(0.5, lambda: cluster.elect(2))
    timer.start()
    kv.put(b"k", b"w")
    timer.join()
    assert len(puts(cluster.servers[2])) >= 1
    assert cluster.values == {b"k": b"w"}


def test_a_silent_leader_is_left_when_the_others_have_another(cluster: FakeCluster, client: Client) -> None:
    kv = client.kv("n")
    kv.put(b"k", b"v")
    release = threading.Event()
    hang(cluster.servers[0], release)
    timer = threading.Timer(1.2, lambda: cluster.elect(1))
    timer.start()
    kv.put(b"k", b"w")
    release.set()
    assert cluster.values == {b"k": b"w"}
    first, *_ = puts(cluster.servers[1])
    found = kv.get(b"k")
    assert found is not None
    assert cluster.written[-1] == first


def test_a_slow_leader_is_waited_for_as_long_as_it_leads(cluster: FakeCluster, client: Client) -> None:
    put = cluster.servers[0].handlers["KeyValue.Put"]
    slow = threading.Event()

    def handle(request: Any, context: grpc.ServicerContext) -> Any:
        slow.wait(1.5)
        return put(request, context)

    cluster.servers[0].handlers["KeyValue.Put"] = handle
    client.kv("n").put(b"k", b"v")
    assert len(cluster.written) == 1
    assert not puts(cluster.servers[1])


def test_many_callers_of_a_slow_leader_ask_it_once_and_the_others_seldom(cluster: FakeCluster, client: Client) -> None:
    """Load makes answers late. More questions would make them later."""
    leader = cluster.servers[0]
    put = leader.handlers["KeyValue.Put"]
    slow, callers = threading.Event(), 8

    def handle(request: Any, context: grpc.ServicerContext) -> Any:
        slow.wait(10)
        return put(request, context)

    kv = client.kv("n")
    kv.put(b"k", b"v")
    leader.handlers["KeyValue.Put"] = handle
    for server in cluster.servers:
        server.requests.clear()
    threads = [threading.Thread(target=kv.put, args=(b"k%d" % number, b"v")) for number in range(callers)]
    began_s = time.monotonic()
    for thread in threads:
        thread.start()
    wait_until(lambda: len(cluster.servers[1].calls("Cluster.Members")) >= 3, "a member is asked who leads")
    took_s = time.monotonic() - began_s
    assert len(cluster.servers[1].calls("Cluster.Members")) <= 3 + took_s / 0.1
    slow.set()
    for thread in threads:
        thread.join()
    assert len(puts(leader)) == len(set(puts(leader))) == callers
    assert not puts(cluster.servers[1])
    assert not puts(cluster.servers[2])


def test_a_slow_call_of_any_kind_is_made_once(cluster: FakeCluster, client: Client) -> None:
    def split(request: Any, context: grpc.ServicerContext) -> documents_pb2.SplitResponse:
        threading.Event().wait(1.2)
        return documents_pb2.SplitResponse(header=header())

    cluster.servers[0].handlers["Documents.Split"] = split
    connection = client._core._connection
    reply = run_core(
        client, connection.call(connection.stubs.documents.Split, documents_pb2.SplitRequest(), timeout_s=5)
    )
    assert reply.header.node_id == "node"
    assert len(cluster.servers[0].calls("Documents.Split")) == 1


def test_a_scan_goes_on_at_the_next_leader(cluster: FakeCluster, client: Client) -> None:
    assert [pair.key for pair in client.kv("n").scan()] == [b"%d" % number for number in range(6)]
    assert [request.page_token for request in cluster.servers[1].calls("KeyValue.Scan")] == [b"3"]


def test_a_scan_at_any_member_goes_on_at_the_leader_where_that_ones_copy_is_damaged(cluster: FakeCluster) -> None:
    def damaged(request: Any, context: grpc.ServicerContext) -> Iterator[kv_pb2.KvScanResponse]:
        if not request.page_token:
            yield kv_pb2.KvScanResponse(header=header(), pairs=[kv_pb2.KvPair(key=b"0")], next_page_token=b"1")
        refuse(context, DataLoss("value", "its checksum is wrong"))

    cluster.elect(1)
    first, leader, last = cluster.servers
    for server in (first, last):
        server.handlers["KeyValue.Scan"] = damaged
    with Client(cluster.endpoint, timeout_s=10, read_from="any") as client:
        for _ in range(3):
            assert [pair.key for pair in client.kv("n").scan(at="0.1.0")] == [b"%d" % number for number in range(6)]
    assert first.calls("KeyValue.Scan")
    assert last.calls("KeyValue.Scan")
    assert [each.page_token for each in leader.calls("KeyValue.Scan")].count(b"1") == 2
    leader.handlers["KeyValue.Scan"] = damaged
    with Client(cluster.endpoint, timeout_s=10, read_from="any") as client, pytest.raises(DataLoss):
        list(client.kv("n").scan(at="0.1.0"))


def test_a_scan_at_a_silent_leader_goes_on_at_the_next(cluster: FakeCluster, client: Client) -> None:
    release = threading.Event()

    def silent(request: Any, context: grpc.ServicerContext) -> Iterator[kv_pb2.KvScanResponse]:
        yield kv_pb2.KvScanResponse(header=header(), pairs=[kv_pb2.KvPair(key=b"0")], next_page_token=b"1")
        cluster.elect(1)
        release.wait(10)

    cluster.servers[0].handlers["KeyValue.Scan"] = silent
    assert [pair.key for pair in client.kv("n").scan()] == [b"%d" % number for number in range(6)]
    release.set()


def test_what_a_new_leader_refuses_is_the_answer(cluster: FakeCluster, client: Client) -> None:
    kv = client.kv("n")
    kv.put(b"k", b"v")
    cluster.elect(1)
    error = ConditionFailed("k", "absent", "0.1.1")
    cluster.servers[1].handlers["KeyValue.Put"] = lambda request, context: refuse(context, error)
    with pytest.raises(ConditionFailed):
        kv.put(b"k", b"w", if_absent=True)


def test_without_any_leader_nothing_has_happened_and_every_node_is_named(cluster: FakeCluster, client: Client) -> None:
    kv = client.with_timeout(5).kv("n")
    kv.put(b"k", b"v")
    cluster.elect(None)
    with pytest.raises((NotLeader, Unavailable)) as raised:
        kv.put(b"k", b"w")
    for server in cluster.servers:
        assert server.endpoint in str(raised.value)
    assert cluster.values == {b"k": b"v"}


def test_a_write_that_a_dead_leader_may_have_stored_is_unknown(cluster: FakeCluster, client: Client) -> None:
    kv = client.with_timeout(1).kv("n")
    kv.put(b"k", b"v")
    cluster.servers[0].handlers["KeyValue.Put"] = lambda request, context: (cluster.elect(None), break_off(context))
    with pytest.raises(OutcomeUnknown) as raised:
        kv.put(b"k", b"w")
    assert bytes.fromhex(raised.value.request_id) == puts(cluster.servers[0])[-1]


def test_a_cluster_that_says_nothing_is_late_for_reads_and_unknown_for_writes(
    cluster: FakeCluster, client: Client
) -> None:
    client.kv("n").put(b"k", b"v")
    kv = client.with_timeout(0.5).kv("n")
    release = threading.Event()
    for server in cluster.servers:
        hang(server, release)
    with pytest.raises(DeadlineExceeded, match=" 500 ms"):
        kv.get(b"k")
    with pytest.raises(OutcomeUnknown, match=" 500 ms"):
        kv.put(b"k", b"w")
    release.set()


def test_endpoints_where_nothing_listens_are_each_named() -> None:
    with Client(["127.0.0.1:1", "127.0.0.1:2"], timeout_s=1) as client, pytest.raises(Unavailable) as raised:
        client.kv("n").put(b"k", b"v")
    assert "127.0.0.1:1: cannot reach it" in str(raised.value)
    assert "127.0.0.1:2: cannot reach it" in str(raised.value)


def test_an_endpoint_that_is_down_does_not_keep_calls_from_the_others(cluster: FakeCluster) -> None:
    cluster.leader = 1
    with Client(f"127.0.0.1:1,{cluster.servers[1].endpoint}", timeout_s=5) as client:
        client.kv("n").put(b"k", b"v")
    assert cluster.values == {b"k": b"v"}


def test_two_nodes_that_name_each_other_are_not_asked_without_a_pause(cluster: FakeCluster, client: Client) -> None:
    one, two, _ = cluster.servers
    for server, other in ((one, two), (two, one)):
        error = NotLeader("this node does not lead", leader=other.endpoint)
        server.handlers["KeyValue.Get"] = lambda request, context, error=error: refuse(context, error)
        server.handlers["Cluster.Members"] = lambda request, context: break_off(context)
    cluster.servers[2].handlers["Cluster.Members"] = lambda request, context: break_off(context)
    # Late is the last attempt, if the machine is slow.
    with pytest.raises((NotLeader, DeadlineExceeded)):
        client.with_timeout(1).kv("n").get(b"k")
    assert len(one.calls("KeyValue.Get")) + len(two.calls("KeyValue.Get")) < 60


def test_reads_that_may_be_stale_are_spread_over_the_members(cluster: FakeCluster, client: Client) -> None:
    kv = client.kv("n")
    for _ in range(6):
        kv.get(b"k", at=Stale(500))
    asked = [len(server.calls("KeyValue.Get")) for server in cluster.servers]
    assert asked == [2, 2, 2]
    assert {request.at.stale_ms for request in cluster.servers[1].calls("KeyValue.Get")} == {500}


def test_reads_at_a_time_go_to_the_leader_unless_any_member_may_answer(cluster: FakeCluster) -> None:
    for read_from, expected in (("leader", [3, 0, 0]), ("any", [1, 1, 1])):
        for server in cluster.servers:
            server.requests.clear()
        with Client(cluster.endpoint, read_from=read_from) as client:  # type: ignore[arg-type]
            for _ in range(3):
                client.kv("n").get(b"k", at="0.1.1")
        assert [len(server.calls("KeyValue.Get")) for server in cluster.servers] == expected


def test_a_member_that_is_too_stale_is_no_obstacle(cluster: FakeCluster, client: Client) -> None:
    for server in cluster.servers[1:]:
        server.handlers["KeyValue.Get"] = lambda request, context: refuse(context, Unavailable("900 ms stale"))
    kv = client.kv("n")
    for _ in range(3):
        assert kv.get(b"k", at=Stale(500)) is None


def test_a_member_that_left_is_forgotten(cluster: FakeCluster) -> None:
    stranger = "127.0.0.1:9"
    with Client(cluster.servers[0].endpoint) as client:
        route = client._core._connection._route
        assert route.learn([cluster.servers[0].endpoint, stranger]) == set()
        assert route.addresses == (cluster.servers[0].endpoint, stranger)
        assert route.learn([cluster.servers[0].endpoint]) == {stranger}
        assert route.addresses == (cluster.servers[0].endpoint,)
