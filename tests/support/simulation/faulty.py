"""A member that is wrong: from some time on, one of several voters sends impossible messages, beside its true ones.

Its numbers are near the truth, since others are refused by their bounds: entries where others were committed, of its
own term and of later ones; snapshots of such places; more that is committed than was ever sent, above all to replicas
that have just begun anew. No other node may end by it, and all promises hold. It never sends messages that Raft
believes: entries and votes that an honest member could have sent.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.group import RaftLog
from cortado.raft.log import Encoded
from cortado.raft.records import KIND_DATA, Record
from support.simulation.groups import any_group

if TYPE_CHECKING:
    from support.simulation.cluster import Cluster
    from support.simulation.process import Life

BEGINS_MS: Final = 2_000.0
MEAN_MS: Final = 200.0
RESTARTED_PART: Final = 0.3


class FaultyMember:
    """Runs on the world's loop until it is told to stop. ``source`` is used for nothing else."""

    def __init__(self, cluster: Cluster, source: random.Random) -> None:
        self._cluster = cluster
        self._random = source
        self._node_id = ""
        self.is_stopped = False

    @property
    def is_gone(self) -> bool:
        """Whether it does not run: then it settles nothing that it said."""
        return bool(self._node_id) and self._cluster.find(self._node_id) is None

    async def run(self) -> None:
        cluster = self._cluster
        await cluster.sleep(self._random.uniform(0, BEGINS_MS))
        while not self.is_stopped:
            await cluster.sleep(self._random.expovariate(1 / MEAN_MS))
            liar = cluster.find(self._node_id)
            if self._node_id not in cluster.members:
                self._choose()
            elif not self.is_stopped and liar is not None and liar.is_listening:
                self._lie(liar)

    def _choose(self) -> None:
        voters = self._cluster.voters()
        if len(voters) >= 3:
            self._node_id = self._random.choice([each for each in voters if each in self._cluster.members])
            self._cluster.note(f"{self._node_id} is faulty from now on")

    def _lie(self, liar: Life) -> None:
        cluster = self._cluster
        cluster.counts["fault: member that says what cannot be"] += 1
        victims = [each for each in cluster.lives() if each.is_listening and each is not liar]
        if victims and self._random.random() < RESTARTED_PART:
            # It can't know the messages of earlier lives.
            begins = victims.pop(self._random.randrange(len(victims)))
            cluster.crash(begins.node_id)
            cluster.start(begins.node_id)
            cluster.world.call_later(0.0, self._claim, begins.node_id)
        group_id = any_group(cluster.groups, self._random)
        for victim in victims:
            self._send(victim, group_id, lambda log: self._message(group_id, log))

    def _claim(self, node_id: str) -> None:
        """Lie about a replica that begins, as soon as it hears."""
        victim = self._cluster.find(node_id)
        if victim is None or self.is_stopped:
            return
        if not victim.is_listening:
            self._cluster.world.call_later(0.001, self._claim, node_id)
            return
        self._cluster.counts["claims to members that began anew"] += 1
        group_id = any_group(self._cluster.groups, self._random)
        self._send(victim, group_id, lambda log: self._heartbeat(group_id, log.term))

    def _send(self, victim: Life, group_id: int, make: Callable[[RaftLog], pb.RaftMessage | None]) -> None:
        """Make the lie when the victim hears it. One that was made before a pause may be true after it."""

        def tell() -> None:
            message = make(victim.node.replicas[group_id].log)
            if message is not None:
                victim.node.receive(self._node_id, group_id, [message.SerializeToString()])

        victim.loop.call_soon(tell)

    def _heartbeat(self, group_id: int, term: int) -> pb.RaftMessage:
        liar = self._cluster.find(self._node_id)
        # A true leader's word on existing entries is believed.
        leads = liar is None or liar.node.replicas[group_id].log.leader == self._node_id
        ahead = 1_000_000 if leads else self._random.choice((1, 2, 1_000_000))
        # More than was sent by any member: entries on their way to the victim may come before this.
        listening = [each for each in self._cluster.lives() if each.is_listening]
        last = max(each.node.replicas[group_id].log.last[0] for each in listening)
        return pb.RaftMessage(term=term, heartbeat=pb.Heartbeat(commit_index=last + ahead, round=1))

    def _message(self, group_id: int, log: RaftLog) -> pb.RaftMessage | None:
        draw = self._random
        term = log.term + draw.choice((0, 1, 1, 2, 1_000))
        index = log.durable_commit_index - draw.choice((0, 0, 1, 3))
        before, there = log.window.term_at(index - 1), log.window.term_at(index)
        if before is None or there is None or draw.random() < 0.3:
            return self._heartbeat(group_id, term)
        if draw.random() < 0.2:
            notice = pb.SnapshotNotice(snapshot_id="x", index=index, term=there - 1, size_bytes=9)
            return pb.RaftMessage(term=term, snapshot=notice)
        if there == term:
            return None
        records = [Record(KIND_DATA, Encoded(b"wrong"), index + more, term).stored(group_id) for more in range(2)]
        append = pb.AppendEntries(prev_index=index - 1, prev_term=before, commit_index=index, records=records)
        return pb.RaftMessage(term=term, append=append)
