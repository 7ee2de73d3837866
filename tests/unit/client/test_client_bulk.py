"""The bulk stream: bounded, resumable, exactly once, a result per row."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from cortado.errors import (
    InvalidArgument,
    KeyLocked,
    NotFound,
    NotLeader,
    OutcomeUnknown,
    ResourceExhausted,
    TooLarge,
    UniqueViolation,
)
from cortado.proto.v1 import documents_pb2
from cortado.store.client.bulk import CHUNKS_IN_FLIGHT_MAX
from cortado.store.client.chunks import CHUNK_BYTES_MAX, CHUNK_ROWS_MAX, chunks_of_batch
from cortado.store.client.client import Client
from cortado.store.client.request_ids import RECENT_S
from cortado.store.client.runtime import Environment
from cortado.store.wire.rpc_errors import to_row_error
from support.faces import FACES, open_client
from support.fake_server import FakeServer, break_off, header, refuse


class BulkTable:
    """The server's memory: the rows, and the chunks by request id. ``script`` may interfere before each answer."""

    def __init__(self) -> None:
        self.rows: list[bytes] = []
        self.answers: dict[bytes, documents_pb2.BulkResponse] = {}
        self.received: list[int] = []
        self.starts: list[documents_pb2.BulkStart] = []
        self.script = lambda sequence, context: None

    def bulk(
        self, requests: Iterator[documents_pb2.BulkRequest], context: grpc.ServicerContext
    ) -> Iterator[documents_pb2.BulkResponse]:
        self.starts.append(next(requests).start)
        for request in requests:
            chunk = request.chunk
            self.received.append(chunk.sequence)
            if chunk.request_id not in self.answers:
                self.answers[chunk.request_id] = self.write(chunk)
            interference = self.script(chunk.sequence, context)
            yield interference or self.answers[chunk.request_id]

    def write(self, chunk: documents_pb2.BulkChunk) -> documents_pb2.BulkResponse:
        start = 0
        lengths = struct.unpack(f"<{len(chunk.rows.lengths) // 4}I", chunk.rows.lengths)
        for length in lengths:
            self.rows.append(chunk.rows.bodies[start : start + length])
            start += length
        return documents_pb2.BulkResponse(
            header=header(chunk.sequence + 1), sequence=chunk.sequence, written=len(lengths)
        )


@pytest.fixture
def stored() -> BulkTable:
    return BulkTable()


@pytest.fixture(params=FACES)
def client(stored: BulkTable, request: pytest.FixtureRequest) -> Iterator[Client]:
    server = FakeServer()
    server.handlers["Documents.Bulk"] = lambda requests, context: stored.bulk(requests, context)
    with server.running(), open_client(request.param, server.endpoint, timeout_s=5) as opened:
        yield opened


def batch(*bodies: bytes) -> tuple[int, bytes, bytes]:
    return 1, b"".join(bodies), struct.pack(f"<{len(bodies)}I", *map(len, bodies))


def batches(count: int) -> Iterator[tuple[int, bytes, bytes]]:
    return (batch(b"%d-a" % i, b"%d-b" % i) for i in range(count))


def all_rows(count: int) -> list[bytes]:
    return [b"%d-%s" % (i, side) for i in range(count) for side in (b"a", b"b")]


def test_every_row_is_written_and_counted(stored: BulkTable, client: Client) -> None:
    done: list[int] = []
    result = client.table("d.t").put_batches(batches(10), mode="insert", progress=done.append)
    assert stored.rows == all_rows(10)
    assert (result.written, result.refused, result.errors) == (20, 0, [])
    assert done == list(range(2, 21, 2))
    assert result.ts.wall_ms == 10
    assert stored.starts[0].mode == documents_pb2.BULK_MODE_INSERT


def test_a_broken_stream_is_taken_up_again_and_each_row_written_once(stored: BulkTable, client: Client) -> None:
    broken: set[int] = set()

    def script(sequence: int, context: grpc.ServicerContext) -> None:
        if sequence % 3 == 2 and sequence not in broken:
            broken.add(sequence)
            break_off(context)

    stored.script = script
    result = client.table("d.t").put_batches(batches(12))
    assert stored.rows == all_rows(12)
    assert result.written == 24
    assert len(stored.starts) == 5
    assert len(stored.received) > 12
    assert len(stored.answers) == 12


