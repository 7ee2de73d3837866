"""Replicas of one group in one process, over a virtual network, virtual disks and virtual clocks, all from one seed.

Only ``RaftLog`` is real. A :class:`Replica` stands for the node around it: it stores writes in its log files, and
applies committed entries to its data, each in its own time; a crash may lose writes on their way. And it carries
messages. The :class:`World` owns time and faults, and checks the invariants after every event
(:mod:`support.raft_checks`)::

    world = World(seed=7)
    world.run(duration_ms=5_000)      faults
    world.calm()                      none any more: the group must come back, and hold all that was acknowledged
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

from cortado.errors import CortadoError, Unavailable
from cortado.raft.bootstrap import bootstrap_writes
from cortado.raft.group import RaftLog
from cortado.raft.log import Encoded, Entry, Message, SnapshotMeta
from cortado.raft.records import HardState, Writes
from cortado.raft.registry import Member, Roster
from cortado.raft.settings import RaftSettings
from cortado.raft.standing import Word, vouched_position
from support.raft_checks import Checks
from support.raft_disks import GROUP, Data, Disk, LogDisk

FOUNDER = "n1"


@dataclass
class Rates:
    """Chances per message or event, and mean times between faults (0: never), in milliseconds."""

    loss: float = 0.02
    duplicate: float = 0.02
    slow: float = 0.05
    delay_ms: float = 2.0
    propose_ms: float = 12.0
    read_ms: float = 25.0
    crash_ms: float = 900.0
    power_ms: float = 6000.0
    partition_ms: float = 900.0
    pause_ms: float = 2000.0
    hung_disk_ms: float = 3000.0
    hung_data_ms: float = 3000.0
    compact_ms: float = 150.0
    rebuild_ms: float = 150.0
    member_ms: float = 500.0
    transfer_ms: float = 1500.0
    may_lead_ms: float = 3000.0
    link_ms: float = 2000.0
    disk_ms_max: float = 4.0
    data_ms_max: float = 30.0


def any_rates(draw: random.Random) -> Rates:
    """Draw rates. Each seed has a weather of its own: a fault that is rare everywhere meets few others."""
    rates = Rates(
        loss=draw.choice([0.0, 0.02, 0.02, 0.2]),
        duplicate=draw.choice([0.0, 0.05, 0.4]),
        slow=draw.choice([0.0, 0.05, 0.3]),
        delay_ms=draw.choice([0.3, 2.0, 2.0, 20.0]),
        propose_ms=draw.choice([3.0, 12.0, 40.0]),
        read_ms=draw.choice([5.0, 25.0]),
        disk_ms_max=draw.choice([0.5, 4.0, 4.0, 40.0]),
        data_ms_max=draw.choice([0.5, 30.0, 30.0, 400.0]),
    )
    for name in (
        "crash",
        "power",
        "partition",
        "pause",
        "hung_disk",
        "hung_data",
        "compact",
        "rebuild",
        "member",
        "transfer",
        "may_lead",
        "link",
    ):
        usual_ms = getattr(rates, f"{name}_ms")
        setattr(rates, f"{name}_ms", draw.choice([0.0, usual_ms, usual_ms, usual_ms / 4]))
    return rates


def quiet_rates(propose_ms: float = 0.0) -> Rates:
    """Return rates without faults."""
    rates = Rates(**dict.fromkeys((each.name for each in fields(Rates)), 0.0))
    return replace(rates, delay_ms=1.0, disk_ms_max=1.0, data_ms_max=1.0, propose_ms=propose_ms)


class Replica:
    """A node's shell around its ``RaftLog``; ``log`` is None while the node is down."""

    def __init__(self, world: World, node_id: str, disk: Disk) -> None:
        self.world = world
        self.node_id = node_id
        self.disk = disk
        self.log: RaftLog | None = None
        self.life = 0
        self.storing: Writes = []
        self.applying: Sequence[Entry] = ()
        self.paused_until_ms = 0.0
        self.inbox: list[tuple[str, bytes]] = []
        self.tick_due_ms = float("inf")
        self.pending: list[tuple[int, int, bytes]] = []
        self.reads: list[tuple[int, int, int, int]] = []
        self.is_fetching = False
        self.installing: SnapshotMeta | None = None
        self.resetting: Writes = []
        self.hung_log_until_ms = self.hung_data_until_ms = 0.0
        self.snapshots: dict[str, tuple[SnapshotMeta, dict[int, bytes]]] = {}
        self.rate = 1.0 + world.random.uniform(-world.drift, world.drift)
        self.offset_ms = world.random.uniform(0, 1e6)
        self.joined = Roster()

    def local_ms(self) -> float:
        return self.offset_ms + self.world.now_ms * self.rate

    def true_ms(self, local_ms: float) -> float:
        return (local_ms - self.offset_ms) / self.rate

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.life += 1
        self.log = RaftLog(
            self.node_id,
            self.world.settings,
            group_id=GROUP,
            random=random.Random(self.world.random.random()),
            stored=self.world.checks.opened(self),
            applied=self.disk.data.applied,
            now_ms=self.local_ms(),
            joined=self.joined,
        )
        self.round()

    def crash(self) -> None:
        self.log = None
        self.life += 1
        self.storing, self.applying, self.resetting = [], (), []
        self.is_fetching = False
        self.installing = None
        self.inbox.clear()
        self.pending.clear()
        self.reads.clear()
        self.snapshots.clear()

    def receive(self, sender: str, body: bytes) -> None:
        if self.log is not None:
            self.inbox.append((sender, body))
            self.round()

    def round(self) -> None:
        """Run a round as a node's loop does: step, tick, send, store, answer."""
        log = self.log
        if log is None or self.world.now_ms < self.paused_until_ms:
            return
        inbox, self.inbox = self.inbox, []
        for sender, body in inbox:
            self._ask_who_it_is(log, sender)
            log.step(sender, body)
        log.tick(self.local_ms())
        self._send(log.outbox())
        if self.installing is None:
            if not self.storing and (writes := log.storing.ready()):
                self._store(writes)
            if not self.applying and (entries := log.applying.take()):
                self._apply(entries)
        self._after(log)

    def _ask_who_it_is(self, log: RaftLog, sender: str) -> None:
        """Ask as the peers' transport does: members that we know are asked for a stranger."""
        if log.standing.member(sender) is not None or log.standing.is_believed(sender):
            return
        words = []
        for member in log.standing.members:
            other = self.world.replicas.get(member.node_id)
            if other is None or other is self or other.log is None or self.world.now_ms < other.paused_until_ms:
                continue
            if not self.world.is_cut(self.node_id, other.node_id) and not self.world.is_cut(
                other.node_id, self.node_id
            ):
                words.append(Word(other.log.standing.member(sender) is not None, other.log.last[::-1]))
        position = vouched_position(words, log.last[::-1])
        self.world.counts["strangers vouched for" if position else "strangers refused"] += 1
        if position is not None:
            log.standing.believe(sender, position)

    def _store(self, writes: Writes) -> None:
        self.world.checks.stored(self, writes)
        # It may be on the disk although the process died before it knew.
        self.storing = writes

        def done() -> None:
            self.storing = []
            self.disk.log.write(writes)
            self.log.synced(writes)
            self.world.checks.synced(self)
            self._send(self.log.outbox())
            self.round()

        self._after_disk(self.world.disk_delay_ms(self), done)

    def _apply(self, entries: Sequence[Entry]) -> None:
        self.world.checks.handed_over(self, entries)
        self.applying = entries

        def done() -> None:
            self.applying = ()
            self.world.checks.applied(self, entries)
            self.disk.data.apply(entries)
            self.log.applying.applied(entries)
            self.world.checks.data_follows_the_log(self)
            self.round()

        self._after_disk(self.world.data_delay_ms(self), done)

    def _after_disk(self, delay_ms: float, done: Callable[[], None]) -> None:
        """Run ``done`` after a delay, unless a crash comes first."""
        life = self.life
        self.world.after(delay_ms, lambda: done() if self.life == life else None)

    def _send(self, messages: list[Message]) -> None:
        for message in messages:
            self.world.checks.leaves(self, message)
            self.world.send(self.node_id, message)

    def _after(self, log: RaftLog) -> None:
        self.world.checks.turned(self)
        journal, engine = log._core.journal, log._core.engine
        assert journal.commit_index == engine._sync._SyncObj__raftCommitIndex, "PySyncObj tells its commit index"
        assert journal.last == journal[-1][1:] and journal.last_index == journal[-1][1], "the journal's end is known"
        self._answer(log)
        self._snapshots(log)
        due_ms = max(self.world.now_ms + 0.01, self.true_ms(log.next_tick_ms))
        if due_ms < self.tick_due_ms or self.tick_due_ms <= self.world.now_ms:
            self.tick_due_ms = due_ms
            self.world.after(due_ms - self.world.now_ms, self.round)

    # --- callers ----------------------------------------------------------------------------------------------------

    def propose(self, value: bytes) -> None:
        if self.log is None or not self.log.is_leader or self.world.now_ms < self.paused_until_ms:
            return
        entry = self.log.append(Encoded(value))
        self.world.counts["proposed"] += 1
        self.pending.append((entry.index, entry.term, value))
        self.round()

    def read(self) -> None:
        log = self.log
        if log is None or not log.is_leader or self.world.now_ms < self.paused_until_ms:
            return
        number = log.read_round()
        self.reads.append((number, log.term, log.durable_commit_index, self.world.checks.acknowledged_to))
        self.round()

    def _answer(self, log: RaftLog) -> None:
        is_leading = log.leader == self.node_id
        while (
            self.pending
            and is_leading
            and self.pending[0][1] == log.term
            and self.pending[0][0] <= log.durable_commit_index
        ):
            self.world.checks.acknowledged(self, *self.pending.pop(0))
            self.world.counts["acknowledged"] += 1
        if self.pending and (not is_leading or self.pending[0][1] != log.term):
            self.world.counts["unknown outcomes"] += len(self.pending)
            self.pending.clear()
        self.reads = [each for each in self.reads if is_leading and each[1] == log.term]
        for each in [each for each in self.reads if each[0] <= log.confirmed_round]:
            self.reads.remove(each)
            self.world.checks.read(self, read_index=each[2], acknowledged_before=each[3])
            self.world.counts["reads"] += 1

    # --- snapshots --------------------------------------------------------------------------------------------------

    def _snapshots(self, log: RaftLog) -> None:
        for peer in log.window.snapshot_needs:
            snapshot = next((s for s in self.snapshots.values() if s[0].index + 1 > log.window.base[0]), None)
            if snapshot is None:
                index, term = self.disk.data.applied
                if index <= log.window.base[0] - 1 or (index, term) != log.applied:
                    continue
                meta = SnapshotMeta(
                    f"{self.node_id}-{self.life}-{index}",
                    index,
                    term,
                    log.window.roster_at(index),
                    len(self.disk.data.state),
                )
                snapshot = self.snapshots[meta.snapshot_id] = (meta, dict(self.disk.data.state))
            if (peer, snapshot[0].snapshot_id) not in self.world.offered:
                self.world.offered.add((peer, snapshot[0].snapshot_id))
                log.window.offer_snapshot(peer, snapshot[0])
            elif self.world.random.random() < 0.1:
                log.window.offer_snapshot(peer, snapshot[0])
        offer = log.window.snapshot_offer
        if offer is not None and self.installing is None and not self.is_fetching:
            self._fetch(offer.sender, offer.meta)

    def _fetch(self, sender: str, meta: SnapshotMeta) -> None:
        """Fetch a snapshot. Meanwhile the log goes on, and may come to hold its entries."""
        world = self.world
        if meta.index <= self.disk.data.applied[0]:
            return
        holder = world.replicas[sender]
        if holder.log is None or meta.snapshot_id not in holder.snapshots or world.is_cut(sender, self.node_id):
            return
        self.fetch(meta, holder.snapshots[meta.snapshot_id][1])

    def fetch(self, meta: SnapshotMeta, state: dict[int, bytes]) -> None:
        world = self.world
        self.is_fetching = True

        def fetched() -> None:
            self.is_fetching = False
            if world.random.random() < 0.2 and not world.is_calm:
                world.counts["snapshots broken off"] += 1
                return
            self.installing = meta
            self._install(meta, state)

        self._after_disk(world.random.uniform(1, 60), fetched)

    def _install(self, meta: SnapshotMeta, state: dict[int, bytes]) -> None:
        """Install into the data first, then the log files; and then the data forgets how they were to follow."""
        world = self.world
        if self.storing or self.applying:
            self._after_disk(0.5, lambda: self._install(meta, state))
            return
        if meta.index <= self.log.applied[0] or self.log._core.is_leading:
            self.installing = None
            return
        world.checks.installs(self, meta)
        writes = self.log.window.install(meta)

        def data_done() -> None:
            self.disk.data.install(meta, state, writes)
            self.resetting = writes
            if world.random.random() < 0.1 and not world.is_calm:
                world.crash(self)
                return
            self._after_disk(world.disk_delay_ms(self), log_done)

        def log_done() -> None:
            self.resetting = []
            self.disk.log.write(writes)
            self.log.window.installed(meta)
            world.counts["snapshots"] += 1
            world.checks.synced(self)
            self._after_disk(world.data_delay_ms(self), forgotten)

        def forgotten() -> None:
            self.disk.data.reset = None
            self.installing = None
            world.checks.data_follows_the_log(self)
            self.round()

        self._after_disk(world.data_delay_ms(self), data_done)


