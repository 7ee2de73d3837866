"""Authentication and authorization: every call of the API passes here before it reaches its method.

::

    a call ─► credential ─────────► rule of the method ─► allowed by applied state? ──► the method
              token, or the name     (permissions.py)      no: denied, and audited        │
              in a certificate                                                            a write: once more, where it
                                                                                          is appended (auth/caller.py)

**Unauthenticated calls are refused before their message is received**, once roles are on
(:meth:`Authority.check_known`). So unknown callers hold no places of known ones.

**Decided from replicated state.** It is the state that this node has applied, at a leader the committed state, and in
memory. A follower that lags never denies: it sends the caller to the leader, which knows. A call that it allows reads
its applied state. A node does the same if damage hides its roles.

**Streams** are checked again four times a second, and ended if they are no longer allowed.

**Quotas** (:mod:`cortado.store.quotas`) are checked after that, once the caller is known. A stream that has begun
is not refused for its rate: it waits before its next message.

While roles are off no call is denied. A write is still checked when it is appended: the entry that switches roles on
is before or behind it in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from cortado.errors import CortadoError
from cortado.store.auth.caller import CALLER, Caller, denial
from cortado.store.auth.current import Credential, Roles
from cortado.store.auth.roles import Demand, Permission, Rights
from cortado.store.auth.tokens import counts_only_with_roles, token_of
from cortado.store.host.host import Host
from cortado.store.mvcc.reader import Reader
from cortado.store.peers.identity import client_of
from cortado.store.quotas.meters import NO_METERS, Meter, Meters
from cortado.store.server.audit import Audit
from cortado.store.server.call_context import Context
from cortado.store.server.permissions import CARRIERS, KNOWN, PACKAGE, Rule, rule_of

R = TypeVar("R")

NOBODY: Final = Credential()
LOOK_S: Final = 0.25
"""The time between two checks of the open streams."""
_LOCAL: Final = frozenset({Permission.VIEW, Permission.OPERATE})
"""The permissions of calls that ask this very node: no other node can answer for it."""

CREDENTIAL: Final[ContextVar[Credential]] = ContextVar("cortado_credential", default=NOBODY)
"""The credential of the call that is served. Set before each call, since many begin in one task."""


def credential_of(authorization: str, certificate: str = "") -> Credential:
    """Return a caller's credential. If there is a header, it alone counts, even without a token: a client that calls
    on behalf of others sends one, so that its own certificate never counts for their calls."""
    if authorization:
        return Credential(token=token_of(authorization), needs_roles=counts_only_with_roles(authorization))
    return Credential(certificate=certificate)


def credential_of_call(context: Context, authorization: str) -> Credential:
    """Return the :func:`credential_of` a call with this ``authorization`` metadata."""
    if authorization:
        return credential_of(authorization)
    names: Any = context.auth_context().get("x509_subject_alternative_name", ())
    return Credential(certificate=client_of(names)) if names else NOBODY


class OpenStream:
    """A stream that is served. Without an ``authority`` every caller may open one, and no check ends it."""

    def __init__(self, name: str, authority: Authority | None = None) -> None:
        self.name = name
        self.callers: list[Caller] = []
        self._authority = authority
        self._meters = NO_METERS if authority is None else authority.meters
        self._counted: list[Meter] = []
        self._counted_of = -1
        """The generation of quotas that ``_counted`` belongs to."""
        self._added: Sequence[Demand] = ()
        self._rule = None if name.removeprefix(PACKAGE) in CARRIERS else rule_of(name)
        self._credential = CREDENTIAL.get()
        self._refusal: CortadoError | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._looked_by: Roles | None = None

    def admit(self, message: Message, size_bytes: int) -> None:
        """Let a message of ``size_bytes`` in. Raises Unauthenticated, PermissionDenied, NotLeader, QuotaExceeded."""
        rule = self._rule
        if self._authority is None or rule is None:
            return
        is_first = not self.callers
        caller = self._authority.caller(rule, message, self._credential)
        if caller.demands or caller.stored is not None:
            self.callers.append(caller)
            self._authority.check(self.name, caller, message)
            self._added = self._added or (() if rule.adds is None else rule.adds(message))
        if self._meters.by_target:
            if self._meters.any_full:
                self._meters.check_room(self._added)
            if is_first:
                self._meters.begin(self._counting(), lambda: size_bytes)
            else:
                self._meters.take_bytes(self._counting(), size_bytes)

    def sent(self, size_bytes: int) -> bool:
        """Count the bytes of a reply. Returns whether :meth:`pace` has to be awaited before the next one."""
        if not self._meters.by_target:
            return False
        counted = self._counting()
        self._meters.take_bytes(counted, size_bytes)
        return self._meters.owed_ms(counted) > 0

    async def pace(self) -> None:
        """Wait until the stream's debt to its quotas is paid, or the quota is gone. Raises the stream's denial, if
        one comes meanwhile."""
        while self._meters.by_target and self._refusal is None:
            owed_ms = self._meters.owed_ms(self._counting())
            if not owed_ms:
                return
            await asyncio.sleep(min(owed_ms / 1_000, LOOK_S))
        if self._refusal is not None:
            raise self._refusal

    def _counting(self) -> list[Meter]:
        if self._counted_of != self._meters.generation:
            found = {meter: None for each in self.callers for meter in self._meters.of(each.name, each.demands)}
            self._counted, self._counted_of = list(found), self._meters.generation
        return self._counted

    async def follow(self, replies: AsyncGenerator[R, None]) -> AsyncGenerator[R, None]:
        """Yield ``replies`` until they end. Raises the denial if the stream is no longer allowed."""
        while True:
            self._waiting = asyncio.current_task()
            try:
                reply = await anext(replies)
            except StopAsyncIteration:
                return
            except asyncio.CancelledError:
                if self._refusal is None or self._waiting is None:
                    raise
                self._waiting.uncancel()
                raise self._refusal from None
            finally:
                self._waiting = None
            if self._refusal is not None:
                raise self._refusal
            yield reply

    def look(self) -> None:
        """End the stream if it is no longer allowed."""
        if self._authority is None or self._refusal is not None or self._is_as_before(self._authority):
            return
        # After a switch of roles the caller is another one.
        self._counted_of = -1
        for caller in self.callers:
            try:
                self._authority.check(self.name, caller)
            except CortadoError as refusal:
                self._refusal = refusal.with_traceback(None)
                if self._waiting is not None:
                    self._waiting.cancel()
                return

    def _is_as_before(self, authority: Authority) -> bool:
        """Return whether the last look decided by the same state: unchanged roles, and a caller that is still known.
        There are four looks a second at each of thousands of streams."""
        roles, before = authority.roles, self._looked_by
        self._looked_by = roles
        if roles is not before or any(each.stored is not None for each in self.callers):
            return False
        return not roles.is_enabled or all(authority.remembers(each.credential) for each in self.callers)

    def ended(self, error: CortadoError | None) -> None:
        """Audit the end of the stream."""
        if self._authority is not None and self._rule is not None and self.callers:
            self._authority.ended(self.name, self._rule, self.callers[0], None, error)


class Authority:
    """Checks the calls of one server. All its methods run on the loop."""

    def __init__(self, host: Host, audit: Audit, meters: Meters = NO_METERS, *, needs_roles: bool = False) -> None:
        """If it ``needs_roles``, every call is refused while they are off: nothing else identifies the caller."""
        self._host = host
        self._needs_roles = needs_roles
        self._audit = audit
        self.meters = meters
        self._streams: set[OpenStream] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._looked_by: Roles | None = None

    def guarded(
        self, name: str, method: Callable[[Any], Awaitable[R]], serialized: Callable[[R], bytes]
    ) -> Callable[[Any], Awaitable[bytes]]:
        """Return a unary ``method`` that only allowed callers reach, within their quotas. The call is audited as
        :meth:`check` and :meth:`ended` do."""
        rule, check, meters = rule_of(name), self.checker(name), self.meters

        async def call(request: Any) -> bytes:
            caller = check(request)
            counted: Sequence[Meter] = ()
            try:
                if meters.by_target:
                    counted = self._count(rule, caller, request)
                reply = serialized(await method(request))
            except CortadoError as error:
                self.ended(name, rule, caller, request, error)
                raise
            if counted:
                meters.take_bytes(counted, len(reply))
            if rule.changes:
                self.ended(name, rule, caller, request, None)
            return reply

        return call

    def _count(self, rule: Rule, caller: Caller, request: Message) -> Sequence[Meter]:
        """Return the meters that a call counts for, if they have room for it. Raises QuotaExceeded."""
        meters = self.meters
        if meters.any_full and rule.adds is not None:
            meters.check_room(rule.adds(request))
        counted = meters.of(caller.name, caller.demands) if rule.is_metered else ()
        if counted:
            meters.begin(counted, request.ByteSize)
        return counted

    def lets_in(self, rule: Rule, caller: Caller, request: Message, calls: int, request_bytes: int) -> bool:
        """Return whether this number of calls like ``request`` may begin together; if so, quotas count them. If not,
        the caller refuses each by itself: this method audits and counts none of them."""
        if self._denial(caller) is not None:
            return False
        meters = self.meters
        if not meters.by_target:
            return True
        if meters.any_full and rule.adds is not None and meters.full_of(rule.adds(request)) is not None:
            return False
        return meters.begin_many(self.meters_of(caller), calls, request_bytes)

    def meters_of(self, caller: Caller) -> Sequence[Meter]:
        """Return the meters that an admitted call of data counts for."""
        return self.meters.of(caller.name, caller.demands) if self.meters.by_target else ()

    def check_known(self, name: str) -> None:
        """Check a call's credential before its message is received. Raises as :meth:`check` does if no call with this
        credential is allowed."""
        credential = self._demanding(CREDENTIAL.get())
        if self.remembers(credential) if self.roles.is_enabled else not credential.needs_roles:
            return
        caller = Caller(credential, KNOWN)
        refusal = self._denial(caller)
        if refusal is not None:
            raise self._refused(name, caller, refusal, None, is_local=rule_of(name).asks_this_node)

    def know_carrier(self) -> bool:
        """Look up the principal of a stream of calls, for its share; return whether it is known. A stream without
        one is served, too: its calls may have principals of their own."""
        caller = Caller(self._demanding(CREDENTIAL.get()), ())
        is_known = self._denial(caller) is None
        if not is_known:
            caller.rights = Rights.of(())
        CALLER.set(caller)
        return is_known

    @property
    def roles(self) -> Roles:
        """The roles that decide about calls; another object after each change."""
        return self._host.meta.roles.committed

    def remembers(self, credential: Credential) -> bool:
        """Return whether the credential was found before to be a principal's, and still is."""
        return self.roles.remembers(credential, self._now_ms)

    def checker(self, name: str) -> Callable[[Any], Caller]:
        """Return the function that lets a request of the method begin; it raises as :meth:`check` does."""
        rule = rule_of(name)

        def check(request: Any) -> Caller:
            caller = self.caller(rule, request, CREDENTIAL.get())
            self.check(name, caller, request)
            return caller

        return check

    def caller(self, rule: Rule, request: Message, credential: Credential) -> Caller:
        """Return the caller of a request, with its demands."""
        stored, hidden = rule.stored, rule.hidden
        demands, frees = rule.of(request), rule.frees_by(request)
        caller = Caller(self._demanding(credential), demands, owns_names=rule.owns_names, frees=frees)
        if stored is not None:
            caller.stored = lambda reader, asker: stored(request, reader, asker)
        if hidden is not None:
            caller.hidden = lambda: hidden(request)
        return caller

    def _demanding(self, credential: Credential) -> Credential:
        return credential._replace(needs_roles=True) if self._needs_roles else credential

    def check(self, name: str, caller: Caller, request: Message | None = None) -> None:
        """Let a call begin, or raise Unauthenticated, PermissionDenied, NotLeader, or DataLoss if damage hides the
        roles. Its writes are checked again."""
        CALLER.set(caller)
        refusal = self._denial(caller)
        if refusal is not None:
            is_local = any(each.permission in _LOCAL for each in caller.demands)
            raise self._refused(name, caller, refusal, request, is_local=is_local)

    def _denial(self, caller: Caller) -> CortadoError | None:
        return denial(self._host.meta.roles.committed, caller, self._now_ms, self._newest)

    def _refused(
        self, name: str, caller: Caller, refusal: CortadoError, request: Message | None, *, is_local: bool
    ) -> CortadoError:
        """Return the error to raise for a ``refusal``. It is audited if this node may decide it. ``is_local``: the call
        asks this very node."""
        leadership = self._host.meta.driver.leadership
        if not leadership.is_ready and not is_local:
            return leadership.not_leader()
        self._audit.denied(name, caller, refusal, request)
        return refusal

    def _newest(self) -> Reader:
        replica = self._host.meta
        return replica.reader(replica.read_ts())

    def _now_ms(self) -> int:
        return self._host.process.clock.reading().wall_ms

    def ended(self, name: str, rule: Rule, caller: Caller, request: Message | None, error: CortadoError | None) -> None:
        """Audit the end of an admitted call if it changes more than data, or was denied at its end."""
        self._audit.ended(name, caller, error, request, changes=rule.changes)

    @contextmanager
    def stream(self, name: str) -> Iterator[OpenStream]:
        """Open a stream, which is checked until the block ends."""
        stream = OpenStream(name, self)
        self._streams.add(stream)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        try:
            yield stream
        except CortadoError as error:
            stream.ended(error)
            raise
        else:
            stream.ended(None)
        finally:
            self._streams.discard(stream)

    def _look(self) -> None:
        self._timer = None
        if not self._streams:
            return
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        roles, before = self.roles, self._looked_by
        self._looked_by = roles
        if roles is before and not roles.is_enabled:
            # While roles are off, no admitted stream can be denied.
            return
        for stream in list(self._streams):
            stream.look()
