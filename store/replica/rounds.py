"""The phases of the driver's round, and their order.

The order makes a round safe, and it is the same for every kind of round: a shorter one leaves phases out, and never
turns two around::

    STEP         peers' messages go into the log
    LEAD         whether this node leads by what the log says now
    EVALUATE     waiting writes, into the open batch
    CLOSE        whether the open batch is to be appended now
    APPEND       append it; answers without an entry begin a round of heartbeats
    TICK         time goes into the log, and leadership is looked at again
    SEND         messages leave: those that need nothing durable, and those whose writes are
    STORE        the log's next writes go to the log thread, or behind this round
    ANSWER       callers and reads that the log's progress settles
    APPLY        committed entries go to the storage thread
    FOLLOW_UP    the snapshots look at what the log needs
    ALARM        when the next round is due

No promise of a vote, an acknowledgement or an answer leaves before STORE has made it durable in an earlier round: the
log holds those messages back. ANSWER comes behind LEAD: entries appended in an ended term must never be answered from
the commit index, which may speak of other entries by now.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class Phase(Enum):
    """One step of a round."""

    STEP = auto()
    LEAD = auto()
    EVALUATE = auto()
    CLOSE = auto()
    APPEND = auto()
    TICK = auto()
    SEND = auto()
    STORE = auto()
    ANSWER = auto()
    APPLY = auto()
    FOLLOW_UP = auto()
    ALARM = auto()


WHOLE: Final = tuple(Phase)
"""Every phase: a message came, a timer is due, or a part of the node asked."""

PROPOSED: Final = (Phase.EVALUATE, Phase.CLOSE)
"""Only proposals came: they join the open batch. A whole round follows, or ALARM if the batch is just kept open."""

DURABLE: Final = (Phase.SEND, Phase.STORE, Phase.ANSWER, Phase.APPLY, Phase.ALARM)
"""The log thread reports: messages that waited for the disk leave, and callers are answered. If more waits, a whole
round runs instead."""

APPLIED: Final = (Phase.APPLY, Phase.ALARM)
"""The storage thread reports."""

ROUNDS: Final = (WHOLE, PROPOSED, DURABLE, APPLIED)
