"""One run: a cluster grows under load, everything goes wrong for a while, and then it must come back.

::

    n1 alone ──► n2, n3 (n4, n5) join ──► faults, for some seconds ──► calm ──► verdicts
    └────────────────────────── clients, all the time ───────────────┘

Everything is drawn from the seed, so the same seed is the same run.
"""

from __future__ import annotations

import gc
import hashlib
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias
from unittest.mock import patch

from cortado.raft.settings import RaftSettings
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.duties import jobs
from cortado.store.replica.group_range import GroupRange
from cortado.store.server import transactions_service
from cortado.store.server.runs import answering
from cortado.store.server.runs.gathering import RUN_CALLS_MIN
from support.simulation.cluster import Cluster
from support.simulation.collected import Holder, Record
from support.simulation.doubts import Doubts, doubting
from support.simulation.expiring import Expirer
from support.simulation.faults import Nemesis
from support.simulation.faulty import FaultyMember
from support.simulation.groups import ONE_GROUP, Groups, namespace_of
from support.simulation.history import History
from support.simulation.indexers import STEP_ROWS, Indexer, check_table
from support.simulation.judging import Evidence, Part
from support.simulation.large import LargeTransactors, check_large, is_quiet, small_pieces
from support.simulation.messengers import FORCED, MODES, Messenger, Services
from support.simulation.observe import counting
from support.simulation.process import NodeOptions
from support.simulation.strangers import Stranger
from support.simulation.transactors import Transactor, check_transactions
from support.simulation.watch import Watch
from support.simulation.watchers import Watcher
from support.simulation.workload import LISTS, REGISTERS, Client

JOIN_MS = 60_000.0
WINDOW_BYTES_MIN = 2_400
"""A round trip must carry more than is written meanwhile, or a member that joins under load falls behind for ever: with
two messages of 300 bytes, of an entry each, seed 419 wrote 90 entries a second, and its fifth member got as many."""
COME_BACK_MS = 30_000.0
WATCHED_PART = 0.3
ATTACKED_PART = 0.3
FAULTY_PART = 0.3
TRANSACTED_PART = 0.15
COLLECTED_PART = 0.35
INDEXED_PART = 0.3
LARGE_PART = 0.25
EXPIRING_PART = 0.4
EXPIRERS = 2
MESSENGERS_PART = 0.5
MESSENGERS = 2
TRANSACTORS = 3
SMALL_ENTRIES_PART = 0.3
DOUBTED_PART = 0.3
PACED_PART = 0.2
PATROLLED_PART = 0.4

Actor: TypeAlias = Transactor | Watcher | Holder | Indexer | Expirer | Messenger


@dataclass
class Plan:
    """The shape of a run; drawn from the seed by default."""

    nodes: int = 3
    clients: int = 4
    faults_ms: float = 8_000.0
    lease: bool = False
    transactors: int = 0
    collects: bool = False
    indexes: bool = False
    large: bool = False
    expires: bool = False
    messages: bool = False
    ahead_from: int = 100
    """Commits of more operations are evaluated before their turn."""

    @classmethod
    def of(cls, source: random.Random, transacting: random.Random) -> Plan:
        return cls(
            nodes=source.choices((1, 3, 5), (2, 8, 3))[0],
            clients=source.choice((3, 4, 6)),
            faults_ms=source.choice((5_000.0, 8_000.0, 12_000.0)),
            lease=source.random() < 0.25,
            # In some runs only, and by a source of its own, so that it changes no other draw.
            transactors=TRANSACTORS if transacting.random() < TRANSACTED_PART else 0,
            ahead_from=transacting.choice((0, 1, 100)),
        )


@dataclass
class Outcome:
    """The outcome of a seed. ``digest`` is of everything that clients saw: equal for equal runs."""

    seed: int
    violations: list[str]
    trace: list[str]
    counts: Counter[str]
    digest: str
    steps: int
    virtual_ms: float
    calls: int
    groups: int


