"""A client's way to a cluster: how a call is made, where, repeated and ended.

Every unary call of the client goes through :meth:`Connection.call`, every stream of replies through
:meth:`Connection.replies`, and the stream that goes both ways through :meth:`Connection.stream`. The parts::

    Connection ─┬─ View ............. the time of reads, and whether writes wait for a commit
                ├─ Attempts ......... may the call be made again, when, and how does it end (one for each call)
                ├─ Route ............ where calls go: the leader, as far as is known
                ├─ LeaderSearch ..... asks the members which of them leads
                ├─ Channel .......... one address: how an attempt is made there (one for each, kept)
                └─ Runtime .......... performs all of it, with threads or on a loop

Every header is seen in one place: its cluster id tells when another cluster answers, with schemas and tables other
than those in the caches. The timestamps of writes keep request ids recent.

Many threads may call all of it, or many tasks of one loop, according to the runtime.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack

from google.protobuf.message import DecodeError

from cortado.errors import (
    Cancelled,
    ClockOutOfBounds,
    DeadlineExceeded,
    InvalidArgument,
    NotLeader,
    OutcomeUnknown,
    Unavailable,
    Unsupported,
)
from cortado.proto.v1 import cluster_pb2, common_pb2, documents_pb2
from cortado.store.client import forks
from cortado.store.client.arguments import flag, shown
from cortado.store.client.authorization import ON_BEHALF, Authorization, TokenSource
from cortado.store.client.channel import Begun, Channel, stays
from cortado.store.client.channels import Channels
from cortado.store.client.endpoints import Endpoints, Tls, parse_endpoints
from cortado.store.client.leader_search import LeaderSearch
from cortado.store.client.request_ids import RequestIds
from cortado.store.client.retry import Attempts, Failed, Failure, before_a_write
from cortado.store.client.route import Route
from cortado.store.client.runtime import SILENCE_S, Runtime, Stream, WireClosed
from cortado.store.client.stubs import Method, Stubs
from cortado.store.client.values import At, Times, at_to_proto, timestamp_of
from cortado.store.client.views import View, read_through, replies_through

MEMBERS_RECENT_S: Final = 30.0
"""How often a client that calls asks for the cluster's members, beside its calls."""

ReadFrom: TypeAlias = Literal["leader", "any"]


class ConnectionOptions(TypedDict, total=False):
    """The way to a cluster, the caller's identity, and the handling of times."""

    tls: Tls | None
    token: TokenSource | None
    read_from: ReadFrom
    coalesce: bool
    times: Times


class CallOptions(TypedDict, total=False):
    """The options of :meth:`Connection._attempted`, which explains them."""

    changes: bool
    insists: bool
    of_endpoint: bool


