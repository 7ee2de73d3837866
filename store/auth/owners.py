"""Owners of names and numbers: leases, places of consumers, large transactions, numbers of applications, idempotency
keys, request ids.

::

    principal ""      roles are off, and the call shows no token: all such callers share their names
    principal "etl"   has a space of names of its own: the same name of another principal is another thing

All principals may use a thing that was named without a principal; each looks among its own names first. Principals
share each bound on a number of things (:func:`check_share`), so no principal can fill it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

from cortado.errors import ResourceExhausted

ID_BYTES: Final = 16
TAG_BYTES: Final = 8
RETRY_DELAY_MS: Final = 1_000
KEYS_NAMESPACE: Final = "cortado.idempotency"
"""The namespace of the idempotency keys of calls without a token, which are served while roles are off."""


class Asker(NamedTuple):
    """The caller as an owner. While roles are off it ``is_open``, and may do everything. A caller that ``operates`` may
    end the leases and transactions of others."""

    principal: str = ""
    is_open: bool = True
    operates: bool = True

    def owns(self, principal: str) -> bool:
        """Return whether the caller may use the things of ``principal``."""
        return self.is_open or principal in ("", self.principal)


ANYBODY: Final = Asker()


def own_id(principal: str, name: bytes) -> bytes:
    """Return the id, 16 bytes, under which the thing is stored that ``principal`` calls ``name``. Without a principal
    it is the name."""
    if not principal:
        return name
    return blake2b(name, digest_size=ID_BYTES, key=principal.encode(), person=b"cortado.owners").digest()


def tag_of(principal: str) -> bytes:
    """Returns 8 bytes that tell principals apart in lists; zeros for none."""
    return blake2b(principal.encode(), digest_size=TAG_BYTES).digest() if principal else bytes(TAG_BYTES)


def keys_namespace(principal: str) -> str:
    """Return the namespace of pairs in which gateways keep the idempotency keys of ``principal``."""
    return f"{KEYS_NAMESPACE}.{tag_of(principal).hex()}" if principal else KEYS_NAMESPACE


def has_share(own: int, total: int, limit: int) -> bool:
    """Return whether a holder of ``own`` of ``total`` places may take one more of ``limit``: it may hold as many as it
    leaves free. Alone it has at most half, two a third each: so one that holds none finds a place."""
    return own < limit - total


def check_share(asker: Asker, resource: str, *, own: int, total: int, limit: int, more: int = 1) -> None:
    """Refuse one ``more`` of a ``resource`` if the caller has its share; at most ``limit`` may exist.

    See :func:`has_share`. Raises ResourceExhausted.
    """
    if total + more > limit:
        problem = f"there are {total} {resource}, and there can be no more"
        raise ResourceExhausted(problem, RETRY_DELAY_MS, resource=resource, limit=limit)
    if asker.principal and not asker.is_open and not has_share(own + more - 1, total + more - 1, limit):
        left = (
            f"the {limit - total} left are for others" if more == 1 else f"{more} more would take the share of others"
        )
        problem = f"principal {asker.principal} has {own} of {total} {resource}: {left}"
        raise ResourceExhausted(problem, RETRY_DELAY_MS, resource=resource, limit=limit)
