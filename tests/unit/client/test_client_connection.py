"""The connection against a server in this process: retries, deadlines, ids, resumed and cancelled streams."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import grpc
import pytest

from cortado.errors import (
    Cancelled,
    ClockOutOfBounds,
    ConditionFailed,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    OutcomeUnknown,
    TooLarge,
    Unavailable,
    Unsupported,
)
from cortado.proto.v1 import cluster_pb2, common_pb2, kv_pb2
from cortado.store.client.client import Client
from cortado.store.client.request_ids import RECENT_S
from cortado.store.client.runtime import Environment
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.packing import join
from support.faces import FACES, open_client, run_core
from support.fake_server import FakeServer, break_off, header, refuse
from support.server_process import wait_until

TIMEOUTS_S = (0.1, 0.4, 1.6, 6.4, 25.6)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().running() as running:
        yield running


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    """Return the face: the same holds for threads and for tasks."""
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["alone", "merged"])
def client(server: FakeServer, face: str, request: pytest.FixtureRequest) -> Iterator[Client]:
    """Yield a client with gRPC calls, and one with merged calls. Both behave alike."""
    with open_client(face, server.endpoint, timeout_s=5, coalesce=request.param) as opened:
        opened.clock()  # A server that was never reached is asked by a call of its own.
        server.requests.clear()
        yield opened


def failing_first(times: int, reply: Any, end: Any) -> Any:
    left = [times]

    def handler(request: Any, context: grpc.ServicerContext) -> Any:
        if left[0] > 0:
            left[0] -= 1
            end(context)
        return reply

    return handler


def put_reply(etag: str = "0.1000.1") -> kv_pb2.KvPutResponse:
    return kv_pb2.KvPutResponse(header=header(), etag=etag)


def test_a_read_is_repeated_while_the_server_is_unavailable(server: FakeServer, client: Client) -> None:
    server.handlers["KeyValue.Get"] = failing_first(3, kv_pb2.KvGetResponse(header=header()), break_off)
    assert client.kv("n").get(b"k") is None
    assert len(server.calls("KeyValue.Get")) == 4


def test_every_attempt_of_a_write_carries_the_same_request_id(server: FakeServer, client: Client) -> None:
    server.handlers["KeyValue.Put"] = failing_first(2, put_reply(), break_off)
    assert client.kv("n").put(b"k", b"v") == "0.1000.1"
    ids = [request.request_id for request in server.calls("KeyValue.Put")]
    assert len(ids) == 3
    assert len(set(ids)) == 1


def test_two_writes_have_two_request_ids_that_begin_with_the_servers_time(server: FakeServer, client: Client) -> None:
    server.handlers["KeyValue.Put"] = lambda request, context: put_reply()
    client.kv("n").put(b"k", b"v")
    client.kv("n").put(b"k", b"v")
    first, second = (request.request_id for request in server.calls("KeyValue.Put"))
    assert first != second
    assert len(first) == 20
    assert first[:12] == second[:12] == bytes(Timestamp(0, 1_000, 0))


def test_the_leader_is_asked_for_the_time_of_an_id(server: FakeServer, client: Client) -> None:
    """Another node's clock may be wrong."""
    server.handlers["KeyValue.Put"] = lambda request, context: kv_pb2.KvPutResponse(header=header())
    client.kv("c").put(b"k", b"v")
    [asked] = server.calls("Cluster.Clock")
    assert asked.at_leader


def test_a_write_whose_id_is_ahead_of_the_leaders_clock_is_sent_once_more_with_the_leaders_time(
    server: FakeServer, client: Client
) -> None:
    def put(request: kv_pb2.KvPutRequest, context: grpc.ServicerContext) -> kv_pb2.KvPutResponse:
        if len(server.calls("KeyValue.Put")) == 1:
            refuse(context, ClockOutOfBounds(5_000, 1_000))
        return kv_pb2.KvPutResponse(header=header())

    server.handlers["KeyValue.Put"] = put
    client.kv("c").put(b"k", b"v")
    first, second = server.calls("KeyValue.Put")
    assert first.request_id != second.request_id
    assert len(server.calls("Cluster.Clock")) == 2


def test_after_an_id_of_the_application_s_that_is_ahead_of_the_leaders_clock_new_ids_have_the_leaders_time(
    server: FakeServer, client: Client
) -> None:
    server.handlers["Cluster.Clock"] = lambda request, context: clock_at(9_000_000)
    ahead = client.new_request_id()
    server.handlers["Cluster.Clock"] = lambda request, context: clock_at(1_000)
    server.handlers["KeyValue.Put"] = lambda request, context: refuse(context, ClockOutOfBounds(5_000, 1_000))
    with pytest.raises(ClockOutOfBounds):
        client.with_request_id(ahead).kv("c").put(b"k", b"v")
    assert [each.request_id for each in server.calls("KeyValue.Put")] == [ahead]
    assert client.new_request_id()[:12] == bytes(Timestamp(0, 1_000, 0))


