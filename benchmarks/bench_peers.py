"""Between nodes, on loopback, each a process with an event loop of its own (uvloop): one message to a peer and back.

Beside it, in the same run, a bidirectional stream of grpc.aio carries the same bytes, as nodes did before
(docs/adr/0029-frames-between-nodes.md), though without that version's queues and checks. The measure is CPU time: a
leader's event loop does its peers' messages besides everything else. Both processes' time is counted, and divided by
two: a hop is one message sent and received.

    python -m benchmarks.bench_peers [round trips]
"""

from __future__ import annotations

import asyncio
import random
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, cast

import grpc
import uvloop
from rich.console import Console

from benchmarks.report import Measurement, show
from cortado.raft.log import Message
from cortado.raft.registry import Member, Roster
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.interface import PeerNode
from cortado.store.peers.listener import PeerListener
from cortado.store.peers.service import PeersService
from cortado.store.peers.transport import PeerTransport

TITLE: Final = "Between nodes"
ROUND_TRIPS: Final = 20_000
WARM: Final = 2_000
BODY: Final = bytes(200)
BELOW: Final = "a bare gRPC stream"
METHOD: Final = "/bench/Echo"


def settings() -> str:
    return f"one message of {len(BODY)} bytes at a time, there and back; loopback, uvloop, without TLS"


def run(round_trips: int = ROUND_TRIPS) -> list[Measurement]:
    """Measure everything; takes about half a minute."""
    (trips, hops), (trips_below, hops_below) = (_rates(name, round_trips) for name in ("frames", "grpc"))
    return [
        Measurement("one message there and back", trips, "round trips", BELOW, trips_below),
        Measurement("of one CPU, with both processes' part", hops, "hops", BELOW, hops_below),
    ]


def _rates(name: str, round_trips: int) -> tuple[float, float]:
    """Return round trips a second, and hops in a second of CPU time."""
    command = [sys.executable, "-m", "benchmarks.bench_peers", "--serve", name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        address = child.stdout.readline().decode().strip()
        calling = _call_frames if name == "frames" else _call_grpc
        wall_s, here_s = uvloop.run(calling(address, round_trips))
        child.stdin.close()
        there_s = float(child.stdout.readline()) * round_trips / (round_trips + WARM)
    return round_trips / wall_s, 2 * round_trips / (here_s + there_s)


# --- a node that only has peers --------------------------------------------------------------------------------


class _Node:
    """A :class:`PeerNode` that hands on its peers' messages."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.heard: Callable[[str, Sequence[bytes]], None] = lambda *_: None

    @property
    def meta(self) -> _Node:
        return self

    def receive(self, sender: str, _group_id: int, bodies: Sequence[bytes]) -> None:
        self.heard(sender, bodies)

    def observe_peer_clock(self, node_id: str, low_ms: float, high_ms: float) -> None:
        pass

    def log_position(self) -> tuple[int, int]:
        return (1, 1)

    def known_member(self, node_id: str) -> Member | None:
        return self.members.get(node_id)

    def is_removed(self, _node_id: str) -> bool:
        return False

    def is_believed(self, _node_id: str) -> bool:
        return False


def _transport(node: _Node, node_id: str, address: str) -> PeerTransport:
    transport = PeerTransport(
        Identity("bench", node_id, f"disk-{node_id}"),
        address,
        certificates=None,
        physical_ms=lambda: time.time_ns() // 1_000_000,
        monotonic_ms=lambda: time.monotonic_ns() / 1_000_000,
        chance=random.Random(1),
    )
    transport.attach(cast(PeerNode, node))
    return transport


async def _call_frames(address: str, round_trips: int) -> tuple[float, float]:
    node = _Node()
    transport = _transport(node, "n1", "127.0.0.1:1")
    node.members = {"n2": Member("n2", address, "disk-n2")}
    came = asyncio.Event()
    node.heard = lambda *_: came.set()
    transport.configure(Roster.of((node.members["n2"],)))
    while transport.link_to("n2") is None:
        await asyncio.sleep(0.01)

    async def once() -> None:
        came.clear()
        transport.send(1, [Message("n2", BODY)])
        await came.wait()

    try:
        return await _timed(once, round_trips)
    finally:
        await transport.close()


async def _serve_frames() -> None:
    node = _Node()
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listening.getsockname()[1]}"
    transport = _transport(node, "n2", address)
    node.members = {"n1": Member("n1", "127.0.0.1:1", "disk-n1")}
    node.heard = lambda sender, bodies: transport.send(1, [Message(sender, body) for body in bodies])
    listener = PeerListener(PeersService(cast(PeerNode, node), transport), transport)
    listener.start([listening])
    await _served(address)
    await transport.close()
    await listener.close()


# --- the same over gRPC ----------------------------------------------------------------------------------------


async def _call_grpc(address: str, round_trips: int) -> tuple[float, float]:
    async with grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.stream_stream(METHOD)()

        async def once() -> None:
            await call.write(BODY)
            await call.read()

        return await _timed(once, round_trips)


async def _serve_grpc() -> None:
    async def echo(_: object, context: Any) -> None:
        while (message := await context.read()) is not grpc.aio.EOF:
            await context.write(message)

    server = grpc.aio.server()
    handler = grpc.method_handlers_generic_handler("bench", {"Echo": grpc.stream_stream_rpc_method_handler(echo)})
    server.add_generic_rpc_handlers([handler])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await _served(f"127.0.0.1:{port}")
    await server.stop(0)


# --- measuring -------------------------------------------------------------------------------------------------


async def _timed(once: Callable[[], Awaitable[None]], round_trips: int) -> tuple[float, float]:
    """Return seconds, and those of this process's CPU."""
    for _ in range(WARM):
        await once()
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    for _ in range(round_trips):
        await once()
    return time.perf_counter() - wall_s, time.process_time() - cpu_s


async def _served(address: str) -> None:
    """Print the address, and serve until stdin ends; then print the CPU time that it took."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    after = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.write(f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}\n")
    sys.stdout.flush()


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        uvloop.run(_serve_frames() if sys.argv[2] == "frames" else _serve_grpc())
        return
    show(TITLE, settings(), run(int(sys.argv[1]) if sys.argv[1:] else ROUND_TRIPS), Console())


if __name__ == "__main__":
    main()
