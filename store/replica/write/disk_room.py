"""Room for writes: on this node's disk and map, and on those of the members that make a majority
(:mod:`cortado.raft.room`).

::

    a request ───► is there room for about its size?                    no: refused before it stands in line
    evaluated ───► is there room for it, behind all that is before it?  no: refused, and nothing is appended
    ten times a second: measured. Acknowledgements tell it; if it is scarce, the log is kept short

The engine judges the room here; the members' own reports judge theirs. A write is appended if every member of some
majority keeps its reserve. A write that frees room may use the reserve, but for its last part, here as there; the
leader's own writes are refused nowhere.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Final

from cortado.errors import CortadoError, ResourceExhausted
from cortado.raft.log import STORED_TIMES, Room, VoterRoom
from cortado.store.engine.failures import RETRY_DELAY_MS
from cortado.store.engine.interface import LAST_RESERVE_PART
from cortado.store.replica.context import GroupContext
from cortado.store.replica.write.log_entry import COMMAND_OVERHEAD_BYTES
from cortado.store.replica.write.run import Proposed

_LOG: Final = logging.getLogger(__name__)

LOOK_MS: Final = 100.0
"""Room is measured this often: no less often than a leader asks with a heartbeat."""
_UNASKED_BYTES: Final = 64 << 10
"""A write may turn out larger than twice its request by this, without the disk being looked at again."""
_LOOK_AGAIN_AFTER_BYTES: Final = 1 << 20
_PAGE_BYTES: Final = 4_096
SMALL_BYTES: Final = 64 << 10
"""If there is no room for a write of this size, writes are refused."""


class DiskRoom:
    """All methods run on the loop."""

    def __init__(self, group: GroupContext) -> None:
        self._process = group.process
        self._engine = group.process.engine
        self._log_files = group.process.log_files
        self._log = group.log
        self._look_at_ms = -math.inf
        self._is_scarce = False
        # Bytes known to be left on the disks of a majority, and not given away since.
        self._unlooked_bytes = 0.0
        self._members_problem = ""

    def look(self, now_ms: float) -> bool:
        """Measure, and tell the log. True if room is scarce (:attr:`RoomLeft.is_tight`): keep the log short."""
        if now_ms < self._look_at_ms:
            return False
        self._look_at_ms = now_ms + LOOK_MS
        self._unlooked_bytes = 0.0
        try:
            left_bytes, reserve_bytes = room = self._engine.room()
        except (CortadoError, OSError):
            # The next caller that reads or writes will report it.
            return False
        last_bytes = reserve_bytes // LAST_RESERVE_PART
        self._log.room.measured(Room(max(left_bytes - reserve_bytes, 0), max(left_bytes - last_bytes, 0)))
        self._is_scarce = self._log_files.is_room_scarce = room.is_tight
        self._say()
        return self._is_scarce

    def admit_request(self, proposal: Proposed, appended_bytes: int) -> None:
        """Admit a request before it stands in line, behind ``appended_bytes`` that are not applied. Raises
        ResourceExhausted."""
        if not proposal.is_own:
            size_bytes = proposal.size_bytes + COMMAND_OVERHEAD_BYTES * proposal.callers
            self._process.admit(size_bytes, behind_bytes=appended_bytes, frees=proposal.frees)
            self._admit_members(size_bytes, 0, frees=proposal.frees)

    def admit_effect(self, proposal: Proposed, size_bytes: int, open_bytes: int, appended_bytes: int) -> None:
        """Admit an evaluated write of ``size_bytes``, behind ``open_bytes`` that are not appended and
        ``appended_bytes`` that are not applied. Raises ResourceExhausted: each of many requests that came together had
        room alone."""
        if proposal.is_own:
            return
        if self._is_scarce or size_bytes > 2 * proposal.size_bytes + _UNASKED_BYTES:
            self._engine.admit(size_bytes, behind_bytes=open_bytes + appended_bytes, frees=proposal.frees)
        self._admit_members(size_bytes, open_bytes, frees=proposal.frees)

    def problem(self) -> str:
        """Return why a small write would be refused now; empty if it would not."""
        try:
            self._engine.admit(SMALL_BYTES)
        except ResourceExhausted as full:
            return full.message()
        return self._members_problem

    # --- the members -------------------------------------------------------------------------------------------

    def _admit_members(self, size_bytes: int, open_bytes: int, *, frees: bool) -> None:
        cost_bytes = STORED_TIMES * size_bytes + _PAGE_BYTES
        if cost_bytes > self._unlooked_bytes:
            # Appended bytes are known to be on their way to the members; the open batch is not.
            before_bytes = STORED_TIMES * open_bytes
            left_bytes = self._log.room.of_majority(frees=False)[0] - before_bytes
            self._unlooked_bytes = 0.0
            if cost_bytes > left_bytes:
                left_bytes, voters = self._log.room.of_majority(frees=frees)
                if not frees or cost_bytes > left_bytes - before_bytes:
                    raise _members_full(voters, cost_bytes + before_bytes, frees=frees)
                return
            if not math.isinf(left_bytes):
                self._unlooked_bytes = max(cost_bytes, min(left_bytes, _LOOK_AGAIN_AFTER_BYTES))
        self._unlooked_bytes -= min(cost_bytes, self._unlooked_bytes)

    def _say(self) -> None:
        """Log the problem, but not each time that a little room comes and goes."""
        left_bytes, voters = self._log.room.of_majority(frees=False)
        if left_bytes < STORED_TIMES * SMALL_BYTES:
            was_known = bool(self._members_problem)
            self._members_problem = _members_full(voters, STORED_TIMES * SMALL_BYTES, frees=False).message()
            if not was_known:
                _LOG.warning("writes are refused: %s", self._members_problem)
        elif left_bytes > _LOOK_AGAIN_AFTER_BYTES and self._members_problem:
            self._members_problem = ""
            _LOG.info("the members have room for writes again")


def _members_full(voters: Sequence[VoterRoom], cost_bytes: int, *, frees: bool) -> ResourceExhausted:
    """Name the voters that have less room than ``cost_bytes``."""
    above = "the last part of the reserve" if frees else "the reserve"
    full = sorted([each for each in voters if each.bytes(frees=frees) < cost_bytes], key=lambda each: each.node_id)
    names = ", ".join(f"{each.node_id} has {each.bytes(frees=frees):.0f} bytes left above {above}" for each in full)
    return ResourceExhausted(
        f"the disks of too many members are full, or their maps ({names}): without them no majority of the voters can "
        "store more; make room there, or delete data, and writes go on",
        RETRY_DELAY_MS,
        "disk",
    )