def options_of(plan: Plan, source: random.Random) -> NodeOptions:
    """Return small bounds, so that logs are compacted, snapshots needed and requests forgotten within seconds."""
    raft = RaftSettings(
        lease=plan.lease,
        retain_entries=source.choice((3, 10, 40, 200)),
        retain_bytes=1 << 20,
        caught_up_entries=source.choice((2, 10, 100)),
        window_messages_max=source.choice((2, 8, 64)),
        message_bytes_max=source.choice((300, 2_000, 1 << 20)),
    )
    if raft.window_messages_max * raft.message_bytes_max < WINDOW_BYTES_MIN:
        raft = replace(raft, message_bytes_max=WINDOW_BYTES_MIN // raft.window_messages_max)
    limits = NodeLimits(
        remember_ms=source.choice((2_000, 600_000)),
        remember_requests_max=source.choice((40, 1_000)),
        ceiling_ahead_ms=source.choice((1, 50, 250)),
        batch_commands_max=source.choice((2, 64, 2_048)),
        watch_queue_events_max=source.choice((3, 20, 1_000)),
        watch_recent_entries_max=source.choice((1, 10, 1_000)),
        watch_pass_events_max=source.choice((2, 10, 1_000)),
    )
    if source.random() < SMALL_ENTRIES_PART:
        limits = replace(limits, batch_bytes_max=600, command_bytes_max=1_500, entries_in_flight_bytes_max=1_500)
    return NodeOptions(raft, limits)


def paced(options: NodeOptions) -> NodeOptions:
    """Return options that hold so little for a member that catches up that writes are slowed for it."""
    raft = replace(options.raft, retain_bytes=1_000, retain_entries=3)
    return NodeOptions(raft, replace(options.limits, held_bytes_max=12_000))


def simulate(
    seed: int,
    *,
    plan: Plan | None = None,
    prepare: Callable[[Cluster, Nemesis], None] | None = None,
    runs: str | None = None,
    groups: Groups = ONE_GROUP,
) -> Outcome:
    """Run one seed. ``prepare`` may change the cluster before it begins; ``runs``, one of MODES, says how messages are
    answered; ``groups`` divide the keys."""
    was_collecting, was_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    # The collector comes when it likes, and closes abandoned coroutines where it stands: only between runs, then.
    gc.disable()
    gc.freeze()
    try:
        run = Run(seed, plan, prepare, runs, groups)
        ahead = patch.object(transactions_service, "AHEAD_FROM", run.plan.ahead_from)
        calls_min = patch.object(answering, "RUN_CALLS_MIN", 1 if run.services.mode == FORCED else RUN_CALLS_MIN)
        with (
            ahead,
            calls_min,
            patch.object(jobs, "STEP_ROWS", STEP_ROWS),
            run.record.recording(run.cluster.ended_for_room),
            counting(run.cluster.counts, run.cluster.violation),
            doubting(run.cluster, run.doubts),
            small_pieces(run.cluster),
        ):
            return run.run()
    finally:
        with warnings.catch_warnings():
            # The warnings of coroutines that a crash kept from ever being started.
            warnings.simplefilter("ignore", RuntimeWarning)
            gc.collect()
        if not was_frozen:
            gc.unfreeze()
        if was_collecting:
            gc.enable()


class Run:
    """The script of a run."""

    def __init__(
        self,
        seed: int,
        plan: Plan | None = None,
        prepare: Callable[[Cluster, Nemesis], None] | None = None,
        runs: str | None = None,
        groups: Groups = ONE_GROUP,
    ) -> None:
        source = random.Random(f"plan/{seed}")
        drawn = Plan.of(source, random.Random(f"transacting/{seed}"))
        self.seed = seed
        self.plan = plan or drawn
        # By sources of their own, so that they change no other draw.
        doubting_source, pacing = random.Random(f"doubts/{seed}"), random.Random(f"pacing/{seed}")
        patrolling = random.Random(f"patrol/{seed}")
        is_doubted = doubting_source.random() < DOUBTED_PART
        options = options_of(self.plan, source)
        if is_doubted:
            options = replace(options, limits=replace(options.limits, examined_percent=100))
        if pacing.random() < PACED_PART:
            options = paced(options)
        if patrolling.random() < PATROLLED_PART:
            options = replace(options, limits=replace(options.limits, patrol_ms=400))
        collecting = random.Random(f"collecting/{seed}")
        is_collected = self.plan.collects if plan is not None else collecting.random() < COLLECTED_PART
        if is_collected:
            options = replace(options, retention_ms=collecting.choice((500, 1_000, 3_000)))
        self.record = Record()
        self.cluster = Cluster(str(seed), replace(options, groups=groups))
        self.doubts = Doubts(self.cluster, doubting_source) if is_doubted else None
        for each in groups:
            Watch(self.cluster, each.group_id)
        self.nemesis = Nemesis(self.cluster, random.Random(f"nemesis/{seed}"))
        # In some runs only: it looks at every commit. By a source of its own, so that it changes no other draw.
        watching, expiring = random.Random(f"watching/{seed}"), random.Random(f"expiring/{seed}")
        is_watched = watching.random() < WATCHED_PART and not is_collected
        is_expiring = self.plan.expires if plan is not None else expiring.random() < EXPIRING_PART
        self.parts = [self._make_part(each, watching if is_watched else None, is_expiring) for each in groups]
        self.history = self.parts[0].history
        self.transactors = [
            Transactor(self.cluster, self.history, f"t{number}", random.Random(f"transactor/{seed}/{number}"))
            for number in range(self.plan.transactors)
        ]
        # No watcher, since it could come back to a time that is collected.
        self.holders = [Holder(self.cluster, "holder", collecting, (*LISTS, *REGISTERS))] if is_collected else []
        indexing = random.Random(f"indexing/{seed}")
        # If disks hide rows, a replica's applied index is no proof.
        is_indexed = self.plan.indexes if plan is not None else indexing.random() < INDEXED_PART and not is_doubted
        staging = random.Random(f"large/{seed}")
        is_large = self.plan.large if plan is not None else staging.random() < LARGE_PART and not is_doubted
        self.indexers = [Indexer(self.cluster, indexing)] if is_indexed or is_large else []
        # No watcher, since it could come back to a time that is collected.
        self.large = (
            [LargeTransactors(self.cluster, self.history, staging, watches=not is_collected)] if is_large else []
        )
        self.services, self.messengers = self._make_messengers(runs, self.plan.messages if plan is not None else None)
        self.stranger, self.faulty = self._make_attackers()
        if prepare is not None:
            prepare(self.cluster, self.nemesis)

    def _make_part(self, of: GroupRange, watching: random.Random | None, is_expiring: bool) -> Part:
        """Make the callers of a group, each with a source of its own."""
        cluster, history, namespace = self.cluster, History(), namespace_of(of)
        own = str(self.seed) if of.holds_meta else f"{self.seed}/{namespace}"
        clients = [
            Client(cluster, history, f"c{number}", random.Random(f"client/{own}/{number}"), namespace)
            for number in range(self.plan.clients)
        ]
        expirers = [
            Expirer(cluster, f"x{number}", random.Random(f"expirer/{own}/{number}"), namespace)
            for number in range(EXPIRERS * is_expiring)
        ]
        watchers = [Watcher(cluster, watching, namespace)] if watching is not None else []
        return Part(of, history, clients, watchers, expirers)

    @property
    def clients(self) -> list[Client]:
        return [each for part in self.parts for each in part.clients]

    @property
    def actors(self) -> list[Actor]:
        """Return the callers beside the clients, in the order in which they begin."""
        watchers = [each for part in self.parts for each in part.watchers]
        expirers = [each for part in self.parts for each in part.expirers]
        return [*self.transactors, *watchers, *self.holders, *self.indexers, *expirers, *self.messengers]

    def _make_attackers(self) -> tuple[Stranger | None, FaultyMember | None]:
        attacking, faulty = random.Random(f"stranger/{self.seed}"), random.Random(f"faulty/{self.seed}")
        stranger = Stranger(self.cluster, attacking) if attacking.random() < ATTACKED_PART else None
        return stranger, FaultyMember(self.cluster, faulty) if faulty.random() < FAULTY_PART else None

    def _make_messengers(self, runs: str | None, has_some: bool | None) -> tuple[Services, list[Messenger]]:
        """Make services that answer messages, and their callers, as ``runs``, ``has_some`` or the seed say."""
        source = random.Random(f"messages/{self.seed}")
        mode, drawn = source.choice(MODES), source.random() < MESSENGERS_PART
        services = Services(runs or mode, source, self.cluster.counts)
        count = MESSENGERS * (runs is not None or (drawn if has_some is None else has_some))
        sources = [random.Random(f"messenger/{self.seed}/{number}") for number in range(count)]
        return services, [
            Messenger(self.cluster, self.history, f"m{number}", each, services) for number, each in enumerate(sources)
        ]

    def run(self) -> Outcome:
        cluster = self.cluster
        try:
            if self._grow() and self._suffer() and self._come_back():
                self._judge()
        finally:
            virtual_ms = cluster.now_ms
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                cluster.bury()
        cluster.counts["versions removed"] = self.record.removed
        counts = cluster.counts + cluster.network.counts + self._disk_counts()
        return Outcome(
            self.seed,
            cluster.violations,
            cluster.trace,
            counts,
            self._digest(),
            cluster.scheduler.steps,
            virtual_ms,
            sum(len(part.history.writes) + len(part.history.reads) for part in self.parts),
            len(self.parts),
        )

    # --- the phases --------------------------------------------------------------------------------------------

    def _grow(self) -> bool:
        """Grow a cluster of one, then of all, under load."""
        cluster = self.cluster
        cluster.add_host("n1", is_first=True)
        cluster.members.append("n1")
        cluster.start("n1")
        cluster.world.create_task(cluster.watch_clocks(), name="clocks")
        for client in self.clients:
            cluster.world.create_task(client.run(), name=client.name)
        for each in self.actors:
            cluster.world.create_task(each.run(), name="client")
        others = [f"n{number}" for number in range(2, self.plan.nodes + 1)]
        grown = cluster.world.create_task(self._join_all(others), name="grow")
        self._until(grown.done, JOIN_MS)
        if cluster.violations:
            return False
        if not grown.done() or not grown.result():
            cluster.violation("the cluster did not grow, though nothing was wrong")
            return False
        return True

    async def _join_all(self, node_ids: list[str]) -> bool:
        until_ms = self.cluster.now_ms + JOIN_MS
        for node_id in node_ids:
            if not await self.cluster.join(node_id, until_ms=until_ms):
                return False
            if not await self.cluster.promote(node_id, until_ms=until_ms):
                return False
        return True

    def _suffer(self) -> bool:
        cluster = self.cluster
        cluster.note("faults begin")
        # With all that these write, a member that takes few messages at once would never come up with the others.
        for each in self.large:
            cluster.world.create_task(each.run(), name="client")
        cluster.world.create_task(self.nemesis.run(), name="nemesis")
        if self.stranger is not None:
            cluster.world.create_task(self.stranger.run(), name="stranger")
        if self.faulty is not None:
            cluster.world.create_task(self.faulty.run(), name="faulty member")
        if self.doubts is not None:
            cluster.world.create_task(self.doubts.run(), name="doubts")
        self._until(lambda: False, self.plan.faults_ms)
        return not cluster.violations

    def _come_back(self) -> bool:
        """Return whether in calm a node leads, every client gets through, and all members hold the same."""
        cluster = self.cluster
        self.nemesis.stop()
        if self.stranger is not None:
            self.stranger.is_stopped = True
        if self.faulty is not None:
            self.faulty.is_stopped = True
        if self.doubts is not None:
            self.doubts.is_stopped = True
        self.nemesis.calm()
        cluster.note("calm begins")
        deadline_ms = cluster.now_ms + COME_BACK_MS
        while cluster.now_ms < deadline_ms and not cluster.violations:
            self.nemesis.calm()
            if self._until(self._is_whole, 500):
                break
            self._restart_doubters()
        if cluster.violations:
            return False
        if not self._is_whole():
            cluster.violation(f"not whole {COME_BACK_MS:.0f} ms after the faults ended: {self._state()}")
            return False
        cluster.settle_members()
        done = [client.done for client in self.clients]
        if not self._until(
            lambda: all(c.done > before + 2 for c, before in zip(self.clients, done, strict=True)), COME_BACK_MS
        ):
            cluster.violation(f"clients do not get through in calm: {self._state()}")
            return False
        for each in (*self.clients, *self.actors, *self.large):
            each.is_stopped = True
        self._until(lambda: False, 1_500)
        self.nemesis.calm()
        if self.large and not self._until(self._is_resolved, COME_BACK_MS):
            cluster.violation(f"large transactions do not end in calm: {self._state()}")
        self._until(lambda: False, 1_000)
        if not self._until(self._is_equal, COME_BACK_MS):
            cluster.violation(f"members do not become equal in calm: {self._state()}")
        return not cluster.violations

    def _judge(self) -> None:
        for part in self.parts:
            leader = self.cluster.leader(part.of.group_id)
            if leader is None:
                self.cluster.violation(f"nobody leads group {part.of.group_id} in the end")
                return
            evidence = Evidence(part.of, leader, self.record.items[part.of.group_id])
            beside = self._problems_beside_pairs(evidence) if part.of.holds_meta else ()
            for problem in chain(evidence.problems(part, self.cluster), beside):
                self.cluster.violation(problem)

    def _problems_beside_pairs(self, evidence: Evidence) -> Iterator[str]:
        """Yield the broken promises of transactions, large ones and indexes: the first group has them all."""
        yield from check_transactions(evidence.truth, self.transactors)
        for each in self.large:
            yield from check_large(evidence.items, evidence.left, each)
        if self.indexers:
            yield from (f"in the end: {each}" for each in check_table(evidence.leader.node, self.cluster))

    # --- questions to the cluster ------------------------------------------------------------------------------

    def _is_whole(self) -> bool:
        return all(self._is_group_whole(part.of.group_id) for part in self.parts)

    def _is_group_whole(self, group_id: int) -> bool:
        leader = self.cluster.leader(group_id)
        if leader is None:
            return False
        members = leader.node.replicas[group_id].roster.members
        lives = [self.cluster.find(member.node_id) for member in members]
        return all(
            life is not None and life.is_listening and life.node.replicas[group_id].log.leader == leader.node_id
            for member, life in zip(members, lives, strict=True)
            if member.node_id in self.cluster.members
        )

    def _is_equal(self) -> bool:
        """And durable is all that was applied: jobs write in calm, too, and one member may be amid a commit. Nor does a
        committed entry wait to be applied, which may be the last one of a slow client."""
        return not self.nemesis.is_damaged() and all(self._is_group_equal(part.of.group_id) for part in self.parts)

    def _is_group_equal(self, group_id: int) -> bool:
        leader = self.cluster.leader(group_id)
        if leader is None:
            return False
        replica = leader.node.replicas[group_id]
        if replica.applied.last_ts < self.record.last_ts[group_id] or replica.log.last[0] != replica.applied.index:
            return False
        members = [self.cluster.find(each.node_id) for each in replica.roster.members]
        if any(life is not None and life.node.replicas[group_id].store.suspect for life in members):
            # Others are still asked for its version: reads of the range are refused until then.
            return False
        disks = [
            (life.node.replicas[group_id].applied.index, life.host.disk.digests[group_id])
            for life in members
            if life is not None and life.node_id in self.cluster.members
        ]
        return len(set(disks)) == 1

    def _is_resolved(self) -> bool:
        leader = self.cluster.leader()
        return leader is not None and is_quiet(leader)

    def _restart_doubters(self) -> None:
        """Restart, as operators do, members that wait for the answer of a faulty member that is gone for good."""
        if self.faulty is not None and self.faulty.is_gone:
            for each in self.cluster.lives():
                if any(replica.log.disputes.open for replica in each.node.replicas.values()):
                    self.cluster.crash(each.node_id)
                    self.cluster.start(each.node_id)

    def _state(self) -> str:
        return "; ".join(
            f"{life.loop.name}{'' if life.is_listening else ' (starting)'} group {group_id} term {replica.term} "
            f"leader {replica.log.leader or '?'} applied {replica.applied.index} "
            f"committed {replica.log.durable_commit_index} "
            f"last {replica.log.last}"
            for life in self.cluster.lives()
            if hasattr(life, "node")
            for group_id, replica in life.node.replicas.items()
        )

    def _until(self, is_done: Callable[[], bool], for_ms: float) -> bool:
        cluster = self.cluster
        return (
            cluster.scheduler.run_until(lambda: bool(cluster.violations) or is_done(), until_ms=cluster.now_ms + for_ms)
            and not cluster.violations
        )

    def _disk_counts(self) -> Counter[str]:
        disks = [host.disk for host in self.cluster.hosts.values()]
        return Counter(
            {
                "commits": sum(disk.commits for disk in disks),
                "torn commits kept": sum(disk.torn_kept for disk in disks),
                "torn commits lost": sum(disk.torn_lost for disk in disks),
                "damaged items repaired": sum(disk.repaired for disk in disks),
                "transactions refused for want of room": sum(disk.refused for disk in disks),
            }
        )

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for history in [part.history for part in self.parts]:
            for write in history.writes:
                digest.update(repr((write.client, write.kind, write.outcome, str(write.ts), write.end_ms)).encode())
            for read in history.reads:
                digest.update(repr((read.client, read.kind, read.node, str(read.ts), read.end_ms)).encode())
        digest.update(repr(sorted(self.cluster.counts.items())).encode())
        return digest.hexdigest()[:16]
