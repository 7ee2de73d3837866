"""Schemas by their ids through the gateway, as consumers of Kafka's topics ask for them: from memory, over HTTP.

A server, a gateway and the callers are a process each, on loopback. Callers keep their connections and wait for each
answer. The gateway is one process and uses one core at most. The rate is that of a second of its processor's time: the
answers of one core, whatever else the machine does meanwhile. The limit below is uvicorn itself, in the same run, under
the same callers: an application that sends the same bytes for any request.

    python -m benchmarks.bench_registry [calls]
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import uvicorn
import uvloop
from rich.console import Console
from starlette.types import Receive, Scope, Send

from benchmarks.bench_grpc import serving
from benchmarks.report import Measurement, show
from cortado.store.client import Client
from cortado.store.gateway.bounds import Bounds
from cortado.store.gateway.connections import Connection
from cortado.store.gateway.limits import GatewayLimits

TITLE: Final = "Schema registry over HTTP"
CALLS: Final = 20_000
CALLERS: Final = (1, 64)
SCHEMAS: Final = 100
LOOKUPS_AIM: Final = 5_000
WAIT_S: Final = 60.0

_TICKS_S: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Rates:
    """Calls a second, and calls a second of the gateway's processor time."""

    wall: float
    core: float


def run(calls: int = CALLS) -> list[Measurement]:
    """Measure everything; takes about half a minute on two cores."""
    body = json.dumps({"schema": _schema(0)}).encode()
    with _uvicorn_alone(body) as (address, pid):
        alone = {callers: _measure(address, pid, calls, callers) for callers in CALLERS}
    with tempfile.TemporaryDirectory() as directory, serving("cortado", directory) as endpoint:
        with Client(endpoint) as client:
            for number in range(SCHEMAS):
                client.schemas.register(f"topic-{number}-value", _schema(number))
        with _gateway(endpoint, Path(directory)) as (address, pid):
            _measure(address, pid, SCHEMAS, 1)
            found = {callers: _measure(address, pid, calls, callers) for callers in CALLERS}
    return [
        Measurement(
            f"schema by id, {callers} callers, of {per}",
            getattr(found[callers], field),
            "calls",
            "uvicorn alone",
            getattr(alone[callers], field),
            LOOKUPS_AIM if field == "core" else 0,
        )
        for callers in CALLERS
        for field, per in (("core", "the gateway's core"), ("wall", "the clock"))
    ]


def settings(calls: int = CALLS) -> str:
    """Return one line for the table's head: data and method."""
    return f"{calls:,} calls for {SCHEMAS} ids whose schemas have 10 fields, connections kept, loopback"


def _schema(number: int) -> str:
    fields = [{"name": f"field_{i}", "type": ["null", "string"], "default": None} for i in range(10)]
    return json.dumps({"type": "record", "name": f"Reading{number}", "namespace": "bench", "fields": fields})


# --- the callers ---------------------------------------------------------------------------------------------------


def _measure(address: str, pid: int, calls: int, callers: int) -> _Rates:
    """Measure from another process, which has a core of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_registry", "--ask", address, str(pid), str(calls), str(callers)]
    told = subprocess.run(command, check=True, timeout=10 * WAIT_S, capture_output=True, text=True).stdout
    return _Rates(*map(float, told.split()))


def _processor_s(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS_S


async def _ask(address: str, pid: int, calls: int, callers: int) -> _Rates:
    each = calls // callers
    before_s, began_s = _processor_s(pid), time.perf_counter()
    await asyncio.gather(*(_caller(address, each, first) for first in range(callers)))
    wall_s = time.perf_counter() - began_s
    return _Rates(each * callers / wall_s, each * callers / (_processor_s(pid) - before_s))


async def _caller(address: str, calls: int, first: int) -> None:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for call in range(calls):
        schema_id = (first + call) % SCHEMAS + 1
        writer.write(f"GET /schemas/ids/{schema_id} HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the gateway answered {head[:40]!r}")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
    writer.close()


# --- the servers ---------------------------------------------------------------------------------------------------


@contextmanager
def _gateway(endpoint: str, directory: Path) -> Iterator[tuple[str, int]]:
    """Yield address and process id."""
    arguments = ["-m", "cortado.store.cli", "-e", endpoint, "gateway", "--listen", "127.0.0.1:0"]
    with _process(arguments, directory / "gateway.port") as running:
        yield running


@contextmanager
def _uvicorn_alone(body: bytes) -> Iterator[tuple[str, int]]:
    with tempfile.TemporaryDirectory() as directory:
        told = Path(directory, "port")
        with _process(["-m", "benchmarks.bench_registry", "--alone", body.decode()], told) as running:
            yield running


@contextmanager
def _process(arguments: list[str], told: Path) -> Iterator[tuple[str, int]]:
    process = subprocess.Popen([sys.executable, *arguments, "--port-file", str(told)], stdout=subprocess.DEVNULL)
    try:
        until_s = time.monotonic() + WAIT_S
        while not told.exists() or not told.read_text():
            if process.poll() is not None or time.monotonic() > until_s:
                raise RuntimeError(f"{' '.join(arguments[:2])} did not start")
            time.sleep(0.05)
        yield told.read_text().strip(), process.pid
    finally:
        process.terminate()
        process.wait(WAIT_S)


def _answer_alone(body: bytes, told: Path) -> None:
    """Serve uvicorn with the gateway's connections, and an application that looks at nothing."""
    head = [(b"content-length", str(len(body)).encode()), (b"content-type", b"application/json")]

    async def application(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})

    config = uvicorn.Config(
        application,
        http=partial(Connection, Bounds(GatewayLimits())),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
    )
    taken = config.bind_socket()
    host, port = taken.getsockname()[:2]
    told.write_text(f"{host}:{port}\n")
    uvloop.run(uvicorn.Server(config).serve(sockets=[taken]))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--ask", address, pid, calls, callers]:
            rates = asyncio.run(_ask(address, int(pid), int(calls), int(callers)))
            print(rates.wall, rates.core)
        case ["--alone", body, "--port-file", told]:
            _answer_alone(body.encode(), Path(told))
        case [calls]:
            show(TITLE, settings(int(calls)), run(int(calls)), Console())
        case _:
            show(TITLE, settings(), run(), Console())
