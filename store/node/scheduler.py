"""Run the driver's rounds: as soon as the loop comes to it, at most one at a time, or at a set time.

A round is short if only proposals came. A caller that needs more asks for a whole one, which is then run instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cortado.store.node.alarm import Alarm


class Scheduler:
    """Calls rounds on the loop, until it is stopped. ``after`` is called behind each. ``on_defect`` hears each
    exception: the half-done state is then unknown."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic_ms: Callable[[], float],
        *,
        whole: Callable[[], None],
        short: Callable[[], None],
        after: Callable[[], None],
        on_defect: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._whole = whole
        self._short = short
        self._after = after
        self._on_defect = on_defect
        self._alarm = Alarm(loop, monotonic_ms, self.run_whole)
        self._is_scheduled = False
        self._is_stopped = False
        self.wants_whole = False
        """Whether a whole round was asked for that has not begun."""

    def want_whole(self) -> None:
        """Let a whole round follow as soon as the loop comes to it."""
        self.wants_whole = True
        self.want_short()

    def want_short(self) -> None:
        """Let a round follow that looks at proposals."""
        if not self._is_scheduled and not self._is_stopped:
            self._is_scheduled = True
            self._loop.call_soon(self._scheduled)

    def want_at(self, due_ms: float) -> None:
        """Run a whole round at ``due_ms`` of the monotonic clock, and not at the time set before."""
        self._alarm.set(due_ms)

    def run_whole(self) -> None:
        """Run a whole round now."""
        if not self._is_stopped:
            self._run(self._whole)

    def stop(self) -> None:
        """Run no more rounds."""
        self._is_stopped = True
        self._alarm.cancel()

    def _scheduled(self) -> None:
        self._is_scheduled = False
        if not self._is_stopped:
            self._run(self._whole if self.wants_whole else self._short)

    def _run(self, round_: Callable[[], None]) -> None:
        try:
            round_()
        except Exception as defect:
            self._on_defect(defect)
        self._after()
