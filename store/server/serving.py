"""The composition root: the one place that touches the real clock, the network, signals and the process.

::

    serve(config) ─► engine (data directory) ─► port ─► join, once ─► Node ◄─► PeerTransport
                                                                       │
                     services on the port ─► until SIGTERM or SIGINT ──┤
                     hand leadership over ─► end what is in flight ────┤
                                             a failed disk, or a defect in applying: the process ends

Exit: :func:`serve` returns after a clean stop. Where the disk failed under a write, the process ends with code 74,
where applying the log failed otherwise, with 70 (``sysexits.h``): nothing may go on in an engine whose state nobody
knows. A join that was refused is a :class:`~cortado.store.server.exits.StartRefused`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
import uvloop
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from cortado.errors import CortadoError, InvalidArgument, Unavailable
from cortado.proto.v1 import calls_pb2, cluster_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2
from cortado.store.engine.failures import StorageFailed
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.node.node import Node, NodeIdentity
from cortado.store.node.snapshots.spools import DiskSpools
from cortado.store.node.status import NO_LEADER
from cortado.store.peers.credentials import Certificates, TlsFiles
from cortado.store.peers.service import PeersService
from cortado.store.peers.transport import PeerTransport
from cortado.store.server.addresses import address_of, why_not_bound
from cortado.store.server.calls_service import CallsService
from cortado.store.server.cluster_service import ClusterService
from cortado.store.server.config import MESSAGE_BYTES_MAX, ServerConfig
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.exits import EXIT_IO, EXIT_SOFTWARE
from cortado.store.server.joining import has_joined, join_cluster, open_engine, tell_address
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.logs import log_to_stderr
from cortado.store.server.rpc import rpc_handler
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from cortado.store.server.watching import end_with_parent, follow_faults, report_health

_LOG: Final = logging.getLogger(__name__)

# Two busy threads hand the interpreter over at this interval; Python's own 5 ms would be what a point read waits.
SWITCH_INTERVAL_S: Final = 0.0005
GC_THRESHOLD: Final = 10_000

PENDING_CALLS_MAX: Final = 65_536

FAILURE_GRACE_S: Final = 1.0
MONOTONIC: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
DRAIN_POLL_S: Final = 0.005


def serve(config: ServerConfig) -> None:
    """Run a server until it is told to stop, by SIGTERM or SIGINT.

    Raises InvalidArgument (the configuration), DataDirectoryError, DataLoss, Unavailable (the address is taken),
    StartRefused (by the cluster that it was to join).
    """
    config.check()
    # Before a directory is made for a node that it turns out not to be.
    _certificates(config, config.node_id)
    log_to_stderr()
    if config.parent_fd is not None:
        end_with_parent(config.parent_fd)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    engine = open_engine(config)
    try:
        uvloop.run(_serve(config, engine))
    finally:
        engine.close()


@dataclass(slots=True)
class _Served:
    """Everything that runs, for the end of it."""

    config: ServerConfig
    server: grpc.aio.Server
    node: Node
    transport: PeerTransport
    calls: CallsService
    healthy: health.aio.HealthServicer
    service_names: list[str]


async def _serve(config: ServerConfig, engine: LmdbEngine) -> None:
    certificates = _certificates(config, engine.identity.node_id)
    server = _new_server()
    address = _bind(server, config, certificates)
    advertised = config.advertise or address
    await join_cluster(config, engine, advertised, certificates)
    node, transport = _make_node(config, engine, advertised, certificates)
    served = _register(config, server, node, transport)
    await node.start()
    try:
        async with _beside([*_watches(served), tell_address(node, engine.identity, advertised, certificates)]):
            await server.start()
            # What lives until the end need not be looked at by every collection.
            gc.collect()
            gc.freeze()
            # Bulk loads make tens of thousands of tuples a turn, none of them in a cycle.
            gc.set_threshold(GC_THRESHOLD, 20, 20)
            # Before anybody is told of it: whoever waited for the address may ask it to stop at once.
            stop = _stop_asked()
            _announce(config, address)
            await _until_stopped(served, stop)
    finally:
        await node.stop()
    _LOG.info("stopped")


# --- making it -------------------------------------------------------------------------------------------------


def _certificates(config: ServerConfig, node_id: str) -> Certificates | None:
    if config.tls_cert is None or config.tls_key is None or config.tls_ca is None:
        return None
    return Certificates(TlsFiles(config.tls_cert, config.tls_key, config.tls_ca), node_id=node_id)


def _new_server() -> grpc.aio.Server:
    return grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
            ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
            # Two servers must not share a port by accident.
            ("grpc.so_reuseport", 0),
            # What arrived and was not looked at yet must not be dropped at random, as CANCELLED, which is gRPC's habit
            # from 1,000 calls on: the node's gates refuse, with a reason. (A bound on streams is no help: its own
            # refusals reach the caller as broken connections.)
            ("grpc.server.max_pending_requests", PENDING_CALLS_MAX),
            ("grpc.server.max_pending_requests_hard_limit", PENDING_CALLS_MAX),
        ]
    )


def _bind(server: grpc.aio.Server, config: ServerConfig, certificates: Certificates | None) -> str:
    """Take the port, without serving on it yet; returns the address. Raises Unavailable."""
    host, port = config.address()
    wanted = address_of(host, port)
    try:
        if certificates is None:
            bound = server.add_insecure_port(wanted)
        else:
            bound = server.add_secure_port(wanted, certificates.server_credentials())
    except RuntimeError as error:
        why = why_not_bound(host, port) or "the address is in use or not this machine's"
        raise Unavailable(f"cannot listen on {config.listen}: {why}") from error
    return address_of(host, bound)


def _make_node(
    config: ServerConfig, engine: LmdbEngine, advertised: str, certificates: Certificates | None
) -> tuple[Node, PeerTransport]:
    identity = engine.identity

    def physical_ms() -> int:
        return time.time_ns() // 1_000_000 + config.clock_offset_ms

    transport = PeerTransport(
        identity,
        advertised,
        certificates=certificates,
        physical_ms=physical_ms,
        monotonic_ms=_monotonic_ms,
        chance=random.SystemRandom(),
    )
    node = Node(
        engine,
        identity=NodeIdentity(identity.cluster_id, identity.node_id, identity.storage_id),
        physical_ms=physical_ms,
        monotonic_ms=_monotonic_ms,
        limits=config.limits,
        max_clock_offset_ms=config.max_clock_offset_ms,
        address=advertised,
        transport=transport,
        random=random.SystemRandom(),
        raft=config.raft_settings(),
        spools=DiskSpools(config.data_dir / "snapshots"),
        joining=has_joined(engine),
    )
    transport.attach(node)
    return node, transport


def _monotonic_ms() -> float:
    """Goes on while the host sleeps, where the system has such a clock: leases are counted on it."""
    return time.clock_gettime_ns(MONOTONIC) / 1_000_000


def _register(config: ServerConfig, server: grpc.aio.Server, node: Node, transport: PeerTransport) -> _Served:
    cluster = ClusterService(node, config.data_dir, state=lambda: state_of(node, transport))
    services: list[tuple[ServiceDescriptor, object]] = [
        (_descriptor(kv_pb2, "KeyValue"), KeyValueService(node)),
        (_descriptor(documents_pb2, "Documents"), DocumentsService(node)),
        (_descriptor(tables_pb2, "Tables"), TablesService(node)),
        (_descriptor(schemas_pb2, "Schemas"), SchemasService(node)),
        (_descriptor(cluster_pb2, "Cluster"), cluster),
    ]
    calls = CallsService(services)
    services.append((_descriptor(calls_pb2, "Calls"), calls))
    server.add_generic_rpc_handlers([rpc_handler(descriptor, servicer) for descriptor, servicer in services])
    server.add_generic_rpc_handlers([PeersService(node, transport).handler()])
    healthy = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    names = [descriptor.full_name for descriptor, _ in services]
    reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    return _Served(config, server, node, transport, calls, healthy, ["", *names])


def _descriptor(module: object, service: str) -> ServiceDescriptor:
    found: ServiceDescriptor = module.DESCRIPTOR.services_by_name[service]  # type: ignore[attr-defined]
    return found


def state_of(node: Node, transport: PeerTransport) -> str:
    """What the node does. Without a leader, also what the other nodes said last: they may have refused this one."""
    state = node.status().state
    if state != NO_LEADER:
        return state
    problems = [f"{each.node_id}: {each.problem}" for each in transport.status() if each.problem]
    return f"{state} ({'; '.join(problems)})" if problems else state


def _announce(config: ServerConfig, address: str) -> None:
    """Say where the server listens: to people and scripts on stdout, and in a file where one was asked for."""
    if config.port_file is not None:
        temporary = config.port_file.with_name(config.port_file.name + ".new")
        try:
            temporary.write_text(address + "\n", encoding="utf-8")
            temporary.replace(config.port_file)
        except OSError as error:
            raise InvalidArgument("port_file", f"cannot be written: {error.strerror}", str(config.port_file)) from error
    sys.stdout.write(f"listening on {address}\n")
    sys.stdout.flush()
    _LOG.info("serving %s on %s", Path(config.data_dir).absolute(), address)


# --- what runs beside it ---------------------------------------------------------------------------------------


@asynccontextmanager
async def _beside(watches: list[Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Run them until the block ends. One that fails is a defect, which the log is told of."""
    tasks = [asyncio.ensure_future(each) for each in watches]
    for task in tasks:
        task.add_done_callback(_report_defect)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _report_defect(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("a defect in what runs beside the server", exc_info=error)


def _watches(served: _Served) -> list[Coroutine[None, None, None]]:
    node, transport = served.node, served.transport
    watches = [
        report_health(served.healthy, served.service_names, lambda: node.ready, lambda: state_of(node, transport))
    ]
    if served.config.faults_file is not None:
        watches.append(follow_faults(served.config.faults_file, served.transport.cut))
    return watches


# --- the end of it ---------------------------------------------------------------------------------------------


def _stop_asked() -> asyncio.Event:
    """Set by SIGTERM and Ctrl-C, from now on."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    return stop


async def _until_stopped(served: _Served, stop: asyncio.Event) -> None:
    stopped = asyncio.ensure_future(stop.wait())
    failed = asyncio.ensure_future(served.node.failed())
    await asyncio.wait([stopped, failed], return_when=asyncio.FIRST_COMPLETED)
    await served.healthy.enter_graceful_shutdown()
    if failed.done():
        # Who waits for an answer is told that it is unknown; then the process ends, without touching the engine again.
        await served.server.stop(FAILURE_GRACE_S)
        logging.shutdown()
        os._exit(EXIT_IO if isinstance(failed.result(), StorageFailed) else EXIT_SOFTWARE)
    failed.cancel()
    await _hand_over(served)
    _LOG.info("stopping: %d ms for what is in flight", served.config.stop_grace_ms)
    # New calls are refused from here on, and the streams that carry calls end when these are answered.
    ending = asyncio.ensure_future(served.server.stop(served.config.stop_grace_ms / 1000))
    served.calls.stop()
    await _writes_answered(served, ending)
    # Streams of peers would be waited for as long as the grace lasts.
    await served.transport.close()
    await ending


async def _hand_over(served: _Served) -> None:
    """Let another voter lead, where there is one, so that writes go on without waiting for an election."""
    node = served.node
    status = node.status()
    if status.role != "leader" or len(node.configuration.voters) < 2:
        return
    try:
        # It takes a round trip or two. Where it does not, an election is as quick.
        async with asyncio.timeout(served.config.election_ms_max / 1000):
            _LOG.info("node %s leads now", await node.transfer_leader())
    except (CortadoError, TimeoutError) as problem:
        _LOG.warning("leadership was not handed over: %s", str(problem) or "no answer in time")


async def _writes_answered(served: _Served, ending: asyncio.Future[None]) -> None:
    """What was accepted here needs the peers to be decided. Returns when nothing is left, or the grace is over."""
    while served.node.writes.use().count > 0 and not ending.done():
        await asyncio.sleep(DRAIN_POLL_S)
