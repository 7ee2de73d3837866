"""The process of a gateway: the one place that touches the network, signals and the log.

::

    serve(config, connect) ─► the address is taken ─► AsyncClient ─► uvicorn, until SIGTERM or Ctrl-C
                                                                      ─► calls under way are answered ─► closed
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvicorn
import uvloop

from cortado.errors import InvalidArgument, Unavailable
from cortado.store.addresses import address_of, is_loopback, split_address
from cortado.store.gateway.application import Application
from cortado.store.gateway.bounds import GatewayLimits
from cortado.store.gateway.connections import Connection
from cortado.store.observe.logs import log_to_stderr

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

_LOG: Final = logging.getLogger(__name__)

BACKLOG: Final = 512
HEAD_BYTES_MAX: Final = 32 << 10
"""Of the request line and all headers."""
STOP_S: Final = 10
"""How long calls under way are waited for at the end."""


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """``listen`` is HOST:PORT, a loopback address; port 0 takes a free one. ``port_file``: where to tell it."""

    listen: str
    port_file: Path | None
    limits: GatewayLimits


def serve(config: GatewayConfig, connect: Callable[[], AsyncClient]) -> None:
    """Serves until it is asked to stop. Raises InvalidArgument for an address or a file, Unavailable for a port that
    cannot be taken."""
    host, port = split_address("--listen", config.listen, port_min=0)
    if not is_loopback(host):
        problem = (
            "must be a loopback address: the gateway has no encryption and knows no callers yet, so whoever reaches "
            "its port may read and change everything"
        )
        raise InvalidArgument("--listen", problem, config.listen)
    log_to_stderr()
    taken = _listen(host, port)
    address = address_of(host, taken.getsockname()[1])
    with taken:
        uvloop.run(_serve(config, connect, taken, address))


async def _serve(config: GatewayConfig, connect: Callable[[], AsyncClient], taken: socket.socket, address: str) -> None:
    async with connect() as client:
        settings = uvicorn.Config(
            Application(client, config.limits),
            http=Connection.bounded(config.limits),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=max(1, config.limits.idle_ms // 1000),
            timeout_graceful_shutdown=STOP_S,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        )
        server = uvicorn.Server(settings)
        serving = asyncio.ensure_future(server.serve(sockets=[taken]))
        _announce(config, address)
        await serving


def _listen(host: str, port: int) -> socket.socket:
    """Takes the port. Raises Unavailable."""
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
    """Says where the gateway listens: to people on stdout, and in a file where one was asked for."""
    if config.port_file is not None:
        temporary = config.port_file.with_name(config.port_file.name + ".new")
        try:
            temporary.write_text(address + "\n", encoding="utf-8")
            temporary.replace(config.port_file)
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            raise InvalidArgument("--port-file", problem, str(config.port_file)) from error
    sys.stdout.write(f"listening on http://{address}\n")
    sys.stdout.flush()
    _LOG.info("serves HTTP on %s", address)
