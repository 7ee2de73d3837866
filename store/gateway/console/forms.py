"""Forms that change something: what shows that a form was asked for by who sends it, from a page of this gateway.

::

    the page   <input name="form" value="NONCE.TIME.SEEN.MAC">
    sent back  Origin of this gateway · Sec-Fetch-Site same-origin · MAC of this visitor, act and target · not too old

A browser sends its user's credential with whatever leads it here, so the credential alone says nothing of what its user
wants. The MAC's key is the credential itself, which a page of another site does not know: so every gateway of a cluster
takes the forms of every other, keeps no session, and a form of one visitor is none of another's. While roles are off
there is no credential, and the key is one that this process draws when it starts.

SEEN is what the page showed of its target: a form is refused where that has changed since. A gateway does each form
once, and the next gateway finds another target than was seen, or one that is there already. (A request id of the
cluster in the form would give the second the first one's answer; but a busy cluster remembers ids for less time than
people take to read.)
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from starlette.datastructures import Headers

from cortado.errors import CortadoError, InvalidArgument, OutcomeUnknown
from cortado.store.gateway.problems import Refused
from cortado.store.names import shown

FORM: Final = "form"
"""The hidden field."""
AGE_MS_MAX: Final = 600_000
"""How old a form may be."""

_FORM: Final = re.compile(r"[0-9a-f]{16}\.([0-9]{13})\.([0-9a-f]{32})\.([0-9a-f]{64})")
_AGAIN: Final = "open the page again"


class Forms:
    """Writes forms and reads them. ``without_roles``: whether there are any while roles are off."""

    def __init__(self, *, without_roles: bool = False, now_s: Callable[[], float] = time.time) -> None:
        self.without_roles = without_roles
        self._now_s = now_s
        self._key = secrets.token_bytes(32)
        self._sent_ms: dict[str, int] = {}
        """When each form was sent whose act was done, or may have been."""

    def written(self, secret: bytes, act: str, target: Mapping[str, str], seen: str) -> str:
        """The hidden field. ``secret`` is what the visitor alone knows, empty where nobody is signed in."""
        head = f"{secrets.token_hex(8)}.{self._now_ms():013d}.{digest(seen)}"
        return f"{head}.{self._mac(secret, act, target, head)}"

    def read(self, secret: bytes, act: str, target: Mapping[str, str], given: str) -> str:
        """The digest of what its page showed. Raises Refused where this visitor was not given it, for this act on this
        target, a moment ago."""
        match = _FORM.fullmatch(given)
        if match is None:
            raise _forged(f"must be what the page of this act holds: {_AGAIN}")
        made_ms, seen, mac = match.groups()
        if not hmac.compare_digest(mac, self._mac(secret, act, target, given[: -len(mac) - 1])):
            raise _forged(f"was not made for you, this act and what it acts on, or for another gateway: {_AGAIN}")
        age_ms = self._now_ms() - int(made_ms)
        if not -AGE_MS_MAX <= age_ms <= AGE_MS_MAX:
            raise _forged(f"is older than {AGE_MS_MAX // 60_000} minutes: {_AGAIN}")
        return seen

    @contextmanager
    def once(self, given: str) -> Iterator[None]:
        """Around the act of a form that was read. Raises Refused where it was done here before, or may have been."""
        now_ms = self._now_ms()
        self._sent_ms = {each: sent_ms for each, sent_ms in self._sent_ms.items() if now_ms - sent_ms <= 2 * AGE_MS_MAX}
        if given in self._sent_ms:
            problem = "was sent before; what was answered then is not shown again: look at what is there now"
            raise Refused(409, InvalidArgument(FORM, problem))
        self._sent_ms[given] = now_ms
        try:
            yield
        except OutcomeUnknown:
            raise
        except CortadoError:
            del self._sent_ms[given]
            raise

    def _mac(self, secret: bytes, act: str, target: Mapping[str, str], head: str) -> str:
        parts = ["cortado console form", act, *(each for pair in sorted(target.items()) for each in pair), head]
        # Each with its length, so that no two lists are one text.
        return hmac.new(
            secret or self._key, "".join(f"{len(each)}:{each}" for each in parts).encode(), sha256
        ).hexdigest()

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)


def digest(seen: str) -> str:
    """Of what a page showed."""
    return sha256(seen.encode()).hexdigest()[:32]


def check_own(headers: Headers) -> None:
    """Raises Refused for a form that no page of this gateway has sent. That an ``Origin`` which is there is the
    gateway's own is checked of every call."""
    if "origin" not in headers:
        problem = "must be there: browsers say where a form comes from"
        raise Refused(403, InvalidArgument("Origin", problem))
    site = ", ".join(headers.getlist("sec-fetch-site") or ["same-origin"])
    if site != "same-origin":
        problem = "must be same-origin: forms of other pages change nothing here"
        raise Refused(403, InvalidArgument("Sec-Fetch-Site", problem, shown(site)))


def _forged(problem: str) -> Refused:
    return Refused(403, InvalidArgument(FORM, problem))
