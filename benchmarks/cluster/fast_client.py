"""The same unary calls from h2load (Debian's nghttp2-client), a load generator in C that costs next to nothing.

It sends one request over and over: a put of one key, or a get of one. Each call is a stream of its own, with the bytes
that gRPC would send. It looks at no reply; one call by gRPC comes first, so that a refusal would be seen.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import grpc

from benchmarks.cluster.etcd_api import PutRequest, RangeRequest
from benchmarks.cluster.load import Outcome, percentile
from benchmarks.cluster.members import Cluster, Meter
from benchmarks.cluster.workloads import NAMESPACE, VALUE_BYTES, stored_key
from cortado.proto.v1 import kv_pb2

CONNECTIONS_MAX: Final = 4
WARM_S: Final = 1

_KEY: Final = stored_key(7)
_VALUE: Final = b"v" * VALUE_BYTES
REQUESTS: Final[dict[tuple[str, str], tuple[str, Any]]] = {
    ("etcd", "put"): ("/etcdserverpb.KV/Put", PutRequest(key=_KEY, value=_VALUE)),
    ("etcd", "get"): ("/etcdserverpb.KV/Range", RangeRequest(key=_KEY)),
    ("cortado", "put"): (
        "/cortado.v1.KeyValue/Put",
        kv_pb2.KvPutRequest(namespace=NAMESPACE, key=_KEY, value=_VALUE),
    ),
    ("cortado", "get"): ("/cortado.v1.KeyValue/Get", kv_pb2.KvGetRequest(namespace=NAMESPACE, key=_KEY)),
}


def find_h2load() -> str | None:
    """The program's path, or None where the machine lacks it."""
    return shutil.which("h2load")


def measure(program: str, cluster: Cluster, workload: str, callers: int, seconds: int) -> Outcome:
    """As :func:`benchmarks.cluster.load.measure`, for ``put`` and ``get``. Whole seconds."""
    leader = cluster.leader()
    if leader is None:
        raise RuntimeError(f"{cluster.name} has no leader")
    path, request = REQUESTS[cluster.name, workload]
    body: bytes = request.SerializeToString()
    _try_once(leader.endpoint, path, body)
    connections = min(CONNECTIONS_MAX, callers)
    with tempfile.TemporaryDirectory() as scratch:
        body_file, log = Path(scratch, "body"), Path(scratch, "log")
        body_file.write_bytes(b"\0" + len(body).to_bytes(4, "big") + body)
        command = [program, "--duration", str(seconds), "--warm-up-time", str(WARM_S), "--threads", "1"]
        command += ["--clients", str(connections), "--max-concurrent-streams", str(callers // connections)]
        command += ["--data", str(body_file), "--log-file", str(log)]
        command += ["--header", "content-type: application/grpc", "--header", "te: trailers"]
        meters = [Meter(leader.pid), *(Meter(each.pid) for each in cluster.members if each is not leader)]
        with subprocess.Popen([*command, f"http://{leader.endpoint}{path}"], stdout=subprocess.DEVNULL) as running:
            client = Meter(running.pid)
            # Not waited for: of a process that was, the kernel tells nothing any more.
            time.sleep(WARM_S + seconds)
            uses = [meter.read() for meter in meters]
            client_cores = client.read().cores
            running.wait(30)
        latencies = sorted(_latencies_us(log))
    return Outcome(
        rate=len(latencies) / seconds,
        p50_ms=percentile(latencies, 0.50) / 1_000,
        p99_ms=percentile(latencies, 0.99) / 1_000,
        leader=uses[0],
        followers=tuple(uses[1:]),
        client_cores=client_cores,
        failed=0,
    )


def _try_once(endpoint: str, path: str, body: bytes) -> None:
    """Raises grpc.RpcError where the call is refused."""
    with grpc.insecure_channel(endpoint) as channel:
        channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)(body, timeout=10)


def _latencies_us(log: Path) -> Iterator[int]:
    """A line is start, status and microseconds, with tabs between; a status other than 200 is no answer."""
    for line in log.read_text().splitlines():
        _, status, microseconds = line.split("\t")[:3]
        if status == "200":
            yield int(microseconds)
