"""On several nodes the story kills the leader in the middle of Spark's work, and shows the outcome."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from examples.nycflights.checking import Difference
from examples.nycflights.node import Leadership, Nodes

KILL_FROM: Final = 0.25
KILL_UNTIL: Final = 0.75


@dataclass(frozen=True, slots=True)
class Failover:
    """The leader was killed when ``share`` of the work was done; ``seconds`` later there was another one."""

    before: Leadership
    after: Leadership
    seconds: float
    share: float


class Failovers:
    """Kills the leader once in each job that it is told about, between a quarter and three quarters of it.

    Progress comes from the thread that follows a job; the killing has a thread of its own, so that progress is still
    shown while the nodes elect.
    """

    def __init__(self, nodes: Nodes, console: Console) -> None:
        self._nodes = nodes
        self._console = console
        self._killer: threading.Thread | None = None
        self._outcome: Failover | BaseException | None = None

    def watch(self, share: float) -> None:
        """Note that ``share`` of the job is done, from 0 to 1."""
        if self._killer is None and KILL_FROM <= share <= KILL_UNTIL:
            self._killer = threading.Thread(target=self._kill, args=(share,), daemon=True)
            self._killer.start()

    def _kill(self, share: float) -> None:
        try:
            self._outcome = Failover(*self._nodes.kill_leader(), share)
        except BaseException as error:
            self._outcome = error

    def show(self, work: str) -> None:
        """Show the events of the job that has just ended, and get ready for the next. Raises Difference."""
        if self._killer is None:
            raise Difference(f"{work} was over before the leader could be killed between a quarter and three quarters")
        self._killer.join()
        outcome, self._killer, self._outcome = self._outcome, None, None
        if isinstance(outcome, BaseException):
            raise outcome
        assert outcome is not None
        if outcome.after.term <= outcome.before.term:
            raise Difference(f"the term was {outcome.before.term} and is {outcome.after.term} under another leader")
        self._console.print(f"  the leader was killed (SIGKILL) after {outcome.share:.0%} of {work}", highlight=False)
        shown = Table("", "leader", "term")
        shown.add_row("before", outcome.before.node_id, str(outcome.before.term))
        shown.add_row(f"{outcome.seconds:.1f} s later", outcome.after.node_id, str(outcome.after.term))
        self._console.print(shown)
        self._nodes.start_all()
        self._nodes.wait_for_all()
        self._console.print(f"  {outcome.before.node_id} is back, and has caught up")
