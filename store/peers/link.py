"""One accepted stream to a peer: a bounded queue before it, batches over it, and the signs of life of both sides.

::

    offer ──► queue (messages, bytes) ── flush ──► batches ──► stream     while the peer is not slow
                  `- full: dropped
    node.receive ◄── arrived ◄── stream                                   as it arrives

A slow peer holds up its own queue only: that fills, and further messages are dropped. Raft sends again the missing
ones; memory does not grow.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable

from google.protobuf.message import DecodeError

from cortado.errors import InvalidArgument, PeerRefused, TooLarge, Unavailable
from cortado.proto.internal.peers_pb2 import PeerBatch
from cortado.store.observe.measures import Traffic
from cortado.store.peers.bounds import BATCH_BOUNDS
from cortado.store.peers.clock_echo import ClockEcho
from cortado.store.peers.interface import PeerLimits, PeerNode, Stream


class Link:
    """``opened_by`` is the node id of the side that dialled, ``traffic`` counts what goes over it."""

    def __init__(
        self,
        peer: str,
        stream: Stream,
        node: PeerNode,
        *,
        opened_by: str,
        limits: PeerLimits,
        monotonic_ms: Callable[[], float],
        physical_ms: Callable[[], int],
        traffic: Traffic | None = None,
    ) -> None:
        self.peer = peer
        self.opened_by = opened_by
        self.dropped = 0
        self.traffic = Traffic() if traffic is None else traffic
        self.heard_ms = monotonic_ms()
        self.sent_ms = self.heard_ms
        self.lived_ms = -math.inf
        """When the peer certainly ran, on our clock: a message may have lain in a buffer while we stood still."""
        self._stream = stream
        self._node = node
        self._limits = limits
        self._monotonic_ms = monotonic_ms
        self._physical_ms = physical_ms
        self._clock = ClockEcho()
        self._queue: deque[tuple[int, bytes]] = deque()
        self._queue_bytes = 0
        self._closed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    @property
    def is_open(self) -> bool:
        return not self._closed.done()

    @property
    def waiting(self) -> tuple[int, int]:
        """Messages and bytes in the queue."""
        return len(self._queue), self._queue_bytes

    def offer(self, group_id: int, body: bytes) -> bool:
        """Queue a message, for the next :meth:`flush`. False if it was dropped: there is no room, or it is too large
        for any batch."""
        size = len(body)
        if (
            len(self._queue) >= self._limits.queue_messages_max
            or self._queue_bytes + size > self._limits.queue_bytes_max
            or size > self._limits.message_bytes_max
        ):
            self.dropped += 1
            return False
        self._queue.append((group_id, body))
        self._queue_bytes += size
        return True

    def flush(self) -> None:
        """Send the queued messages that the peer takes now; the rest follows by itself."""
        while self._queue and self._stream.is_writable:
            self._send()

    def greet(self) -> None:
        """Send a batch even if it is empty, unless the peer is slow."""
        if self._stream.is_writable:
            self._send()

    def close(self, reason: Exception) -> None:
        """End the stream; :meth:`run` raises ``reason``. A second call does nothing."""
        if self.is_open:
            self._closed.set_result(reason)

    async def run(self) -> None:
        """Carry messages until the stream ends. Always raises why: Unavailable, PeerRefused, or what :meth:`close` was
        given."""
        try:
            self._stream.start(self)
            self.flush()
            raise await self._closed
        finally:
            self.close(Unavailable("the stream was given up"))
            self._queue.clear()
            self._queue_bytes = 0

    # --- the stream's calls --------------------------------------------------------------------------------------

    def arrived(self, message: bytes) -> None:
        """See :class:`~cortado.store.peers.interface.Receiver`."""
        if not self.is_open:
            return
        self.heard_ms = self._monotonic_ms()
        self.traffic.received_batches += 1
        self.traffic.received_bytes += len(message)
        try:
            BATCH_BOUNDS.check(message)
            batch = PeerBatch.FromString(message)
        except (DecodeError, InvalidArgument) as problem:
            why = f": {problem}" if isinstance(problem, TooLarge) else ""
            what = f"node {self.peer} sent a message that is not of the peers' protocol{why}"
            raise PeerRefused(what) from None
        self._take(batch)

    def writable(self) -> None:
        self.flush()

    def ended(self, reason: Exception) -> None:
        self.close(reason)

    # --- batches -------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        batch = self._next_batch()
        self.sent_ms = self._monotonic_ms()
        self.traffic.sent_batches += 1
        self.traffic.sent_bytes += len(batch)
        self._stream.write(batch)

    def _next_batch(self) -> bytes:
        batch = PeerBatch()
        queue, room = self._queue, self._limits.batch_bytes_max
        while queue and room > 0:
            group_id, body = queue[0]
            if batch.messages and len(body) > room:
                break
            queue.popleft()
            batch.messages.add(group_id=group_id, body=body)
            room -= len(body)
            self._queue_bytes -= len(body)
        self._clock.stamp(batch, self._monotonic_ms(), self._physical_ms())
        return batch.SerializeToString()

    def _take(self, batch: PeerBatch) -> None:
        self.lived_ms = max(self.lived_ms, self._clock.left_ms(batch, self.heard_ms))
        bounds = self._clock.arrived(batch, self.heard_ms)
        if bounds is not None:
            self._node.observe_peer_clock(self.peer, *bounds)
        messages = batch.messages
        if len(messages) == 1:
            self._node.receive(self.peer, messages[0].group_id, [messages[0].body])
            return
        by_group: dict[int, list[bytes]] = {}
        for each in messages:
            by_group.setdefault(each.group_id, []).append(each.body)
        for group_id, bodies in by_group.items():
            self._node.receive(self.peer, group_id, bodies)