def test_a_leader_change_in_the_middle_loses_and_doubles_no_row(stored: BulkTable) -> None:
    """Chunks that the old leader stored without saying so come again, under their ids, at the new one."""
    old, new = FakeServer(), FakeServer()
    leads = [old]

    def bulk(server: FakeServer) -> Any:
        def handle(requests: Iterator[documents_pb2.BulkRequest], context: grpc.ServicerContext) -> Any:
            for reply in stored.bulk(requests, context):
                if server is not leads[0]:
                    refuse(context, NotLeader("this node does not lead", leader=leads[0].endpoint))
                if server is old and reply.sequence == 5:
                    leads[0] = new
                    break_off(context)
                yield reply

        return handle

    for server in (old, new):
        server.handlers["Documents.Bulk"] = bulk(server)
    with old.running(), new.running(), Client([old.endpoint, new.endpoint], timeout_s=5) as client:
        result = client.table("d.t").put_batches(batches(40), mode="insert")
    assert (result.written, result.refused) == (80, 0)
    assert stored.rows == all_rows(40)
    assert len(stored.answers) == 40
    assert stored.received.count(5) >= 2


def test_no_more_chunks_are_under_way_than_the_bound(stored: BulkTable, client: Client) -> None:
    made = 0
    answered = 0
    ahead: list[int] = []

    def counted() -> Iterator[tuple[int, bytes, bytes]]:
        nonlocal made
        for each in batches(20):
            made += 1
            ahead.append(made - answered)
            yield each

    def count_answers(_: int) -> None:
        nonlocal answered
        answered += 1

    client.table("d.t").put_batches(counted(), progress=count_answers)
    assert max(ahead) == CHUNKS_IN_FLIGHT_MAX


def test_a_refused_row_is_named_by_its_place_among_all(stored: BulkTable, client: Client) -> None:
    def script(sequence: int, context: grpc.ServicerContext) -> Any:
        if sequence == 2:
            error = UniqueViolation("by_name", "x", "k", "other", 1)
            return documents_pb2.BulkResponse(header=header(), sequence=2, written=1, errors=[to_row_error(1, error)])
        return None

    stored.script = script
    result = client.table("d.t").put_batches(batches(4))
    assert (result.written, result.refused) == (7, 1)
    [refused] = result.errors
    assert refused.row == 5
    assert isinstance(refused.error, UniqueViolation)
    assert refused.error.row == 5
    assert refused.error.index == "by_name"


def test_an_overloaded_server_is_waited_for(stored: BulkTable, client: Client) -> None:
    left = [3]

    def script(sequence: int, context: grpc.ServicerContext) -> None:
        if left[0] > 0:
            left[0] -= 1
            refuse(context, ResourceExhausted("bulk queue is full", 1, "bulk", 4))

    stored.script = script
    assert client.table("d.t").put_batches(batches(4)).written == 8
    assert stored.rows == all_rows(4)


def test_a_first_chunk_without_an_answer_has_the_whole_timeout_also_of_a_client_that_has_not_called_before() -> None:
    """A call that is sent to no server is given up after three seconds. This was sent."""
    now_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    server = FakeServer()

    def bulk(requests: Iterator[documents_pb2.BulkRequest], context: grpc.ServicerContext) -> Iterator[Any]:
        next(requests), next(requests)
        threading.Thread(target=server.stop).start()
        break_off(context)
        yield

    server.handlers["Documents.Bulk"] = bulk
    environment = Environment(monotonic_s=lambda: now_s, sleep_s=sleep)
    with server.running(), Client(server.endpoint, timeout_s=30, environment=environment) as client:
        with pytest.raises(OutcomeUnknown, match="rows 0 to "):
            client.table("d.t").put_batches(batches(1))
        assert now_s > 25


def test_what_refuses_the_whole_load_ends_it(stored: BulkTable, client: Client) -> None:
    stored.script = lambda sequence, context: refuse(context, NotFound("table", "d.t"))
    with pytest.raises(NotFound):
        client.table("d.t").put_batches(batches(4))
    assert len(stored.starts) == 1


def test_a_load_without_answers_is_unknown(stored: BulkTable, client: Client) -> None:
    done = threading.Event()
    stored.script = lambda sequence, context: done.wait(5) and None
    last_row = 2 * CHUNKS_IN_FLIGHT_MAX - 1
    with pytest.raises(OutcomeUnknown, match=f"rows 0 to {last_row} ") as raised:
        client.with_timeout(1).table("d.t").put_batches(batches(CHUNKS_IN_FLIGHT_MAX + 1))
    done.set()
    assert bytes.fromhex(raised.value.request_id) in stored.answers


def test_a_server_that_went_away_while_rows_were_slow_leaves_the_outcome_unknown(stored: BulkTable) -> None:
    now_s = [0.0]

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    server = FakeServer()
    server.handlers["Documents.Bulk"] = lambda requests, context: stored.bulk(requests, context)

    def slow() -> Iterator[tuple[int, bytes, bytes]]:
        yield batch(b"sent")
        now_s[0] += RECENT_S + 1
        server.handlers["Cluster.Clock"] = lambda request, context: break_off(context)
        yield batch(b"never sent")

    environment = Environment(monotonic_s=lambda: now_s[0], sleep_s=sleep)
    with (
        server.running(),
        Client(server.endpoint, timeout_s=1, environment=environment) as client,
        pytest.raises(OutcomeUnknown, match="rows 0 to 0 "),
    ):
        client.table("d.t").put_batches(slow())


