"""The views of ``cortado top``: the statistics of each member, as a terminal shows them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from cortado.errors import CortadoError, Unavailable
from cortado.store.cli.node_table import node_table, problem_lines
from cortado.store.cli.samples import NodeSample, not_reached, sample
from cortado.store.cli.session import Session
from cortado.store.cli.terminal import one_line
from cortado.store.client import Client, Members, MemberStatus
from cortado.store.client.statistics import NodeStatistics, Statistics

# A node that does not answer must not hold up the view of the others.
_ANSWER_S_MAX: Final = 1.5
# The cluster's members are read again after this many rounds.
_MEMBERS_ROUNDS: Final = 10
# From so many columns on there is room for the whole id of a cluster.
_WIDE: Final = 100


def show_views(session: Session, views: Iterator[View], *, is_live: bool) -> None:
    if session.as_json:
        for view in views:
            session.show.json(view.as_json())
            sys.stdout.flush()
    elif is_live and sys.stdout.isatty():
        console = Console(highlight=False)
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for view in views:
                live.update(view.rendered(console.width), refresh=True)
    else:
        console = _plain_console()
        for view in views:
            console.print(view.rendered(console.width), soft_wrap=False)
            if is_live:
                console.print()
            sys.stdout.flush()


def _plain_console() -> Console:
    """Return a console of the terminal, or one of 140 columns without colour."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(file=sys.stdout, highlight=False, no_color=True, force_terminal=False, width=140)


@dataclass(frozen=True, slots=True)
class View:
    """All nodes at one moment."""

    time: datetime
    cluster_id: str
    leader: str
    nodes: Sequence[NodeSample]

    def as_json(self) -> dict[str, Any]:
        return {
            "time": f"{self.time:%Y-%m-%dT%H:%M:%S}.{self.time.microsecond // 1000:03d}Z",
            "cluster_id": self.cluster_id,
            "leader": self.leader or None,
            "nodes": [asdict(each) for each in self.nodes],
        }

    def rendered(self, width: int) -> RenderableType:
        """Return a head, a table that fits into ``width`` columns, and the problems, a line each."""
        reached = sum(each.reached for each in self.nodes)
        shown_id = self.cluster_id if width >= _WIDE else self.cluster_id[:8]
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(f"cluster {one_line(shown_id) or '?'}", style="bold")
        head.append(f"  {self.time:%H:%M:%S}Z  {reached} of {len(self.nodes)} nodes answer  ")
        head.append_text(Text(f"leader {one_line(self.leader)}") if self.leader else Text("no leader", "bold red"))
        return Group(head, Text(), node_table(self.nodes, self.leader, width), *problem_lines(self.nodes))


@dataclass(slots=True)
class Watch:
    """Asks each member for its statistics, all at once, on a connection of its own that stays."""

    session: Session
    _stack: ExitStack = field(default_factory=ExitStack)
    _nodes: dict[str, NodeStatistics] = field(default_factory=dict)
    _before: dict[str, Statistics] = field(default_factory=dict)
    _members: Members = field(default_factory=lambda: Members(()))

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def views(self, interval_s: float) -> Iterator[View]:
        """Yield one each interval, the first after one. Raises what asking for the members raises at the beginning."""
        client = self._stack.enter_context(self.session.client())
        pool = self._stack.enter_context(ThreadPoolExecutor(16))
        self._members = client.admin.members.list()
        self._look(pool.map)
        rounds, due_s = 0, time.monotonic() + interval_s
        while True:
            time.sleep(max(due_s - time.monotonic(), 0.0))
            due_s = max(due_s + interval_s, time.monotonic())
            rounds += 1
            if rounds % _MEMBERS_ROUNDS == 0:
                self._ask_who_belongs(client)
            yield self._look(pool.map)

    def _ask_who_belongs(self, client: Client) -> None:
        # Without an answer the members are those of before: they are asked in any case, and say more.
        with suppress(CortadoError):
            self._members = client.with_timeout(_ANSWER_S_MAX).admin.members.list()

    def _look(self, run_all: Callable[..., Iterator[Statistics | CortadoError]]) -> View:
        members = self._members.members
        found = dict(zip(members, run_all(self._ask, members), strict=True))
        told = [each for each in found.values() if isinstance(each, Statistics)]
        # If two say that they lead, the one of the older term does not know yet.
        leading = sorted(
            (each for each in told if each.value("cortado_role", "leader")), key=lambda each: each.value("cortado_term")
        )
        leader = leading[-1] if leading else None
        nodes = [self._sample(member, said, leader) for member, said in found.items()]
        self._before = {each.node_id: each for each in told}
        cluster_id = told[0].cluster_id if told else ""
        return View(datetime.now(UTC), cluster_id, "" if leader is None else leader.node_id, nodes)

    def _sample(self, member: MemberStatus, said: Statistics | CortadoError, leader: Statistics | None) -> NodeSample:
        if isinstance(said, Statistics):
            return sample(member.address, member.voter, said, self._before.get(said.node_id), leader)
        return not_reached(member.node_id, member.address, member.voter, said.message())

    def _ask(self, member: MemberStatus) -> Statistics | CortadoError:
        if not member.joined:
            return Unavailable("it has not joined yet")
        try:
            said = self._connection(member.address).read()
        except CortadoError as problem:
            return problem
        if said.node_id != member.node_id:
            return Unavailable(f"node {said.node_id} of cluster {said.cluster_id} answers there")
        return said

    def _connection(self, address: str) -> NodeStatistics:
        known = self._nodes.get(address)
        if known is None:
            timeout_s = min(self.session.timeout_s, _ANSWER_S_MAX)
            known = NodeStatistics(address, timeout_s=timeout_s, tls=self.session.tls(), token=self.session.token)
            self._nodes[address] = self._stack.enter_context(known)
        return known
