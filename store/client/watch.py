"""Watches: the changes in a range, from a timestamp on, in the order of the commits, until the watch is closed.

::

    watch = client.kv("sessions").watch(prefix=b"user/")
    for event in watch:
        match event:
            case Changed(key, value, ts): ...
            case Deleted(key, ts): ...
            case Resolved(ts): ...          # everything up to ts was given out: store ts, to begin after it next time

A watch resumes by itself when its stream breaks, or its node stops or loses touch with the leader. It goes on at
another node from the last timestamp up to which it is complete. Above that, changes come again, in the same order, so
those that were given out already are counted off: each is given out once, and none is left out. That order is the same
at every node, by timestamp and then by key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar

from cortado.errors import DeadlineExceeded, InvalidArgument, Unavailable, Unsupported
from cortado.proto.v1 import watch_pb2
from cortado.store.client.arguments import flag, whole
from cortado.store.client.channel import Channel, stays
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face
from cortado.store.client.retry import Attempts, Failed, Failure
from cortado.store.client.runtime import Stream, WireClosed
from cortado.store.client.stubs import Method
from cortado.store.client.values import At, Stale, at_to_proto, parse_at, timestamp_of, timestamp_to_proto
from cortado.store.clock.text import wall_ms_of
from cortado.store.clock.timestamp import LOGICAL_MAX, Timestamp, lag_ms

K = TypeVar("K")
V = TypeVar("V")

RESOLVED_MS_MAX: Final = 60_000
_SILENCE_S: Final = 10.0
"""How long after its due interval a silent stream is given up. A node with thousands of
watches that have nothing to say lets each say so every 8 s."""


@dataclass(frozen=True, slots=True)
class Changed(Generic[K, V]):
    """``key`` has ``value`` since the commit at ``ts``. ``previous`` is the replaced value, if that was asked for. It
    expires at the wall time ``expires_ms``, in milliseconds since 1970, 0 for never; no event follows then."""

    key: K
    value: V
    ts: Timestamp
    previous: V | None = None
    expires_ms: int = 0

    @property
    def etag(self) -> str:
        """Names this version, for a conditional write."""
        return str(self.ts)


@dataclass(frozen=True, slots=True)
class Deleted(Generic[K, V]):
    """``key`` is gone since the commit at ``ts``."""

    key: K
    ts: Timestamp
    previous: V | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """Every change at or below ``ts`` was given out. A watch that begins after ``ts`` goes on from here."""

    ts: Timestamp


Change: TypeAlias = Changed[K, V] | Deleted[K, V]
Event: TypeAlias = Changed[K, V] | Deleted[K, V] | Resolved


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The arguments of ``watch`` that are not its range. Raises InvalidArgument."""

    after: At = None
    until: At = None
    initial_state: bool = False
    with_previous: bool = False
    resolved_ms: int = 1_000
    progress_only: bool = False

    def __post_init__(self) -> None:
        whole(self.resolved_ms, "resolved_ms", 1, RESOLVED_MS_MAX)
        for name in ("after", "until"):
            if isinstance(getattr(self, name), Stale):
                raise InvalidArgument(name, "must be a Timestamp, its text, or a datetime with a time zone", "Stale")
            at_to_proto(getattr(self, name), name)
        for name in ("initial_state", "with_previous"):
            flag(getattr(self, name), name)
        after, until = moment(self.after), moment(self.until)
        if type(after) is type(until) and isinstance(after, Timestamp | datetime) and until < after:  # type: ignore[operator]
            raise InvalidArgument("until", f"must not be before after, {after}", str(until))

    def to_proto(self) -> watch_pb2.WatchOptions:
        return watch_pb2.WatchOptions(
            after=at_to_proto(self.after),
            initial_state=self.initial_state,
            resolved_interval_ms=self.resolved_ms,
            with_previous=self.with_previous,
            progress_only=self.progress_only,
        )


def moment(at: At) -> At:
    """Return ``at``, parsed if it is a text."""
    return parse_at(at) if isinstance(at, str) else at


