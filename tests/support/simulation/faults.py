"""The faults of a run, and their times: all from one seed.

Each run draws which kinds of fault it has at all (*Swarm Testing*, Groce et al. 2012: a run with a few kinds reaches
states that one with all of them never does), then starts one after the other, several at a time. Each is undone after a
while, or at the end, when the weather is fine and the cluster must come back.

A disk is lost only if every other voter is whole: a majority can't survive more.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cortado.errors import CortadoError, InvalidArgument, PeerRefused
from cortado.store.clock.timestamp import EPOCH_MAX
from cortado.store.replica.controls import epoch_after
from support.simulation.clocks import BEGAN_MS, YEAR_2071_MS
from support.simulation.groups import META_ID, any_group
from support.simulation.lies import Lies
from support.simulation.log_faults import LogFaults
from support.simulation.network import Weather
from support.simulation.room_faults import RoomFaults
from support.simulation.rpc import Lost, Refused

if TYPE_CHECKING:
    from support.simulation.cluster import Cluster
    from support.simulation.process import Life

VOTERS_LEFT_MIN: Final = 2
VOTERS_TO_LOSE_A_DISK_MIN: Final = 3
MEMBERS_MAX: Final = 6
CHANGE_MS: Final = 5_000.0


class Nemesis:
    """Runs on the world's loop until it is told to stop."""

    def __init__(self, cluster: Cluster, source: random.Random) -> None:
        self._cluster = cluster
        self._random = source
        self._is_stopped = False
        self._is_changing_members = False
        self._lost_disks: set[str] = set()
        # Draws of their own, so that they change no other draws.
        self._lies = Lies(cluster, random.Random(f"{cluster.seed}/lies"))
        self._log_faults = LogFaults(cluster, self, random.Random(f"{cluster.seed}/log faults"))
        self._room_faults = RoomFaults(cluster, self, random.Random(f"{cluster.seed}/room faults"))
        kinds = self._kinds()
        self.enabled = [name for name in kinds if source.random() < 0.45] or [source.choice(sorted(kinds))]
        self.enabled += self._log_faults.enabled() + self._room_faults.enabled()
        self.mean_ms = source.choice((150.0, 300.0, 700.0))
        self._new_ids = 0

    def _kinds(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {
            "crash": self._crash,
            "crash of the leader": self._crash_leader,
            "crash of all": self._crash_all,
            "crash while installing": self._crash_while_installing,
            "pause": self._pause,
            "partition": self._partition,
            "one-way cut": self._one_way_cut,
            "leader cut off": self._leader_cut_off,
            "bad weather": self._bad_weather,
            "slow disk": self._slow_disk,
            "hanging sync": self._hanging_sync,
            "full disk": self._full_disk,
            "failing sync": self._failing_sync,
            "clock jump": self._clock_jump,
            "clock in 2071": self._clock_in_2071,
            "leader transfer": self._transfer,
            "clean stop": self._clean_stop,
            "member added": self._add_member,
            "member removed": self._remove_member,
            "lost disk": self._lost_disk,
            "bit rot": self._bit_rot,
            "lost write": self._lost_write,
            "misdirected write": self._misdirected_write,
            "epoch bump": self._bump_epoch,
            "clients cut off": self._clients_cut_off,
        }

    async def run(self) -> None:
        kinds = self._kinds() | self._log_faults.kinds() | self._room_faults.kinds()
        self._cluster.note(f"faults: {', '.join(self.enabled)}")
        while True:
            await self._cluster.sleep(self._random.expovariate(1 / self.mean_ms))
            if self._is_stopped:
                return
            name = self._random.choice(self.enabled)
            self._cluster.world.create_task(self._one(name, kinds[name]), name=name)

    async def _one(self, name: str, episode: Callable[[], Awaitable[None]]) -> None:
        try:
            await episode()
        except Exception as error:
            # A fault that fails in the middle would leave an unintended world, unseen.
            self._cluster.problem(f"the fault {name!r} failed: {error!r}")

    def stop(self) -> None:
        """Begin no new faults; those under way are undone by :meth:`calm`."""
        self._is_stopped = True

    def calm(self) -> None:
        """Make everything well from now on: stopped nodes start, clocks are right, disks have room."""
        cluster = self._cluster
        cluster.network.heal()
        cluster.network.weather = Weather()
        cluster.calls.cut_off.clear()
        self._lies.patrol()
        for host in cluster.hosts.values():
            host.clock.set_right(self._random.uniform(-20, 20))
            host.disk.is_full = False
            host.disk.scarcity = None
            host.disk.on_applied = None
            host.disk.fails_next_sync = False
            host.disk.sync_ms = (0.2, 1.5)
            host.disk.hangs_until_ms = 0.0
            if host.life is not None and host.life.loop.is_paused:
                host.life.loop.resume()
            if host.life is None and host.node_id in cluster.members and host.node_id not in self._lost_disks:
                cluster.start(host.node_id)

    # --- helpers -----------------------------------------------------------------------------------------------

    def note(self, kind: str, detail: str = "") -> None:
        self._cluster.counts[f"fault: {kind}"] += 1
        self._cluster.note(f"{kind} {detail}")

    def _leader(self) -> Life | None:
        """Return the leader of a group."""
        return self._cluster.leader(any_group(self._cluster.groups, self._random))

    def _a_life(self) -> Life | None:
        lives = self._cluster.lives()
        return self._random.choice(lives) if lives else None

    async def _for_a_while(self, low_ms: float, high_ms: float) -> None:
        await self._cluster.sleep(self._random.uniform(low_ms, high_ms))

    async def _start_later(self, node_id: str, low_ms: float = 20, high_ms: float = 2_500) -> None:
        await self._for_a_while(low_ms, high_ms)
        if node_id not in self._lost_disks:
            self._cluster.start(node_id)

    # --- processes ---------------------------------------------------------------------------------------------

    async def _crash(self) -> None:
        life = self._a_life()
        if life is not None:
            self.note("crash", life.node_id)
            self._cluster.crash(life.node_id)
            await self._start_later(life.node_id)

    async def _crash_leader(self) -> None:
        leader = self._leader()
        if leader is not None:
            self.note("crash of the leader", leader.node_id)
            self._cluster.crash(leader.node_id)
            await self._start_later(leader.node_id)

    async def _crash_all(self) -> None:
        self.note("crash of all")
        node_ids = [life.node_id for life in self._cluster.lives()]
        for node_id in node_ids:
            self._cluster.crash(node_id)
        for node_id in node_ids:
            await self._start_later(node_id, 5, 400)

    async def _crash_while_installing(self) -> None:
        """Wait for a snapshot to be installed somewhere, and crash that node in the middle of it."""
        until_ms = self._cluster.now_ms + 3_000
        while self._cluster.now_ms < until_ms and not self._is_stopped:
            for life in self._cluster.lives():
                if life.is_listening and any(each.is_installing for each in life.node.replicas.values()):
                    await self._for_a_while(0, 6)
                    self.note("crash while installing", life.node_id)
                    self._cluster.crash(life.node_id)
                    await self._start_later(life.node_id, 20, 300)
                    return
            await self._cluster.sleep(2)

    async def _pause(self) -> None:
        life = self._leader() if self._random.random() < 0.5 else self._a_life()
        if life is None or life.loop.is_paused:
            return
        self.note("pause", life.node_id)
        life.loop.pause()
        await self._for_a_while(50, 3_000)
        if life.loop.is_paused and not life.loop.is_dead:
            life.loop.resume()

    async def _clean_stop(self) -> None:
        life = self._leader() if self._random.random() < 0.6 else self._a_life()
        if life is None or not life.is_listening or life.is_stopping:
            return
        self.note("clean stop", life.node_id)
        life.is_stopping = True
        stopped = self._cluster.world.create_future()

        async def stop() -> None:
            await life.node.stop()
            self._cluster.world.call_soon(_set, stopped)

        life.loop.call_soon(lambda: life.loop.create_task(stop(), name="stop"))
        self._cluster.world.call_later(4, _set, stopped)
        await stopped
        if life.host.life is life:
            self._cluster.crash(life.node_id)
            await self._start_later(life.node_id, 10, 500)

    # --- the network -------------------------------------------------------------------------------------------

    async def _partition(self) -> None:
        node_ids = sorted(self._cluster.hosts)
        self._random.shuffle(node_ids)
        here = node_ids[: self._random.randrange(1, max(2, len(node_ids)))]
        self.note("partition", f"{sorted(here)} from the others")
        pairs = [(a, b) for a in here for b in node_ids if b not in here]
        await self._cut([*pairs, *((b, a) for a, b in pairs)])

    async def _one_way_cut(self) -> None:
        node_ids = sorted(self._cluster.hosts)
        if len(node_ids) < 2:
            return
        a, b = self._random.sample(node_ids, 2)
        self.note("one-way cut", f"{a} to {b}")
        await self._cut([(a, b)])

    async def _leader_cut_off(self) -> None:
        leader = self._leader()
        if leader is None:
            return
        others = [node_id for node_id in sorted(self._cluster.hosts) if node_id != leader.node_id]
        outward = [(leader.node_id, other) for other in others]
        inward = [(other, leader.node_id) for other in others]
        way = self._random.choice(("out", "in", "both"))
        self.note("leader cut off", f"{leader.node_id} {way}")
        await self._cut((outward if way != "in" else []) + (inward if way != "out" else []))

    async def _cut(self, pairs: list[tuple[str, str]]) -> None:
        for sender, to in pairs:
            self._cluster.network.cut(sender, to)
        await self._for_a_while(200, 4_000)
        for sender, to in pairs:
            self._cluster.network.link(sender, to).is_cut = False

    async def _bad_weather(self) -> None:
        weather = Weather(
            loss=self._random.choice((0.0, 0.02, 0.1, 0.3)),
            double=self._random.choice((0.0, 0.05, 0.2)),
            late=self._random.choice((0.0, 0.05, 0.2)),
            delay_ms=self._random.choice(((0.2, 2.0), (1.0, 30.0), (10.0, 120.0))),
        )
        self.note("bad weather", str(weather))
        self._cluster.network.weather = weather
        await self._for_a_while(500, 4_000)
        self._cluster.network.weather = Weather()

    async def _clients_cut_off(self) -> None:
        leader = self._leader()
        if leader is not None:
            self.note("clients cut off", leader.node_id)
            self._cluster.calls.cut_off.add(leader.node_id)
            await self._for_a_while(200, 2_500)
            self._cluster.calls.cut_off.discard(leader.node_id)

    # --- disks -------------------------------------------------------------------------------------------------

    async def _slow_disk(self) -> None:
        life = self._a_life()
        if life is not None:
            disk = life.host.disk
            self.note("slow disk", life.node_id)
            disk.sync_ms = self._random.choice(((5.0, 20.0), (20.0, 80.0), (50.0, 300.0)))
            await self._for_a_while(500, 4_000)
            disk.sync_ms = (0.2, 1.5)

    async def _hanging_sync(self) -> None:
        life = self._leader() if self._random.random() < 0.5 else self._a_life()
        if life is not None:
            self.note("hanging sync", life.node_id)
            life.host.disk.hangs_until_ms = self._cluster.now_ms + self._random.uniform(300, 4_000)

    async def _full_disk(self) -> None:
        lives = self._cluster.lives()
        chosen = lives if self._random.random() < 0.15 else [life for life in lives if self._random.random() < 0.4]
        for life in chosen:
            self.note("full disk", life.node_id)
            if self._cluster.counts["fault: full disk"] % 2:
                life.host.disk.is_full = True
            else:
                # A node looks at the room now and then: writes that it takes in between are refused later.
                life.host.disk.log.is_full = True
        await self._for_a_while(200, 2_500)
        for life in chosen:
            life.host.disk.is_full = False

    async def _failing_sync(self) -> None:
        life = self._a_life()
        if life is not None:
            self.note("failing sync", life.node_id)
            life.host.disk.fails_next_sync = True

    async def _bit_rot(self) -> None:
        life = self._a_life()
        if life is not None and self._may_lie():
            damaged = sum(self._lies.rot(life.host) for _ in range(self._random.choice((1, 1, 3, 10))))
            if damaged:
                self.note("bit rot", f"{life.node_id}, {damaged} items")
            await self._patrol_later()

    async def _lost_write(self) -> None:
        life = self._a_life()
        if life is not None and self._may_lie():
            self._lies.lose_next_write(life.host)
            await self._patrol_later()
            life.host.disk.on_applied = None

    async def _misdirected_write(self) -> None:
        life = self._a_life()
        if life is not None and self._may_lie():
            self._lies.misdirect_next_write(life.host)
            await self._patrol_later()
            life.host.disk.on_applied = None

    def _may_lie(self) -> bool:
        """Return whether a disk may lie. Not while members come and go: a leaving member may be the one that has the
        data whole. A member of one group has nothing of another."""
        is_settled = not self._is_changing_members and self._have_same_members()
        return is_settled and not self._lost_disks - set(self._removed())

    async def _patrol_later(self) -> None:
        await self._for_a_while(100, 3_000)
        self._lies.patrol()

    async def _lost_disk(self) -> None:
        """Lose a voter's disk. The voter comes back empty under its old id, and is refused; then under a new one."""
        with self.losing_a_disk() as may_lose:
            if may_lose:
                node_id = self._random.choice(self.voters())
                self.note("lost disk", node_id)
                await self.replace(node_id)

    @contextmanager
    def losing_a_disk(self) -> Iterator[bool]:
        """Yield whether a disk may be lost. In the block no other one is, and no member goes."""
        may_lose = self._may_lose_a_disk()
        self._is_changing_members |= may_lose
        try:
            yield may_lose
        finally:
            self._is_changing_members &= not may_lose

    async def replace(self, node_id: str) -> None:
        """Remove a voter with a worthless disk, and add another one."""
        self._lost_disks.add(node_id)
        self._cluster.crash(node_id)
        self._cluster.wipe(node_id)
        await self._for_a_while(50, 500)
        await self._come_back_empty(node_id)
        # Until it is out: while it is a voter, no other disk may die.
        until_ms = self._cluster.now_ms + 60_000
        while not await self._cluster.remove(node_id, until_ms=until_ms):
            if self._cluster.now_ms > until_ms:
                return
            await self._cluster.sleep(200)
        await self._join_new()

    def _may_lose_a_disk(self) -> bool:
        if self._is_changing_members or self._lost_disks - set(self._removed()) or self.is_damaged():
            return False
        return self._have_same_members() and len(self.voters()) >= VOTERS_TO_LOSE_A_DISK_MIN

    def _have_same_members(self) -> bool:
        """Return whether all groups have the same members. One group has them without a leader, too."""
        if len(self._cluster.groups) == 1:
            return True
        leaders = self._cluster.leaders()
        return leaders is not None and len({each.configuration for each in leaders}) == 1

    def is_damaged(self) -> bool:
        """Return whether a disk is damaged, or is about to be: no member that could help may go."""
        about_to_be = any(host.disk.on_applied is not None for host in self._cluster.hosts.values())
        return about_to_be or bool(self._lies.damaged())

    def _removed(self) -> list[str]:
        return [node_id for node_id in self._cluster.hosts if node_id not in self._cluster.members]

    async def _come_back_empty(self, node_id: str) -> None:
        host = self._cluster.hosts[node_id]
        group_id = any_group(self._cluster.groups, self._random)
        leader = self._cluster.leader(group_id)
        if leader is None:
            return
        try:
            await self._cluster.rpc(
                leader.node_id, lambda node: node.replicas[group_id].bind_member(host.member), 2_000
            )
        except (InvalidArgument, PeerRefused) as refusal:
            self.note("empty directory refused", f"{node_id}: {refusal}")
            return
        except (CortadoError, Refused, Lost):
            return
        self._cluster.violation(f"an empty directory was taken in under the old id {node_id}")

    # --- clocks ------------------------------------------------------------------------------------------------

    async def _clock_jump(self) -> None:
        life = self._a_life()
        if life is not None:
            by_ms = self._random.choice((-5_000, -1_000, -200, 100, 200, 1_000, 5_000, 60_000)) * self._random.random()
            self.note("clock jump", f"{life.node_id} by {by_ms:.0f} ms")
            life.host.clock.jump(by_ms)
            if self._random.random() < 0.7:
                await self._for_a_while(300, 4_000)
                life.host.clock.set_right(self._random.uniform(-60, 60))

    async def _clock_in_2071(self) -> None:
        life = self._leader() if self._random.random() < 0.3 else self._a_life()
        if life is not None:
            self.note("clock in 2071", life.node_id)
            life.host.clock.set_right(YEAR_2071_MS - BEGAN_MS)
            await self._for_a_while(300, 4_000)
            life.host.clock.set_right(self._random.uniform(-60, 60))

    async def _bump_epoch(self) -> None:
        leader = self._cluster.leader()
        if leader is None:
            return
        self.note("epoch bump")
        epoch = leader.node.process.clock.epoch
        if epoch < EPOCH_MAX:
            await self._cluster.at_leader(
                "bump epoch",
                lambda replica: replica.write(epoch_after(epoch)),
                META_ID,
                until_ms=self._cluster.now_ms + 1_000,
                quietly=True,
            )

    # --- leadership and membership -----------------------------------------------------------------------------

    async def _transfer(self) -> None:
        group_id = any_group(self._cluster.groups, self._random)
        leader = self._cluster.leader(group_id)
        if leader is None:
            return
        voters = leader.node.replicas[group_id].configuration.voters
        to = self._random.choice(["", *voters])
        self.note("leader transfer", f"from {leader.node_id} to {to or 'any'}")
        try:
            await self._cluster.rpc(leader.node_id, lambda node: node.replicas[group_id].members.transfer(to), 3_000)
            self._cluster.counts["leader transfers done"] += 1
        except (CortadoError, Refused, Lost) as error:
            self._cluster.note(f"transfer: {error!r}")

    def voters(self) -> list[str]:
        return self._cluster.voters()

    async def _add_member(self) -> None:
        if self._is_changing_members or len(self._cluster.members) >= MEMBERS_MAX:
            return
        self._is_changing_members = True
        try:
            await self._join_new()
        finally:
            self._is_changing_members = False

    async def _join_new(self) -> None:
        self._new_ids += 1
        node_id = f"x{self._new_ids}"
        self.note("member added", node_id)
        until_ms = self._cluster.now_ms + CHANGE_MS
        if await self._cluster.join(node_id, until_ms=until_ms) and self._random.random() < 0.85:
            await self._cluster.promote(node_id, until_ms=until_ms)

    async def _remove_member(self) -> None:
        voters = self.voters()
        if (
            self.is_damaged()
            or self._is_changing_members
            or len(voters) <= VOTERS_LEFT_MIN
            or self._lost_disks - set(self._removed())
        ):
            return
        self._is_changing_members = True
        try:
            node_id = self._random.choice(sorted(set(self._cluster.members)))
            self.note("member removed", node_id)
            if await self._cluster.remove(node_id, until_ms=self._cluster.now_ms + CHANGE_MS):
                await self._for_a_while(100, 2_000)
                self._cluster.crash(node_id)
        finally:
            self._is_changing_members = False


def _set(future: object) -> None:
    if not future.done():  # type: ignore[attr-defined]
        future.set_result(None)  # type: ignore[attr-defined]
