"""A gateway byte by byte: bytes that are no HTTP, requests that two readers may read in two ways, and slow callers."""

from __future__ import annotations

import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado import Client
from cortado.store.client.statistics import NodeStatistics
from cortado.store.ports.open_files import raise_open_files
from support.gateway_process import Answer, GatewayProcess, gateway_process, read_answer
from support.memory import MIB, anonymous_bytes, peak_of
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = pytest.mark.process

PUT = b"PUT /v1/kv/ns/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
GET = b"GET /v1/kv/ns/there HTTP/1.1\r\nHost: localhost\r\n"
END = b"\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
LINES = b"Accept: application/x-ndjson\r\n"
ROWS = 20
ROW_BYTES = 1_000_000
FEW = {"connections-max": 8, "streams-max": 1}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("node") / "data") as server:
        with Client(server.endpoint) as client:
            client.kv("ns").put(b"there", b"value")
            for i in range(ROWS):
                client.kv("large").put(b"%03d" % i, b"x" * ROW_BYTES)
        yield server


@pytest.fixture(scope="module")
def gateway(node: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with gateway_process(node.endpoint, tmp_path_factory.mktemp("gateway"), *limits(FEW)) as running:
        yield running


@pytest.fixture(scope="module")
def hasty(node: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One that does not wait for long, for those tests alone that let it wait: each of the others might be late."""
    soon = {"head-ms": 1_000, "body-ms": 400, "stalled-ms": 1_000}
    with gateway_process(node.endpoint, tmp_path_factory.mktemp("hasty"), *limits(FEW | soon)) as running:
        yield running


def limits(values: dict[str, int]) -> list[str]:
    return [part for name, value in values.items() for part in (f"--limit.{name}", str(value))]


@pytest.fixture(autouse=True)
def serves_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """After any bytes the next caller is served, and nothing was written."""
    yield
    for name in {"gateway", "hasty"} & set(request.fixturenames):
        asked: GatewayProcess = request.getfixturevalue(name)
        assert asked.send(GET + END).body == b"value"
        assert asked.send(b"GET /v1/kv/ns/a HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 404


def is_refused(answer: Answer, status: int = 400) -> None:
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert answer.json()["reason"]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET  /v1/kv/ns/there HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/kv/ns/the re HTTP/1.1\r\nHost: localhost\r\n\r\n",
        GET + b"Bad Name: 1\r\n\r\n",
        GET + b"X: a\x00b\r\n\r\n",
        GET + b"Host: localhost\r\n\r\n",
        b"GET /v1/kv/ns/there HTTP/1.1\r\n\r\n",
        PUT + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        PUT + b"Content-Length: -1\r\n\r\n",
        PUT + b"Content-Length: 0x3\r\n\r\nabc",
        PUT + b"Content-Length: +3\r\n\r\nabc",
        PUT + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        PUT + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\nGET /v1/kv/ns/there HTTP/1.1\r\n\r\n",
        GET + b" folded: 1\r\n\r\n",
        GET + b"X: folded\r\n\tfurther\r\n\r\n",
        GET + b"X : 1\r\n\r\n",
        GET.replace(b"\r\n", b"\n") + b"\n\r\n\r\n",
        b"GET http://evil.example/v1/kv/ns/there HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/kv/ns/there HTTP/2.0\r\nHost: localhost\r\n\r\n",
        b"GET /v1/kv/ns/there\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:7621 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        PUT + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        PUT + b"Content-Length: 3, 3\r\n\r\nabc",
        PUT + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        PUT + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"GET /v1/kv/ns/there#fragment HTTP/1.1\r\nHost: localhost\r\n\r\n",
        PUT.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        PUT.replace(b"PUT", b"FOO") + CHUNKED,
        PUT + CHUNKED + b"1\r\na\r\n0\r\nIf-Match: *\r\n\r\n",
        PUT + CHUNKED + b"1\r\na\r\n0\r\n" + b"X: 1\r\n" * 20_000,
        PUT + CHUNKED + b"1\r\na\r\n0\r\nX: " + b"x" * 400_000,
        PUT + CHUNKED + b"1;" + b"x" * 400_000,
        PUT + CHUNKED + b"1\r\na\r\n" + b"0" * 400_000,
    ],
    ids=lambda each: repr(each[-40:]),
)
def test_what_is_no_request_is_refused(gateway: GatewayProcess, request_bytes: bytes) -> None:
    is_refused(gateway.send(request_bytes))


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (PUT + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 400),
        (b"GET /v1/kv/ns/there HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        (GET + b"X: " + b"x" * 100_000, 431),
        (b"GET /v1/kv/ns/" + b"a" * 100_000, 431),
        (GET + b"X: x\r\n" * 20_000 + END, 431),
        (GET + b"X: x\r\n" * 200 + END, 431),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"TRACE /v1/kv/ns/there HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"CONNECT /v1/kv/ns/there HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GET //v1/kv/ns/there HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /v1/kv/ns/a\\b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /v1/kv/ns HTTP/1.0\r\nHost: localhost\r\n" + LINES + END, 505),
        (b"GET /v1/kv/ns:watch HTTP/1.0\r\nHost: localhost\r\n\r\n", 505),
        (b"GET /v1/kv/ns/../ns/there HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /v1/kv/ns/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (PUT + b"Content-Length: 9999999999\r\n\r\n", 413),
        (PUT + b"Content-Length: 100\r\nExpect: 100-continue\r\nContent-Encoding: br\r\n\r\n", 415),
    ],
)
def test_a_request_that_is_not_for_us_is_refused(gateway: GatewayProcess, request_bytes: bytes, status: int) -> None:
    is_refused(gateway.send(request_bytes), status)


def test_a_chunk_that_lies_about_its_length_writes_nothing(gateway: GatewayProcess) -> None:
    for body in (b"3\r\nabcdef\r\n0\r\n\r\n", b"zz\r\nabc\r\n0\r\n\r\n", b"-1\r\nabc\r\n"):
        answer = gateway.send(PUT + b"Transfer-Encoding: chunked\r\n\r\n" + body)
        assert answer.status in (0, 400), answer


@pytest.mark.parametrize("kib", [29, 33, 70])
@pytest.mark.parametrize("place", ["first", "between", "last"])
def test_extensions_of_chunks_are_bounded_in_whatever_pieces_they_come(
    gateway: GatewayProcess, kib: int, place: str
) -> None:
    extension = b";x=" + b"y" * (kib << 10)
    first, between, last = (extension if place == each else b"" for each in ("first", "between", "last"))
    body = b"3%s\r\nabc\r\n" % first + b"3%s\r\ndef\r\n" % between + b"0%s\r\n\r\n" % last
    call = PUT.replace(b"/ns/a", b"/ns/extended") + CHUNKED + body
    answer = gateway.send(call)
    if kib > 32:
        is_refused(answer)
        return
    assert answer.status == 200
    assert gateway.send(*(call[at : at + 1_000] for at in range(0, len(call), 1_000))).status == 200


def test_nothing_is_read_behind_a_chunked_body(gateway: GatewayProcess) -> None:
    chunked = PUT.replace(b"/ns/a", b"/ns/chunked") + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    hidden = PUT + b"Content-Length: 3\r\n\r\nabc"
    for behind in (b"", hidden, b"\x00" * 10, b"GET / HTTP/1.1"):
        with gateway.connect() as connection:
            connection.sendall(chunked + behind)
            answer = read_answer(connection)
            assert (answer.status, answer.rest, received(connection)) == (200, b"", b"")
    # A call before it changes nothing, nor does one that is answered before its body is read.
    refused = chunked.replace(b"PUT", b"POST")
    for call, status in ((chunked, 200), (refused, 405)):
        with gateway.connect() as connection:
            connection.sendall(GET + END)
            assert read_answer(connection).body == b"value"
            connection.sendall(call)
            assert read_answer(connection).status == status
    # Told apart by their bytes, and not by the segments that they come in.
    answer = gateway.send(*(bytes([each]) for each in chunked))
    assert (answer.status, gateway.send(GET.replace(b"there", b"chunked") + END).body) == (200, b"abc")


def test_a_call_is_the_same_in_whatever_pieces_it_comes(gateway: GatewayProcess) -> None:
    call = PUT.replace(b"/ns/a", b"/ns/pieces") + b"Content-Length: 5\r\n\r\nvalue"
    for size in (1, 2, 7, len(call)):
        pieces = [call[i : i + size] for i in range(0, len(call), size)]
        assert gateway.send(*pieces).status == 200
    assert gateway.send(END + GET.replace(b"there", b"pieces") + END).body == b"value"


def test_many_calls_at_once_are_answered_in_their_order(gateway: GatewayProcess) -> None:
    body = PUT.replace(b"/ns/a", b"/ns/order") + b"Content-Length: 4\r\n\r\n%04d"
    calls = b"".join((body % i) + GET.replace(b"there", b"order") + END for i in range(100))
    with gateway.connect() as connection:
        connection.sendall(calls)
        begun = b""
        for i in range(100):
            for expected in (None, b"%04d" % i):
                answer = read_answer(connection, begun)
                assert answer.status == 200 and expected in (None, answer.body)
                begun = answer.rest


def test_what_is_wrong_behind_a_call_is_no_answer_to_it(gateway: GatewayProcess) -> None:
    stored = PUT.replace(b"/ns/a", b"/ns/before") + b"Content-Length: 5\r\n\r\nvalue"
    for wrong in (b"GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"x" * 40_000, GET + b"X: x\r\n" * 10_000):
        with gateway.connect() as connection:
            connection.sendall(stored + wrong)
            answer = read_answer(connection)
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
            assert read_answer(connection, answer.rest).status in (400, 431)


def test_a_body_that_goes_wrong_behind_the_beginning_of_its_answer_ends_the_connection(gateway: GatewayProcess) -> None:
    with gateway.connect() as connection:
        connection.sendall(b"GET /v1/kv/ns:watch HTTP/1.1\r\nHost: localhost\r\n" + CHUNKED)
        answer = read_answer(connection)
        assert answer.status == 200
        connection.sendall(b"no size\r\n")
        got = answer.rest
        while piece := received(connection):
            got += piece
        assert b"HTTP/1.1" not in got


def test_the_head_of_a_stream_is_a_head_alone(gateway: GatewayProcess) -> None:
    for path, more in ((b"/v1/kv/ns:watch", b""), (b"/v1/kv/large", LINES)):
        with gateway.connect() as connection:
            connection.sendall(b"HEAD " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + more + END + GET + END)
            head = read_answer(connection)
            assert head.status == 200
            assert read_answer(connection, head.rest).body == b"value", "and its place is given back"


def test_callers_whose_bodies_are_slow_are_in_nobodys_way(node: ServerProcess, tmp_path: Path) -> None:
    with gateway_process(node.endpoint, tmp_path, "--limit.calls-max", "2") as running:
        slow = [running.connect() for _ in range(10)]
        try:
            for each in slow:
                each.sendall(PUT + b"Content-Length: 10\r\n\r\n1")
            assert running.send(GET + END).body == b"value"
        finally:
            for each in slow:
                each.close()


def test_an_upgrade_is_not_one(gateway: GatewayProcess) -> None:
    head = GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZQ==\r\n\r\n"
    assert gateway.send(head).body == b"value"


def test_calls_that_come_at_once_are_answered_in_their_order(gateway: GatewayProcess) -> None:
    missing = b"GET /v1/kv/ns/missing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with gateway.connect() as connection:
        connection.sendall(missing + GET + END + missing)
        begun = b""
        for status in (404, 200, 404):
            answer = read_answer(connection, begun)
            assert answer.status == status
            begun = answer.rest


@pytest.mark.parametrize("begun", [b"", GET + b"X: "])
def test_a_head_that_does_not_come_is_not_waited_for(hasty: GatewayProcess, begun: bytes) -> None:
    assert hasty.send(begun).status == 0
    with hasty.connect() as connection:
        connection.sendall(GET + END)
        assert read_answer(connection).status == 200
        # The next call's head is bounded as the first one's.
        connection.sendall(begun or b"G")
        assert read_answer(connection).status == 0


def test_a_body_that_does_not_come_is_not_waited_for(hasty: GatewayProcess) -> None:
    for head in (b"Content-Length: 10\r\n\r\n12345", b"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"):
        answer = hasty.send(PUT + head)
        is_refused(answer, 408)
        assert answer.headers["connection"] == "close"


def test_a_body_that_ends_early_writes_nothing(gateway: GatewayProcess) -> None:
    with gateway.connect() as connection:
        connection.sendall(PUT + b"Content-Length: 10\r\n\r\n12345")


def test_a_reader_that_stands_still_is_cut_off_and_gives_its_place_back(hasty: GatewayProcess) -> None:
    lines = b"GET /v1/kv/large HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n"
    with hasty.connect(receive_bytes=65_536) as still:
        still.sendall(lines)
        assert still.recv(1)
        refused = hasty.send(lines)
        is_refused(refused, 429)
        assert (refused.json()["resource"], refused.headers["retry-after"]) == ("streams", "1")
        # Until it has been cut off, the next one has no place.
        while (again := hasty.send(lines)).status == 429:
            pass
        assert again.status == 200
        got = 1
        while piece := received(still):
            got += len(piece)
        assert got < ROWS * ROW_BYTES


def received(connection: socket.socket) -> bytes:
    try:
        data: bytes = connection.recv(1 << 20)
    except ConnectionError:
        return b""
    return data


def test_streams_whose_readers_have_gone_end_at_the_node(node: ServerProcess, tmp_path: Path) -> None:
    with gateway_process(node.endpoint, tmp_path) as running, NodeStatistics(node.endpoint) as statistics:
        for path, more in ((b"/v1/kv/large", LINES), (b"/v1/kv/ns:watch", b""), (b"/v1/kv/large?limit=1", b"")):
            for _ in range(10):
                with running.connect(receive_bytes=4_096) as vanishing:
                    vanishing.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + more + END)
                    vanishing.recv(100)
        wait_until(lambda: open_streams(statistics) == 0, "the node's streams have ended")


def open_streams(node: NodeStatistics) -> float:
    by_method = node.read(["cortado_streams_open"]).by_label("cortado_streams_open")
    return sum(value for (method,), value in by_method.items() if method.endswith(("Scan", "Watch/KeyValue")))


def test_ten_readers_that_take_nothing_cost_some_memory_and_are_in_nobodys_way(
    node: ServerProcess, tmp_path: Path
) -> None:
    with gateway_process(node.endpoint, tmp_path, "--limit.stalled-ms", "1500") as running:
        with peak_of(running.process.pid) as peak:
            still = [running.connect(receive_bytes=4_096) for _ in range(10)]
            for each in still:
                each.sendall(b"GET /v1/kv/large HTTP/1.1\r\nHost: localhost\r\n" + LINES + END)
            for _ in range(50):
                assert running.send(GET + END).body == b"value"
            for each in still:
                each.close()
        # Each holds two rows and a line, and the data read for the next one: no reply, no earlier page.
        assert peak.bytes < 10 * 9 * MIB


PROBE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
WATCH = b"GET /v1/kv/ns:watch HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_connections_that_rest_make_room_for_a_new_one(gateway: GatewayProcess) -> None:
    """Idle, within a head, and within a body that has stalled: the connection that was silent longest ends."""
    begun = (b"", b"GET /v1/kv", PUT + b"Content-Length: 10\r\n\r\n1")
    open_ones = [gateway.connect() for _ in range(9)]
    try:
        for each, sent in zip(open_ones, begun * 3, strict=True):
            each.sendall(sent)
        for _ in range(8):
            assert gateway.send(GET + END).body == b"value"
    finally:
        for each in open_ones:
            each.close()


def test_where_all_connections_work_one_more_is_told_so_and_a_probe_is_answered(
    node: ServerProcess, tmp_path: Path
) -> None:
    with gateway_process(node.endpoint, tmp_path, *limits({"connections-max": 2, "calls-max": 2})) as running:
        open_ones = [running.connect() for _ in range(2)]
        for each in open_ones:
            each.sendall(WATCH)
            assert read_answer(each).status == 200
        silent = [running.connect() for _ in range(100)]
        try:
            for _ in range(3):
                is_refused(running.send(GET + END), 429)
                answer = running.send(PROBE)
                assert (answer.status, answer.body) == (200, b"alive\n")
                assert answer.headers["connection"] == "close"
        finally:
            for each in (*open_ones, *silent):
                each.close()
        wait_until(lambda: running.send(GET + END).body == b"value", "the places are given back")


def test_a_probe_is_answered_beyond_all_calls(node: ServerProcess, tmp_path: Path) -> None:
    one = limits({"calls-max": 1})
    with gateway_process(node.endpoint, tmp_path, *one) as running, running.connect() as watching:
        watching.sendall(WATCH)
        assert read_answer(watching).status == 200
        is_refused(running.send(GET + END), 429)
        assert running.send(PROBE).status == 200


def test_bodies_that_have_stalled_make_room_for_one_that_comes(node: ServerProcess, tmp_path: Path) -> None:
    whole = PUT.replace(b"/ns/a", b"/ns/whole") + b"Content-Length: 500\r\n\r\n" + b"x" * 500
    with gateway_process(node.endpoint, tmp_path, *limits({"bodies-bytes-max": 1_000})) as running:
        stalled = [running.connect() for _ in range(2)]
        try:
            for each in stalled:
                each.sendall(PUT + b"Content-Length: 501\r\n\r\n" + b"x" * 500)
            wait_until(lambda: running.send(whole).status == 200, "the oldest one has made room")
            answer = read_answer(stalled[0])
            is_refused(answer, 429)
            assert (answer.json()["resource"], answer.headers["connection"]) == ("bytes of bodies", "close")
        finally:
            for each in stalled:
                each.close()


def test_a_body_that_is_not_taken_is_not_kept(node: ServerProcess, tmp_path: Path) -> None:
    refused = PUT.replace(b"PUT", b"POST") + b"Content-Length: 1000000\r\n\r\n" + b"x" * 200_000
    count = 300
    with gateway_process(node.endpoint, tmp_path) as running:
        before = anonymous_bytes(running.process.pid)
        idle = [running.connect() for _ in range(count)]
        try:
            for each in idle:
                each.sendall(refused)
                assert read_answer(each).status == 405
            assert running.send(GET + END).body == b"value"
            assert (anonymous_bytes(running.process.pid) - before) // count < 60_000
        finally:
            for each in idle:
                each.close()


def five_rows() -> bytes:
    """A call for an answer that no socket's buffers hold."""
    keys = ", ".join(f'"{b64encode(b"%03d" % i).decode()}"' for i in range(5))
    asked = f'{{"namespace": "large", "keys": [{keys}]}}'.encode()
    head = b"POST /cortado.v1.KeyValue/MultiGet HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(asked) + asked


def test_an_answer_that_nobody_reads_has_the_place_of_a_call(node: ServerProcess, tmp_path: Path) -> None:
    soon = limits({"calls-max": 1, "stalled-ms": 1_000})
    with gateway_process(node.endpoint, tmp_path, *soon) as running, running.connect(receive_bytes=4_096) as unread:
        unread.sendall(five_rows())
        assert unread.recv(1)
        is_refused(running.send(GET + END), 429)
        assert running.send(PROBE).status == 200
        wait_until(lambda: running.send(GET + END).status == 200, "it is cut off, and its place is given back")


def test_an_answer_that_is_still_read_is_not_cut_off_for_a_new_connection(node: ServerProcess, tmp_path: Path) -> None:
    few = limits({"connections-max": 2})
    with gateway_process(node.endpoint, tmp_path, *few) as running, running.connect(receive_bytes=4_096) as reading:
        reading.sendall(five_rows())
        begun = reading.recv(1_000)
        others = [running.connect() for _ in range(3)]
        try:
            assert running.send(GET + END).body == b"value"
            answer = read_answer(reading, begun)
        finally:
            for each in others:
                each.close()
        assert answer.status == 200
        assert len(answer.body) == int(answer.headers["content-length"]) > 5 * ROW_BYTES


def test_connections_leave_files_for_those_to_the_cluster(node: ServerProcess, tmp_path: Path) -> None:
    few = ("sh", "-c", 'ulimit -n 128; exec "$@"', "sh")
    with gateway_process(node.endpoint, tmp_path, under=few) as running:
        open_ones = [running.connect() for _ in range(200)]
        try:
            assert running.send(GET + END).body == b"value"
            open_ones[-1].sendall(GET + END)
            assert read_answer(open_ones[-1]).body == b"value"
        finally:
            for each in open_ones:
                each.close()


@pytest.mark.long
def test_ten_thousand_idle_connections_cost_little_and_are_in_nobodys_way(node: ServerProcess, tmp_path: Path) -> None:
    count = min(10_000, raise_open_files() - 1_000)
    limits = ("--limit.connections-max", str(count + 10), "--limit.head-ms", "60000")
    with gateway_process(node.endpoint, tmp_path, *limits) as running:
        before = anonymous_bytes(running.process.pid)
        idle = [running.connect() for _ in range(count)]
        try:
            for _ in range(100):
                assert running.send(GET + END).body == b"value"
            for each in idle:
                each.sendall(GET + END)
                assert read_answer(each).body == b"value"
            used_bytes = (anonymous_bytes(running.process.pid) - before) // count
            assert used_bytes < 20_000
        finally:
            for each in idle:
                each.close()


def test_a_gateway_that_is_stopped_ends_its_streams_and_itself(node: ServerProcess, tmp_path: Path) -> None:
    with gateway_process(node.endpoint, tmp_path) as running, running.connect() as watching:
        watching.sendall(b"GET /v1/kv/ns:watch HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_answer(watching).status == 200
        running.process.terminate()
        while received(watching):
            pass
        assert running.process.wait(60) == 0
        assert "Traceback" not in running.log.read_text()
