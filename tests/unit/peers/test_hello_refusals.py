"""The rules for peers: each way not to be one has a refusal of its own."""

from __future__ import annotations

from typing import Any

import pytest

from cortado.errors import PeerRefused
from cortado.proto.internal.peers_pb2 import Hello
from cortado.raft.registry import Member, Roster
from cortado.store.engine.data_directory import Identity
from cortado.store.peers import versions
from cortado.store.peers.hello import check_certificate, check_hello, make_hello, read_hello, why_no_member

OURS = Identity("cluster-a", "n1", "disk-1")
CONFIGURATION = Roster.of((Member("n1", "h1:1", "disk-1"), Member("n2", "h2:1", "disk-2")), (Member("n3", "h3:1", ""),))


def hello(**changes: Any) -> Hello:
    good = Hello(
        protocol=7,
        cluster_id="cluster-a",
        node_id="n2",
        storage_id="disk-2",
        to_node_id="n1",
        peer_address="h2:1",
        last_term=4,
        last_index=90,
    )
    ours = Hello()
    versions.OURS.tell(ours)
    good.entries.CopyFrom(ours.entries)
    for name, value in changes.items():
        setattr(good, name, value)
    return good


def check(theirs: Hello) -> None:
    check_hello(theirs, OURS)
    refusal = why_no_member(theirs, OURS, CONFIGURATION.member(theirs.node_id))
    if refusal is not None:
        raise refusal


def refusal(**changes: Any) -> str:
    with pytest.raises(PeerRefused) as refused:
        check(hello(**changes))
    return refused.value.problem


def test_a_member_with_its_own_data_directory_is_taken() -> None:
    check(hello())
    check(make_hello(Identity("cluster-a", "n2", "disk-2"), "h2:1", (0, 0), "n1"))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"protocol": 8}, "node n2 speaks version 8 of the peers' protocol, node n1 version 7"),
        ({"cluster_id": "cluster-b"}, "node n2 belongs to cluster cluster-b, this node n1 to cluster cluster-a"),
        ({"cluster_id": ""}, "node n2 belongs to no cluster yet, this node n1 to cluster cluster-a"),
        (
            {"node_id": "n1", "storage_id": "disk-1"},
            "node n1 is this node itself: an address of another member leads back to it",
        ),
        ({"node_id": "n1"}, "another data directory, disk-2, calls itself n1, as this node does"),
        ({"to_node_id": "n7"}, "node n2 looks for node n7 under an address that leads to node n1"),
        (
            {"node_id": "n9"},
            "node n9 is no member of cluster cluster-a: it was removed, or never announced (cortado member add)",
        ),
        ({"node_id": "n3"}, "node n3 was announced, but has not joined (cortado server --join)"),
        (
            {"storage_id": "disk-9"},
            "node n2 has another data directory (disk-9) than the one that joined under this id (disk-2): a lost disk "
            "comes back under a new node id only (cortado member remove, then add)",
        ),
    ],
)
def test_anybody_else_is_refused_by_name(changes: dict[str, Any], problem: str) -> None:
    assert refusal(**changes) == problem


def test_names_from_outside_cannot_write_into_a_log() -> None:
    assert "\n" not in refusal(node_id="n2\nINFO all is well")
    assert len(refusal(node_id="x" * 100_000)) < 300


@pytest.mark.parametrize("changes", [{"node_id": "n9"}, {"node_id": "n3"}, {"storage_id": "disk-9"}])
def test_what_a_node_says_of_its_log_makes_it_no_member(changes: dict[str, str]) -> None:
    assert refusal(**changes, last_term=99, last_index=1_000_000) == refusal(**changes)


@pytest.mark.parametrize(
    ("certificate", "problem"),
    [
        (("client", "app"), "its certificate is that of client app: a peer needs a node's (cortado:node:<node id>)"),
        (("", ""), "its certificate is no node's: a peer needs a node's (cortado:node:<node id>)"),
        (("node", "n3"), "it says to be node n2, but its certificate is that of node n3"),
    ],
)
def test_a_certificate_must_be_the_senders_own(certificate: tuple[str, str], problem: str) -> None:
    with pytest.raises(PeerRefused) as refused:
        check_certificate("n2", certificate)
    assert refused.value.problem == problem
    check_certificate("n2", ("node", "n2"))
    check_certificate("n2", None)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"", "the first message holds no whole Hello"),
        (b"GET / HTTP/1.1", "the first message is not one of the peers' protocol"),
        (hello().SerializeToString()[:-1], "the first message is not one of the peers' protocol"),
        (Hello(node_id="n2").SerializeToString(), "the first message holds no whole Hello"),
    ],
)
def test_what_is_no_hello_is_refused(message: bytes, problem: str) -> None:
    with pytest.raises(PeerRefused) as refused:
        read_hello(message)
    assert refused.value.problem == problem
