"""The channels of one client: one to each address that it has called, shared by all views of its connection.

If a client is collected before it was closed, it warns, and its runtime closes the channels that are open.
"""

from __future__ import annotations

import sys
import threading
import warnings

from cortado.store.client import forks
from cortado.store.client.authorization import Authorization
from cortado.store.client.channel import Channel
from cortado.store.client.endpoints import Tls
from cortado.store.client.runtime import Runtime, WireClosed


class Channels:
    """May be called by any thread. ``known`` is read without the lock."""

    def __init__(
        self, endpoint: str, tls: Tls | None, authorization: Authorization, runtime: Runtime, *, coalesce: bool
    ) -> None:
        self._endpoint = endpoint
        self._tls = tls
        self._authorization = authorization
        self._runtime = runtime
        self._coalesce = coalesce
        self._lock = threading.Lock()
        self.known: dict[str, Channel] = {}
        self.is_closed = False

    def to(self, address: str) -> Channel:
        """Return the open channel to ``address``, or a new one. Raises WireClosed once the client was closed."""
        with self._lock:
            if self.is_closed:
                raise WireClosed
            channel = self.known.get(address)
            if channel is None or channel.is_closed:
                forks.connects(self)
                channel = self.known[address] = Channel(
                    address, self._tls, self._authorization, self._runtime, coalesce=self._coalesce
                )
            return channel

    def forget(self, address: str) -> None:
        """Forget an address that no member has any more."""
        with self._lock:
            channel = self.known.pop(address, None)
        if channel is not None:
            channel.retire()

    async def close(self) -> None:
        """Close all of them. No other is opened."""
        with self._lock:
            self.is_closed = True
            channels = list(self.known.values())
        await _close(channels, self._runtime)

    def __del__(self) -> None:
        # Without channels there is nothing to close, and at the end of the process it is too late.
        if not self.known or self.is_closed or forks.is_cut_off() or sys.is_finalizing():
            return
        warnings.warn(f"unclosed client of {self._endpoint}", ResourceWarning, source=self, stacklevel=2)
        channels, runtime = list(self.known.values()), self._runtime
        runtime.release(lambda: _close(channels, runtime))


async def _close(channels: list[Channel], runtime: Runtime) -> None:
    for channel in channels:
        await channel.close()
    await runtime.close()