class World:
    """Time, the network, faults."""

    def __init__(
        self,
        seed: int,
        *,
        voters: int = 3,
        rates: Rates | None = None,
        settings: RaftSettings | None = None,
        drift: float = 0.0,
    ) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.drift = drift
        self.rates = rates if rates is not None else any_rates(self.random)
        self.settings = settings if settings is not None else small_settings()
        self.now_ms = 0.0
        self.counts: Counter[str] = Counter()
        self.checks = Checks(self)
        self.is_calm = False
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._cuts: set[tuple[str, str]] = set()
        self.offered: set[tuple[str, str]] = set()
        self._values = 0
        self._names = voters
        self.replicas: dict[str, Replica] = {}
        self._found(voters)

    def _found(self, voters: int) -> None:
        """Found a group of one that has grown to ``voters``, as their disks say."""
        members = tuple(Member(f"n{i + 1}", f"host:{i + 1}", f"s{i + 1}") for i in range(voters))
        writes = bootstrap_writes(GROUP, members[0])
        if voters > 1:
            writes = [HardState(1, "", 2, 1, Roster.of(members)).log_record(GROUP)]
        for member in members:
            self.add_replica(member.node_id, Disk(LogDisk(*writes), Data((2, 1), {2: b""})))

    def add_replica(self, node_id: str, disk: Disk, joined: Roster | None = None) -> Replica:
        replica = self.replicas[node_id] = Replica(self, node_id, disk)
        replica.joined = joined or Roster()
        replica.start()
        return replica

    # --- time -------------------------------------------------------------------------------------------------------

    def after(self, delay_ms: float, event: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._sequence, event))

    def run(self, duration_ms: float) -> None:
        """Let it happen, with faults."""
        for name in vars(self.rates):
            if name.endswith("_ms") and name != "delay_ms":  # each is a fault, or something that callers do
                self._repeat(getattr(self, "_" + name[: -len("_ms")]), name)
        self.run_until(self.now_ms + duration_ms)

    def run_until(self, end_ms: float, done: Callable[[], bool] | None = None) -> bool:
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, _, event = heapq.heappop(self._events)
            event()
            if done is not None and done():
                return True
        self.now_ms = end_ms
        return False

    def _repeat(self, fault: Callable[[], None], name: str) -> None:
        mean_ms = getattr(self.rates, name)
        if not mean_ms:
            return

        def happen() -> None:
            if getattr(self.rates, name):
                fault()
                self.after(self.random.expovariate(1 / getattr(self.rates, name)), happen)

        self.after(self.random.expovariate(1 / mean_ms), happen)

    def calm(self, within_ms: float = 12_000.0) -> None:
        """End all faults: within that time all members apply the same, and a new proposal is acknowledged."""
        self.rates, self.is_calm = quiet_rates(20.0), True
        self._cuts.clear()
        for replica in self.replicas.values():
            replica.paused_until_ms = 0.0
            if replica.log is None:
                replica.start()
            replica.log.may_lead = True
            replica.round()
        before = self.counts["acknowledged"]
        self._repeat(self._propose, "propose_ms")
        deadline_ms = self.now_ms + within_ms
        self.run_until(deadline_ms, lambda: self.counts["acknowledged"] >= before + 5)
        self.checks.that(self.counts["acknowledged"] >= before + 5, "a calm group acknowledges what is proposed")
        self.rates = quiet_rates()
        self.run_until(deadline_ms + within_ms, self.checks.has_converged)
        self.checks.that(self.checks.has_converged(), "a calm group's members hold the same")
        self.checks.everything_acknowledged_is_held()

    # --- network and disk -------------------------------------------------------------------------------------------

    def is_cut(self, sender: str, to: str) -> bool:
        return (sender, to) in self._cuts

    def send(self, sender: str, message: Message) -> None:
        if message.to not in self.replicas or self.is_cut(sender, message.to):
            self.counts["cut off"] += 1
            return
        if self.random.random() < self.rates.loss:
            self.counts["lost"] += 1
            return
        copies = 1
        if self.random.random() < self.rates.duplicate:
            self.counts["duplicated"] += 1
            copies = 2
        for _ in range(copies):
            delay_ms = self.random.expovariate(1 / self.rates.delay_ms)
            if self.random.random() < self.rates.slow:
                self.counts["delayed"] += 1
                delay_ms += self.random.uniform(0, 1500 if self.random.random() < 0.2 else 150)
            self.after(delay_ms, lambda: self.replicas[message.to].receive(sender, message.body))

    def disk_delay_ms(self, replica: Replica) -> float:
        """Return the delay of its log files."""
        if replica.hung_log_until_ms > self.now_ms:
            return replica.hung_log_until_ms - self.now_ms
        return self.random.uniform(0.1, self.rates.disk_ms_max)

    def data_delay_ms(self, replica: Replica) -> float:
        if replica.hung_data_until_ms > self.now_ms:
            return replica.hung_data_until_ms - self.now_ms
        return self.random.uniform(0.1, self.rates.data_ms_max)

    # --- faults -----------------------------------------------------------------------------------------------------

    def _any(self) -> Replica:
        return self.replicas[self.random.choice(sorted(self.replicas))]

    def leader(self) -> Replica | None:
        """Return the replica of the highest term that may append."""
        leading = [each for each in self.replicas.values() if each.log is not None and each.log.is_leader]
        return max(leading, key=lambda each: each.log.term, default=None)

    def _propose(self) -> None:
        for replica in list(self.replicas.values()):
            if replica.log is not None and replica.log.is_leader:
                self._values += 1
                size = 3000 if self.random.random() < 0.1 else 10
                replica.propose(b"v%d." % self._values + b"x" * size)

    def _read(self) -> None:
        for replica in self.replicas.values():
            replica.read()
            self.checks.freshness(replica)

    def _crash(self) -> None:
        self.crash(self._any())

    def crash(self, replica: Replica, down_ms: float | None = None) -> None:
        if replica.log is None:
            return
        self.counts["crashes"] += 1
        self._let_some_arrive(replica)
        replica.crash()
        self.checks.data_follows_the_log(replica)
        delay_ms = self.random.uniform(1, 1500) if down_ms is None else down_ms
        self.after(delay_ms, lambda: replica.start() if replica.log is None else None)

    def _let_some_arrive(self, replica: Replica) -> None:
        """Let writes on their way to either store arrive, or not."""
        disk = replica.disk
        self.counts["crashes with data behind"] += replica.log.applying.backlog > 0
        self.counts["crashes while it was applied"] += bool(replica.applying)
        self.counts["crashes before the log followed a snapshot"] += bool(replica.resetting)
        if replica.storing and self.random.random() < 0.3:
            self.counts["crashes after the sync"] += 1
            disk.log.write(replica.storing)
        if replica.applying and self.random.random() < 0.3:
            self.counts["crashes after it was applied"] += 1
            self.checks.applied(replica, replica.applying)
            disk.data.apply(replica.applying)
        if replica.resetting and self.random.random() < 0.3:
            disk.log.write(replica.resetting)

    def _power(self) -> None:
        self.counts["power losses"] += 1
        for replica in self.replicas.values():
            self.crash(replica)

    def _partition(self) -> None:
        if self._cuts:
            self._cuts.clear()
            return
        self.counts["partitions"] += 1
        side = {each for each in self.replicas if self.random.random() < 0.5}
        is_one_way = self.random.random() < 0.4
        for one in self.replicas:
            for other in self.replicas:
                if one in side and other not in side:
                    self._cuts.add((one, other))
                    if not is_one_way:
                        self._cuts.add((other, one))
        self.counts["one-way partitions"] += is_one_way

    def _link(self) -> None:
        """Cut one pair of nodes from each other, while both see the rest."""
        one, other = self._any().node_id, self._any().node_id
        if one == other:
            return
        self.counts["broken links"] += 1
        links = [(one, other), (other, one)][: self.random.choice([1, 2])]
        self._cuts.update(links)
        self.after(self.random.uniform(100, 3000), lambda: self._cuts.difference_update(links))

    def cut(self, sender: str, to: str) -> None:
        self._cuts.add((sender, to))

    def heal(self) -> None:
        self._cuts.clear()

    def _pause(self) -> None:
        replica = self._any()
        self.counts["pauses"] += 1
        replica.paused_until_ms = self.now_ms + self.random.uniform(100, 2500)
        self.after(replica.paused_until_ms - self.now_ms, replica.round)

    def _hung_disk(self) -> None:
        self.counts["hung disks"] += 1
        self._any().hung_log_until_ms = self.now_ms + self.random.uniform(50, 2500)

    def _hung_data(self) -> None:
        self.counts["hung data"] += 1
        self._any().hung_data_until_ms = self.now_ms + self.random.uniform(50, 2500)

    def _compact(self) -> None:
        replica = self._any()
        if replica.log is not None:
            replica.log.window.compact(replica.log.applied[0])
            replica.round()

    def _rebuild(self) -> None:
        """Give a replica another's state, which it was not offered: its log may be ahead of it, and go on from it."""
        replica, holder = self._any(), self._any()
        if replica.log is None or holder.log is None or replica.log._core.is_leading:
            return
        index, term = holder.disk.data.applied
        is_ahead = index > replica.log.applied[0] and (index, term) == holder.log.applied
        if is_ahead and replica.installing is None and not replica.is_fetching:
            roster = holder.log.window.roster_at(index)
            state = dict(holder.disk.data.state)
            replica.fetch(SnapshotMeta("rebuilt", index, term, roster, len(state)), state)

    def _may_lead(self) -> None:
        replica = self._any()
        if replica.log is not None:
            self.counts["may not lead"] += 1
            replica.log.may_lead = not replica.log.may_lead
            replica.round()

    def _transfer(self) -> None:
        self._ask("transfers", lambda log: log.transfer.begin())

    def _member(self) -> None:
        """Grow or shrink by one step, if the leader allows it."""
        leader = self.leader()
        if leader is None:
            return
        roster = leader.log.roster
        unbound = [each for each in roster.learners if not each.storage_id]
        bound = [each for each in roster.learners if each.storage_id]
        choice = self.random.random()
        self._ask("tidied", lambda log: log.members.tidy())
        if unbound:
            self._bind(unbound[0].node_id)
        elif bound and choice < 0.7:
            self._ask("promotions", lambda log: log.members.promote(bound[0].node_id))
        elif choice < 0.5 and len(roster.members) < 6:
            self._names += 1
            node_id = f"n{self._names}"
            self._ask("learners", lambda log: log.members.add_learner(Member(node_id, f"host:{self._names}")))
        elif len(roster.members) > 2:
            gone = self.random.choice(roster.members).node_id
            self._ask("removals", lambda log: log.members.remove(gone))

    def _bind(self, node_id: str) -> None:
        if node_id not in self.replicas:
            leader = self.leader()
            self.add_replica(node_id, Disk(), joined=leader.log.roster if leader else Roster())
        bound = Member(node_id, f"host:{node_id[1:]}", f"s-{node_id}", f"for-clients:{node_id[1:]}")
        self._ask("bound", lambda log: log.members.bind(bound))

    def _ask(self, what: str, request: Callable[[RaftLog], object]) -> None:
        leader = self.leader()
        if leader is None or self.now_ms < leader.paused_until_ms:
            return
        try:
            request(leader.log)
            self.counts[what] += 1
        except CortadoError as refusal:
            self.counts[f"{what} refused" if isinstance(refusal, Unavailable) else f"{what} invalid"] += 1
        leader.round()


def small_settings(*, lease: bool = False) -> RaftSettings:
    """Return small bounds, so that windows fill, logs are compacted and messages are split within seconds."""
    return RaftSettings(
        lease=lease,
        window_bytes_max=20_000,
        window_messages_max=4,
        message_bytes_max=4_000,
        entry_bytes_max=10_000,
        retain_entries=12,
        retain_bytes=40_000,
        caught_up_entries=20,
    )
