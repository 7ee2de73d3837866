"""A unary call each, as clients in any language send them: h2load (Debian's nghttp2-client), a load generator in C.

It sends one request over and over, with the bytes that gRPC would send: a put of one key, or a get of one. All calls
are streams of one connection, as those of an application's channel are. It costs next to nothing itself, and does not
use the stream on which Cortado's own clients share messages.

It looks at no reply, and gRPC reports a refused call beside HTTP's status 200. So the bytes are checked: as much data
as the answers have (a refusal has none), and after puts a get that finds their value.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grpc

from benchmarks.cluster.drivers import Seen, percentile
from benchmarks.cluster.members import Meter
from benchmarks.cluster.workloads import NAMESPACE, STORED_KEY, VALUE_BYTES, WARM_MS
from cortado.proto.v1 import kv_pb2

KEY: Final = STORED_KEY % 7
FRAME_BYTES: Final = 5
"""The bytes before each message: whether it is compressed, and how long it is."""
ANSWERED_MIN: Final = 0.98
"""The least share of the data that the answers should have; the round's edges cut some in two."""
PATHS: Final = {
    ("etcd", "unary_put"): "/etcdserverpb.KV/Put",
    ("etcd", "unary_get"): "/etcdserverpb.KV/Range",
    ("cortado", "unary_put"): "/cortado.v1.KeyValue/Put",
    ("cortado", "unary_get"): "/cortado.v1.KeyValue/Get",
}


def find_h2load() -> str | None:
    """Return the program's path, or None if the machine lacks it."""
    return shutil.which("h2load")


def request(system: str, workload: str, value: bytes) -> bytes:
    """Return a call's message. etcd's PutRequest has the key as field 1 and the value as 2, RangeRequest the key."""
    is_put = workload == "unary_put"
    if system == "etcd":
        return _field(1, KEY) + (_field(2, value) if is_put else b"")
    if is_put:
        return kv_pb2.KvPutRequest(namespace=NAMESPACE, key=KEY, value=value).SerializeToString()
    return kv_pb2.KvGetRequest(namespace=NAMESPACE, key=KEY).SerializeToString()


def _field(number: int, content: bytes) -> bytes:
    """Encode bytes as a field of protobuf: its number and kind, its length seven bits at a time, itself."""
    length, encoded = len(content), bytearray([number << 3 | 2])
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes(encoded) + bytes([length]) + content


class H2load:
    """A process of h2load for each round. ``callers`` calls are in flight."""

    def __init__(self, program: str, system: str, workload: str, callers: int, endpoint: str) -> None:
        self._program = program
        self._system = system
        self._workload = workload
        self._callers = callers
        self._endpoint = endpoint
        self._scratch = tempfile.TemporaryDirectory(prefix="bench-h2load-")
        self._value = b""
        self._answer_bytes = 0

    def begin(self, seconds: float) -> None:
        # Another one each round: a get that finds it shows that this round's puts were done.
        self._value = os.urandom(VALUE_BYTES)
        if self._workload == "unary_get":
            self._call("unary_put", request(self._system, "unary_put", self._value))
        body = request(self._system, self._workload, self._value)
        self._answer_bytes = FRAME_BYTES + len(self._call(self._workload, body))
        body_file = Path(self._scratch.name, "body")
        body_file.write_bytes(b"\0" + len(body).to_bytes(4, "big") + body)
        Path(self._scratch.name, "log").unlink(missing_ok=True)
        command = [self._program, "--duration", f"{seconds * 1_000:.0f}ms", "--warm-up-time", f"{WARM_MS}ms"]
        command += ["--threads", "1", "--clients", "1", "--max-concurrent-streams", str(self._callers)]
        command += ["--data", str(body_file), "--log-file", str(Path(self._scratch.name, "log"))]
        command += ["--header", "content-type: application/grpc", "--header", "te: trailers"]
        url = f"http://{self._endpoint}{PATHS[self._system, self._workload]}"
        self._process = subprocess.Popen([*command, url], stdout=subprocess.PIPE, text=True)
        time.sleep(WARM_MS / 1_000)
        self._meter = Meter(self._process.pid)

    def end(self) -> Seen:
        cpu_s = self._meter.cpu_s()
        said, _ = self._process.communicate(timeout=60)
        latencies = sorted(latencies_us(Path(self._scratch.name, "log")))
        self._check(said, len(latencies))
        return Seen(len(latencies), percentile(latencies, 0.50), percentile(latencies, 0.99), cpu_s, failed=0)

    def close(self) -> None:
        self._scratch.cleanup()

    def _check(self, said: str, calls: int) -> None:
        """Raise RuntimeError if calls were refused, or puts did nothing."""
        came = data_bytes(said)
        if came < ANSWERED_MIN * calls * self._answer_bytes:
            raise RuntimeError(f"{calls} calls to {self._system} brought {came} bytes of data: some were refused")
        if self._workload == "unary_put":
            found = self._call("unary_get", request(self._system, "unary_get", b""))
            if self._value not in found:
                raise RuntimeError(f"{self._system} does not have what was put")

    def _call(self, workload: str, body: bytes) -> bytes:
        """Return the answer to one call. Raises grpc.RpcError if it is refused."""
        with grpc.insecure_channel(self._endpoint) as channel:
            call = channel.unary_unary(
                PATHS[self._system, workload], request_serializer=bytes, response_deserializer=bytes
            )
            answer: bytes = call(body, timeout=10)
            return answer


def data_bytes(said: str) -> int:
    """Return the bytes of messages, without headers, from
    ``traffic: 1.4MB (1437) total, 22KB (22) headers (...), 1.3MB (1300) data``."""
    found = re.search(r"traffic:.*\((\d+)\) data", said)
    if found is None:
        raise RuntimeError(f"h2load says nothing of traffic: {said!r:.200}")
    return int(found[1])


def latencies_us(log: Path) -> Iterator[int]:
    """Yield latencies. A line is start, status and microseconds, with tabs between; only status 200 is an answer."""
    for line in log.read_text().splitlines():
        _, status, microseconds = line.split("\t")[:3]
        if status == "200":
            yield int(microseconds)