def clock_at(wall_ms: int) -> cluster_pb2.ClockResponse:
    return cluster_pb2.ClockResponse(header=header(), now=common_pb2.Timestamp(wall_ms=wall_ms))


def test_the_clock_is_asked_before_the_first_write_and_not_again(server: FakeServer, client: Client) -> None:
    server.handlers["KeyValue.Put"] = lambda request, context: put_reply()
    for _ in range(3):
        client.kv("n").put(b"k", b"v")
    assert len(server.calls("Cluster.Clock")) == 1


def test_the_time_of_a_read_makes_no_request_id(server: FakeServer) -> None:
    """A read's header has the time of the last write. An id from then, hours ago, would be refused as too old."""
    now_s = [0.0]
    server.handlers["KeyValue.Put"] = lambda request, context: put_reply()
    server.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(header=header(wall_ms=7))
    with Client(server.endpoint, environment=Environment(monotonic_s=lambda: now_s[0])) as client:
        for clock_ms in (1_000, 9_000_000):
            server.handlers["Cluster.Clock"] = lambda request, context, clock_ms=clock_ms: cluster_pb2.ClockResponse(
                header=header(wall_ms=7), now=common_pb2.Timestamp(wall_ms=clock_ms)
            )
            client.kv("n").get(b"k")
            client.kv("n").put(b"k", b"v")
            assert server.calls("KeyValue.Put")[-1].request_id[:12] == bytes(Timestamp(0, clock_ms, 0))
            now_s[0] += RECENT_S + 1


def test_an_error_of_the_server_arrives_with_its_fields(server: FakeServer, client: Client) -> None:
    error = ConditionFailed(key="k", expected="absent", actual="0.1.2")
    server.handlers["KeyValue.Put"] = lambda request, context: refuse(context, error)
    with pytest.raises(ConditionFailed) as raised:
        client.kv("n").put(b"k", b"v", if_absent=True)
    assert raised.value.fields() == error.fields()
    assert len(server.calls("KeyValue.Put")) == 1


def test_a_read_that_takes_too_long_is_late(server: FakeServer, client: Client) -> None:
    done = threading.Event()
    server.handlers["KeyValue.Get"] = lambda request, context: done.wait(5) and None
    with pytest.raises(DeadlineExceeded) as raised:
        client.with_timeout(0.1).kv("n").get(b"k")
    done.set()
    assert raised.value.timeout_ms == 100


def test_a_write_that_takes_too_long_is_unknown(server: FakeServer, client: Client) -> None:
    done = threading.Event()
    server.handlers["KeyValue.Put"] = lambda request, context: done.wait(5) and None
    with pytest.raises(OutcomeUnknown) as raised:
        client.with_timeout(0.5).kv("n").put(b"k", b"v")
    done.set()
    assert raised.value.request_id == server.calls("KeyValue.Put")[0].request_id.hex()


def test_a_late_call_does_not_make_the_next_ones_dearer(server: FakeServer) -> None:
    done = threading.Event()
    server.handlers["KeyValue.Get"] = lambda request, context: done.wait(5) and None
    server.handlers["KeyValue.Put"] = lambda request, context: put_reply()
    with Client(server.endpoint, timeout_s=5) as client:
        client.clock()
        with pytest.raises(DeadlineExceeded):
            client.with_timeout(0.5).kv("n").get(b"k")
        client.kv("n").put(b"k", b"v")
        done.set()
    assert server.merged == ["KeyValue.Get", "Cluster.Clock", "KeyValue.Put"]


def test_an_endpoint_where_nothing_listens_is_unavailable_and_named() -> None:
    with Client("127.0.0.1:1", timeout_s=0.3) as client, pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        client.kv("n").put(b"k", b"v")


def test_a_server_without_the_method_says_so(client: Client) -> None:
    with pytest.raises(Unsupported):
        client.databases()


