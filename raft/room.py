"""Room on the members' disks: a leader that has room itself must not fill those of the majority that it needs.

::

    n1 leads       |################                 |    has room: it judges its own disk itself
    n2             |################ to come |reserve|    acknowledgements say what is left above the reserve
    n3             |################ to come |reserve|    to come: entries that n1 holds and it has not acknowledged

Each acknowledgement, of a heartbeat too, says how much more its sender may store. From that the leader subtracts the
entries on their way there. So before it appends, it knows how much a majority of the voters can store. An appended
entry fits above the reserve of each member of that majority, however much was in flight when the member told its room.

- *A voter that is silent* stores nothing, and does not count in the majority. Were it counted, the others would be
  filled. Nor does one that was not heard yet in this term: a leader that may append has heard a majority.
- *A voter that says nothing of its room* counts as having some.
- *If too few are heard*, nothing is refused for want of room: room is not missing.
- *The rest* may be filled to the last byte, as any single member may: it falls behind.
"""

from __future__ import annotations

import math

from cortado.raft.core import Core
from cortado.raft.log import Room, VoterRoom
from cortado.raft.reads import reached_by
from cortado.raft.replication import Replication


class MembersRoom:
    """This member's word about its room, and a leader's count of the others' room."""

    def __init__(self, core: Core, replication: Replication) -> None:
        self._core = core
        self._replication = replication

    def measured(self, room: Room) -> None:
        """Take the room that is left here; entries that are received, and not applied, are still to be stored."""
        core = self._core
        core.room = room.less(core.journal.bytes_after(core.applied[0]))
        core.room_beside_bytes = core.journal.pushed_bytes

    def of_majority(self, *, frees: bool) -> tuple[float, list[VoterRoom]]:
        """Return, at the leader, the bytes that every member of some majority of the voters has room for, this node not
        asked, and the voters that answer. The bytes count each entry ``STORED_TIMES``. Infinite if the members' room is
        no limit.
        """
        core = self._core
        majority = core.journal.configuration.majority
        if not core.is_leading or majority == 1:
            return math.inf, []
        heard = self._replication.voters_room()
        if 1 + len(heard) < majority:
            return math.inf, []
        return reached_by(majority, [math.inf, *(each.bytes(frees=frees) for each in heard)]), heard
