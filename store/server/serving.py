"""The composition root: the one place that touches the real clock, the network, signals and the process.

::

    serve(config) ─► stores (data directory) ─► port ─► join, once ─► Host ◄─► PeerTransport
                                                                       │
                     services on the port ─► until SIGTERM or SIGINT ──┤
                     hand leadership over ─► end what is in flight ────┤
                                             a failed disk, or a defect in applying: the process ends

Exit: :func:`serve` returns after a clean stop. If the disk failed under a write, the process ends with code 74; if
applying the log failed otherwise, with 70 (``sysexits.h``): no thread may go on with stores in an unknown state. A join
that was refused is a :class:`~cortado.store.server.exits.StartRefused`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import Final

import uvloop
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from cortado.errors import DataDirectoryError, DataLoss
from cortado.proto.v1 import (
    auth_pb2,
    backups_pb2,
    calls_pb2,
    cluster_pb2,
    collection_pb2,
    documents_pb2,
    inspect_pb2,
    jobs_pb2,
    kv_pb2,
    large_transactions_pb2,
    quotas_pb2,
    schemas_pb2,
    settings_pb2,
    statistics_pb2,
    tables_pb2,
    transactions_pb2,
    watch_pb2,
)
from cortado.store.clock.host_time import HostTime
from cortado.store.engine.failures import StorageFailed, is_by_the_disk, is_of_the_disk
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.engine.private_files import UMASK
from cortado.store.host.host import Host
from cortado.store.host.status import NO_LEADER, node_status
from cortado.store.log_files.files import FolderFiles
from cortado.store.observe.logs import log_to_stderr
from cortado.store.peers.addresses import Addresses
from cortado.store.peers.credentials import Certificates, TlsFiles
from cortado.store.peers.listener import PeerListener
from cortado.store.peers.service import PeersService
from cortado.store.peers.transport import PeerTransport
from cortado.store.ports.addresses import address_of
from cortado.store.ports.open_files import connections_max, raise_open_files
from cortado.store.process.log_storage import LoopStorage
from cortado.store.process.process import NodeIdentity, Surroundings
from cortado.store.process.snapshot_files import DiskSnapshotFiles
from cortado.store.server.allocator import give_back_after_bursts, give_back_large_blocks
from cortado.store.server.audit import Audit
from cortado.store.server.auth_service import AuthService
from cortado.store.server.authority import Authority
from cortado.store.server.backups_service import BackupsService
from cortado.store.server.calls_service import CallsService
from cortado.store.server.client_port import ClientPort, Port
from cortado.store.server.cluster_service import ClusterService
from cortado.store.server.collection_service import CollectionService
from cortado.store.server.config import ServerConfig
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.ending import Served, stop_asked, until_stopped
from cortado.store.server.exits import EXIT_IO, ServerEnded, StartRefused
from cortado.store.server.foreign_services import foreign_handler
from cortado.store.server.front import Front
from cortado.store.server.inspect_service import InspectService
from cortado.store.server.jobs_service import JobsService
from cortado.store.server.joining import answering_meanwhile, join_cluster, joined_members, open_stores, tell_addresses
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.large_transactions_service import LargeTransactionsService
from cortado.store.server.listening import announce, bind_sockets
from cortado.store.server.locked_out import switch_off_where_marked
from cortado.store.server.metering import Metering
from cortado.store.server.observing import Observing
from cortado.store.server.quotas_service import QuotasService
from cortado.store.server.receiving import Receiving
from cortado.store.server.replying import PARTS, STRANGERS_BYTES, STRANGERS_SMALL_BYTES, Replying
from cortado.store.server.restores_service import RestoresService
from cortado.store.server.rpc import rpc_handler
from cortado.store.server.runs.methods import run_methods
from cortado.store.server.scan_kernel import use_scan_kernel
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.settings_service import SettingsService
from cortado.store.server.size_sampling import SizeSampler
from cortado.store.server.statistics_service import StatisticsService
from cortado.store.server.stores import Stores, log_folder
from cortado.store.server.tables_service import TablesService
from cortado.store.server.transactions_service import TransactionsService
from cortado.store.server.watch_service import WatchService
from cortado.store.server.watching import end_with_parent, follow_faults, report_health
from cortado.store.settings.server import NATIVE

_LOG: Final = logging.getLogger(__name__)

# Two busy threads hand the interpreter over at this interval; with Python's own 5 ms a point read would wait that long.
SWITCH_INTERVAL_S: Final = 0.0005
GC_THRESHOLD: Final = 10_000

MONOTONIC: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def serve(config: ServerConfig) -> None:
    """Run a server until SIGTERM or SIGINT stops it. Its files are for its own user alone.

    Raises InvalidArgument (the configuration), DataDirectoryError, DataLoss, ResourceExhausted (no room for a new
    directory), Unavailable (the address is taken). Raises StartRefused (by the cluster that it was to join, or by the
    disk), PortLost, ServerEnded (by the disk, at its end).
    """
    config.check()
    os.umask(UMASK)
    # Checked first: else a directory might be made for a node that the certificate does not name.
    _certificates(config, config.node_id)
    _log_as(config)
    if config.parent_fd is not None:
        end_with_parent(config.parent_fd)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    give_back_large_blocks()
    stores = _opened(config)
    _log_as(config, stores.engine)
    try:
        with closing(stores):
            uvloop.run(_serve(config, stores))
    except StorageFailed as error:
        # Raised before the node served, or behind its end; in between, a failure ends the process.
        raise ServerEnded(DataDirectoryError(str(config.data_dir), str(error)), EXIT_IO) from error


def _opened(config: ServerConfig) -> Stores:
    """Open the stores as :func:`open_stores` does. Raises StartRefused if the disk itself fails, and not its
    contents."""
    try:
        return open_stores(config)
    except (DataDirectoryError, DataLoss) as error:
        if is_by_the_disk(error):
            raise StartRefused(error, EXIT_IO) from error
        raise


async def _serve(config: ServerConfig, stores: Stores) -> None:
    engine = stores.engine
    certificates = _certificates(config, engine.identity.node_id)
    observing = Observing(config, engine, _monotonic_ms)
    port = _port(config, certificates, observing)
    peer_sockets = bind_sockets(*config.peer_address())
    peer_address = address_of(config.peer_address()[0], peer_sockets[0].getsockname()[1])
    advertised = config.advertised(port.address, peer_address)
    await observing.start()
    async with answering_meanwhile(config, engine.identity, peer_sockets, certificates):
        await join_cluster(config, stores, advertised, certificates)
    _log_as(config, engine)
    host, transport = _make_host(config, stores, advertised, certificates)
    audit = Audit(config.data_dir / "audit", engine.identity.node_id, host.process.host_time.wall_ms)
    served = _register(config, port, host, transport, observing, audit)
    listener = PeerListener(PeersService(host, transport), transport)
    observing.readiness.begin(host, lambda: port.is_served)
    await _started(host)
    sampler = SizeSampler(host)
    observing.attach(host, transport, served.calls, served.metering.meters, sampler.sizes, certificates)
    try:
        beside = [*_watches(served, observing), use_scan_kernel(host, config.scan_kernel)]
        beside += [tell_addresses(host.meta, engine.identity, advertised, certificates, transport.processes.tell)]
        beside += [switch_off_where_marked(host, config.data_dir)]
        beside += [served.metering.follow(), served.metering.measure(), sampler.measure()]
        beside += [give_back_after_bursts(observing.requests.received_bytes, host.process.budget.in_flight_bytes)]
        async with _beside(host, beside):
            await port.start()
            listener.start(peer_sockets)
            # Collections need not visit the objects that live until the end.
            gc.collect()
            gc.freeze()
            # Bulk loads make tens of thousands of tuples a round, none of them in a cycle.
            gc.set_threshold(GC_THRESHOLD, 20, 20)
            # Before the address is announced: a process that waited for it may stop the server at once.
            stop = stop_asked()
            announce(config, port.address, peer_address)
            async with _beside(host, [port.follow()]):
                await until_stopped(served, stop)
    finally:
        await listener.close()
        await host.stop()
        await observing.stop()
        audit.close()
    _LOG.info("stopped")


async def _started(host: Host) -> None:
    """Start the host. Raises StorageFailed if the disk keeps it from starting, whatever error the start itself
    raised."""
    starting = asyncio.ensure_future(host.start())
    failed = asyncio.ensure_future(host.process.life.failed())
    await asyncio.wait([starting, failed], return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0)
    why = failed.result() if failed.done() else None
    failed.cancel()
    if is_of_the_disk(why):
        starting.cancel()
        await asyncio.wait([starting])
        raise StorageFailed(str(why)) from why
    await starting


def _log_as(config: ServerConfig, engine: LmdbEngine | None = None) -> None:
    """Set up logging, with the node's names as far as they are known: a node that joins has no cluster before."""
    known = {} if engine is None else {"cluster_id": engine.identity.cluster_id, "node_id": engine.identity.node_id}
    log_to_stderr(config.log_format, config.log_level, {name: value for name, value in known.items() if value})


