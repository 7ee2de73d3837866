"""Data in flight has one budget: a real server's memory stays within it under any load.

Bounds are generous: Python and gRPC keep some memory that they once had.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from cortado.errors import ResourceExhausted
from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2, tables_pb2
from cortado.schema.documents import encode_document
from cortado.schema.parse import parse_schema
from cortado.store.client import Client
from support.fronts import FRONTS
from support.grpc_errors import from_rpc_error, was_answered
from support.memory import MIB, anonymous_bytes, peak_of
from support.server_process import running_server, wait_until
from support.wire import Wire, table_name

pytestmark = [pytest.mark.long, pytest.mark.process]

FIELDS = ({"name": "id", "type": "long"}, {"name": "text", "type": "string"})
SCHEMA = parse_schema(json.dumps({"type": "record", "name": "R", "fields": FIELDS}))
SMALL_BUDGET = ("--limit.in-flight-bytes-max", "256MiB")


def make_table(wire: Wire) -> int:
    """The table db.t; its schema's id."""
    wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="db"))
    schema_id = wire.register("db.t", *FIELDS)
    wire.create_table("db", "t", ["id"])
    return schema_id


def chunks(
    schema_id: int, first: int, count: int, rows: int, row_bytes: int = 1_000
) -> Iterator[documents_pb2.BulkRequest]:
    """``count`` chunks of so many ``rows``."""
    yield documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=table_name("db.t")))
    for sequence in range(count):
        at = first + sequence * rows
        bodies = [encode_document(SCHEMA, {"id": at + row, "text": "x" * row_bytes}) for row in range(rows)]
        lengths = b"".join([len(body).to_bytes(4, "little") for body in bodies])
        batch = common_pb2.RowBatch(schema_id=schema_id, bodies=b"".join(bodies), lengths=lengths)
        yield documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=sequence, rows=batch))


