"""The end of a server: it hands leadership over, ends the calls in flight, and closes; or ends at once if it must.

::

    SIGTERM, SIGINT ─► leadership is handed over ─► new calls are refused ─► those in flight are answered ─► closed
    a failed disk, a defect in applying ─► the process ends, without touching the engine again
    the port for clients is lost ─► the same as for SIGTERM, and an exit code of its own
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from dataclasses import dataclass
from typing import Final

from grpc_health.v1 import health

from cortado.errors import CortadoError, Unavailable
from cortado.store.engine.failures import StorageFailed, is_of_the_disk
from cortado.store.host.host import Host
from cortado.store.peers.transport import PeerTransport
from cortado.store.replica.replica import Role
from cortado.store.server.calls_service import CallsService
from cortado.store.server.client_port import Port
from cortado.store.server.config import ServerConfig
from cortado.store.server.exits import EXIT_IO, EXIT_SOFTWARE, PortLost
from cortado.store.server.metering import Metering

_LOG: Final = logging.getLogger(__name__)

FAILURE_GRACE_S: Final = 1.0
DRAIN_POLL_S: Final = 0.005


@dataclass(slots=True)
class Served:
    """The running parts of a server, for its end."""

    config: ServerConfig
    port: Port
    host: Host
    transport: PeerTransport
    calls: CallsService
    metering: Metering
    healthy: health.aio.HealthServicer
    service_names: list[str]


def stop_asked() -> asyncio.Event:
    """Return an event that SIGTERM and Ctrl-C set, from now on."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    return stop


async def until_stopped(served: Served, stop: asyncio.Event) -> None:
    """Return when the server has stopped on request; end the process if the node failed. Raises PortLost when it has
    stopped in order because clients could not reach it."""
    stopped = asyncio.ensure_future(stop.wait())
    failed = asyncio.ensure_future(served.host.process.life.failed())
    lost = asyncio.ensure_future(served.port.lost())
    await asyncio.wait([stopped, failed, lost], return_when=asyncio.FIRST_COMPLETED)
    await served.healthy.enter_graceful_shutdown()
    if failed.done():
        # Callers that wait learn that their outcomes are unknown; then the process ends, without touching the engine
        # again.
        await served.port.stop(FAILURE_GRACE_S)
        error = failed.result()
        if isinstance(error, StorageFailed):
            _LOG.critical("the disk failed: %s", error)
        logging.shutdown()
        os._exit(EXIT_IO if is_of_the_disk(error) else EXIT_SOFTWARE)
    failed.cancel()
    await _hand_over(served)
    _LOG.info("stopping: %d ms for calls in flight", served.config.stop_grace_ms)
    # New calls are refused from here on, and the streams that carry calls end when these are answered.
    ending = asyncio.ensure_future(served.port.stop(served.config.stop_grace_ms / 1000))
    served.calls.stop()
    # Streams that wait for their quota would not end by themselves.
    served.metering.stop()
    # Watches have no end of their own.
    served.host.meta.watches.stop(Unavailable("the node is stopping", retry_delay_ms=1_000))
    await _writes_answered(served, ending)
    # Streams of peers would be waited for as long as the grace lasts.
    await served.transport.close()
    await ending
    if lost.done():
        raise PortLost(lost.result())
    lost.cancel()


async def _hand_over(served: Served) -> None:
    """Let another voter lead, if there is one, so that writes go on without waiting for an election."""
    if served.host.meta.role is not Role.LEADER or not _has_voters_connected(served):
        return
    handing = asyncio.ensure_future(served.host.meta.members.transfer())
    gone = asyncio.ensure_future(_voters_gone(served))
    try:
        # It takes a round trip or two. If it takes longer, an election is as quick.
        async with asyncio.timeout(served.config.election_ms_max / 1000):
            await asyncio.wait([handing, gone], return_when=asyncio.FIRST_COMPLETED)
        if handing.done():
            _LOG.info("node %s leads now", handing.result())
        else:
            _LOG.info("no other voter is left to lead")
    except (CortadoError, TimeoutError) as problem:
        _LOG.warning("leadership was not handed over: %s", str(problem) or "no answer in time")
    finally:
        handing.cancel()
        gone.cancel()
        await asyncio.gather(handing, gone, return_exceptions=True)


def _has_voters_connected(served: Served) -> bool:
    connected = {each.node_id for each in served.transport.status() if each.is_connected}
    voters = set(served.host.meta.configuration.voters)
    return bool(connected & voters)


async def _voters_gone(served: Served) -> None:
    """Return when no other voter is connected: if a whole cluster is stopped at once, no node is left to lead."""
    while _has_voters_connected(served):
        await asyncio.sleep(DRAIN_POLL_S)


async def _writes_answered(served: Served, ending: asyncio.Future[None]) -> None:
    """Return when no accepted write is left, or the grace is over: accepted writes need the peers to be committed."""
    while served.host.process.writes.use().count > 0 and not ending.done():
        await asyncio.sleep(DRAIN_POLL_S)
