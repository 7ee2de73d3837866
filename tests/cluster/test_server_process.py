"""A real server process on loopback: crashes, restarts, a wrong clock, and its errors when it can't start."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cortado.errors import OutcomeUnknown
from cortado.proto.v1 import cluster_pb2, cluster_pb2_grpc, common_pb2, kv_pb2, kv_pb2_grpc
from cortado.store.clock.timestamp import Timestamp
from support.grpc_errors import from_rpc_error
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = pytest.mark.process

MS_2071 = int(datetime(2071, 1, 1, tzinfo=UTC).timestamp() * 1000)


class Wire:
    """Raw stubs on one channel."""

    def __init__(self, endpoint: str) -> None:
        self.channel = grpc.insecure_channel(endpoint)
        self.kv = kv_pb2_grpc.KeyValueStub(self.channel)
        self.cluster = cluster_pb2_grpc.ClusterStub(self.channel)

    def put(self, key: bytes, value: bytes, request_id: bytes = b"") -> kv_pb2.KvPutResponse:
        return self.kv.Put(kv_pb2.KvPutRequest(namespace="t", key=key, value=value, request_id=request_id), timeout=10)

    def get(self, key: bytes, at: Timestamp | None = None) -> bytes | None:
        read_at = None
        if at is not None:
            read_at = common_pb2.ReadAt(
                timestamp=common_pb2.Timestamp(epoch=at.epoch, wall_ms=at.wall_ms, logical=at.logical)
            )
        reply = self.kv.Get(kv_pb2.KvGetRequest(namespace="t", key=key, at=read_at), timeout=10)
        return reply.pair.value if reply.HasField("pair") else None

    def keys(self) -> list[bytes]:
        pages = self.kv.Scan(kv_pb2.KvScanRequest(namespace="t", keys_only=True), timeout=30)
        return [pair.key for page in pages for pair in page.pairs]

    def has_applied_all(self) -> bool:
        status = self.cluster.Status(cluster_pb2.StatusRequest(), timeout=10)
        return bool(status.applied_index == status.last_index)


def value_of(message: common_pb2.Timestamp) -> Timestamp:
    return Timestamp(message.epoch, message.wall_ms, message.logical)


def refused_server(*options: str) -> subprocess.CompletedProcess[str]:
    """A server that is expected to end by itself."""
    command = [sys.executable, "-m", "cortado.store.cli", "server", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_nothing_acknowledged_is_lost_by_a_kill_at_any_instant(tmp_path: Path) -> None:
    acknowledged: list[bytes] = []
    server = ServerProcess(tmp_path / "data")
    try:
        for life in range(3):
            wire = Wire(server.start().endpoint)
            assert set(acknowledged) <= set(wire.keys())

            def write(life: int = life, wire: Wire = wire) -> None:
                for number in range(100_000):
                    key = b"%d-%06d" % (life, number)
                    try:
                        wire.put(key, key)
                    except grpc.RpcError:
                        return
                    acknowledged.append(key)

            writers = [threading.Thread(target=write)]
            before = len(acknowledged)
            for each in writers:
                each.start()
            wait_until(lambda before=before: len(acknowledged) > before + 200, "200 writes are acknowledged")
            server.kill()
            for each in writers:
                each.join()
        wire = Wire(server.start().endpoint)
        found = wire.keys()
        assert set(acknowledged) <= set(found)
        assert len(found) <= len(acknowledged) + 3, "at most the one in flight at each kill is there besides"
    finally:
        server.kill()


def test_timestamps_and_terms_rise_over_a_kill(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        last, last_term = Timestamp(0, 0, 0), 0
        for _ in range(3):
            header = Wire(server.start().endpoint).put(b"k", b"v").header
            assert value_of(header.timestamp) > last
            assert header.term > last_term
            last, last_term = value_of(header.timestamp), header.term
            server.kill()
    finally:
        server.kill()


def test_a_retry_after_a_kill_has_one_effect(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        wire = Wire(server.start().endpoint)
        request_id = bytes(value_of(wire.put(b"other", b"").header.timestamp)) + bytes(8)
        first = wire.put(b"k", b"v", request_id)
        server.kill()
        wire = Wire(server.start().endpoint)
        again = wire.put(b"k", b"v", request_id)
        assert again.header.term > first.header.term, "the header is of the node that answers, as it is now"
        again.header.term = first.header.term
        assert again == first
        assert value_of(wire.put(b"other", b"").header.timestamp) > value_of(first.header.timestamp)
    finally:
        server.kill()


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_a_stop_is_clean_and_finishes_what_is_in_flight(tmp_path: Path, signal_name: str) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        wire = Wire(server.start().endpoint)
        calls = [
            wire.kv.Put.future(kv_pb2.KvPutRequest(namespace="t", key=b"%04d" % i, value=b"v")) for i in range(500)
        ]
        calls[0].result()
        if signal_name == "SIGINT":
            subprocess.run(["kill", "-INT", str(server.pid)], check=True)
        assert server.stop() == 0
        done = [i for i, call in enumerate(calls) if call.exception() is None]
        wire = Wire(server.start().endpoint)
        assert {b"%04d" % i for i in done} <= set(wire.keys())
        assert server.stop() == 0
        assert "Traceback" not in server.log
    finally:
        server.kill()


def test_a_directory_in_use_is_refused_with_the_process_that_has_it(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server:
        second = refused_server("--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
        assert second.returncode != 0
        assert f"in use by process {server.pid}" in second.stderr
        assert "Traceback" not in second.stderr
        assert Wire(server.endpoint).put(b"k", b"v").etag


def test_a_server_whose_lock_was_removed_stops_when_another_has_taken_its_data(tmp_path: Path) -> None:
    acknowledged = {b"first"}
    with running_server(tmp_path / "data") as server:
        wire = Wire(server.endpoint)
        wire.put(b"first", b"v")
        # Or the second one may find that the first has written this between two steps of its own.
        wait_until(wire.has_applied_all, "the first server has nothing left to write")
        (tmp_path / "data" / "LOCK").unlink()
        (tmp_path / "same").symlink_to(tmp_path / "data", target_is_directory=True)
        with running_server(tmp_path / "same") as second:
            other = Wire(second.endpoint)
            other.put(b"second", b"v")
            acknowledged.add(b"second")
            with pytest.raises(grpc.RpcError) as ended:
                wire.put(b"lost", b"v")
            assert isinstance(from_rpc_error(ended.value), OutcomeUnknown)
            wait_until(lambda: "another process has written" in server.log, "the first server says why it ends")
            other.put(b"third", b"v")
            acknowledged.add(b"third")
            assert set(other.keys()) == acknowledged


def test_an_address_in_use_is_refused(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server:
        second = refused_server("--data-dir", str(tmp_path / "other"), "--listen", server.endpoint)
        assert second.returncode != 0
        assert f"cannot listen on {server.endpoint}" in second.stderr
        assert "Traceback" not in second.stderr


def test_a_server_whose_clock_went_to_2071_comes_back_by_a_bump(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    history: list[tuple[Timestamp, bytes]] = []

    def write(wire: Wire, value: bytes) -> Timestamp:
        ts = value_of(wire.put(b"k", value).header.timestamp)
        assert not history or ts > history[-1][0]
        history.append((ts, value))
        for at, expected in history:
            assert wire.get(b"k", at) == expected
        assert wire.get(b"k") == value
        return ts

    with running_server(data_dir) as server:
        write(Wire(server.endpoint), b"before")
        assert server.stop() == 0
    ahead_ms = MS_2071 - history[0][0].wall_ms
    with running_server(data_dir, "--clock-offset-ms", str(ahead_ms)) as server:
        assert write(Wire(server.endpoint), b"in 2071").as_datetime().year == 2071
        server.kill()
    with running_server(data_dir) as server:
        wire = Wire(server.endpoint)
        assert write(wire, b"the clock is right, time is not").as_datetime().year == 2071
        clock = wire.cluster.Clock(cluster_pb2.ClockRequest())
        assert clock.now.wall_ms - clock.physical_ms > 1_000_000
        bumped = wire.cluster.BumpEpoch(cluster_pb2.BumpEpochRequest(from_epoch=0))
        assert bumped.epoch == 1
        after = write(wire, b"after")
        assert after.epoch == 1
        assert after.as_datetime().year < 2071
        server.kill()
    with running_server(data_dir) as server:
        assert write(Wire(server.endpoint), b"and after a restart").epoch == 1


def test_health_says_serving_for_each_service_and_reflection_lists_them(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server:
        channel = grpc.insecure_channel(server.endpoint)
        health = health_pb2_grpc.HealthStub(channel)
        for name in ("", "cortado.v1.KeyValue", "cortado.v1.Documents", "cortado.v1.Cluster"):
            reply = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=10)
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
        from google.protobuf.descriptor_pool import DescriptorPool
        from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

        database = ProtoReflectionDescriptorDatabase(channel)
        services = set(database.get_services())
        assert {
            f"cortado.v1.{name}" for name in ("KeyValue", "Documents", "Schemas", "Tables", "Transactions", "Cluster")
        } <= services
        scan = DescriptorPool(database).FindServiceByName("cortado.v1.Documents").FindMethodByName("Scan")
        assert scan.server_streaming


FAILING_SERVER = """
import sys
from pathlib import Path
from cortado.store.engine.failures import StorageFailed
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.server import ServerConfig, serve

apply = StateMachine.apply

def broken(self, state, entries):
    if any(b"break" in entry.payload.encode() for entry in entries):
        raise StorageFailed("input/output error") if sys.argv[2] == "disk" else ZeroDivisionError
    return apply(self, state, entries)

StateMachine.apply = broken
serve(ServerConfig(data_dir=Path(sys.argv[1]), listen="127.0.0.1:0"))
"""


@pytest.mark.parametrize(("what", "code"), [("disk", 74), ("defect", 70)])
def test_a_failed_disk_or_a_defect_in_applying_ends_the_process(tmp_path: Path, what: str, code: int) -> None:
    command = [sys.executable, "-c", FAILING_SERVER, str(tmp_path / "data"), what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            wire = Wire(process.stdout.readline().split()[-1])
            wire.put(b"k", b"v")
            # It is answered when it is in the log: that the data cannot follow comes later.
            wire.put(b"break", b"v")
            assert process.wait(30) == code
        finally:
            process.kill()
    with running_server(tmp_path / "data") as server:
        assert Wire(server.endpoint).keys() == [b"break", b"k"]
