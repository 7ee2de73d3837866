"""Who owns what principals name or number: leases, places of consumers, large transactions, numbers of applications,
idempotency keys, request ids.

::

    principal ""      while roles are off, and nothing shows who calls: names are everybody's
    principal "etl"   its names are in a space of its own: no name of another principal is the same, or tells of it

What was named while there was no principal stays open to all: each caller finds it behind its own. A bound on how much
there may be of something is shared (:func:`check_share`), so no principal can fill it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

from cortado.errors import ResourceExhausted

ID_BYTES: Final = 16
TAG_BYTES: Final = 8
RETRY_DELAY_MS: Final = 1_000
KEYS_NAMESPACE: Final = "cortado.idempotency"
"""Of idempotency keys while roles are off."""


class Asker(NamedTuple):
    """The caller, as far as owners matter. Without roles ``is_open``: it may do everything. ``operates``: it may end
    what is another's."""

    principal: str = ""
    is_open: bool = True
    operates: bool = True

    def owns(self, principal: str) -> bool:
        """Whether what belongs to ``principal`` is the caller's to use."""
        return self.is_open or principal in ("", self.principal)


ANYBODY: Final = Asker()


def own_id(principal: str, name: bytes) -> bytes:
    """The id, 16 bytes, of what ``principal`` calls ``name``; without a principal that is ``name`` itself."""
    if not principal:
        return name
    return blake2b(name, digest_size=ID_BYTES, key=principal.encode(), person=b"cortado.owners").digest()


def tag_of(principal: str) -> bytes:
    """Tells principals apart in lists: 8 bytes, zeros for none."""
    return blake2b(principal.encode(), digest_size=TAG_BYTES).digest() if principal else bytes(TAG_BYTES)


def keys_namespace(principal: str) -> str:
    """The namespace of pairs in which gateways keep the idempotency keys of ``principal``."""
    return f"{KEYS_NAMESPACE}.{tag_of(principal).hex()}" if principal else KEYS_NAMESPACE


def check_share(asker: Asker, resource: str, *, own: int, total: int, limit: int) -> None:
    """Whether the caller may have one more of a ``resource`` of which there may be ``limit``.

    A principal may have as many as it leaves free. So it alone gets half of them, each of two a third, and one that has
    none finds a place, as long as the principals are fewer than the places. Raises ResourceExhausted.
    """
    if total >= limit:
        problem = f"there are {total} {resource}, and there can be no more"
        raise ResourceExhausted(problem, RETRY_DELAY_MS, resource=resource, limit=limit)
    if asker.principal and not asker.is_open and own >= limit - total:
        problem = (
            f"principal {asker.principal} has {own} of {total} {resource}: the {limit - total} left are for others"
        )
        raise ResourceExhausted(problem, RETRY_DELAY_MS, resource=resource, limit=limit)