class _Heard:
    """Facts about the cluster that all views of a connection share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.members_asked_s = float("-inf")
        self.cluster_id = ""
        self.reached = False


class Connection:
    """Calls to the cluster behind ``endpoints``. Raises InvalidArgument for endpoints of another shape, or files of
    ``tls`` or ``token`` that cannot be used."""

    stubs: Final = Stubs

    def __init__(
        self,
        endpoints: Endpoints,
        runtime: Runtime,
        *,
        tls: Tls | None = None,
        token: TokenSource | None = None,
        read_from: ReadFrom = "leader",
        coalesce: bool = True,
        times: Times = "exact",
    ) -> None:
        parsed = parse_endpoints(endpoints)
        if read_from not in ("leader", "any"):
            raise InvalidArgument("read_from", "must be leader or any", shown(read_from))
        if times not in ("exact", "truncate"):
            raise InvalidArgument("times", "must be exact or truncate", shown(times))
        if not isinstance(tls, Tls | None):
            raise InvalidArgument("tls", "must be a Tls, or None", type(tls).__name__)
        if tls is not None:
            tls.context()
        self.endpoint = ",".join(parsed)
        self.runtime = runtime
        self.environment = runtime.environment
        self._now_s = self.environment.monotonic_s
        self.request_ids = RequestIds(monotonic_s=self._now_s, random_bytes=self.environment.random_bytes)
        self.on_other_cluster: list[Callable[[], None]] = []
        self.truncates = times == "truncate"
        self._reads_anywhere = read_from == "any"
        self._view: View | None = None
        self._request_id = b""
        self._base: Connection | None = None
        self._heard = _Heard()
        self._channels = Channels(
            self.endpoint, tls, Authorization(token, self._now_s), runtime, coalesce=flag(coalesce, "coalesce")
        )
        self._route = Route(parsed, self._now_s)
        self._search = LeaderSearch(self._route, runtime, self._channels.to, self._channels.forget)

    def through(self, view: View) -> Connection:
        """Return this connection with the reads and writes of ``view``."""
        bound = object.__new__(Connection)
        bound.__dict__ = {**self.__dict__, "_view": view, "_base": self.base}
        return bound

    def under(self, request_id: bytes) -> Connection:
        """Return this connection with this request id for its writes."""
        bound = object.__new__(Connection)
        bound.__dict__ = {**self.__dict__, "_request_id": request_id}
        return bound

    def check_present(self, doing: str) -> None:
        """Raise Unsupported if everything is read in the past, or in a transaction; ``doing`` names the refused
        action."""
        if self._view is not None:
            raise self._view.refusal(doing)

    def staging(self) -> documents_pb2.Staging | None:
        """Return the staging of the large transaction that rows are loaded for; None if they are written at once.
        Raises Unsupported if they can't be: in the past, in a transaction."""
        return None if self._view is None else self._view.staging()

    @property
    def base(self) -> Connection:
        """The same connection without a view."""
        return self if self._base is None else self._base

    @property
    def commits(self) -> bool:
        """Whether this is a transaction's connection: the commit that follows may validate its reads."""
        return self._view is not None and self._view.commits

    def read_at(self, at: At, *, validate: bool) -> common_pb2.ReadAt | None:
        """Return the time to read at, as a message, and whether the following commit validates it. Raises
        InvalidArgument, Unsupported if none follows."""
        past = at_to_proto(at)
        if not flag(validate, "validate"):
            return past
        if not self.commits:
            raise Unsupported("validating a read outside of a transaction", "no commit follows")
        past = common_pb2.ReadAt() if past is None else past
        past.footprint = True
        return past

    async def close(self) -> None:
        """End running calls with Cancelled. May be called again. Raises Unsupported if it may not be used."""
        if forks.is_cut_off():
            return  # The channels are the parent's to close.
        if self._channels.known:
            self.runtime.check()
        await self._channels.close()

    # --- one request, one reply ------------------------------------------------------------------------------

    async def call(
        self,
        method: Method,
        request: Any,
        *,
        timeout_s: float,
        started_s: float | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Return the reply to ``request``, which is repeated while that is safe and ``timeout_s`` allows it.

        A request with a ``request_id`` is a write. ``started_s`` is when the time begins to run, by default now. Raises
        the server's refusal, Unavailable, DeadlineExceeded (reads) or OutcomeUnknown (writes). Nearly every call is
        answered by the leader, on the stream that is open, within one wait. Otherwise :meth:`_attempted` takes over.
        """
        if self._view is not None and method.is_read_at:
            return await read_through(self._view, request, lambda: self.base.call(method, request, timeout_s=timeout_s))
        now_s = self._now_s()
        started_s = now_s if started_s is None else started_s
        if options or (method.is_read_at and self._may_go_anywhere(request)):
            return await self._attempted(method, request, timeout_s, started_s, **options)
        left_s = max(started_s + timeout_s - now_s, 0.001)
        channel = self._channel(anywhere=False)
        pending = channel.begin(method, request.SerializeToString(), left_s)
        if pending is None:
            return await self._attempted(method, request, timeout_s, started_s)
        reply = None
        try:
            if await pending.wait(min(left_s, SILENCE_S)):
                reply = method.reply_of(pending.outcome())
        except (Failed, DecodeError):
            pass
        except BaseException:
            channel.give_up(pending)
            raise
        if reply is None:
            return await self._attempted(method, request, timeout_s, started_s, Begun(channel, pending, left_s))
        channel.answered()
        self._take(reply.header, method, request, started_s)
        return reply

    async def _attempted(
        self,
        method: Method,
        request: Any,
        timeout_s: float,
        started_s: float,
        begun: Begun | None = None,
        *,
        changes: bool = False,
        insists: bool = True,
        of_endpoint: bool = False,
    ) -> Any:
        """Make a :meth:`call` in any number of attempts; the first may be one that was ``begun``.

        ``changes``: it changes something without an id. Without ``insists`` a leader's refusal is final, and there is
        no second attempt if the first may have had its effect. ``of_endpoint`` asks the first endpoint that answers.
        """
        attempts = self.attempts(getattr(request, "request_id", b""), timeout_s, started_s)
        attempts.changes, attempts.stays = changes, of_endpoint and self._route.has_one_endpoint
        encoded = request.SerializeToString()
        anywhere = method.is_read_at and self._may_go_anywhere(request)
        while True:
            try:
                turn = attempts.count if of_endpoint else None
                channel = begun.channel if begun is not None else self._channel(anywhere and not attempts.count, turn)
                reply = await self._attempt(channel, method, encoded, attempts, begun)
            except Failed as failed:
                failure = failed.failure.of_any_member() if anywhere and not attempts.count else failed.failure
            except Cancelled as closed:
                raise attempts.unanswered(closed.problem) or closed from None
            else:
                self._take(reply.header, method, request, attempts.started_s)
                return reply
            if not insists and failure.may_have_happened:
                raise OutcomeUnknown(str(failure.error))
            if not insists and failure.answered and not isinstance(failure.error, NotLeader):
                raise failure.error
            # Outside of the handler, so that the attempt's error is not the context of ours.
            await self.rest_after(attempts, failure, channel)
            begun = None

    async def ask_node(self, address: str, method: Method, request: Any, *, timeout_s: float) -> Any:
        """Return the reply of the node at ``address``, leader or not, in one attempt. Raises its refusal, Unavailable,
        DeadlineExceeded."""
        try:
            return await self._channels.to(address).call(method, request.SerializeToString(), timeout_s, stays)
        except WireClosed:
            raise self._closed_meanwhile() from None
        except Failed as failed:
            problem = failed.failure.error
        if isinstance(problem, DeadlineExceeded):
            # The error names the caller's timeout, not the rest of it at the end.
            raise DeadlineExceeded(f"no answer within {timeout_s:g} s", round(timeout_s * 1000))
        raise problem

    async def write(self, method: Method, request: Any, *, timeout_s: float) -> Any:
        """Make a write, as :meth:`call`, under a new request id, or that of :meth:`under`. Raises Unsupported if
        everything is read in the past. In a transaction the reply tells nothing yet."""
        if self._view is not None:
            return self._view.write(method, request)
        started_s = self._now_s()
        request.request_id = (
            self._request_id or self.request_ids.new_if_recent() or await self.new_request_id(timeout_s)
        )
        try:
            return await self.call(method, request, timeout_s=timeout_s, started_s=started_s)
        except ClockOutOfBounds:
            # The id has the time of a leader that was ahead of today's, and nothing was done under it.
            self.request_ids.forget()
            if self._request_id:
                raise
        request.request_id = await self.new_request_id(timeout_s)
        return await self.call(method, request, timeout_s=timeout_s, started_s=started_s)

    async def new_request_id(self, timeout_s: float) -> bytes:
        """Return an id for one write; asks the leader for the time if no reply was seen recently: another node's clock
        may be wrong. Raises Unavailable if that is late."""
        if not self.request_ids.is_recent:
            asked_s, request = self._now_s(), cluster_pb2.ClockRequest(at_leader=True)
            with before_a_write():
                clock = await self.call(self.stubs.cluster.Clock, request, timeout_s=timeout_s)
            self.request_ids.observe(timestamp_of(clock.now), asked_s)
        return self.request_ids.new()

    async def _attempt(
        self, channel: Channel, method: Method, request: bytes, attempts: Attempts, begun: Begun | None
    ) -> Any:
        is_moved = stays if attempts.stays else lambda: self._search.is_elsewhere(channel.address)
        try:
            if begun is not None:
                return await channel.call(method, request, begun.timeout_s, is_moved, begun.pending)
            left_s = max(attempts.deadline_s - self._now_s(), 0.001)
            return await channel.call(method, request, left_s, is_moved)
        except WireClosed:
            raise self._closed_channel() from None

    def _may_go_anywhere(self, request: Any) -> bool:
        kind = request.at.WhichOneof("kind") if request.HasField("at") else None
        return kind == "stale_ms" or (kind is not None and self._reads_anywhere)

    # --- one request, many replies ---------------------------------------------------------------------------

    def replies(self, method: Method, request: Any, *, timeout_s: float) -> AsyncGenerator[Any, None]:
        """Yield the replies of a scan, which goes on at the same place when its stream breaks.

        ``request`` has a ``page_token``, each reply a ``next_page_token`` from which the same request goes on, at the
        same timestamp; only the last reply has none. ``timeout_s`` bounds the wait for each reply. Closing the
        generator stops the server's work.
        """
        if self._view is not None and method.is_read_at:
            return replies_through(self._view, request, self.base.replies(method, request, timeout_s=timeout_s))
        return self._replies(method, request, timeout_s)

    async def _replies(self, method: Method, request: Any, timeout_s: float) -> AsyncGenerator[Any, None]:
        attempts = self.attempts(b"", timeout_s)
        anywhere = method.is_read_at and self._may_go_anywhere(request)
        started = False
        while True:
            channel = self._channel(anywhere and not attempts.count)
            try:
                with self.stream(channel, method, request.SerializeToString(), timeout_s) as stream:
                    while (reply := await stream.receive()) is not None:
                        self.observe(reply.header)
                        started = True
                        token = reply.next_page_token if method.is_resumable else b""
                        given = [reply]
                        # It may have some MiB, and is not kept here while the caller uses its content.
                        del reply
                        yield given.pop()
                        attempts = self.attempts(b"", timeout_s)
                        if method.is_resumable:
                            if not token:
                                # The end, even if the stream breaks now: to go on would be to repeat this reply.
                                return
                            request.page_token = token
                if not method.is_resumable:
                    return
                failure = Failure(Unavailable("the stream ended before the scan did"), answered=False, sent=True)
            except Failed as failed:
                failure = failed.failure.of_any_member() if anywhere and not attempts.count else failed.failure
            if started and not method.is_resumable:
                raise failure.error
            await self.rest_after(attempts, failure, channel)

    # --- streams of any kind ---------------------------------------------------------------------------------

    @contextmanager
    def stream(self, channel: Channel, method: Method, request: bytes | None, timeout_s: float) -> Iterator[Stream]:
        """Open a call with many replies; ``request`` is None if it goes both ways. Cancelled at the end. Raises Failed.

        ``timeout_s`` bounds the wait for each reply.
        """
        with ExitStack() as stack:
            opened = channel.stream(method, request, timeout_s, lambda: self._search.is_elsewhere(channel.address))
            try:
                stream = stack.enter_context(opened)
            except WireClosed:
                raise self._closed_channel() from None
            yield stream

    def leader_channel(self) -> Channel:
        """Return the channel to the node that is believed to lead. Raises Cancelled once the client was closed."""
        return self._channel(anywhere=False)

    # --- what all of them share ------------------------------------------------------------------------------

    def attempts(self, request_id: bytes, timeout_s: float, started_s: float | None = None) -> Attempts:
        """Return the bookkeeping of a call that begins now, or began at ``started_s``."""
        now_s = self._now_s() if started_s is None else started_s
        # A process that calls for others waits for no quota: callers without quota left would hold its places.
        is_own = not ON_BEHALF.get()
        return Attempts(request_id, now_s, timeout_s, self.environment.random, waits_for_quotas=is_own)

    async def rest_after(self, attempts: Attempts, failure: Failure, channel: Channel) -> None:
        """Wait until the next attempt may be made, here or elsewhere. Raises the call's end if there is no next one."""
        if failure.answered:
            self._heard.reached = True
        if self._channels.is_closed:
            failure = Failure(self._closed_meanwhile(), answered=False, sent=failure.may_have_happened)
        left_s = attempts.deadline_s - self._now_s()
        is_known = left_s > 0 and await self._redirect(failure, channel.address, left_s)
        delay_s = attempts.delay_after(
            failure,
            self._now_s(),
            channel.address,
            is_known=is_known,
            has_others=len(self._route.addresses) > 1,
            was_reached=self._heard.reached,
        )
        if delay_s:
            await self.runtime.sleep(delay_s)
            attempts.check_time_left(failure, self._now_s())

    async def _redirect(self, failure: Failure, address: str, left_s: float) -> bool:
        """Turn to the place of the next attempt; True if that is known to be better than here."""
        error = failure.error
        if isinstance(error, NotLeader):
            if error.leader and self._route.follow(error.leader, address):
                return True
            avoid = ""
        elif isinstance(error, Unavailable):
            if not failure.answered:
                self._route.failed(address)
            avoid = address
        else:
            return False
        if await self._search.look(avoid, left_s) not in ("", address):
            return True
        if isinstance(error, NotLeader) or not failure.answered:
            self._route.turn_from(address)
        return False

    def observe(self, header: common_pb2.Header) -> None:
        """Note that a reply came, and whether it is of another cluster behind the same address."""
        self._heard.reached = True
        if header.cluster_id != self._heard.cluster_id and header.cluster_id:
            with self._heard.lock:
                changed = bool(self._heard.cluster_id) and header.cluster_id != self._heard.cluster_id
                self._heard.cluster_id = header.cluster_id
            if changed:
                self.request_ids.forget()
                self._route.forget_terms()
                for forget in self.on_other_cluster:
                    forget()

    def _take(self, header: common_pb2.Header, method: Method, request: Any, started_s: float) -> None:
        """Take the reply of a call that began at ``started_s``. A write's commit tells a recent time."""
        self.observe(header)
        if not method.changes or self.request_ids.is_fresh(started_s):
            return
        if getattr(request, "request_id", b""):
            self.request_ids.observe(timestamp_of(header.timestamp), started_s)

    def check_open(self) -> None:
        """Raise Cancelled once the client was closed, and an error if it may not be used from here."""
        if self._channels.is_closed:
            raise self._closed_meanwhile()
        forks.check()
        self.runtime.check()

    def _closed_channel(self) -> Cancelled | Failed:
        """Return a closed channel's error: the client was closed, or the node has just left the cluster."""
        if self._channels.is_closed:
            return self._closed_meanwhile()
        return Failed(Failure(Unavailable("the node is no member any more"), answered=False, sent=False))

    def _closed_meanwhile(self) -> Cancelled:
        return Cancelled(problem=f"the client of {self.endpoint} was closed")

    # --- channels --------------------------------------------------------------------------------------------

    def _channel(self, anywhere: bool, turn: int | None = None) -> Channel:
        self.check_open()
        address = self._route.address(anywhere, turn)
        channel = self._channels.known.get(address)
        if channel is None or channel.is_closed:
            try:
                channel = self._channels.to(address)
            except WireClosed:
                raise self._closed_meanwhile() from None
        if self._heard.reached and self._now_s() - self._heard.members_asked_s > MEMBERS_RECENT_S:
            self._ask_members(channel)
        return channel

    def _ask_members(self, channel: Channel) -> None:
        """Learn of the members beside the calls: when their node is gone it is too late to ask it for the others."""
        self._heard.members_asked_s = self._now_s()
        try:
            self._search.ask_beside(channel)
        except WireClosed:
            return  # Closed meanwhile: the call says so.
