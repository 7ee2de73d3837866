"""More than a server can do: refusals at once, flat queues, deadlines kept, and everything well afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from cortado.errors import ResourceExhausted
from cortado.proto.v1 import cluster_pb2, documents_pb2, kv_pb2, tables_pb2
from support.fronts import FRONTS
from support.grpc_errors import from_rpc_error, was_answered
from support.server_process import running_server, wait_until
from support.wire import Wire, put_pair, refused, table_name

pytestmark = pytest.mark.process


def counts(wire: Wire) -> dict[str, int]:
    return {queue.name: int(queue.count) for queue in wire.cluster.Status(cluster_pb2.StatusRequest()).queues}


def write(wire: Wire, i: int) -> grpc.Future:
    return wire.kv.Put.future(kv_pb2.KvPutRequest(namespace="t", key=b"%06d" % i, value=bytes(1_000)), timeout=300)


@pytest.mark.parametrize("front", FRONTS)
def test_past_the_bound_of_writes_each_is_done_or_refused_with_a_delay(front: str, tmp_path: Path) -> None:
    limits = ("--limit.writes-max", "16", "--limit.batch-commands-max", "8")
    with running_server(tmp_path / "data", "--front", front, *limits) as server:
        wire = Wire(server.endpoint)
        outcomes = []
        for call in [write(wire, i) for i in range(3_000)]:
            error = call.exception()
            assert error is None or was_answered(error), error
            outcomes.append(None if error is None else from_rpc_error(error))
        refusals = [each for each in outcomes if each is not None]
        assert refusals, "3,000 writes at once are more than 16"
        assert all(isinstance(each, ResourceExhausted) and each.retry_delay_ms > 0 for each in refusals)
        assert {each.resource for each in refusals if isinstance(each, ResourceExhausted)} == {"writes"}
        pages = wire.kv.Scan(kv_pb2.KvScanRequest(namespace="t", keys_only=True))
        stored = {pair.key for page in pages for pair in page.pairs}
        assert stored == {b"%06d" % i for i, each in enumerate(outcomes) if each is None}
        assert counts(wire)["writes"] == 0


@pytest.mark.parametrize("front", FRONTS)
def test_past_the_share_of_scans_another_one_is_refused(front: str, tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--front", front, "--limit.scans-max", "4") as server:
        wire = Wire(server.endpoint)
        for start in range(0, 4_000, 1_000):
            wire.commit(*(put_pair("t", b"%06d" % i, bytes(4_000)) for i in range(start, start + 1_000)))
        scans = [wire.kv.Scan(kv_pb2.KvScanRequest(namespace="t")) for _ in range(2)]
        for each in scans:
            next(each)
        error = refused(lambda: wire.kv.Scan(kv_pb2.KvScanRequest(namespace="t")))
        assert isinstance(error, ResourceExhausted)
        assert (error.resource, error.limit) == ("scans", 4)
        assert sum(len(page.pairs) for page in scans[0]) > 0
        wait_until(lambda: counts(wire)["scans"] == 1, "the first scan is done")
        assert sum(len(page.pairs) for page in wire.kv.Scan(kv_pb2.KvScanRequest(namespace="t"))) == 4_000
        scans[1].cancel()


@pytest.mark.parametrize("front", FRONTS)
def test_a_deadline_ends_a_scan_and_the_server_stops_working_on_it(front: str, tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--front", front) as server:
        wire = Wire(server.endpoint)
        for start in range(0, 8_000, 1_000):
            wire.commit(*(put_pair("t", b"%06d" % i, bytes(4_000)) for i in range(start, start + 1_000)))
        pages = 0
        with pytest.raises(grpc.RpcError) as ended:
            for _ in wire.kv.Scan(kv_pb2.KvScanRequest(namespace="t"), timeout=0.3):
                time.sleep(0.05)
                pages += 1
        assert ended.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert pages < 60, "and not all of them"
        wait_until(lambda: counts(wire)["scans"] == 0, "the scan has stopped")


@pytest.mark.parametrize("front", FRONTS)
def test_a_bulk_stream_into_a_small_queue_is_slowed_down_and_not_refused(front: str, tmp_path: Path) -> None:
    limits = ("--limit.writes-max", "2", "--limit.bulk-chunks-max", "8")
    with running_server(tmp_path / "data", "--front", front, *limits) as server:
        wire = Wire(server.endpoint)
        wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="db"))
        wire.register("db.t", {"name": "a", "type": "long"})
        wire.create_table("db", "t", ["a"])

        def requests(first: int) -> Iterator[documents_pb2.BulkRequest]:
            yield documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=table_name("db.t")))
            for sequence in range(50):
                rows = [json.dumps({"a": first + sequence})]
                yield documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=sequence, json_rows=rows))

        streams = [wire.documents.Bulk(requests(1_000 * stream), timeout=60) for stream in range(4)]
        assert [sum(reply.written for reply in stream) for stream in streams] == [50] * 4
        assert counts(wire)["bulk streams"] == 0