def test_a_defect_of_the_server_is_internal_for_a_read_and_unknown_for_a_write(
    server: FakeServer, client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    def crash(request: Any, context: grpc.ServicerContext) -> Any:
        context.abort(grpc.StatusCode.UNKNOWN, "Exception calling application")

    server.handlers |= {"KeyValue.Get": crash, "KeyValue.Put": crash}
    with pytest.raises(Internal):
        client.kv("n").get(b"k")
    with pytest.raises(OutcomeUnknown):
        client.kv("n").put(b"k", b"v")


def test_a_message_over_grpcs_bound_is_too_large(server: FakeServer, client: Client) -> None:
    server.handlers["KeyValue.Put"] = lambda request, context: put_reply()
    with pytest.raises(TooLarge, match="a message may have 4194304: send less at a time"):
        client.kv("n").put(b"k", b"v" * (5 << 20))


@pytest.mark.parametrize(
    "endpoint", ["", "localhost", "localhost:", "localhost:0", "localhost:70000", "a b:1", "http://a:1"]
)
def test_an_endpoint_of_another_shape_is_refused(endpoint: str) -> None:
    with pytest.raises(InvalidArgument, match="endpoint"):
        Client(endpoint)


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf"), 1e9])
def test_a_timeout_out_of_bounds_is_refused(timeout_s: float) -> None:
    with pytest.raises(InvalidArgument, match="timeout_s"):
        Client(timeout_s=timeout_s)


def test_a_closed_client_says_so(client: Client) -> None:
    client.close()
    client.close()
    with pytest.raises(Cancelled, match="closed"):
        client.kv("n").get(b"k")
    with pytest.raises(Cancelled, match="closed"):
        list(client.kv("n").scan())


def test_a_call_that_is_running_when_the_client_closes_is_cancelled(server: FakeServer, client: Client) -> None:
    done = threading.Event()
    server.handlers["KeyValue.Get"] = lambda request, context: done.wait(5) and None
    closer = threading.Thread(target=lambda: (wait_until(lambda: bool(server.requests), "called"), client.close()))
    closer.start()
    with pytest.raises(Cancelled):
        client.kv("n").get(b"k")
    done.set()
    closer.join()


def test_another_cluster_behind_the_address_empties_the_caches(server: FakeServer, client: Client) -> None:
    cluster = ["fake"]
    server.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(header=header(10, cluster[0]))
    forgotten: list[bool] = []
    client._core._connection.on_other_cluster.append(lambda: forgotten.append(True))
    request_ids = client._core._connection.request_ids
    client.kv("n").get(b"k")
    request_ids.observe(Timestamp(0, 5_000, 0), time.monotonic())
    cluster[0] = "two"
    client.kv("n").get(b"k")
    assert forgotten == [True]
    assert (request_ids.newest, request_ids.is_recent) == (ZERO, False)


# --- scans -----------------------------------------------------------------------------------------------------


def pages(count: int) -> Any:
    """Return a scan of ``count`` pairs, one a reply, that breaks off after every second reply."""

    def scan(request: kv_pb2.KvScanRequest, context: grpc.ServicerContext) -> Iterator[kv_pb2.KvScanResponse]:
        start = int(request.page_token or b"0")
        for i in range(start, count):
            if i == start + 2:
                break_off(context)
            token = b"%d" % (i + 1) if i + 1 < count else b""
            yield kv_pb2.KvScanResponse(
                header=header(), pairs=[kv_pb2.KvPair(key=b"%d" % i, value=b"")], next_page_token=token
            )

    return scan


def test_a_scan_goes_on_where_its_stream_broke(server: FakeServer, client: Client) -> None:
    server.handlers["KeyValue.Scan"] = pages(7)
    assert [pair.key for pair in client.kv("n").scan()] == [b"%d" % i for i in range(7)]
    assert [request.page_token for request in server.calls("KeyValue.Scan")] == [b"", b"2", b"4", b"6"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_stream_that_breaks_behind_its_last_reply_repeats_nothing(
    server: FakeServer, client: Client, count: int
) -> None:
    def scan(request: kv_pb2.KvScanRequest, context: grpc.ServicerContext) -> Iterator[kv_pb2.KvScanResponse]:
        yield from pages(count)(request, context)
        break_off(context)

    server.handlers["KeyValue.Scan"] = scan
    assert [pair.key for pair in client.kv("n").scan()] == [b"%d" % i for i in range(count)]


def test_a_stream_that_ends_before_its_last_reply_leaves_nothing_out(server: FakeServer, client: Client) -> None:
    def scan(request: kv_pb2.KvScanRequest, context: grpc.ServicerContext) -> Iterator[kv_pb2.KvScanResponse]:
        yield next(pages(5)(request, context))

    server.handlers["KeyValue.Scan"] = scan
    assert [pair.key for pair in client.kv("n").scan()] == [b"%d" % i for i in range(5)]


def test_closing_a_scan_stops_the_servers_work(server: FakeServer, client: Client) -> None:
    def endless(request: Any, context: grpc.ServicerContext) -> Iterator[kv_pb2.KvScanResponse]:
        while context.is_active():
            yield kv_pb2.KvScanResponse(header=header(), pairs=[kv_pb2.KvPair(key=b"k")], next_page_token=b"t")

    server.handlers["KeyValue.Scan"] = endless

    async def wire_of_leader() -> Any:
        return client._core._connection.leader_channel()._wire

    wire = run_core(client, wire_of_leader())
    open_stream, held = wire.open_stream, []
    # Other code may hold the call: it must not be the garbage collector that ends it.

    def keeping(*arguments: Any) -> Any:
        held.append(open_stream(*arguments))
        return held[-1]

    wire.open_stream = keeping
    found = client.kv("n").scan()
    assert next(found).key == b"k"
    found.close()  # type: ignore[attr-defined]
    wait_until(lambda: "KeyValue.Scan" in server.cancelled, "the scan is cancelled")


def begun_in_time(client: Client, key: bytes) -> Iterator[Any]:
    """Return a scan whose first item came in time. Its timeout is as short as the load of this machine allows."""
    for timeout_s in TIMEOUTS_S:
        found = iter(client.with_timeout(timeout_s).kv("n").scan())
        with suppress(DeadlineExceeded):
            assert next(found).key == key
            return found
    raise AssertionError("no first page within 25 s")


def test_a_scan_on_which_nothing_arrives_is_late(server: FakeServer, client: Client) -> None:
    done = threading.Event()

    def silent(request: Any, context: grpc.ServicerContext) -> Iterator[kv_pb2.KvScanResponse]:
        yield kv_pb2.KvScanResponse(header=header(), pairs=[kv_pb2.KvPair(key=b"k")], next_page_token=b"t")
        done.wait(60)

    server.handlers["KeyValue.Scan"] = silent
    try:
        found = begun_in_time(client, b"k")
        with pytest.raises(DeadlineExceeded):
            next(found)
    finally:
        done.set()


def test_a_consumer_that_is_slow_is_not_late(server: FakeServer, client: Client) -> None:
    server.handlers["KeyValue.Scan"] = pages(2)
    for timeout_s in TIMEOUTS_S:
        found = iter(client.with_timeout(timeout_s).kv("n").scan())
        with suppress(DeadlineExceeded):
            assert next(found).key == b"0"
            assert not threading.Event().wait(2 * timeout_s)
            assert next(found).key == b"1"
            return
    raise AssertionError("a page was late with each timeout")


def test_a_scan_of_few_is_a_call_and_a_stream_goes_on_from_there(server: FakeServer, client: Client) -> None:
    def page(request: kv_pb2.KvScanRequest, context: grpc.ServicerContext) -> kv_pb2.KvScanResponse:
        keys, key_lengths = join([b"0", b"1"])
        packed = kv_pb2.KvPackedPairs(keys=keys, key_lengths=key_lengths, value_lengths=bytes(8), versions=bytes(24))
        return kv_pb2.KvScanResponse(header=header(), packed=packed, next_page_token=b"2" if request.limit > 2 else b"")

    server.handlers["KeyValue.ScanPage"] = page
    server.handlers["KeyValue.Scan"] = pages(4)
    assert [pair.key for pair in client.kv("n").scan(limit=2)] == [b"0", b"1"]
    assert server.calls("KeyValue.Scan") == []
    assert [pair.key for pair in client.kv("n").scan(limit=4)] == [b"0", b"1", b"2", b"3"]
    assert [request.page_token for request in server.calls("KeyValue.Scan")] == [b"2"]


def test_a_scans_arguments_are_checked_when_it_is_asked_for(client: Client) -> None:
    with pytest.raises(InvalidArgument, match="limit"):
        client.kv("n").scan(limit=-1)
    with pytest.raises(InvalidArgument, match="prefix"):
        client.kv("n").scan(b"a", prefix=b"b")


def test_a_scan_of_nothing_asks_for_nothing(server: FakeServer, client: Client) -> None:
    assert list(client.kv("n").scan(limit=0)) == []
    assert server.requests == []


class VirtualTime:
    """Time that passes only while a task waits."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.environment = Environment(monotonic_s=lambda: self.now_s, sleep_s=self.sleep)

    def sleep(self, s: float) -> None:
        self.now_s += s


def test_a_server_that_was_never_reached_is_given_up_soon_and_one_that_answered_once_is_waited_for() -> None:
    time_, server = VirtualTime(), FakeServer()
    with Client("127.0.0.1:1", timeout_s=20, environment=time_.environment) as client:
        began_s = time_.now_s
        with pytest.raises(Unavailable, match="nothing listens there"):
            client.clock()
        assert 2 <= time_.now_s - began_s <= 3.1
    with Client(server.endpoint, timeout_s=20, environment=time_.environment) as client:
        with server.running():
            client.clock()
        began_s = time_.now_s
        with pytest.raises(Unavailable):
            client.clock()
        assert 15 <= time_.now_s - began_s <= 20.1