# --- making it -------------------------------------------------------------------------------------------------


def _certificates(config: ServerConfig, node_id: str) -> Certificates | None:
    if config.tls_cert is None or config.tls_key is None or config.tls_ca is None:
        return None
    return Certificates(TlsFiles(config.tls_cert, config.tls_key, config.tls_ca), node_id=node_id)


def _port(config: ServerConfig, certificates: Certificates | None, observing: Observing) -> Port:
    most = connections_max(raise_open_files())
    of_clients = config.has_client_certificates
    if config.front == NATIVE:
        return Front(*config.address(), certificates, of_clients=of_clients, connections_max=most)
    received = observing.requests.received_bytes
    return ClientPort(*config.address(), certificates, of_clients=of_clients, connections_max=most, received=received)


def _make_host(
    config: ServerConfig, stores: Stores, advertised: Addresses, certificates: Certificates | None
) -> tuple[Host, PeerTransport]:
    engine = stores.engine
    identity = engine.identity

    def physical_ms() -> int:
        return time.time_ns() // 1_000_000 + config.clock_offset_ms

    transport = PeerTransport(
        identity,
        advertised.peers,
        certificates=certificates,
        physical_ms=physical_ms,
        monotonic_ms=_monotonic_ms,
        chance=random.SystemRandom(),
    )
    host = Host(
        NodeIdentity(identity.cluster_id, identity.node_id, identity.storage_id, advertised.clients, advertised.peers),
        Surroundings(
            engine=engine,
            log_files=stores.log_files,
            snapshot_files=DiskSnapshotFiles(config.data_dir / "snapshots"),
            host_time=HostTime(physical_ms, _monotonic_ms, max_offset_ms=config.max_clock_offset_ms),
            monotonic_ms=_monotonic_ms,
            random=random.SystemRandom(),
            transport=transport,
            here=LoopStorage,
        ),
        limits=config.limits,
        retention_ms=config.retention,
        raft=config.raft_settings(),
        max_clock_offset_ms=config.max_clock_offset_ms,
        joining=joined_members(engine),
    )
    transport.attach(host)
    return host, transport


