"""The composition root: the one place that touches the real clock, the network, signals and the process.

::

    serve(config) ─► engine (data directory) ─► Node ─► services on a gRPC server ─► until SIGTERM or SIGINT
                                                  `──── a failed disk, or a defect in applying: the process ends

Exit: :func:`serve` returns after a clean stop. Where the disk failed under a write, the process ends with code 74,
where applying the log failed otherwise, with 70 (``sysexits.h``): nothing may go on in an engine whose state nobody
knows.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
import uuid
from pathlib import Path
from typing import Final

import grpc
import uvloop
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from cortado.errors import InvalidArgument, Unavailable
from cortado.proto.v1 import calls_pb2, cluster_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.failures import StorageFailed
from cortado.store.engine.lmdb_engine import CHECKED_BYTES_DEFAULT, LmdbEngine
from cortado.store.node.node import Node, NodeIdentity
from cortado.store.server.calls_service import CallsService
from cortado.store.server.cluster_service import ClusterService
from cortado.store.server.config import MESSAGE_BYTES_MAX, ServerConfig
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.exits import EXIT_IO, EXIT_SOFTWARE
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.rpc import rpc_handler
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService

_LOG: Final = logging.getLogger(__name__)

# Two busy threads hand the interpreter over at this interval; Python's own 5 ms would be what a point read waits.
SWITCH_INTERVAL_S: Final = 0.0005
GC_THRESHOLD: Final = 10_000

PENDING_CALLS_MAX: Final = 65_536

FAILURE_GRACE_S: Final = 1.0


def serve(config: ServerConfig) -> None:
    """Run a server until it is told to stop, by SIGTERM or SIGINT.

    Raises InvalidArgument (the configuration), DataDirectoryError, DataLoss, Unavailable (the address is taken).
    """
    config.check()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    engine = _open_engine(config)
    try:
        uvloop.run(_serve(config, engine))
    finally:
        engine.close()


def _open_engine(config: ServerConfig) -> LmdbEngine:
    def new_identity() -> Identity:
        return Identity(
            cluster_id=config.cluster_id or str(uuid.uuid4()),
            node_id=config.node_id or str(uuid.uuid4()),
            storage_id=str(uuid.uuid4()),
        )

    engine = LmdbEngine.open(
        config.data_dir,
        new_identity=new_identity,
        map_bytes=config.map_size_bytes,
        checked_bytes=None if config.verify else CHECKED_BYTES_DEFAULT,
    )
    cluster_id = engine.identity.cluster_id
    if config.cluster_id not in ("", cluster_id):
        engine.close()
        raise InvalidArgument("cluster_id", f"the data directory belongs to cluster {cluster_id}", config.cluster_id)
    return engine


async def _serve(config: ServerConfig, engine: LmdbEngine) -> None:
    node = Node(
        engine,
        identity=NodeIdentity(engine.identity.cluster_id, engine.identity.node_id),
        physical_ms=lambda: time.time_ns() // 1_000_000 + config.clock_offset_ms,
        monotonic_ms=lambda: time.monotonic_ns() / 1_000_000,
        limits=config.limits,
        max_clock_offset_ms=config.max_clock_offset_ms,
    )
    await node.start()
    try:
        server, healthy, calls, address = await _start_server(config, node)
        # What lives until the end need not be looked at by every collection.
        gc.collect()
        gc.freeze()
        # Bulk loads make tens of thousands of tuples a turn, none of them in a cycle.
        gc.set_threshold(GC_THRESHOLD, 20, 20)
        # Before anybody is told of it: whoever waited for the address may ask it to stop at once.
        stop = _stop_asked()
        _announce(config, address)
        await _until_stopped(config, node, server, healthy, calls, stop)
    finally:
        await node.stop()
    _LOG.info("stopped")


async def _start_server(
    config: ServerConfig, node: Node
) -> tuple[grpc.aio.Server, health.aio.HealthServicer, CallsService, str]:
    server = grpc.aio.server(
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
    services = _services(config, node)
    calls = CallsService(services)
    services.append((_descriptor(calls_pb2, "Calls"), calls))
    server.add_generic_rpc_handlers([rpc_handler(descriptor, servicer) for descriptor, servicer in services])
    healthy = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    names = [descriptor.full_name for descriptor, _ in services]
    reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    host, port = config.address()
    try:
        bound = server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except RuntimeError as error:
        raise Unavailable(f"cannot listen on {config.listen}: the address is in use or not this machine's") from error
    await server.start()
    for name in ["", *names]:
        await healthy.set(name, health_pb2.HealthCheckResponse.SERVING)
    return server, healthy, calls, f"{host}:{bound}" if ":" not in host else f"[{host}]:{bound}"


def _services(config: ServerConfig, node: Node) -> list[tuple[ServiceDescriptor, object]]:
    return [
        (_descriptor(kv_pb2, "KeyValue"), KeyValueService(node)),
        (_descriptor(documents_pb2, "Documents"), DocumentsService(node)),
        (_descriptor(tables_pb2, "Tables"), TablesService(node)),
        (_descriptor(schemas_pb2, "Schemas"), SchemasService(node)),
        (_descriptor(cluster_pb2, "Cluster"), ClusterService(node, config.data_dir)),
    ]


def _descriptor(module: object, service: str) -> ServiceDescriptor:
    found: ServiceDescriptor = module.DESCRIPTOR.services_by_name[service]  # type: ignore[attr-defined]
    return found


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


def _stop_asked() -> asyncio.Event:
    """Set by SIGTERM and Ctrl-C, from now on."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    return stop


async def _until_stopped(
    config: ServerConfig,
    node: Node,
    server: grpc.aio.Server,
    healthy: health.aio.HealthServicer,
    calls: CallsService,
    stop: asyncio.Event,
) -> None:
    stopped = asyncio.ensure_future(stop.wait())
    failed = asyncio.ensure_future(node.failed())
    await asyncio.wait([stopped, failed], return_when=asyncio.FIRST_COMPLETED)
    await healthy.enter_graceful_shutdown()
    if failed.done():
        # Who waits for an answer is told that it is unknown; then the process ends, without touching the engine again.
        await server.stop(FAILURE_GRACE_S)
        logging.shutdown()
        os._exit(EXIT_IO if isinstance(failed.result(), StorageFailed) else EXIT_SOFTWARE)
    _LOG.info("stopping: %d ms for what is in flight", config.stop_grace_ms)
    failed.cancel()
    # A stream of calls would last for the whole grace.
    calls.stop()
    await server.stop(config.stop_grace_ms / 1000)
