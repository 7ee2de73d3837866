"""Replies of a stream, and callers that do not take them.

gRPC keeps a reply until its caller opens the window of HTTP/2, and the stream waits meanwhile. It holds its places at
the node's gates (:mod:`cortado.store.process.admission`), so streams that are not read would keep others out.

::

    a reply is given to gRPC ──► taken ──► the next one
            `─► UNREAD_S from one look to the next: was a call refused at one of these gates meanwhile?
                    no ──► it may wait for as long again
                    yes ─► the stream ends as RESOURCE_EXHAUSTED, and its places are free

Caveat: the reply that was not taken stays with gRPC until its caller reads on, or goes. It counts as a reply of its
connection (:mod:`cortado.store.server.replying`), and a stream of reads gets no reply beyond that bound.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from cortado.errors import ResourceExhausted
from cortado.store.process.admission import HELD, Gate
from cortado.store.server.call_context import Context
from cortado.store.server.replying import Replying

_LOG: Final = logging.getLogger(__name__)

UNREAD_S: Final = 10.0
"""The time that a reply may wait for its caller while calls find no place."""
_RETRY_DELAY_MS: Final = 1_000


class Sending:
    """The replies of the stream ``name``, which this task serves. ``only_reads``: a caller may ask again."""

    def __init__(self, name: str, context: Context, replying: Replying, *, only_reads: bool) -> None:
        self._name = name
        self._context = context
        self._replying = replying
        self._only_reads = only_reads
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._number = self._sent = self._looked_at = 0
        self._refused: dict[Gate, int] = {}
        self._full: Gate | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._first: asyncio.Task[None] | None = None
        self._held: list[Gate] = []
        HELD.set(self._held)

    async def send(self, reply: bytes) -> None:
        """Return once gRPC has passed the reply on. Raises ResourceExhausted if the stream has to end for it, and
        CancelledError if the call is over."""
        refusal = self._replying.refusal(self._context, len(reply)) if self._only_reads else None
        if refusal is not None:
            raise refusal
        self._number += 1
        if self._timer is None and self._held:
            self._look_later()
        try:
            if self._first is None:
                self._first = self._loop.create_task(self._write(reply))
                await asyncio.shield(self._first)
            else:
                await self._write(reply)
        except asyncio.CancelledError:
            if self._full is None or self._task is None:
                raise
            self._task.uncancel()
            self._replying.send(self._context, len(reply))
            raise self._given_up(self._full) from None
        self._sent = self._number

    async def _write(self, reply: bytes) -> None:
        try:
            await self._context.write(reply)
        except Exception:
            # gRPC's own: the caller has gone, or the server stops.
            raise asyncio.CancelledError from None

    def close(self) -> None:
        """Stop looking: there are no more replies."""
        if self._timer is not None:
            self._timer.cancel()

    async def settle(self) -> None:
        """Wait until an error may follow: the first reply takes gRPC's metadata along, which must not be sent twice."""
        if self._first is not None and not self._first.done():
            await asyncio.wait([self._first])

    def _look_later(self) -> None:
        self._looked_at = self._number
        self._refused = {gate: gate.refused for gate in self._held}
        self._timer = self._loop.call_later(UNREAD_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._sent == self._number:
            return  # It waits for no caller. The next reply begins to look again.
        if self._looked_at == self._number:
            self._full = next((gate for gate, refused in self._refused.items() if gate.refused > refused), None)
        if self._full is None:
            self._look_later()
        elif self._task is not None:
            self._task.cancel()

    def _given_up(self, full: Gate) -> ResourceExhausted:
        limit = full.use().count_max
        waited = f"a reply was not taken for {UNREAD_S:.0f} s, and callers found no place among {limit} {full.name}"
        _LOG.warning("%s of %s is ended: %s", self._name, self._context.peer(), waited)
        return ResourceExhausted(f"{waited}: read on sooner, or again", _RETRY_DELAY_MS, full.name, limit)
