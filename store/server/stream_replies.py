"""The replies of one shared stream that its caller has not taken yet, and their bounds.

A message takes all replies that are finished when it leaves. If the caller takes none, the stream reads no more calls,
and large replies to reads become refusals (:mod:`cortado.store.server.replying`).
"""

from __future__ import annotations

import asyncio
from typing import Final

from cortado.errors import CortadoError, ResourceExhausted, TooLarge
from cortado.proto.v1 import calls_pb2
from cortado.store.observe.requests import Requests
from cortado.store.server.config import MESSAGE_BYTES_MAX
from cortado.store.server.replying import RESOURCE, SMALL_BYTES
from cortado.store.server.runs.wire import reply_of
from cortado.store.wire.rpc_errors import rpc_status

# A reply travels in an envelope (its id, and lengths), and the message as a whole has the bound of any message.
ENVELOPE_BYTES_MAX: Final = 64
REPLY_BYTES_MAX: Final = MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX

RETRY_DELAY_MS: Final = 50
_HELD_PARTS: Final = 4
"""The calls in flight when reading stops may bring this many times the replies that a stream should hold."""


class StreamReplies:
    """The replies of one stream, on the loop."""

    def __init__(self, requests: Requests, *, bytes_max: int, message_bytes_max: int) -> None:
        """Above ``bytes_max`` there :meth:`is_full`; a message holds about ``message_bytes_max``, unless one reply is
        larger."""
        self._requests = requests
        self._bytes_max = bytes_max
        self._message_bytes_max = message_bytes_max
        self._loop = asyncio.get_running_loop()
        self._finished: list[bytes] = []
        self._finished_bytes = 0
        self._has_news: asyncio.Future[None] | None = None
        self._wait_for_room: list[asyncio.Future[None]] = []

    @property
    def is_empty(self) -> bool:
        return not self._finished

    @property
    def is_full(self) -> bool:
        return self._finished_bytes > self._bytes_max

    def finish(self, call_id: int, outcome: bytes | CortadoError, *, only_reads: bool = False) -> None:
        """Take the outcome of a call."""
        if isinstance(outcome, bytes):
            if len(outcome) > REPLY_BYTES_MAX:
                problem = f"has {len(outcome)} bytes, a message may have {REPLY_BYTES_MAX}: ask for less at a time"
                outcome = TooLarge("reply", problem, length=len(outcome), limit=REPLY_BYTES_MAX)
            elif only_reads and (refusal := self._not_taken(len(outcome))) is not None:
                self._requests.refused(refusal)
                outcome = refusal
        if isinstance(outcome, bytes):
            encoded = reply_of(call_id, outcome)
        else:
            batch = calls_pb2.ReplyBatch()
            batch.replies.add(id=call_id, status=rpc_status(outcome).SerializeToString())
            encoded = batch.SerializeToString()
        self._finished.append(encoded)
        self._finished_bytes += len(encoded)
        self.wake()

    def _not_taken(self, size_bytes: int) -> ResourceExhausted | None:
        """Return the refusal that replaces a reply to a read, if too many replies before it are not taken."""
        limit = _HELD_PARTS * self._bytes_max
        if size_bytes > SMALL_BYTES and self._finished and self._finished_bytes + size_bytes > limit:
            problem = f"{self._finished_bytes} bytes of replies are not taken from this stream, the limit is {limit}"
            return ResourceExhausted(problem, RETRY_DELAY_MS, RESOURCE, limit)
        return None

    def take(self) -> bytes:
        """Take the finished replies as one message, or as many of them as a message should hold."""
        taken, bytes_max = self._finished, self._message_bytes_max
        count = len(taken)
        if self._finished_bytes > bytes_max:
            size_bytes = count = 0
            while count < len(taken) and (not count or size_bytes + len(taken[count]) <= bytes_max):
                size_bytes += len(taken[count])
                count += 1
        taken, self._finished = taken[:count], taken[count:]
        # Repeated fields that follow one another are one: serialized batches end to end are a serialized batch.
        message = b"".join(taken)
        self._finished_bytes -= len(message)
        waiting, self._wait_for_room = self._wait_for_room, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
        return message

    async def room(self) -> None:
        """Wait until it is no longer full. Several may wait; each has a future of its own, which is cancelled with it
        alone."""
        while self.is_full:
            room = self._loop.create_future()
            self._wait_for_room.append(room)
            await room

    async def news(self) -> None:
        """Wait for the next :meth:`wake`."""
        self._has_news = self._loop.create_future()
        await self._has_news

    def wake(self, _: object = None) -> None:
        """Wake the sender: there is a reply, or another event that it waits for."""
        if self._has_news is not None and not self._has_news.done():
            self._has_news.set_result(None)
