"""One accepted stream to a peer: a bounded queue and a writer, a reader, and the signs of life of both.

::

    offer ──► queue (messages, bytes) ──► writer: one batch at a time ──► stream
                  `- full: dropped           `- what gathered meanwhile is the next batch
    node.receive ◄── reader ◄── stream

A slow peer holds up its own writer only: its queue fills, and what has no room is dropped. Raft sends again what is
missing; memory does not grow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

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
        self._stream = stream
        self._node = node
        self._limits = limits
        self._monotonic_ms = monotonic_ms
        self._physical_ms = physical_ms
        self._clock = ClockEcho()
        self._queue: deque[tuple[int, bytes]] = deque()
        self._queue_bytes = 0
        self._wanted = asyncio.Event()
        self._closed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    @property
    def is_open(self) -> bool:
        return not self._closed.done()

    @property
    def waiting(self) -> tuple[int, int]:
        """Messages and bytes in the queue."""
        return len(self._queue), self._queue_bytes

    def offer(self, group_id: int, body: bytes) -> bool:
        """Queue a message. False where it was dropped: there is no room, or it is too large for any batch."""
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
        self._wanted.set()
        return True

    def poke(self) -> None:
        """Send a batch even if it is empty."""
        self._wanted.set()

    def close(self, reason: Exception) -> None:
        """End the stream; :meth:`run` raises ``reason``. A second call does nothing."""
        if self.is_open:
            self._closed.set_result(reason)

    async def run(self) -> None:
        """Carry messages until the stream ends. Always raises why: Unavailable, PeerRefused, or what :meth:`close` was
        given."""
        tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]
        ends: list[asyncio.Future[Any]] = [*tasks, self._closed]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    self.close(_why_ended(task))
            raise self._closed.result()
        finally:
            self.close(Unavailable("the stream was given up"))
            self._queue.clear()
            self._queue_bytes = 0
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self) -> None:
        while True:
            if not self._queue:
                await self._wanted.wait()
            self._wanted.clear()
            batch = self._next_batch()
            self.sent_ms = self._monotonic_ms()
            self.traffic.sent_batches += 1
            self.traffic.sent_bytes += len(batch)
            await self._stream.write(batch)

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

    async def _read(self) -> None:
        while True:
            message = await self._stream.read()
            if message is None:
                raise Unavailable("the peer ended the stream")
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

    def _take(self, batch: PeerBatch) -> None:
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


def _why_ended(task: asyncio.Task[None]) -> Exception:
    if task.cancelled():
        return Unavailable("the stream was given up")
    problem = task.exception()
    return problem if isinstance(problem, Exception) else Unavailable("the stream ended")
