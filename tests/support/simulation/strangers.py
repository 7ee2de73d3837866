"""A hostile peer with the certificate of a removed node, or of one that was never announced.

He introduces himself with a log that is ahead of everyone's, and must be turned away; and his messages reach a node all
the same, as if its transport had let him in, and must change nothing: entries and votes of terms far ahead, a term that
ends all terms, snapshots that no node made. He never pretends to be a member that the node still knows.
"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from cortado.errors import PeerRefused
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.log import Encoded
from cortado.raft.records import KIND_DATA, Record
from cortado.store.engine.data_directory import Identity
from support.simulation.groups import any_group

if TYPE_CHECKING:
    from support.simulation.cluster import Cluster
    from support.simulation.process import Life

MEAN_MS: Final = 300.0
_AHEAD: Final = (1 << 40, 1 << 40)


class Stranger:
    """Runs on the world's loop until it is told to stop."""

    def __init__(self, cluster: Cluster, source: random.Random) -> None:
        self._cluster = cluster
        self._random = source
        self.is_stopped = False

    async def run(self) -> None:
        while not self.is_stopped:
            await self._cluster.sleep(self._random.expovariate(1 / MEAN_MS))
            lives = [each for each in self._cluster.lives() if each.is_listening]
            if lives:
                self._attack(self._random.choice(lives))

    def _attack(self, victim: Life) -> None:
        cluster = self._cluster
        name = self._random.choice([*sorted(cluster.removed), "never-announced"])
        if victim.node.meta.known_member(name) is not None or victim.node.meta.is_believed(name):
            return
        cluster.counts["attacks of a stranger"] += 1
        host = cluster.hosts.get(name)
        storage_id = host.storage_id if host is not None else "made-up"
        node = SimpleNamespace(
            process=SimpleNamespace(identity=SimpleNamespace(peer_address=f"{name}.sim:7622")),
            meta=SimpleNamespace(log_position=lambda: _AHEAD),
        )
        caller = SimpleNamespace(
            identity=Identity(victim.identity.cluster_id, name, storage_id), node=node, node_id=name
        )
        try:
            cluster.network._introduce(caller, victim)  # type: ignore[arg-type]
        except PeerRefused:
            pass
        else:
            cluster.violation(f"{victim.node_id} took in {name}, which is no member")
        group_id = any_group(cluster.groups, self._random)
        log = victim.node.replicas[group_id].log
        for message in self._forged(group_id, log.term, log.last):
            victim.loop.call_soon(victim.node.receive, name, group_id, [message.SerializeToString()])

    def _forged(self, group_id: int, term: int, last: tuple[int, int]) -> list[pb.RaftMessage]:
        ahead = term + self._random.choice((0, 1, 1_000, 1 << 40))
        index, last_term = last
        record = Record(KIND_DATA, Encoded(b"forged"), index + 1, ahead).stored(group_id)
        append = pb.AppendEntries(prev_index=index, prev_term=last_term, commit_index=index + 1, records=[record])
        asks = {"last_index": index + 1_000, "last_term": ahead, "is_transfer": True}
        found = [
            pb.RaftMessage(term=ahead, append=append),
            pb.RaftMessage(term=(1 << 64) - 1, heartbeat=pb.Heartbeat(round=1)),
            pb.RaftMessage(term=ahead, heartbeat=pb.Heartbeat(round=1, commit_index=index)),
            pb.RaftMessage(term=ahead, vote_request=pb.VoteRequest(term=ahead, **asks)),
            pb.RaftMessage(term=ahead, vote_request=pb.VoteRequest(term=ahead + 1, is_pre_vote=True, **asks)),
            pb.RaftMessage(term=term, vote_response=pb.VoteResponse(term=term, is_granted=True)),
            pb.RaftMessage(term=term, timeout_now=pb.TimeoutNow()),
            pb.RaftMessage(term=term, acknowledgement=pb.Acknowledgement(matched_index=index)),
            pb.RaftMessage(term=ahead, snapshot=pb.SnapshotNotice(snapshot_id="x", index=index + 9, term=ahead)),
        ]
        return self._random.sample(found, 3)
