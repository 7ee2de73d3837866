"""Time goes on where nothing is written, for as long as something is to expire.

A read that names no time is served at the last commit's timestamp, and what has expired by then is absent. In an idle
group that timestamp would stand still, and what expires would be seen until the next write. So its leader writes an
entry a second, as it does for watches, until nothing is left that expires. Who reads at a time of his own needs none of
it; a group that holds nothing that expires writes nothing.

While nobody leads, or the leader's process is stopped, nobody writes that entry. So the first read of a term, and one
that finds the last commit older than ``LATE_MS``, has an entry written before it is served (:class:`.ReadPoints`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from cortado.store.node.applied_state import AppliedState

LAG_MS: Final = 1_000
"""So far reads that name no time are behind the clock at most, or little more."""
LATE_MS: Final = 2 * LAG_MS
"""A read does not serve a last commit that is older than this, where something may have expired since."""
_LOOKS: Final = 4
"""So often within that it is looked."""


async def keep_time(
    applied: Callable[[], AppliedState], is_idle_for: Callable[[int], bool], close_time: Callable[[], Awaitable[None]]
) -> None:
    """A leader's duty. ``is_idle_for(ms)``: whether nothing was written for so long; then ``close_time()`` writes an
    entry."""
    while True:
        await asyncio.sleep(LAG_MS / _LOOKS / 1_000)
        state = applied()
        if state.last_ts.wall_ms < state.expires_to_ms and is_idle_for(LAG_MS):
            await close_time()
