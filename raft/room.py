"""Room on the members' disks: a leader that has room itself must not fill those of the majority that it needs.

::

    n1 leads       |################                 |    has room: it judges its own disk itself
    n2             |################ to come |reserve|    acknowledgements say what is left above the reserve
    n3             |################ to come |reserve|    to come: what n1 holds and it has not acknowledged

Each acknowledgement, of a heartbeat too, says how much more its sender may store. From that the leader takes what is on
its way there. So what a majority of the voters can store is known before it is appended, and what is appended fits
above the reserve of each member of that majority, however much was in flight when it told its room.

- *A voter that is silent* stores nothing: it is none of the majority. Were it counted, the others would be filled.
  So is one that was not heard yet in this term: a leader that may append has heard a majority.
- *A voter that says nothing of its room* counts as having some.
- *Where too few are heard* nothing is refused for want of room: it is not what is missing.
- *The rest* may be filled to the last byte, as any single member may: it falls behind.
"""

from __future__ import annotations

import math

from cortado.raft.core import Core
from cortado.raft.log import Room, VoterRoom
from cortado.raft.reads import reached_by
from cortado.raft.replication import Replication


class MembersRoom:
    """What this member says of its room, and what a leader makes of the others' words."""

    def __init__(self, core: Core, replication: Replication) -> None:
        self._core = core
        self._replication = replication

    def measured(self, room: Room) -> None:
        """So much is left here; what is received, and not applied, is still to be stored."""
        core = self._core
        core.room = room.less(core.journal.bytes_after(core.applied[0]))
        core.room_beside_bytes = core.journal.pushed_bytes

    def of_majority(self, *, frees: bool) -> tuple[float, list[VoterRoom]]:
        """At the leader: how many bytes, several times stored as they are, every member of some majority of the voters
        has room for, this node not asked; and the voters that answer. Infinite where that is not for the members' room.
        """
        core = self._core
        majority = core.configuration.majority
        if not core.is_leading or majority == 1:
            return math.inf, []
        heard = self._replication.voters_room()
        if 1 + len(heard) < majority:
            return math.inf, []
        return reached_by(majority, [math.inf, *(each.bytes(frees=frees) for each in heard)]), heard