def test_a_load_that_was_refused_from_the_start_changed_nothing(stored: BulkTable, client: Client) -> None:
    stored.write = None  # type: ignore[assignment,method-assign]  # It must not come to that.
    error = ResourceExhausted("too many bulk streams", 1_000, "bulk streams", 64)

    def full(requests: object, context: grpc.ServicerContext) -> Iterator[documents_pb2.BulkResponse]:
        yield refuse(context, error)

    stored.bulk = full  # type: ignore[method-assign]
    with pytest.raises(ResourceExhausted):
        client.with_timeout(0.9).table("d.t").put_batches(batches(4))


def test_a_row_that_stays_locked_ends_the_load_with_who_holds_it(stored: BulkTable, client: Client) -> None:
    def script(sequence: int, context: grpc.ServicerContext) -> None:
        if sequence:
            refuse(context, KeyLocked(retry_delay_ms=100, key="d.t(7)", transaction="aa"))

    stored.script = script
    with pytest.raises(KeyLocked) as locked:
        client.with_timeout(1.5).table("d.t").put_batches(batches(4))
    assert (locked.value.key, locked.value.transaction) == ("d.t(7)", "aa")
    assert len(stored.starts) > 1


def test_a_refusal_after_a_broken_stream_says_nothing_of_the_chunks_on_it(stored: BulkTable, client: Client) -> None:
    def script(_sequence: int, context: grpc.ServicerContext) -> None:
        if len(stored.starts) == 1:
            break_off(context)
        refuse(context, NotFound("table", "d.t"))

    stored.script = script
    with pytest.raises(OutcomeUnknown, match=r"rows 0 to 1 .* no table d\.t"):
        client.table("d.t").put_batches(batches(1))
    assert stored.rows == all_rows(1)


def test_nothing_to_load_is_no_error(stored: BulkTable, client: Client) -> None:
    assert client.table("d.t").put_batches([]).written == 0
    assert client.table("d.t").put_batches([batch()]).written == 0


def test_what_the_source_raises_goes_to_the_caller(stored: BulkTable, client: Client) -> None:
    def source() -> Iterator[tuple[int, bytes, bytes]]:
        yield batch(b"one")
        raise KeyError("source")

    with pytest.raises(KeyError, match="source"):
        client.table("d.t").put_batches(source())


# --- cutting ---------------------------------------------------------------------------------------------------


def test_many_rows_are_cut_into_chunks_that_a_commit_may_hold() -> None:
    rows = [b"x" * 10] * (CHUNK_ROWS_MAX * 2 + 1)
    schema_id, bodies, lengths = batch(*rows)
    chunks = list(chunks_of_batch(schema_id, bodies, lengths, 100))
    assert [len(chunk.rows) for chunk in chunks] == [CHUNK_ROWS_MAX, CHUNK_ROWS_MAX, 1]
    assert [place for chunk in chunks for place in chunk.rows] == list(range(100, 100 + len(rows)))
    assert b"".join(chunk.batch.bodies for chunk in chunks) == bodies
    assert b"".join(chunk.batch.lengths for chunk in chunks) == lengths


def test_large_rows_are_cut_by_their_bytes_and_a_huge_one_travels_alone() -> None:
    rows = [b"a" * 1_000, b"b" * (CHUNK_BYTES_MAX + 1), b"c" * 1_000, b"d"]
    chunks = list(chunks_of_batch(*batch(*rows), 0))
    assert [chunk.batch.bodies for chunk in chunks] == [rows[0], rows[1], rows[2] + rows[3]]


def test_lengths_that_do_not_fit_the_bodies_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="4 bytes a row"):
        list(chunks_of_batch(1, b"", b"123", 0))
    with pytest.raises(InvalidArgument, match="add up"):
        list(chunks_of_batch(1, b"x" * (CHUNK_BYTES_MAX + 1), struct.pack("<I", 5), 0))


def test_a_load_of_a_wrong_mode_or_chunk_size_is_refused(client: Client) -> None:
    with pytest.raises(InvalidArgument, match="mode"):
        client.table("d.t").put_batches([], mode="overwrite")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="chunk_rows"):
        client.table("d.t").put_many([], chunk_rows=0)


def test_too_large_is_an_invalid_argument() -> None:
    # Rows that are too large are collected like any other bad row.
    assert issubclass(TooLarge, InvalidArgument)
