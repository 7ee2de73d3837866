"""How calls end: each way of failing, at the first attempt and after another one whose outcome is open."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from cortado.errors import (
    AlreadyExists,
    Cancelled,
    ConditionFailed,
    Conflict,
    CortadoError,
    DataLoss,
    DeadlineExceeded,
    DidNotHappen,
    Internal,
    InvalidArgument,
    NotLeader,
    OutcomeUnknown,
    ResourceExhausted,
    TooLarge,
    TryAgain,
    Unavailable,
    Unsupported,
)
from cortado.proto.v1 import kv_pb2
from cortado.store.client.client import Client
from cortado.store.client.link import ends
from cortado.store.client.retry import Attempts, Failure
from cortado.store.client.runtime import Environment
from cortado.store.h2.grpc import Code, percent_encoded
from cortado.store.h2.limits import ErrorCode
from cortado.store.wire.rpc_errors import trailing_metadata
from support.faces import open_client
from support.fake_server import FakeServer, break_off, header, refuse

pytestmark = pytest.mark.slow

WRITE_ID = b"w" * 20
TIMEOUT_S = 10.0


def ended(code: Code, message: str = "") -> Failure:
    """Return the end of a call with a status that has no details of ours."""
    fields = {b"grpc-status": b"%d" % code, b"grpc-message": percent_encoded(message)}
    failure = ends.of_trailers(fields)
    assert failure is not None
    return failure


def said(error: CortadoError) -> Failure:
    [(name, details)] = trailing_metadata(error)
    failure = ends.of_trailers({b"grpc-status": b"2", name.encode(): base64.b64encode(details)})
    assert failure is not None
    return failure


def unreached(error: OSError) -> Failure:
    return Failure(Unavailable(ends.unreached(error)), answered=False, sent=False)


BROKEN = Failure(Unavailable(ends.CLOSED), answered=False, sent=True)
CLOSED = Failure(Cancelled("the client was closed"), answered=False, sent=True)
CLOSED_BEFORE = Failure(Cancelled("the client was closed"), answered=False, sent=False)
SILENT = Failure(Unavailable("n1 is silent, and another node leads"), answered=False, sent=True)
NOT_SENT_IN_TIME = Failure(Unavailable("the request could not be sent in time"), answered=False, sent=False)
BROKEN_STREAM_BEFORE = Failure(Unavailable("the stream of calls ends"), answered=False, sent=False)

# The outcome of an attempt -> how a read ends, how a write ends, and how a write ends that has another open attempt:
# one that a server answered with "unknown" (it is in a log, or nowhere), or one without an answer.
ENDS: dict[str, tuple[Failure, type[CortadoError], type[CortadoError], type[CortadoError]]] = {
    # A server decided.
    "conflict": (said(ConditionFailed("k", "absent", "present")), ConditionFailed, ConditionFailed, ConditionFailed),
    "bad input": (said(InvalidArgument("f", "is wrong")), InvalidArgument, InvalidArgument, InvalidArgument),
    "exists": (said(AlreadyExists("table", "t")), AlreadyExists, AlreadyExists, AlreadyExists),
    "damage": (said(DataLoss("a remembered request")), DataLoss, DataLoss, OutcomeUnknown),
    "unavailable": (said(Unavailable()), Unavailable, Unavailable, OutcomeUnknown),
    "not leader": (said(NotLeader()), NotLeader, NotLeader, OutcomeUnknown),
    "overload": (said(ResourceExhausted()), ResourceExhausted, ResourceExhausted, OutcomeUnknown),
    # A server ended it, and does not know, or does not say.
    "unknown": (said(OutcomeUnknown("it stops")), Unavailable, OutcomeUnknown, OutcomeUnknown),
    "defect": (said(Internal("TypeError")), Internal, OutcomeUnknown, OutcomeUnknown),
    "said late": (said(DeadlineExceeded()), DeadlineExceeded, OutcomeUnknown, OutcomeUnknown),
    "said cancelled": (said(Cancelled()), Cancelled, OutcomeUnknown, OutcomeUnknown),
    # Nothing arrived.
    "not connected": (unreached(ConnectionRefusedError()), Unavailable, Unavailable, OutcomeUnknown),
    "no such host": (unreached(socket.gaierror(socket.EAI_NONAME)), Unavailable, Unavailable, OutcomeUnknown),
    "refused stream": (ends.of_reset(ErrorCode.REFUSED_STREAM), Unavailable, Unavailable, OutcomeUnknown),
    # gRPC's own server did not begin it.
    "no such method": (ended(Code.UNIMPLEMENTED, "Method not found!"), Unsupported, Unsupported, OutcomeUnknown),
    "too many pending": (
        ended(Code.RESOURCE_EXHAUSTED, "Too many pending requests for this server"),
        ResourceExhausted,
        ResourceExhausted,
        OutcomeUnknown,
    ),
    "request too large": (
        ended(Code.RESOURCE_EXHAUSTED, "SERVER: Received message larger than max (9 vs. 4)"),
        TooLarge,
        TooLarge,
        TooLarge,
    ),
    "not sent in time": (NOT_SENT_IN_TIME, Unavailable, Unavailable, OutcomeUnknown),
    "stream over before": (BROKEN_STREAM_BEFORE, Unavailable, Unavailable, OutcomeUnknown),
    "closed before": (CLOSED_BEFORE, Cancelled, Cancelled, OutcomeUnknown),
    # It may have arrived.
    "reply too large": (
        ended(Code.RESOURCE_EXHAUSTED, "SERVER: Sent message larger than max (9 vs. 4)"),
        ResourceExhausted,
        OutcomeUnknown,
        OutcomeUnknown,
    ),
    "calm down": (
        ends.of_reset(ErrorCode.ENHANCE_YOUR_CALM),
        ResourceExhausted,
        OutcomeUnknown,
        OutcomeUnknown,
    ),
    "late": (ended(Code.DEADLINE_EXCEEDED), DeadlineExceeded, OutcomeUnknown, OutcomeUnknown),
    "broken": (BROKEN, Unavailable, OutcomeUnknown, OutcomeUnknown),
    "reset": (ends.of_reset(ErrorCode.INTERNAL_ERROR), Unavailable, OutcomeUnknown, OutcomeUnknown),
    "cancelled": (ended(Code.CANCELLED), Unavailable, OutcomeUnknown, OutcomeUnknown),
    "gRPC's defect": (ended(Code.INTERNAL, "Exception deserializing"), Internal, OutcomeUnknown, OutcomeUnknown),
    "gRPC's unknown": (ended(Code.UNKNOWN, "oops"), Internal, OutcomeUnknown, OutcomeUnknown),
    "a proxy's refusal": (ended(Code.PERMISSION_DENIED, "no"), Internal, OutcomeUnknown, OutcomeUnknown),
    "silent": (SILENT, Unavailable, OutcomeUnknown, OutcomeUnknown),
    "closed": (CLOSED, Cancelled, OutcomeUnknown, OutcomeUnknown),
}

OPEN_IN_A_LOG = said(OutcomeUnknown("leadership was lost before the write was decided"))
OPEN_ON_ITS_WAY = BROKEN


def end_of(last: Failure, *earlier: Failure, request_id: bytes) -> CortadoError:
    """Return the end of a call with these failed attempts, the last one as its time runs out."""
    attempts = Attempts(request_id, 0.0, TIMEOUT_S, random=lambda: 1.0)
    for failure in earlier:
        attempts.delay_after(failure, 0.0, "n1:1")
    with pytest.raises(CortadoError) as raised:
        attempts.delay_after(last, TIMEOUT_S, "n2:1")
    return raised.value


def check_form_of_a_writes_end(end: CortadoError) -> None:
    assert not isinstance(end, DeadlineExceeded | Internal)
    if isinstance(end, OutcomeUnknown):
        assert end.request_id == WRITE_ID.hex()


@pytest.mark.parametrize("kind", ENDS)
def test_a_read_ends_as_what_became_of_its_last_attempt(kind: str) -> None:
    last, expected, _, _ = ENDS[kind]
    assert type(end_of(last, request_id=b"")) is expected
    for earlier in (OPEN_IN_A_LOG, OPEN_ON_ITS_WAY, said(NotLeader())):
        assert type(end_of(last, earlier, request_id=b"")) is expected


@pytest.mark.parametrize("kind", ENDS)
def test_a_write_ends_as_a_failure_only_where_it_did_not_happen(kind: str) -> None:
    last, _, expected, _ = ENDS[kind]
    refused_or_never_left = (
        (),
        (said(NotLeader()),),
        (said(Unavailable()), said(ResourceExhausted())),
        (NOT_SENT_IN_TIME, BROKEN_STREAM_BEFORE),
    )
    for earlier in refused_or_never_left:
        end = end_of(last, *earlier, request_id=WRITE_ID)
        assert type(end) is expected
        check_form_of_a_writes_end(end)


@pytest.mark.parametrize("kind", ENDS)
def test_after_a_server_said_unknown_only_a_refusal_for_good_decides(kind: str) -> None:
    last, _, _, expected = ENDS[kind]
    for earlier in ((OPEN_IN_A_LOG,), (OPEN_IN_A_LOG, said(NotLeader())), (said(NotLeader()), OPEN_IN_A_LOG)):
        end = end_of(last, *earlier, request_id=WRITE_ID)
        assert type(end) is expected
        check_form_of_a_writes_end(end)
        assert isinstance(end, OutcomeUnknown | DidNotHappen | Conflict)


@pytest.mark.parametrize("kind", ENDS)
def test_after_an_attempt_that_nobody_answered_no_refusal_decides(kind: str) -> None:
    last = ENDS[kind][0]
    for earlier in ((OPEN_ON_ITS_WAY,), (SILENT, OPEN_IN_A_LOG), (said(NotLeader()), OPEN_ON_ITS_WAY)):
        end = end_of(last, *earlier, request_id=WRITE_ID)
        assert type(end) is OutcomeUnknown
        check_form_of_a_writes_end(end)


@pytest.mark.parametrize("kind", ENDS)
def test_what_is_tried_again_is_neither_decided_nor_late(kind: str) -> None:
    last = ENDS[kind][0]
    for request_id in (b"", WRITE_ID):
        attempts = Attempts(request_id, 0.0, TIMEOUT_S, random=lambda: 1.0)
        if isinstance(last.error, TryAgain | OutcomeUnknown):
            assert attempts.delay_after(last, 0.0) > 0
        else:
            with pytest.raises(CortadoError):
                attempts.delay_after(last, 0.0)


# --- against a server ------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().running() as running:
        yield running


@pytest.fixture(params=[("sync", False), ("sync", True), ("async", True)], ids=["alone", "merged", "async"])
def client(server: FakeServer, request: pytest.FixtureRequest) -> Iterator[Client]:
    face, coalesce = request.param
    with open_client(face, server.endpoint, timeout_s=5, coalesce=coalesce) as opened:
        opened.clock()
        server.requests.clear()
        yield opened


def answer_put(_request: Any, _context: Any) -> kv_pb2.KvPutResponse:
    return kv_pb2.KvPutResponse(header=header(), etag="0.1000.1")


def test_a_write_that_asks_for_the_time_in_vain_has_not_happened(server: FakeServer, client: Client) -> None:
    release = threading.Event()
    server.handlers["Cluster.Clock"] = lambda request, context: release.wait(10) and break_off(context)
    try:
        with pytest.raises(Unavailable, match="not sent"):
            client.with_timeout(0.2).kv("n").put(b"k", b"v")
    finally:
        release.set()
    assert server.calls("KeyValue.Put") == []


def test_a_write_that_describes_its_table_in_vain_has_not_happened(server: FakeServer, client: Client) -> None:
    release = threading.Event()
    server.handlers["Tables.DescribeTable"] = lambda request, context: release.wait(10) and break_off(context)
    table = client.with_timeout(0.2).table("d.t")

    def transaction() -> None:
        with client.with_timeout(0.2).transaction() as txn:
            txn.table("d.t").delete(1)

    writes: list[Callable[[], object]] = [
        lambda: table.put({"id": 1}),
        lambda: table.update(1, {"a": 1}),
        lambda: table.delete(1),
        transaction,
    ]
    try:
        for write in writes:
            with pytest.raises(Unavailable, match="not sent"):
                write()
        with pytest.raises(DeadlineExceeded):
            table.get(1)
    finally:
        release.set()


def test_a_client_that_is_closed_between_two_attempts_leaves_a_write_open(server: FakeServer) -> None:
    server.handlers["KeyValue.Put"] = lambda request, context: break_off(context)
    server.handlers["KeyValue.Get"] = lambda request, context: break_off(context)
    opened: list[Client] = []
    environment = Environment(sleep_s=lambda _: opened[-1].close())
    for call, end in (
        (lambda client: client.kv("n").get(b"k"), Cancelled),
        (lambda client: client.kv("n").put(b"k", b"v"), OutcomeUnknown),
    ):
        opened.append(Client(server.endpoint, environment=environment))
        with pytest.raises(end):
            call(opened[-1])


def test_a_server_that_drops_what_it_has_begun_is_asked_again(server: FakeServer, client: Client) -> None:
    left = [2]

    def drop(request: Any, context: grpc.ServicerContext) -> Any:
        if left[0] > 0:
            left[0] -= 1
            context.abort(grpc.StatusCode.CANCELLED, "CANCELLED")
        return answer_put(request, context)

    server.handlers["KeyValue.Put"] = drop
    assert client.kv("n").put(b"k", b"v") == "0.1000.1"


def test_a_slow_server_is_asked_once(server: FakeServer, client: Client) -> None:
    begun, release = threading.Event(), threading.Event()

    def slow(request: Any, context: Any) -> Any:
        begun.set()
        release.wait(10)
        return answer_put(request, context)

    server.handlers["KeyValue.Put"] = slow
    threading.Timer(2.0, release.set).start()
    assert client.kv("n").put(b"k", b"v") == "0.1000.1"
    assert len(server.calls("KeyValue.Put")) == 1


def test_a_refusal_of_the_only_attempt_stands(server: FakeServer, client: Client) -> None:
    server.handlers["KeyValue.Put"] = lambda request, context: refuse(context, ConditionFailed("k", "absent", "x"))
    with pytest.raises(ConditionFailed):
        client.kv("n").put(b"k", b"v", if_absent=True)