class Source(Protocol[K, V]):
    """The subject of a watch: a range of a namespace, or of a table."""

    method: Method

    async def request(self, options: watch_pb2.WatchOptions) -> Any:
        """Return the request. Raises if there is nothing of that name."""
        ...

    async def changes(self, reply: Any) -> Sequence[Change[K, V]]:
        """Return the changes in a reply, in their order."""
        ...


@public_face
class AsyncWatch(Generic[K, V]):
    """An iterator of events, without end but for ``until``. For one consumer; close it, or use it as a context manager.

    It raises errors that end a watch for good: SnapshotTooOld, if history that it needs is gone, with the timestamp to
    begin at; NotFound; Unavailable, if no node could go on with it within the client's timeout. Asked again after
    that, it tries again, from the same place.
    """

    def __init__(
        self, connection: Connection, source: Source[K, V], options: WatchOptions, *, timeout_s: float
    ) -> None:
        self._connection = connection
        self._source = source
        self._options = options
        self._timeout_s = timeout_s
        self._stack = ExitStack()
        self._channel: Channel | None = None
        self._stream: Stream | None = None
        self._attempts: Attempts | None = None
        self._is_closed = False
        self._place = _Place(options.to_proto())
        self._until = moment(options.until)
        self._is_over = False
        self._events: deque[Event[K, V]] = deque()
        self._applied: Timestamp | None = None
        self._began: Timestamp | None = None
        self._cluster_id = ""
        self._resolved: Timestamp | None = None

    @property
    def resolved(self) -> Timestamp | None:
        """Everything up to here was given out: store it, and begin ``after`` it another time. None until that is known;
        with ``initial_state``, until the state is complete."""
        return self._resolved

    @property
    def lag_ms(self) -> int:
        """How far the delivered events are behind the state that their node had applied when it last spoke: a slow
        consumer is told here. Its changes wait at the node, and are read from disk again if they become too many. From
        the beginning, or out of an earlier epoch, it counts since the watch began."""
        if self.resolved is None or self._applied is None or self._began is None:
            return 0
        return lag_ms(self._applied, self.resolved, self._began)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[K, V]:
        while (event := self._ready()) is None:
            if not await self._fill():
                raise StopAsyncIteration
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the stream; a caller that waits for an event finds the end. May be called again."""
        self._leave()

    def __del__(self) -> None:
        if self.__dict__.get("_stream") is not None:
            self._leave()

    # --- for the faces -----------------------------------------------------------------------------------------

    def _leave(self) -> None:
        """Close the watch."""
        self._is_closed = True
        self._close_stream()

    def _ready(self) -> Event[K, V] | None:
        """Return the next event, if one has arrived."""
        if self._is_closed or not self._events:
            return None
        event = self._events.popleft()
        if isinstance(event, Resolved):
            self._resolved = event.ts
        return event

    async def _fill(self) -> bool:
        """Wait until an event has arrived. False at the end."""
        while not self._events and not self._is_closed:
            if self._is_over:
                await self.close()
                return False
            try:
                reply = await self._receive()
                if reply is not None:
                    self._take(reply, await self._source.changes(reply))
            except BaseException:
                # All that had arrived is asked for again: a task that was cancelled must not lose it.
                self._close_stream()
                raise
        return not self._is_closed

    # --- the stream --------------------------------------------------------------------------------------------

    async def _receive(self) -> Any:
        """Return the next reply, of this stream or another; None if the watch was closed."""
        while not self._is_closed:
            if self._stream is None or self._channel is None:
                self._channel = self._connection.leader_channel()
            channel = self._channel
            try:
                reply = await (self._stream or await self._open(channel)).receive()
                if reply is not None:
                    self._observe(reply)
                    return reply
                failure = Failure(Unavailable("the node ended the stream"), answered=False, sent=True)
            except Failed as failed:
                failure = failed.failure
            self._close_stream()
            if not self._is_closed:
                await self._rest_after(failure, channel)
        return None

    async def _open(self, channel: Channel) -> Stream:
        request = await self._source.request(self._place.options())
        silence_s = self._options.resolved_ms / 1_000 + _SILENCE_S
        opening = channel.stream(self._source.method, request.SerializeToString(), silence_s, stays)
        try:
            stream = self._stack.enter_context(opening)
        except WireClosed:
            self._connection.check_open()
            gone = Unavailable("the node is no member any more")
            raise Failed(Failure(gone, answered=False, sent=False)) from None
        if self._is_closed:
            # By another thread, which did not see this stream.
            self._stack.close()
        self._stream = stream
        return stream

    def _close_stream(self) -> None:
        self._stream = None
        self._stack.close()

    async def _rest_after(self, failure: Failure, channel: Channel) -> None:
        """Wait before another attempt. Raises if none is to be made."""
        if isinstance(failure.error, DeadlineExceeded):
            failure = Failure(Unavailable("the node is silent"), answered=False, sent=True)
        if self._attempts is None:
            self._attempts = self._connection.attempts(b"", self._timeout_s)
        try:
            await self._connection.rest_after(self._attempts, failure, channel)
        except BaseException:
            self._attempts = None
            raise

    def _observe(self, reply: Any) -> None:
        header = reply.header
        self._connection.observe(header)
        self._attempts = None
        self._applied = timestamp_of(header.timestamp)
        self._began = self._began or self._applied
        if self._cluster_id not in ("", header.cluster_id):
            self._leave()
            raise Unsupported(
                "a watch that goes on at another cluster",
                f"cluster {header.cluster_id} answers, not {self._cluster_id}",
            )
        self._cluster_id = header.cluster_id

    # --- giving out --------------------------------------------------------------------------------------------

    def _take(self, reply: Any, changes: Sequence[Change[K, V]]) -> None:
        resolved = timestamp_of(reply.resolved) if reply.HasField("resolved") else None
        page_token = reply.next_page_token if self._options.initial_state else b""
        is_state = self._options.initial_state and self._place.resolved is None
        fresh = self._place.take(changes, resolved, page_token)
        if isinstance(self._until, datetime):
            # All of that millisecond, in the epoch that the cluster is in.
            self._until = Timestamp(reply.header.timestamp.epoch, wall_ms_of(self._until), LOGICAL_MAX)
        until = self._until
        if isinstance(until, Timestamp) and is_state:
            # It is as of one time. Without its part above `until` it would lack keys that were there all along.
            self._is_over = resolved is not None and resolved >= until
        elif isinstance(until, Timestamp):
            within = self._up_to(fresh, until)
            is_past = len(within) < len(fresh) or (resolved is not None and resolved >= until)
            fresh = within
            if is_past:
                resolved, self._is_over = until, True
        self._give(fresh)
        if resolved is not None and (self._is_over or self._place.is_even):
            self._events.append(Resolved(resolved))

    def _up_to(self, changes: Sequence[Change[K, V]], ts: Timestamp) -> Sequence[Change[K, V]]:
        """Return the changes at or below ``ts``."""
        return [each for each in changes if each.ts <= ts]

    def _give(self, changes: Sequence[Change[K, V]]) -> None:
        self._events.extend(changes)


class _Place:
    """How far a watch is: the place to ask for next, and which of the changes that come were given out already."""

    def __init__(self, options: watch_pb2.WatchOptions) -> None:
        self._options = options
        self._received = 0
        self._given = 0
        self.resolved: Timestamp | None = None

    @property
    def is_even(self) -> bool:
        """Nothing above :attr:`resolved` was given out."""
        return self._given == 0

    def options(self) -> watch_pb2.WatchOptions:
        """Return the options for a new stream."""
        self._received = 0
        options = self._options
        if self.resolved is not None:
            options.after.timestamp.CopyFrom(timestamp_to_proto(self.resolved))
            options.initial_state = False
            options.page_token = b""
        return options

    def take(
        self, changes: Sequence[Change[K, V]], resolved: Timestamp | None, page_token: bytes
    ) -> Sequence[Change[K, V]]:
        """Return those of a reply's changes that were not given out yet."""
        if page_token:
            # A page of the state at the start. Each comes once, whole.
            self._options.page_token = page_token
            return changes
        seen = min(max(self._given - self._received, 0), len(changes))
        self._received += len(changes)
        self._given = max(self._given, self._received)
        if resolved is not None:
            # The rest of those given out is above the mark, and comes next.
            self._given = max(self._given - self._received, 0)
            self._received = 0
            self.resolved = resolved
        return changes[seen:]
