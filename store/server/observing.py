"""The observability of a server, put together: counted requests, slow ones, traces, readiness, pages over HTTP.

It starts before the node, so that a probe hears that the process is alive while it joins a cluster. Later the started
node is attached to it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from random import SystemRandom
from typing import TYPE_CHECKING, Final

from cortado.extras import needing
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.host.host import Host
from cortado.store.observe.collecting import Sources, collect
from cortado.store.observe.families import Family
from cortado.store.observe.http import HttpServer
from cortado.store.observe.lag import PERIOD_MS, LogClock
from cortado.store.observe.pages import Pages
from cortado.store.observe.readiness import Readiness
from cortado.store.observe.requests import Requests
from cortado.store.observe.slow import SlowCall, SlowLog
from cortado.store.observe.stored_sizes import StoredSizes
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.transport import PeerTransport
from cortado.store.ports.addresses import address_of
from cortado.store.quotas.meters import Meters
from cortado.store.server.calls_service import CallsService
from cortado.store.server.config import ServerConfig

if TYPE_CHECKING:
    from cortado.store.observe.tracing import CallTracer

_LOG: Final = logging.getLogger(__name__)


class Observing:
    """All observers of one server. ``monotonic_ms`` is the node's."""

    def __init__(self, config: ServerConfig, engine: LmdbEngine, monotonic_ms: Callable[[], float]) -> None:
        self.requests = Requests()
        self.readiness = Readiness(monotonic_ms, lag_ms_max=config.ready_lag_ms)
        self._config = config
        self._engine = engine
        self._monotonic_ms = monotonic_ms
        self._log_clock = LogClock()
        self._pages = Pages(self.readiness)
        self._http = HttpServer(self._pages.by_path)
        self._slow_log: SlowLog | None = None
        if config.slow_request_ms:
            self.requests.slow_s = config.slow_request_ms / 1000
            self.requests.slow = self._slow_log = SlowLog(self.requests.monotonic_s, monotonic_ms, time.time)
        self._tracer: CallTracer | None = None

    async def start(self) -> None:
        """Serve the pages over HTTP if an address is set, and send traces if a collector is named.

        Raises Unavailable if the address is taken, Unsupported if the extra for traces is missing.
        """
        if self._config.trace_endpoint:
            self.requests.tracer = self._tracer = self._make_tracer()
        if self._config.metrics_listen:
            host, port = self._config.metrics_address()
            bound = await self._http.start(host, port)
            _LOG.info("metrics on http://%s/metrics", address_of(host, bound))

    def attach(
        self,
        host: Host,
        transport: PeerTransport,
        calls: CallsService,
        meters: Meters,
        sizes: StoredSizes,
        certificates: Certificates | None,
    ) -> None:
        """Attach the started node: from now on the pages show it."""
        self._pages.sources = Sources(
            host=host,
            transport=transport,
            engine=self._engine,
            requests=self.requests,
            readiness=self.readiness,
            log_clock=self._log_clock,
            calls_use=calls.use,
            meters=meters,
            sizes=sizes,
            certificates=certificates,
            monotonic_ms=self._monotonic_ms,
        )
        self.readiness.attach(host)

    def collect(self) -> list[Family]:
        """Return the present values of all metrics."""
        return collect(self._pages.sources)

    def slow_calls(self) -> list[SlowCall]:
        """Return the last slow calls, the newest first."""
        return [] if self._slow_log is None else list(reversed(self._slow_log.last))

    async def follow_log(self, host: Host) -> None:
        """Record the end of the log at each time. Runs until it is cancelled."""
        while True:
            self._log_clock.sample(self._monotonic_ms(), host.meta.log_position()[1])
            await asyncio.sleep(PERIOD_MS / 1000)

    async def stop(self) -> None:
        """Answer no more over HTTP, and send the traces that are left."""
        await self._http.stop()
        if self._tracer is not None:
            await asyncio.to_thread(self._tracer.shutdown)

    def _make_tracer(self) -> CallTracer:
        with needing("tracing", "traces"):
            from cortado.store.observe.tracing import CallTracer, otlp_exporter
        identity = self._engine.identity
        return CallTracer(
            otlp_exporter(self._config.trace_endpoint),
            node_id=identity.node_id,
            cluster_id=identity.cluster_id,
            percent=self._config.trace_percent,
            node_now_ms=self._monotonic_ms,
            chance=SystemRandom(),
        )
