"""Let time go on in an idle group, for as long as something is to expire.

A read that names no time is served at the last commit's timestamp, and pairs and rows expired by then are absent. In an
idle group that timestamp would stand still, and expired ones would be seen until the next write. So its leader writes
an entry a second, as it does for watches, until nothing is left that expires. Reads at a time of their own do not need
it; a group without expiring data writes nothing.

While there is no leader, or its process is stopped, no such entry is written. So the first read of a term has an entry
written before it is served, and so has one that finds the last commit older than ``LATE_MS`` (:class:`.ReadPoints`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from cortado.store.replica.apply.applied_state import AppliedState

LAG_MS: Final = 1_000
"""Reads that name no time are this far behind the clock at most, or little more."""
LATE_MS: Final = 2 * LAG_MS
"""A read does not serve a last commit older than this, if something may have expired since."""
_LOOKS: Final = 4
"""Looks for an idle group in ``LAG_MS``."""


async def keep_time(
    applied: Callable[[], AppliedState], is_idle_for: Callable[[int], bool], close_time: Callable[[], Awaitable[None]]
) -> None:
    """Run a leader's duty: whenever ``is_idle_for(ms)`` says that nothing was written for that long, ``close_time()``
    writes an entry."""
    while True:
        await asyncio.sleep(LAG_MS / _LOOKS / 1_000)
        state = applied()
        if state.last_ts.wall_ms < state.expires_to_ms and is_idle_for(LAG_MS):
            await close_time()