def test_a_long_bulk_stream_keeps_no_chunk_that_was_answered(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server:
        wire = Wire(server.endpoint)
        schema_id = make_table(wire)
        with peak_of(server.pid) as peak:
            written = sum(reply.written for reply in wire.documents.Bulk(chunks(schema_id, 0, 1_400, 1_000)))
        assert written == 1_400_000
        # Less than half of the 1,335 MiB of all chunks. It comes to some 440 MiB, for any number of chunks. It holds
        # committed entries that are not applied yet, more of them on a slow disk, and the end of the log
        # (raft.retain-bytes).
        assert peak.mib < 650


@pytest.mark.parametrize("front", FRONTS)
def test_many_bulk_streams_of_large_chunks_wait_for_the_budget_and_all_are_written(front: str, tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--front", front, *SMALL_BUDGET) as server:
        wire = Wire(server.endpoint)
        schema_id = make_table(wire)
        made = [list(chunks(schema_id, 4_000 * stream, 2, 4_000)) for stream in range(4)]
        written: list[int] = []

        def load(stream: int) -> None:
            # A connection of its own: it has a share, and what arrives is held up by no other stream's flow control.
            own = Wire(server.endpoint, is_alone=True)
            written.append(sum(reply.written for reply in own.documents.Bulk(iter(made[stream % 4]), timeout=120)))
            own.channel.close()

        with peak_of(server.pid) as peak:
            streams = [threading.Thread(target=load, args=(stream,)) for stream in range(48)]
            for each in streams:
                each.start()
            for each in streams:
                each.join()
        assert written == [8_000] * 48
        # The budget, and of each stream that waits a message, and what gRPC has read of the next.
        assert peak.mib < 256 + 48 * 12


def test_ten_rounds_of_bulk_loads_end_level(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", *SMALL_BUDGET) as server:
        wire = Wire(server.endpoint)
        schema_id = make_table(wire)
        made = list(chunks(schema_id, 0, 1, 4_000))

        def load() -> None:
            own = Wire(server.endpoint)
            assert sum(reply.written for reply in own.documents.Bulk(iter(made), timeout=120)) == 4_000
            own.channel.close()

        def round_() -> int:
            streams = [threading.Thread(target=load) for _ in range(24)]
            for each in streams:
                each.start()
            for each in streams:
                each.join()
            return anonymous_bytes(server.pid)

        before = anonymous_bytes(server.pid)
        rounds = [round_() for _ in range(10)]
        # Free memory goes back a moment later. The end of the log stays (raft.retain-bytes), and the last changes do.
        level = before + 260 * MIB
        wait_until(lambda: anonymous_bytes(server.pid) < level, f"little is kept of {[each // MIB for each in rounds]}")
        assert max(rounds[5:]) < max(rounds[:5]) + 128 * MIB


def test_loads_of_large_rows_over_the_same_keys_stay_within_the_budget_while_old_versions_go(tmp_path: Path) -> None:
    rounds, rows = 3, 10
    with (
        running_server(tmp_path / "data", *SMALL_BUDGET, "--retention", "1s") as server,
        Client(server.endpoint) as client,
    ):
        wire = Wire(server.endpoint)
        schema_id = make_table(wire)
        written: list[int] = []

        def load(stream: int) -> None:
            own = Wire(server.endpoint, is_alone=True)
            made = chunks(schema_id, 1_000 * stream, 3, rows, row_bytes=400_000)
            written.append(sum(reply.written for reply in own.documents.Bulk(made, timeout=240)))
            own.channel.close()

        with peak_of(server.pid) as peak:
            for number in range(rounds):
                streams = [threading.Thread(target=load, args=(stream,)) for stream in range(64)]
                for each in streams:
                    each.start()
                for each in streams:
                    each.join()
                gone = number * 64 * 3 * rows
                wait_until(lambda gone=gone: client.admin.gc.status().removed >= gone, "old versions go")
        assert written == [3 * rows] * 64 * rounds
        # The budget, the incoming message of each stream, the end of the log (raft.retain-bytes), and the items that
        # one transaction packs.
        assert peak.mib < 256 + 64 * 4 + 64 + 36


@pytest.mark.parametrize("front", FRONTS)
def test_two_thousand_callers_of_256_kib_are_answered_or_refused_within_the_budget(front: str, tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--front", front, *SMALL_BUDGET) as server:
        # Checking the rights of writers keeps no data in flight.
        with Client(server.endpoint) as client:
            token = client.admin.auth.enable("root").token
        assert token is not None
        metadata = (("authorization", f"Bearer {token.text}"),)
        request = kv_pb2.KvPutRequest(namespace="t", key=b"k", value=bytes(256 << 10)).SerializeToString()
        # Connections of their own.
        options = [("grpc.use_local_subchannel_pool", 1)]
        channels = [grpc.insecure_channel(server.endpoint, options) for _ in range(8)]
        puts = [channel.unary_unary("/cortado.v1.KeyValue/Put") for channel in channels]
        with peak_of(server.pid) as peak:
            calls = [puts[number % 8].future(request, timeout=120, metadata=metadata) for number in range(2_000)]
            errors = [call.exception() for call in calls]
        done = sum(error is None for error in errors)
        resources = set()
        for error in errors:
            if error is not None:
                assert was_answered(error), error
                refusal = from_rpc_error(error)
                assert isinstance(refusal, ResourceExhausted)
                assert refusal.retry_delay_ms > 0
                resources.add(refusal.resource)
        assert done > 0
        assert resources <= {"calls", "writes"}
        # The budget, and of each call that waits for its turn a window of HTTP/2.
        assert peak.mib < 256 + 2_000 / 16
        found = Wire(server.endpoint).kv.Get(
            kv_pb2.KvGetRequest(namespace="t", key=b"k"), timeout=10, metadata=metadata
        )
        assert len(found.pair.value) == 256 << 10
