"""The story kills a leader in the middle of its work, or says that it could not."""

from __future__ import annotations

from io import StringIO
from typing import cast

import pytest
from rich.console import Console

from examples.nycflights.checking import Difference
from examples.nycflights.failover import Failovers
from examples.nycflights.node import Leadership, Nodes


class _Nodes:
    """Elects another node in the next term, or not."""

    def __init__(self, *, elects: bool = True) -> None:
        self.term = 3
        self.kills = 0
        self._elects = elects

    def kill_leader(self) -> tuple[Leadership, Leadership, float]:
        self.kills += 1
        before = Leadership("n1", self.term)
        self.term += self._elects
        return before, Leadership("n2", self.term), 0.9

    def start_all(self) -> None:
        """Do nothing: there is nothing to start."""

    def wait_for_all(self) -> None:
        """Do nothing: there is nothing to wait for."""


def _failovers(nodes: _Nodes) -> tuple[Failovers, StringIO]:
    shown = StringIO()
    return Failovers(cast(Nodes, nodes), Console(file=shown, width=100)), shown


def test_the_leader_is_killed_once_in_a_job_and_in_its_middle() -> None:
    nodes = _Nodes()
    failovers, shown = _failovers(nodes)
    for work in ("the load", "the read"):
        for share in (0.0, 0.1, 0.3, 0.5, 0.7, 1.0):
            failovers.watch(share)
        failovers.show(work)
        assert f"after 30% of {work}" in shown.getvalue()
    assert nodes.kills == 2


def test_a_job_that_was_over_too_soon_fails_the_story() -> None:
    nodes = _Nodes()
    failovers, _ = _failovers(nodes)
    for share in (0.0, 0.2, 0.8, 1.0):
        failovers.watch(share)
    with pytest.raises(Difference, match="before the leader could be killed"):
        failovers.show("the load")
    assert nodes.kills == 0


def test_a_term_that_did_not_change_fails_the_story() -> None:
    failovers, _ = _failovers(_Nodes(elects=False))
    failovers.watch(0.5)
    with pytest.raises(Difference, match="the term was 3 and is 3"):
        failovers.show("the load")
