"""A holder of a node's certificate that is no member can do nothing to a cluster of real nodes. This holds for a
removed node with its own data directory, and for a node that was never announced."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from cortado.proto.internal import raft_pb2 as pb
from cortado.proto.internal.peers_pb2 import FetchSnapshotRequest, GroupMessage, Hello, PeerBatch, VouchRequest
from cortado.raft.log import Encoded
from cortado.raft.records import KIND_DATA, Record
from cortado.store.client import Client
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.host.opening import stored_log
from cortado.store.peers.credentials import TlsFiles
from cortado.store.peers.frames import Frame, Kind
from cortado.store.peers.hello import make_hello
from cortado.store.replica.group_range import META_GROUP
from cortado.store.server.stores import read_log_groups
from support.certificates import Certifier
from support.peer_calls import how_it_ended
from support.server_process import ServerProcess, wait_until
from support.tls_nodes import client_tls, command, node_process, two_nodes

pytestmark = [pytest.mark.long, pytest.mark.process]

AHEAD = (1 << 40, 1 << 40)
UINT64_MAX = (1 << 64) - 1


class Attacker:
    """Speaks the peers' protocol with a node's certificate."""

    def __init__(self, files: TlsFiles, identity: Identity) -> None:
        self._files = files
        self._identity = identity

    def hello(self, to: str) -> Hello:
        return make_hello(self._identity, "127.0.0.1:1", AHEAD, to)

    def speak(self, target: ServerProcess, node_id: str, messages: list[pb.RaftMessage]) -> str:
        """Open a stream and send; return the error that ended it, or the answer."""
        bodies = [GroupMessage(group_id=META_GROUP.group_id, body=each.SerializeToString()) for each in messages]
        batch = PeerBatch(messages=bodies).SerializeToString()
        hello = self.hello(node_id).SerializeToString()
        return self._told(target, node_id, Frame(Kind.HELLO, hello), Frame(Kind.BATCH, batch))

    def ask(self, target: ServerProcess, node_id: str, kind: Kind, request: bytes) -> str:
        return self._told(target, node_id, Frame(kind, request))

    def _told(self, target: ServerProcess, node_id: str, *frames: Frame) -> str:
        said, answered = how_it_ended(target.peer_address, node_id, *frames, files=self._files)
        return f"{answered or ''}{said}"


def forged(term: int) -> list[pb.RaftMessage]:
    record = Record(KIND_DATA, Encoded(b"forged"), 3, term + 1000).stored(META_GROUP.group_id)
    append = pb.AppendEntries(prev_index=2, prev_term=1, commit_index=3, records=[record])
    asks = {"last_index": 1 << 40, "last_term": term + 1000, "is_transfer": True}
    return [
        pb.RaftMessage(term=term + 1000, append=append),
        pb.RaftMessage(term=UINT64_MAX, heartbeat=pb.Heartbeat(round=1)),
        pb.RaftMessage(term=term + 1, heartbeat=pb.Heartbeat(round=1)),
        pb.RaftMessage(term=term + 1000, vote_request=pb.VoteRequest(term=term + 1000, **asks)),
        pb.RaftMessage(term=term + 1000, vote_request=pb.VoteRequest(term=term + 1001, is_pre_vote=True, **asks)),
        pb.RaftMessage(term=term, timeout_now=pb.TimeoutNow()),
        pb.RaftMessage(
            term=term + 1000, snapshot=pb.SnapshotNotice(snapshot_id="s", index=1 << 40, term=term, size_bytes=1)
        ),
    ]


def stored(node: ServerProcess) -> tuple[int, tuple[int, int], Identity]:
    """Return the term and last entry of a stopped node's log, and its identity."""
    with closing(LmdbEngine.open_stopped(node.data_dir)) as engine:
        log = stored_log(read_log_groups(node.data_dir), META_GROUP.group_id, owner=engine.identity.storage_id)
        return log.hard_state.term, log.last, engine.identity


def test_a_certificate_of_a_removed_node_or_of_one_never_announced_changes_nothing(tmp_path: Path) -> None:
    certifier = Certifier(tmp_path / "certs")
    operator = certifier.client("operator")
    with two_nodes(tmp_path, certifier) as (n1, n2):
        n3 = node_process(tmp_path, certifier.node("n3"), "n3", "--join", n1.peer_address)
        try:
            command(operator, n1.endpoint, "member", "add", "n3", n3.peer_address)
            n3.start()
            command(operator, n1.endpoint, "member", "promote", "n3", "--wait")
            command(operator, n1.endpoint, "member", "remove", "n3", "--yes")
            # It runs on, and learns that it is out, from either.
            wait_until(lambda: "n3 was removed from cluster" in n3.log, "a removed node is told")
        finally:
            n3.kill()
        endpoints = f"{n1.endpoint},{n2.endpoint}"
        with Client(endpoints, timeout_s=20, tls=client_tls(operator)) as client:
            client.kv("n").put(b"before", b"1")
        nodes = {"n1": n1, "n2": n2}
        term, _, removed = stored(n3)
        never = Identity(removed.cluster_id, "n9", "disk-9")
        attackers = {
            "was removed from cluster": Attacker(certifier.node("n3"), removed),
            "is no member of cluster": Attacker(certifier.node("n9"), never),
        }
        for refusal, attacker in attackers.items():
            for node_id, node in nodes.items():
                said = attacker.speak(node, node_id, forged(term))
                assert refusal in said
                # No member is asked about an id that is used up.
                assert ("vouches for it" in said) == (attacker._identity is never)
                hello = attacker.hello(node_id)
                fetch = FetchSnapshotRequest(hello=hello, group_id=META_GROUP.group_id, snapshot_id="since-1")
                vouch = VouchRequest(hello=hello, node_id="n9", storage_id="disk-9")
                for kind, request in ((Kind.FETCH_SNAPSHOT, fetch), (Kind.VOUCH, vouch)):
                    assert refusal in attacker.ask(node, node_id, kind, request.SerializeToString())
        with Client(endpoints, timeout_s=20, tls=client_tls(operator)) as client:
            client.kv("n").put(b"after", b"1")
        for node in nodes.values():
            assert node.stop() == 0
        # Stopping hands leadership over, which is one term; a forged one would be a thousand.
        terms = [stored(node)[0] for node in nodes.values()]
        assert all(each <= term + 10 for each in terms), (terms, term)
        for node in nodes.values():
            node.launch()
        for node in nodes.values():
            node.await_ready()
        with Client(endpoints, timeout_s=30, tls=client_tls(operator)) as client:
            assert client.kv("n").get(b"before") is not None
            assert client.kv("n").get(b"after") is not None


def test_a_removed_node_that_was_down_meanwhile_learns_it_when_it_starts(tmp_path: Path) -> None:
    certifier = Certifier(tmp_path / "certs")
    operator = certifier.client("operator")
    with two_nodes(tmp_path, certifier) as (n1, _):
        n3 = node_process(tmp_path, certifier.node("n3"), "n3", "--join", n1.peer_address)
        try:
            command(operator, n1.endpoint, "member", "add", "n3", n3.peer_address)
            n3.start()
            command(operator, n1.endpoint, "member", "promote", "n3", "--wait")
            n3.kill()
            command(operator, n1.endpoint, "member", "remove", "n3", "--yes")
            n3.start()
            wait_until(lambda: "n3 was removed from cluster" in n3.log, "it is told")
            shown = command(operator, n3.endpoint, "status")
            assert "n3 was removed from cluster" in shown
        finally:
            n3.kill()
