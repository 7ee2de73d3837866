"""Messages that are refused: counted for each sender, and said less and less often."""

from __future__ import annotations

import logging
from typing import Final

_LOG: Final = logging.getLogger(__name__)
# How many senders are remembered with the number of their refusals.
_SENDERS_MAX: Final = 64


class Refusals:
    """``total`` counts all of them since the start of this process."""

    def __init__(self, group_id: int) -> None:
        self._group_id = group_id
        self._times: dict[str, int] = {}
        self.total = 0

    def note(self, sender: str, problem: str) -> None:
        """Count a dropped message. A sender's first is logged, and then each whose number is a power of two."""
        self.total += 1
        if sender not in self._times and len(self._times) >= _SENDERS_MAX:
            self._times.clear()
        times = self._times[sender] = self._times.get(sender, 0) + 1
        if times & (times - 1) == 0:
            _LOG.warning("refused a message of %s to group %d (%d so far): %s", sender, self._group_id, times, problem)
