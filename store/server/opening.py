"""Streams that open: a few at a time, so that calls are served between them.

::

    streams that open ──► a line for each connection ──► AT_ONCE in each round, ──► served
                                                         one of each line in turn

To open a stream costs the loop some 0.3 ms: 4,000 of them at once took that time from every call behind them. While a
line stands, openings have a part of the loop, and calls the rest.

Caveat: gRPC accepts calls in the order of their arrival, at some 0.1 ms each. A call behind thousands of streams waits
for that.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final, TypeAlias

from cortado.store.auth.caller import holder
from cortado.store.process.admission import Gate

AT_ONCE: Final = 8
"""The number of streams that open in a round: some 2 ms of the loop."""
ROUND_S: Final = 0.004
WAITING_MAX: Final = 16_384

_Line: TypeAlias = "OrderedDict[asyncio.Future[None], None]"


class Openings:
    """For one server. Everything here runs on the loop."""

    def __init__(self) -> None:
        self._waiting = Gate("streams that open", count_max=WAITING_MAX, holder=holder)
        self._lines: OrderedDict[str, _Line] = OrderedDict()
        self._left = AT_ONCE
        self._timer: asyncio.TimerHandle | None = None

    async def turn(self, connection: str) -> None:
        """Return when a stream of ``connection`` may open. Raises ResourceExhausted if too many wait."""
        if self._left and not self._lines:
            self._left -= 1
            self._round_later()
            return
        with self._waiting.place():
            turn = asyncio.get_running_loop().create_future()
            line = self._lines.setdefault(connection, OrderedDict())
            line[turn] = None
            self._round_later()
            try:
                await turn
            finally:
                line.pop(turn, None)

    def _round_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ROUND_S, self._round)

    def _round(self) -> None:
        self._timer, self._left = None, AT_ONCE
        while self._left and self._lines:
            connection, line = self._lines.popitem(last=False)
            if not line:
                continue  # Its callers have gone.
            turn, _ = line.popitem(last=False)
            if line:
                self._lines[connection] = line  # Behind the others.
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        if self._lines or self._left < AT_ONCE:
            self._round_later()
