"""The process of a gateway: the one place that touches the network, signals and the log.

::

    serve(config, connect) ─► the address is taken ─► AsyncClient ─► Listener, uvicorn, until SIGTERM or Ctrl-C
                                                                      ─► calls under way are answered ─► closed
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import uvicorn
import uvloop

from cortado.errors import Unavailable
from cortado.store.gateway.application import Application, all_operations
from cortado.store.gateway.certificate import ServedCertificate
from cortado.store.gateway.config import GatewayConfig
from cortado.store.gateway.connections import Connection
from cortado.store.gateway.console.samples import Samples
from cortado.store.gateway.limits import HANDSHAKES_MAX, GatewayLimits
from cortado.store.gateway.metrics import Pages
from cortado.store.observe.http import HttpServer
from cortado.store.observe.logs import log_to_stderr
from cortado.store.ports.accepting import Listener
from cortado.store.ports.addresses import address_of, split_address
from cortado.store.ports.open_files import connections_max, raise_open_files
from cortado.store.ports.port_file import there_last

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

_LOG: Final = logging.getLogger(__name__)

# The loop waits so long for the thread beside it. With Python's own 5 ms, small calls would wait too long.
SWITCH_INTERVAL_S: Final = 0.0005
BACKLOG: Final = 512
GC_THRESHOLD: Final = 10_000
STOP_S: Final = 10
"""How long calls under way are waited for at the end."""


class _Server(uvicorn.Server):
    """uvicorn's server, with another stop: it ends streams at once, and then the process as one that did stop.
    uvicorn's own waits for streams, and raises the signal once more. Connections come from a listener of ours."""

    def __init__(
        self,
        settings: uvicorn.Config,
        application: Application,
        limits: GatewayLimits,
        taken: socket.socket,
        certificate: ServedCertificate | None,
        announce: Callable[[], None],
    ) -> None:
        super().__init__(settings)
        self._application = application
        self._announce = announce
        self._listener = Listener(
            [taken],
            self._connection,
            context=None if certificate is None else lambda: certificate.current().context,
            handshake_s=limits.head_ms / 1000,
            handshakes_max=HANDSHAKES_MAX,
        )

    def _connection(self) -> Connection:
        return Connection(self._application.bounds, config=self.config, server_state=self.server_state, app_state={})

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        self.servers = []
        self._listener.start()
        self._announce()
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._listener.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, self._stop, each)
        yield

    def _stop(self, asked: int) -> None:
        self.handle_exit(asked, None)
        self._application.bounds.stop()


def serve(config: GatewayConfig, connect: Callable[[], AsyncClient]) -> None:
    """Serves until it is asked to stop. Raises Unavailable for a port that cannot be taken, InvalidArgument for a file
    that cannot be written, and for a certificate that is not good."""
    certificate = None if config.https is None else ServedCertificate(config.https)
    host, port = split_address("listen", config.listen, port_min=0)
    log_to_stderr(config.log_format, config.log_level)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    taken = _listen(host, port)
    address = address_of(host, taken.getsockname()[1])
    with taken:
        uvloop.run(_serve(config, connect, taken, address, certificate))


async def _serve(
    config: GatewayConfig,
    connect: Callable[[], AsyncClient],
    taken: socket.socket,
    address: str,
    certificate: ServedCertificate | None,
) -> None:
    limits = _within_open_files(config.limits)
    async with connect() as client:
        samples = Samples()
        application = Application(
            client,
            limits,
            all_operations(samples),
            is_public=certificate is not None,
            acts_without_roles=config.acts_without_roles,
        )
        settings = uvicorn.Config(
            application,
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=max(1, limits.idle_ms // 1000),
            timeout_graceful_shutdown=STOP_S,
        )
        server = _Server(settings, application, limits, taken, certificate, lambda: _announce(config, address))
        shown = HttpServer(Pages(client, application.bounds, lambda: len(server.server_state.connections)).by_path)
        if config.metrics is not None:
            bound = await shown.start(*config.metrics)
            _LOG.info("metrics on http://%s/metrics", address_of(config.metrics[0], bound))
        # Objects that live until the end need no look at every collection; an answer leaves few cycles behind.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD, 20, 20)
        sampling = asyncio.create_task(samples.follow(client))
        await server.serve()
        sampling.cancel()
        await shown.stop()


def _within_open_files(limits: GatewayLimits) -> GatewayLimits:
    """Bound the connections by the open files, with some left to reach the cluster: one too many is told so at once."""
    return replace(limits, connections_max=min(limits.connections_max, connections_max(raise_open_files())))


def _listen(host: str, port: int) -> socket.socket:
    """Take the port. Raises Unavailable."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        raise Unavailable(f"cannot listen on {address_of(host, port)}: {error.strerror or error}") from error
    return taken


def _announce(config: GatewayConfig, address: str) -> None:
    """Announce the gateway's address: to people on stdout, and in a file if one was asked for."""
    scheme = "http" if config.https is None else "https"
    with there_last(config.port_file, address):
        _LOG.info("serves %s on %s", scheme.upper(), address)
        sys.stdout.write(f"listening on {scheme}://{address}\n")
        sys.stdout.flush()
