"""Roles switched off from outside, for operators without an admin's credential.

``cortado recover --disable-auth`` leaves a mark in the data directory of a stopped node. A leader with the mark
switches roles off by an entry of the log, so that all replicas go on alike; the mark goes once roles are off, at
followers too. If a majority of the voters have the mark and start alone, one of them leads. The entry rests on no
stored data, so it is also the way out if damage hides the keys of roles, or their loss was accepted.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from cortado.errors import CortadoError
from cortado.store.auth import changes
from cortado.store.host.host import Host

MARK: Final = "auth-disable"
_LOOK_S: Final = 0.2
_LOG: Final = logging.getLogger(__name__)


async def switch_off_where_marked(host: Host, data_dir: Path) -> None:
    """Switch roles off if the mark is there. Return at once if it is not, and else once roles are off."""
    mark = data_dir / MARK
    while mark.exists():
        replica = host.meta
        is_enabled = replica.roles.committed.is_enabled
        try:
            if is_enabled and replica.driver.leadership.is_ready:
                await replica.keep_house(changes.switched_off())
                _LOG.warning("roles are off, as %s asked for: all callers may do everything", mark)
            elif not is_enabled and replica.leader is not None:
                mark.unlink(missing_ok=True)
        except CortadoError as problem:
            _LOG.info("roles are not switched off yet: %s", problem)
        await asyncio.sleep(_LOOK_S)
