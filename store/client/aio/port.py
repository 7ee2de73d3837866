"""A connection of asyncio: between a transport and a :class:`~cortado.store.client.link.link.Link`.

::

    callers' tasks ─► begin, wants ─┐
                                    ▼          once a step of the loop, for all calls of that step
    data_received ─► calls told ─► flush: streams hand over their messages ─► one write

The flush of a step comes behind the tasks that its replies woke, so that their next calls leave with it.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

from cortado.errors import CortadoError
from cortado.store.client.aio.tasks import Tasks
from cortado.store.client.endpoints import Tls
from cortado.store.client.link import ends
from cortado.store.client.link.call import Call
from cortado.store.client.link.link import CONNECT_S, Link

_CLOSE_S: Final = 1.0
"""How long a peer may take to close its side."""


class Sender(Protocol):
    """A call whose messages are sent one by one."""

    def fill(self) -> None:
        """Hand the next messages to the link, as far as it has room."""


class Port(asyncio.Protocol):
    """One connection to ``address``, which begins to connect at once."""

    def __init__(self, address: str, tls: Tls | None, ahead_bytes: int, tasks: Tasks) -> None:
        self.loop = asyncio.get_running_loop()
        self.link = Link(address, self.loop.time, is_encrypted=tls is not None, ahead_bytes=ahead_bytes)
        self._transport: asyncio.Transport | None = None
        self._is_paused = self._is_flushing = False
        self._senders: dict[Sender, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = math.inf
        self._connecting = tasks.start(self._connect(address, tls))
        self._arm()

    # --- for calls ---------------------------------------------------------------------------------------------

    def begin(self, call: Call) -> None:
        self.link.begin(call)
        self._arm()
        self.flush_soon()

    def wants(self, sender: Sender) -> None:
        """Let ``sender`` hand over its messages in this step of the loop."""
        self._senders[sender] = None
        self.flush_soon()

    def cancel(self, call: Call) -> bool:
        """Do as :meth:`Link.cancel`."""
        is_cancelled = self.link.cancel(call)
        self._arm()
        self.flush_soon()
        return is_cancelled

    def flush_soon(self) -> None:
        if not self._is_flushing:
            self._is_flushing = True
            self.loop.call_soon(self._flush)

    async def close(self) -> None:
        """End all calls; return when the connection is gone."""
        self.link.close()
        self._flush()
        await asyncio.wait({self._connecting}, timeout=_CLOSE_S)

    # --- asyncio's ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != "h2":
            self.link.lost(ends.STRANGER)
        else:
            self.link.connected()
        self._flush()

    def data_received(self, data: bytes) -> None:
        self.link.received(data)
        self._tell()
        self._arm()
        self.flush_soon()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.flush_soon()

    def connection_lost(self, problem: Exception | None) -> None:
        self._transport = None
        self._is_paused = False
        self.link.lost(ends.CLOSED if problem is None else ends.unreached(problem))
        self._flush()
        self._connecting.cancel()

    # --- work --------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        while news := self.link.told():
            for call in news:
                call.tell()

    def _flush(self) -> None:
        """Write what is to be written, as far as the transport takes it."""
        self._is_flushing = False
        self._tell()
        while not self._is_paused and self._transport is not None:
            senders, self._senders = self._senders, {}
            for each in senders:
                each.fill()
            out = self.link.taken()
            if not out:
                break
            self._transport.write(out)
            self._tell()
        if self.link.is_over:
            self._end()

    def _end(self) -> None:
        """Close the connection, whose last bytes were written."""
        transport = self._transport
        if transport is not None and transport.is_closing():
            return
        if self._timer is not None:
            self._timer.cancel()
        if transport is None:
            self._connecting.cancel()
        elif self._is_paused:
            transport.abort()
        else:
            transport.close()
            self._timer = self.loop.call_later(_CLOSE_S, transport.abort)

    def _arm(self) -> None:
        look_s = self.link.look_s
        if look_s < self._timer_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer, self._timer_s = self.loop.call_at(look_s, self._look), look_s

    def _look(self) -> None:
        self._timer, self._timer_s = None, math.inf
        self.link.look()
        self._arm()
        self._flush()

    # --- connecting --------------------------------------------------------------------------------------------

    async def _connect(self, address: str, tls: Tls | None) -> None:
        """Connect, and wait until the connection is gone. A loop that ends cancels its tasks, and so ends it."""
        try:
            await _connected(lambda: self, address, tls)
            await self.loop.create_future()
        except asyncio.CancelledError:
            # The client was closed, or its loop ends.
            self.link.close()
            self._flush()
            raise
        except Exception as error:
            self.link.lost(error.message() if isinstance(error, CortadoError) else ends.unreached(error))
            self._flush()


async def _connected(protocol: Callable[[], asyncio.Protocol], address: str, tls: Tls | None) -> None:
    """Connect to one of the addresses of the host, the first that takes the connection. Raises OSError,
    InvalidArgument for files that hold no certificates."""
    loop = asyncio.get_running_loop()
    context = None if tls is None else tls.context()
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    places = await _places(host, int(port))
    failure: Exception = OSError("no address")
    for number, (family, _, _, _, place) in enumerate(places):
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setblocking(False)
        try:
            async with asyncio.timeout(CONNECT_S / (len(places) - number)):
                await loop.sock_connect(made, place)
                named, close_s = (None, None) if context is None else (host, _CLOSE_S)
                await loop.create_connection(
                    protocol, sock=made, ssl=context, server_hostname=named, ssl_shutdown_timeout=close_s
                )
            return
        except OSError as error:
            failure = error
            made.close()
        except BaseException:
            made.close()
            raise
    raise failure


async def _places(host: str, port: int) -> list[Any]:
    try:
        # A literal address needs no thread that looks it up.
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
