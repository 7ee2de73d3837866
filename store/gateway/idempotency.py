"""``Idempotency-Key``: a write that is made again, by whomever and at whichever gateway, has one effect and one answer.

A key's first call takes a request id of the cluster, and puts it under the key's hash where no other call has done so:
a pair that expires after ten minutes. Every later call finds it there, and makes its write under the same id. The
cluster remembers the answer to that id and the hash of what was asked: another request under the same key is refused,
and where the cluster may have forgotten, the outcome is unknown, and nothing is done.
"""

from __future__ import annotations

import re
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from cortado.errors import ConditionFailed, InvalidArgument, WriteConflict
from cortado.store.names import shown

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

NAMESPACE: Final = "cortado.idempotency"
"""Of the key-value API, where the ids are."""
KEPT: Final = timedelta(minutes=10)

CHARACTERS_MAX: Final = 255

_KEY: Final = re.compile(f"[!-~]{{1,{CHARACTERS_MAX}}}")
_ATTEMPTS_MAX: Final = 3


async def repeatable(client: AsyncClient, key: str) -> AsyncClient:
    """The client for the write of ``key``. Raises InvalidArgument naming the header."""
    if _KEY.fullmatch(key) is None:
        problem = f"must be 1 to {CHARACTERS_MAX} characters of ASCII that print, without spaces"
        raise InvalidArgument("Idempotency-Key", problem, shown(key))
    kept, name, fresh = client.kv(NAMESPACE), sha256(key.encode()).digest(), await client.new_request_id()
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
