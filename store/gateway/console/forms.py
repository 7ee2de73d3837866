"""Forms that change something, with proof that the visitor asked for the form on a page of this gateway.

::

    the page   <input name="form" value="ID.TIME.SEEN.MAC">
    sent back  Origin of this gateway · Sec-Fetch-Site same-origin · MAC of this visitor, act and target · not too old

A browser sends its user's credential with each request, also when another site led it here. So the credential alone
does not show the user's intent. The MAC's key is the credential itself, which a page of another site does not know. So
each gateway of a cluster takes the forms of all others, keeps no session, and refuses another visitor's form. While
roles are off there is no credential, and the key is one that this process draws when it starts.

SEEN is the digest of the target as the page showed it: a form is refused if the target has changed since.

ID is a request id of the cluster, drawn with the page. The form's write runs under it, so a form has one effect:
also if it is sent again, at another gateway, or after a gateway died in the middle. Acts without a request
id (members, leadership, a collection) can be done twice without harm. A cluster that may have forgotten the id does
nothing, and says so. If one gateway gets a form again, as by a double click, it repeats its first answer; with other
fields it refuses the form, as the cluster does at another gateway.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from starlette.datastructures import Headers

from cortado.errors import InvalidArgument
from cortado.store.gateway.problems import Refused
from cortado.store.keys.names import shown

if TYPE_CHECKING:
    from cortado.store.gateway.console.acts.act import Done

Work: TypeAlias = Callable[[], Coroutine[Any, Any, "Done"]]

FORM: Final = "form"
"""The hidden field."""
AGE_MS_MAX: Final = 600_000
"""How old a form may be."""

_FORM: Final = re.compile(r"([0-9a-f]{40})\.([0-9]{13})\.([0-9a-f]{32})\.([0-9a-f]{64})")
_AGAIN: Final = "open the page again"


@dataclass(frozen=True, slots=True)
class Form:
    """A form that was read: the id to write under, and the digest of the target as its page showed it."""

    request_id: bytes
    seen: str


class Forms:
    """Writes forms and reads them. ``without_roles``: whether there are any while roles are off."""

    def __init__(self, *, without_roles: bool = False, now_s: Callable[[], float] = time.time) -> None:
        self.without_roles = without_roles
        self._now_s = now_s
        self._key = secrets.token_bytes(32)
        self._doing: dict[str, tuple[str, asyncio.Task[Done]]] = {}
        self._done: dict[str, tuple[str, int, Done]] = {}
        """By the form: the digest of its fields, since when, and the answer to a second one. The oldest is first."""

    def written(self, secret: bytes, act: str, target: Mapping[str, str], seen: str, request_id: bytes) -> str:
        """Return the hidden field. ``secret`` is known to the visitor alone, empty if no visitor has signed in."""
        head = f"{request_id.hex()}.{self._now_ms():013d}.{digest(seen)}"
        return f"{head}.{self._mac(secret, act, target, head)}"

    def read(self, secret: bytes, act: str, target: Mapping[str, str], given: str) -> Form:
        """Raise Refused if this visitor was not given it, for this act on this target, a moment ago."""
        match = _FORM.fullmatch(given)
        if match is None:
            raise _forged(f"must be the value from the page of this act: {_AGAIN}")
        request_id, made_ms, seen, mac = match.groups()
        if not hmac.compare_digest(mac, self._mac(secret, act, target, given[: -len(mac) - 1])):
            raise _forged(f"was made for another visitor, act, target or gateway: {_AGAIN}")
        age_ms = self._now_ms() - int(made_ms)
        if not -AGE_MS_MAX <= age_ms <= AGE_MS_MAX:
            raise _forged(f"is older than {AGE_MS_MAX // 60_000} minutes: {_AGAIN}")
        return Form(bytes.fromhex(request_id), seen)

    async def once(self, given: str, fields: Mapping[str, str], work: Work) -> Done:
        """Return the result of a form that was read: its first result if it was sent before, else that of ``work``.

        ``work`` goes on if its caller hangs up, and a form that is being done is waited for. Raises the error of
        ``work``; then the form may be sent again. Raises Refused if it was sent before with other fields.
        """
        doing, done, same = self._doing.get(given), self._done.get(given), digest(repr(sorted(fields.items())))
        first = doing or done
        if first is not None and first[0] != same:
            raise was_sent("with other fields")
        if done is not None:
            return done[2]
        if doing is None:
            task = asyncio.create_task(work())
            self._doing[given] = doing = same, task
            task.add_done_callback(partial(self._ended, given))
        return await asyncio.shield(doing[1])

    def _ended(self, given: str, task: asyncio.Task[Done]) -> None:
        same, _ = self._doing.pop(given)
        # Work that failed did nothing, or its id keeps it from being done twice.
        if not task.cancelled() and task.exception() is None:
            self._done[given] = same, self._now_ms(), _told_again(task.result())
        self._forget()

    def _forget(self) -> None:
        oldest_ms = self._now_ms() - 2 * AGE_MS_MAX
        for given in list(takewhile(lambda each: self._done[each][1] < oldest_ms, self._done)):
            del self._done[given]

    def _mac(self, secret: bytes, act: str, target: Mapping[str, str], head: str) -> str:
        parts = ["cortado console form", act, *(each for pair in sorted(target.items()) for each in pair), head]
        # Each with its length, so that no two lists are one text.
        return hmac.new(
            secret or self._key, "".join(f"{len(each)}:{each}" for each in parts).encode(), sha256
        ).hexdigest()

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)


def _told_again(done: Done) -> Done:
    return replace(done, secret="", is_again=True, had_secret=done.secret != "")


def was_sent(how: str) -> Refused:
    """Return the refusal of a form that already had an effect, and that this one does not repeat."""
    return Refused(409, InvalidArgument(FORM, f"was sent before, {how}: look at the present state"))


def digest(seen: str) -> str:
    """Return the digest of a target as its page showed it."""
    return sha256(seen.encode()).hexdigest()[:32]


def check_own(headers: Headers) -> None:
    """Raise Refused for a form that no page of this gateway has sent. That an ``Origin`` which is there is the
    gateway's own is checked of every call."""
    if "origin" not in headers:
        problem = "must be set: browsers name the origin of a form"
        raise Refused(403, InvalidArgument("Origin", problem))
    site = ", ".join(headers.getlist("sec-fetch-site") or ["same-origin"])
    if site != "same-origin":
        problem = "must be same-origin: forms of other pages change nothing here"
        raise Refused(403, InvalidArgument("Sec-Fetch-Site", problem, shown(site)))


def _forged(problem: str) -> Refused:
    return Refused(403, InvalidArgument(FORM, problem))
