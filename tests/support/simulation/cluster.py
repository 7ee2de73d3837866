"""A cluster in one process: hosts, the network between them, and an operator's actions."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from cortado.errors import CortadoError, InvalidArgument, NotLeader, Unavailable
from cortado.store.clock.timestamp import Timestamp
from cortado.store.replica.replica import Replica
from support.simulation.clocks import HostClock
from support.simulation.disk import Disk
from support.simulation.groups import META_ID
from support.simulation.loop import NodeLoop, Scheduler
from support.simulation.network import Network
from support.simulation.process import Host, Life, NodeOptions, expected_end, make_node
from support.simulation.rpc import Calls, Lost, Refused
from support.simulation.true_time import TrueTime

if TYPE_CHECKING:
    from cortado.store.host.host import Host as NodeHost

T = TypeVar("T")

_TRACE_LINES = 400
_LOOK_MS = 200.0


class Violation(Exception):
    """Something that must hold does not."""


class Cluster:
    """Everything of one run. ``seed`` names all its random streams."""

    def __init__(self, seed: str, options: NodeOptions | None = None) -> None:
        self.seed = seed
        self.options = options or NodeOptions()
        self.groups = self.options.groups
        self.scheduler = Scheduler()
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self.trace: list[str] = []
        self.world = NodeLoop(self.scheduler, "world", self.problem)  # type: ignore[abstract]
        self.network = Network(self.scheduler, seed, self.find)
        self.network.attach(self.world)
        self.calls = Calls(self.world, random.Random(f"{seed}/calls"), self.find)
        self.hosts: dict[str, Host] = {}
        self.ended: list[Life] = []
        self.on_host: Callable[[Host], None] = lambda _host: None
        self.on_wipe: Callable[[Host], None] = lambda _host: None
        self.on_lost_entries: Callable[[Host, int, Sequence[int]], None] = lambda _host, _group_id, _indexes: None
        self.true_time = TrueTime(self.counts, self.options.limits.ceiling_ahead_ms)
        self.members: list[str] = []
        """The members that clients know; removed nodes leave it."""
        self.disowned: set[tuple[int, str, int, int]] = set()
        """Entries (group, node, index, term) that a leader gave up before it stored them. Its disk may hold them for a
        moment, later than another leader committed them; it has acknowledged none of them."""
        self.ended_for_room: set[bytes] = set()
        """Leases that leaders ended, or tried to end, since their disks had next to nothing left."""
        self.removed: set[str] = set()
        """They never come back under their ids."""

    # --- shared questions --------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        return self.scheduler.now_ms

    @property
    def node_ids(self) -> list[str]:
        return self.members

    def find(self, node_id: str) -> Life | None:
        host = self.hosts.get(node_id)
        return None if host is None else host.life

    def node_at(self, address: str) -> str:
        return address.split(".")[0]

    async def sleep(self, ms: float) -> None:
        """Sleep on the world's loop."""
        awake = self.world.create_future()
        self.world.call_later(ms / 1000, awake.set_result, None)
        await awake

    async def rpc(self, node_id: str, make: Callable[[NodeHost], Awaitable[T]], timeout_ms: float) -> T:
        return await self.calls.call(node_id, make, timeout_ms)

    def note(self, text: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.now_ms:10.1f}  {text}")
        if len(self.trace) > 2 * _TRACE_LINES:
            del self.trace[:-_TRACE_LINES]

    def violation(self, text: str) -> None:
        self.note(f"VIOLATION {text}")
        self.violations.append(text)

    def check_true_time(self, ts: Timestamp, node_id: str) -> None:
        """Note that a client hears of a write at ``ts`` from ``node_id``, and check its time."""
        life = self.find(node_id)
        voters = [] if life is None or not hasattr(life, "node") else life.node.meta.roster.voters
        clocks = [self.hosts[each.node_id].clock for each in voters]
        if clocks:
            problem = self.true_time.problem_with(ts, self.now_ms, clocks)
            if problem:
                self.violation(problem)

    async def watch_clocks(self) -> None:
        """Look at all hosts' clocks again and again: their times count even if no client hears of them."""
        while True:
            lives = [life for life in self.lives() if life.is_listening]
            # The next one may have begun in the log.
            epochs = {life.node.process.clock.epoch + ahead for life in lives for ahead in (0, 1)}
            for voters in {life.node.meta.roster.voters for life in lives} - {()}:
                clocks = [self.hosts[each.node_id].clock for each in voters]
                self.true_time.look(self.now_ms, clocks, epochs)
            await self.sleep(_LOOK_MS)

    def problem(self, text: str) -> None:
        """Record a defect that showed itself: an unexpected exception."""
        self.violation(text)

    # --- hosts -------------------------------------------------------------------------------------------------

    def add_host(self, node_id: str, *, is_first: bool = False) -> Host:
        source = random.Random(f"{self.seed}/host/{node_id}")
        disk = Disk(self.scheduler, random.Random(f"{self.seed}/disk/{node_id}"), self.groups)
        clock = HostClock(
            self.scheduler,
            offset_ms=source.uniform(-60, 60),
            drift_ppm=source.uniform(-100, 100),
            booted_ms=source.uniform(1e6, 1e9),
        )
        host = self.hosts[node_id] = Host(self, node_id, is_first=is_first, disk=disk, clock=clock)
        self.on_host(host)
        return host

    def wipe(self, node_id: str) -> None:
        """Replace its dead disk by an empty one."""
        host = self.hosts[node_id]
        host.wipe()
        self.on_wipe(host)

    def make_node(self, life: Life) -> NodeHost:
        return make_node(life, self.options)

    def node_failed(self, life: Life, error: BaseException) -> None:
        """End the process; a supervisor starts another one a little later."""
        if life.host.life is not life:
            return
        if reason := expected_end(life, error):
            self.counts[f"processes ended by {reason}"] += 1
            life.host.is_log_refused |= reason == "a damaged log"
        else:
            self.problem(f"{life.loop.name} stopped: {error!r}")
        self.note(f"{life.loop.name} ends: {error!r}")
        self.crash(life.node_id)
        self.world.call_later(0.5, self.start, life.node_id)

    def start(self, node_id: str) -> None:
        host = self.hosts[node_id]
        if host.life is None and (host.is_first or host.cluster_id):
            life = host.start()
            self.note(f"{life.loop.name} starts")

    def crash(self, node_id: str) -> None:
        host = self.hosts[node_id]
        life = host.life
        if life is not None:
            self.ended.append(life)
            host.crash()

    def lives(self) -> list[Life]:
        return [host.life for host in self.hosts.values() if host.life is not None]

    def leader(self, group_id: int = META_ID) -> Life | None:
        """Return the live node that leads the highest term of a group, if any does."""
        listening = [life for life in self.lives() if life.is_listening]
        leading = [life for life in listening if life.node.replicas[group_id].log.is_leader]
        return max(leading, key=lambda life: life.node.replicas[group_id].term, default=None)

    def leaders(self) -> list[Replica] | None:
        """Return the replica that leads each group; None while one has no leader."""
        leaders = [(self.leader(each.group_id), each.group_id) for each in self.groups]
        found = [leader.node.replicas[group_id] for leader, group_id in leaders if leader is not None]
        return found if len(found) == len(self.groups) else None

    def voters(self) -> list[str]:
        """Return the voters of all groups, as their leaders know them; none while a group has no leader."""
        first, *others = self.leaders() or [None]
        if first is None:
            return []
        both = [set(each.configuration.voters) for each in others if each is not None]
        return [each for each in first.configuration.voters if all(each in voters for voters in both)]

    def bury(self) -> None:
        """Clean up after the run."""
        for life in (*self.ended, *self.lives()):
            life.loop.bury()
            life.io.bury()
        self.world.bury()

    # --- an operator's actions, on the world's loop ------------------------------------------------------------

    async def at_leader(
        self,
        what: str,
        make: Callable[[Replica], Awaitable[T]],
        group_id: int,
        *,
        until_ms: float,
        quietly: bool = False,
    ) -> T | None:
        """Call a group's leader until it worked, or time is up: then return None. A refusal of the request is noted."""
        while self.now_ms < until_ms:
            leader = self.leader(group_id)
            if leader is not None:
                try:
                    return await self.rpc(leader.node_id, lambda node: make(node.replicas[group_id]), 3_000)
                except (Refused, Lost, NotLeader, Unavailable):
                    pass
                except InvalidArgument as error:
                    self.note(f"{what}: {error}")
                    if not quietly:
                        self.counts["member changes refused"] += 1
                    return None
                except CortadoError as error:
                    self.note(f"{what}: {error!r}")
            await self.sleep(100)
        return None

    async def join(self, node_id: str, *, until_ms: float) -> bool:
        """Announce a node, start it on its empty disk, and bind the two: it is a learner of all groups then."""
        host = self.hosts.get(node_id) or self.add_host(node_id)
        for each in self.groups:
            added = await self.at_leader(
                f"add {node_id}",
                lambda replica: replica.members.add(node_id, host.peer_address),
                each.group_id,
                until_ms=until_ms,
            )
            # It may be there already: an earlier try may have lost its answer.
            bound = await self.at_leader(
                f"bind {node_id}",
                lambda replica: replica.bind_member(host.member),
                each.group_id,
                until_ms=until_ms,
            )
            if bound is None:
                return False
            if each.holds_meta:
                host.joined = bound
        self.note(f"{node_id} joined ({'added' if added is not None else 'was there'})")
        host.cluster_id = "sim"
        if node_id not in self.members:
            self.members.append(node_id)
        self.start(node_id)
        return True

    async def promote(self, node_id: str, *, until_ms: float) -> bool:
        """Make a learner a voter of all groups, once it has caught up."""
        return all([await self._promote(node_id, each.group_id, until_ms=until_ms) for each in self.groups])

    async def _promote(self, node_id: str, group_id: int, *, until_ms: float) -> bool:
        while self.now_ms < until_ms:
            leader = self.leader(group_id)
            if leader is not None and leader.node.replicas[group_id].roster.is_voter(node_id):
                return True
            await self.at_leader(
                f"promote {node_id}",
                lambda replica: replica.members.promote(node_id),
                group_id,
                until_ms=min(until_ms, self.now_ms + 500),
                quietly=True,
            )
            await asyncio.sleep(0)
            await self.sleep(50)
        return False

    async def remove(self, node_id: str, *, until_ms: float) -> bool:
        """Remove a member from all groups, from that of the members last; its process is stopped when it is out."""
        for each in reversed(self.groups):
            group_id = each.group_id
            await self.at_leader(
                f"remove {node_id}",
                lambda replica: replica.members.remove(node_id),
                group_id,
                until_ms=until_ms,
            )
            leader = self.leader(group_id)
            if leader is None or leader.node.replicas[group_id].roster.member(node_id) is not None:
                return False
        self._is_out(node_id)
        return True

    def settle_members(self) -> None:
        """In calm: settle the members that are out although no answer told their caller so."""
        leader = self.leader()
        for node_id in list(self.members):
            if leader is not None and leader.node.meta.roster.member(node_id) is None:
                self._is_out(node_id)

    def _is_out(self, node_id: str) -> None:
        self.note(f"{node_id} removed")
        self.removed.add(node_id)
        if node_id in self.members:
            self.members.remove(node_id)