def _monotonic_ms() -> float:
    """Return a clock that goes on while the host sleeps, if the system has one: leases are counted on it."""
    return time.clock_gettime_ns(MONOTONIC) / 1_000_000


def _register(
    config: ServerConfig,
    port: Port,
    host: Host,
    transport: PeerTransport,
    observing: Observing,
    audit: Audit,
) -> Served:
    metering = Metering(host)
    cluster = ClusterService(host, config.data_dir, state=lambda: state_of(host, transport))
    inspect = InspectService(host, lambda: FolderFiles(log_folder(config.data_dir), may_write=False))
    statistics = StatisticsService(host, observing, config.slow_request_ms)
    services: list[tuple[ServiceDescriptor, object]] = [
        (_descriptor(kv_pb2, "KeyValue"), KeyValueService(host)),
        (_descriptor(documents_pb2, "Documents"), DocumentsService(host)),
        (_descriptor(transactions_pb2, "Transactions"), TransactionsService(host)),
        (_descriptor(large_transactions_pb2, "LargeTransactions"), LargeTransactionsService(host)),
        (_descriptor(tables_pb2, "Tables"), TablesService(host)),
        (_descriptor(schemas_pb2, "Schemas"), SchemasService(host)),
        (_descriptor(watch_pb2, "Watch"), WatchService(host)),
        (_descriptor(collection_pb2, "Collection"), CollectionService(host)),
        (_descriptor(jobs_pb2, "Jobs"), JobsService(host)),
        (_descriptor(cluster_pb2, "Cluster"), cluster),
        (_descriptor(backups_pb2, "Backups"), BackupsService(host)),
        (_descriptor(backups_pb2, "Restores"), RestoresService(host)),
        (_descriptor(inspect_pb2, "Inspect"), inspect),
        (_descriptor(auth_pb2, "Auth"), AuthService(host)),
        (_descriptor(quotas_pb2, "Quotas"), QuotasService(host, metering)),
        (_descriptor(settings_pb2, "Settings"), SettingsService(host, config.found())),
        (_descriptor(statistics_pb2, "Statistics"), statistics),
    ]
    requests = observing.requests
    authority = Authority(host, audit, metering.meters, needs_roles=not config.has_client_certificates)
    replying = Replying(host.process.limits.in_flight_bytes_max // PARTS)
    runs = run_methods(host, requests, authority)
    calls = CallsService(services, requests=requests, budget=host.process.budget.calls, authority=authority, runs=runs)
    services.append((_descriptor(calls_pb2, "Calls"), calls))
    receiving = Receiving(host.process.budget.calls)
    handlers = [
        rpc_handler(descriptor, servicer, requests, receiving, authority, replying) for descriptor, servicer in services
    ]
    port.add_handlers(handlers)
    healthy = health.aio.HealthServicer()
    names = [descriptor.full_name for descriptor, _ in services]
    reflected = reflection.aio.ReflectionServicer([*names, health.SERVICE_NAME, reflection.SERVICE_NAME])
    strangers = Replying(STRANGERS_BYTES, STRANGERS_SMALL_BYTES)
    foreign = [
        foreign_handler(health_pb2, "Health", healthy, strangers),
        foreign_handler(reflection_pb2, "ServerReflection", reflected, strangers),
    ]
    port.add_handlers(foreign)
    return Served(config, port, host, transport, calls, metering, healthy, ["", *names])


def _descriptor(module: object, service: str) -> ServiceDescriptor:
    found: ServiceDescriptor = module.DESCRIPTOR.services_by_name[service]  # type: ignore[attr-defined]
    return found


def state_of(host: Host, transport: PeerTransport) -> str:
    """Return the state of the node. Without a leader, add the last problems with the other nodes: they may have refused
    this one."""
    state = node_status(host).state
    if state != NO_LEADER:
        return state
    problems = [f"{each.node_id}: {each.problem}" for each in transport.status() if each.problem]
    return f"{state} ({'; '.join(problems)})" if problems else state


# --- what runs beside it ---------------------------------------------------------------------------------------


@asynccontextmanager
async def _beside(host: Host, watches: list[Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Run the watches until the block ends. One that fails is a defect, which is logged, unless the disk failed."""
    tasks = [asyncio.ensure_future(each) for each in watches]
    for task in tasks:
        task.add_done_callback(partial(_report_defect, host))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _report_defect(host: Host, task: asyncio.Future[None]) -> None:
    if task.cancelled() or (error := task.exception()) is None:
        return
    if isinstance(error, StorageFailed):
        host.process.life.fail(error)
    else:
        _LOG.error("a defect in what runs beside the server", exc_info=error)


def _watches(served: Served, observing: Observing) -> list[Coroutine[None, None, None]]:
    host, transport = served.host, served.transport
    is_ready = observing.readiness.is_ready
    watches = [
        report_health(served.healthy, served.service_names, is_ready, lambda: state_of(host, transport)),
        observing.follow_log(host),
    ]
    if served.config.faults_file is not None:
        watches.append(follow_faults(served.config.faults_file, served.transport.cut))
    return watches
