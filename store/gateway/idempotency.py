"""``Idempotency-Key``: repetitions of a write, at any gateway, have one effect and one answer.

The first call with a key takes a request id from the cluster. It stores the id under the key's hash, as a pair that
expires after ten minutes. Later calls find the id there and repeat the write under it. The cluster remembers the answer
to a request id, and a hash of the request: a different request under the same key is refused. If the cluster may have
forgotten the id, the outcome is unknown, and nothing is written.

Each principal has a namespace of its own for these pairs, which no other principal may read or write
(:func:`cortado.store.auth.owners.keys_namespace`). So the keys of two principals never meet. The token alone decides
the namespace, whether roles are on or off. Gateways learn of a switch at different times: if they looked for one key in
two namespaces, it would have two effects.
"""

from __future__ import annotations

import re
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from cortado.errors import ConditionFailed, InvalidArgument, WriteConflict
from cortado.store.auth.owners import keys_namespace
from cortado.store.keys.names import shown

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

KEPT: Final = timedelta(minutes=10)

CHARACTERS_MAX: Final = 255

_KEY: Final = re.compile(f"[!-~]{{1,{CHARACTERS_MAX}}}")
_ATTEMPTS_MAX: Final = 3


async def repeatable(client: AsyncClient, key: str, principal: str) -> AsyncClient:
    """Return the client for the write of ``key`` that ``principal`` makes. Raises InvalidArgument naming the header."""
    if _KEY.fullmatch(key) is None:
        problem = f"must be 1 to {CHARACTERS_MAX} characters of ASCII that print, without spaces"
        raise InvalidArgument("Idempotency-Key", problem, shown(key))
    kept, name, fresh = (
        client.kv(keys_namespace(principal)),
        sha256(key.encode()).digest(),
        await client.new_request_id(),
    )
    for _ in range(_ATTEMPTS_MAX):
        try:
            await kept.put(name, fresh, if_absent=True, expires=KEPT)
        except ConditionFailed:
            found = await kept.get(name)
            if found is not None:
                return client.with_request_id(found.value)
            # It has expired between the two.
        else:
            return client.with_request_id(fresh)
    raise WriteConflict(f"Idempotency-Key {key}", "", "")
