"""A node in this process, served on a real port: as a server serves one, over whichever engine a test gives it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.descriptor import ServiceDescriptor

from cortado.proto.v1 import (
    auth_pb2,
    calls_pb2,
    cluster_pb2,
    collection_pb2,
    documents_pb2,
    jobs_pb2,
    kv_pb2,
    large_transactions_pb2,
    quotas_pb2,
    schemas_pb2,
    tables_pb2,
    transactions_pb2,
    watch_pb2,
)
from cortado.store.engine.interface import Engine
from cortado.store.host.host import Host
from cortado.store.observe.requests import Requests
from cortado.store.server.audit import Audit
from cortado.store.server.auth_service import AuthService
from cortado.store.server.authority import Authority
from cortado.store.server.calls_service import CallsService
from cortado.store.server.cluster_service import ClusterService
from cortado.store.server.collection_service import CollectionService
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.jobs_service import JobsService
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.large_transactions_service import LargeTransactionsService
from cortado.store.server.listening import new_server
from cortado.store.server.metering import Metering
from cortado.store.server.quotas_service import QuotasService
from cortado.store.server.rpc import rpc_handler
from cortado.store.server.runs.methods import run_methods
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from cortado.store.server.transactions_service import TransactionsService
from cortado.store.server.watch_service import WatchService
from support.nodes import NodeDisk, SetClock, make_node

T = TypeVar("T")
WAIT_S = 60.0


@dataclass
class Served:
    """``endpoint`` is the address for clients; ``call`` runs a coroutine on the node's own loop."""

    endpoint: str
    node: Host
    metering: Metering
    call: Callable[[Coroutine[Any, Any, Any]], Any]


@contextmanager
def served_node(engine: Engine, audit_directory: Path | None = None) -> Iterator[Served]:
    """Serve a node alone over ``engine`` until the block ends. Its physical clock is the true one."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def call(coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(WAIT_S)

    clock = SetClock(time.time_ns() // 1_000_000)
    node = make_node(NodeDisk(engine), clock=clock)
    audit = Audit(audit_directory, "n1", clock)
    metering = Metering(node)
    server, endpoint, tasks = call(_start(node, audit, metering))
    try:
        yield Served(endpoint, node, metering, call)
    finally:
        call(_stop(server, node, tasks))
        audit.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()


async def _start(node: Host, audit: Audit, metering: Metering) -> tuple[Any, str, list[asyncio.Task[None]]]:
    server = new_server(connections_max=1_000)
    port = server.add_insecure_port("127.0.0.1:0")
    await node.start()
    services: list[tuple[ServiceDescriptor, object]] = [
        (kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], KeyValueService(node)),
        (documents_pb2.DESCRIPTOR.services_by_name["Documents"], DocumentsService(node)),
        (tables_pb2.DESCRIPTOR.services_by_name["Tables"], TablesService(node)),
        (schemas_pb2.DESCRIPTOR.services_by_name["Schemas"], SchemasService(node)),
        (transactions_pb2.DESCRIPTOR.services_by_name["Transactions"], TransactionsService(node)),
        (watch_pb2.DESCRIPTOR.services_by_name["Watch"], WatchService(node)),
        (cluster_pb2.DESCRIPTOR.services_by_name["Cluster"], ClusterService(node, Path(), state=lambda: "serving")),
    ]
    services.append((collection_pb2.DESCRIPTOR.services_by_name["Collection"], CollectionService(node)))
    large = large_transactions_pb2.DESCRIPTOR.services_by_name["LargeTransactions"]
    services.append((large, LargeTransactionsService(node)))
    services.append((jobs_pb2.DESCRIPTOR.services_by_name["Jobs"], JobsService(node)))
    services.append((auth_pb2.DESCRIPTOR.services_by_name["Auth"], AuthService(node)))
    services.append((quotas_pb2.DESCRIPTOR.services_by_name["Quotas"], QuotasService(node, metering)))
    authority = Authority(node, audit, metering.meters)
    requests = Requests()
    runs = run_methods(node, requests, authority)
    calls = CallsService(services, requests=requests, authority=authority, runs=runs)
    services.append((calls_pb2.DESCRIPTOR.services_by_name["Calls"], calls))
    handlers = [rpc_handler(descriptor, servicer, requests, authority=authority) for descriptor, servicer in services]
    server.add_generic_rpc_handlers(handlers)
    await server.start()
    tasks = [asyncio.ensure_future(each) for each in (metering.follow(), metering.measure())]
    return server, f"127.0.0.1:{port}", tasks


async def _stop(server: Any, node: Host, tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await server.stop(0)
    await node.stop()
