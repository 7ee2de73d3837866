"""Authenticates callers before the gateway receives a body.

The cluster decides each call. But it decides when the call reaches it, and by then the gateway has read, checked and
parsed the body. So the gateway asks the cluster for the caller's principal first, and caches the answer::

    a token ─► cached? ── for less than KNOWN_S ────► its principal
                 │     └─ for less than STALE_S ────► its principal, and a look-up behind it
                 │     └─ refused within REFUSED_S ─► the same refusal
                 └ no ── one look-up per token ─────► its principal, or a refusal

The cache grants no right. It only says which bodies are received, and which principal's share they use. The cluster
refuses the call of a principal that was revoked meanwhile. So an old answer does no harm, and calls need no second
answer of the cluster before their own.

Known and refused callers have separate tables, so strangers evict no known caller. At most STRANGERS_MAX new tokens are
looked up at a time; further new ones wait, and known ones do not wait behind them.

A token belongs to one principal for good, whether roles are on or off. So a name that belongs to a principal, such as
an idempotency key, means the same at each gateway, also while some have not learned of a switch
(:meth:`Callers.owner`).

All strangers together have one share of the gateway's bounds (:meth:`Callers.share`). Else they could fill a bound with
many tokens, or with none. A known caller has a share of its own. A stranger's call starts a look-up that it does not
wait for, so its next call is a known caller's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from cortado.errors import Unauthenticated
from cortado.store.auth.tokens import NO_SCHEME, digest_of, token_id_of, token_of
from cortado.store.client.authorization import ON_BEHALF

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

KNOWN_S: Final = 5.0
STALE_S: Final = 60.0
REFUSED_S: Final = 1.0
KEPT_MAX: Final = 4_096
"""Entries of each table; the oldest is evicted first."""
STRANGERS: Final = b"?"
"""The share of all strangers; no digest of a token has this length."""
STRANGERS_MAX: Final = 64
"""Concurrent look-ups of tokens that were not known before."""
_NO_SCHEME: Final = b"scheme"
_MALFORMED: Final = b"malformed"
"""All malformed tokens share one entry."""
_NEVER: Final = (float("-inf"), "")


class Callers:
    """The principals of one gateway's callers. Everything here runs on the gateway's loop."""

    def __init__(self, client: AsyncClient, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._monotonic_s = monotonic_s
        self._known: dict[bytes, tuple[float, str]] = {}
        """The time of the answer, and the principal; the last answered stands last."""
        self._refused: dict[bytes, tuple[float, str]] = {}
        """The same, with the refusal."""
        self._open_s = float("-inf")
        """When roles were off last, so that no caller had a principal."""
        self._has_roles = False
        """Whether roles were on in the last look-up."""
        self._asking: dict[bytes, asyncio.Task[str]] = {}
        self._strangers = asyncio.Semaphore(STRANGERS_MAX)

    async def known(self) -> str:
        """Return the name of the running call's principal; empty while roles are off. Raises Unauthenticated, and the
        cluster's error if the look-up fails."""
        key, now_s = _asked_as(), self._monotonic_s()
        refused_s, refusal = self._refused.get(key, _NEVER)
        if now_s - refused_s < REFUSED_S:
            raise Unauthenticated(refusal)
        known_s, name = self._known.get(key, _NEVER) if self._has_roles else (self._open_s, "")
        if now_s - known_s < STALE_S:
            if now_s - known_s >= (KNOWN_S if name else REFUSED_S):
                self._look_up(key).add_done_callback(_forget)
            return name
        # A caller that hangs up must not cancel the look-up of the others.
        name = await asyncio.shield(self._look_up(key))
        return name if self._has_roles else ""

    async def owner(self) -> str:
        """Return the principal of the running call's token, while roles are off too; empty for a call without a token.

        Raises Unauthenticated for the token of no principal, also while roles are off: a gateway that still knows the
        token would take the call's names for other things. Raises the cluster's error if the look-up fails.
        """
        key = shown_token()
        if not key:
            return ""
        known_s, name = self._known.get(key, _NEVER)
        if self._monotonic_s() - known_s >= STALE_S:
            name = await asyncio.shield(self._look_up(key))
        if not name:
            raise Unauthenticated("the token is of no principal, and the call names a thing of its principal's own")
        return name

    def share(self) -> bytes:
        """Return the share of the bounds that the running call uses: that of its token, or of all strangers; empty
        while roles are off, when nothing tells callers apart."""
        key, now_s = _asked_as(), self._monotonic_s()
        known_s = self._known.get(key, _NEVER)[0] if self._has_roles else self._open_s
        refused_s = self._refused.get(key, _NEVER)[0]
        is_due = now_s - known_s >= (KNOWN_S if self._has_roles else REFUSED_S) and now_s - refused_s >= REFUSED_S
        if is_due and len(self._asking) < STRANGERS_MAX:
            self._look_up(key).add_done_callback(_forget)
        if not self._has_roles:
            return b""
        return key if now_s - known_s < STALE_S else STRANGERS

    def _look_up(self, key: bytes) -> asyncio.Task[str]:
        task = self._asking.get(key)
        if task is None:
            self._asking[key] = task = asyncio.create_task(self._ask(key))
        return task

    async def _ask(self, key: bytes) -> str:
        try:
            async with nullcontext() if key in self._known else self._strangers:
                who = await self._client.admin.auth.who_am_i()
            if who.enabled and who.principal is None:
                raise Unauthenticated("the call shows no principal")
        except Unauthenticated as error:
            self._has_roles = True
            self._known.pop(key, None)
            self._open_s = float("-inf")
            _keep(self._refused, key, self._monotonic_s(), error.problem)
            raise
        finally:
            del self._asking[key]
        self._refused.pop(key, None)
        self._has_roles = who.enabled
        self._open_s = float("-inf") if who.enabled else self._monotonic_s()
        if who.principal is None:
            self._known.pop(key, None)
            return ""
        _keep(self._known, key, self._monotonic_s(), who.principal.name)
        return who.principal.name


def _forget(task: asyncio.Task[str]) -> None:
    """Mark the task's error as read: its outcome is in the cache, and no caller waits for it."""
    if not task.cancelled():
        task.exception()


def shown_token() -> bytes:
    """Stands for the token of the running call; empty for none, and for one that has no token's form."""
    text = token_of(ON_BEHALF.get())
    return digest_of(text) if token_id_of(text) else b""


def _asked_as() -> bytes:
    """Return :func:`shown_token`; without a token, the reason: each reason has a refusal of its own."""
    text = token_of(ON_BEHALF.get())
    return shown_token() or (b"" if not text else _NO_SCHEME if text == NO_SCHEME else _MALFORMED)


def _keep(table: dict[bytes, tuple[float, str]], key: bytes, now_s: float, told: str) -> None:
    table.pop(key, None)
    if len(table) >= KEPT_MAX:
        del table[next(iter(table))]
    table[key] = now_s, told
