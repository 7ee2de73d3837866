"""The checks of a Hello: each has a refusal that names the exact defect.

Both sides of a stream introduce themselves and check the other. A node is a peer on these conditions: its certificate,
if connections have them, is its own; it belongs to the same cluster; it meant to speak to this node; and it is a member
with the data directory that the cluster knows.

**A certificate proves a name, never that its node belongs here**, and neither does a node's own claim. So a node is a
peer if it is a member by the replicated state. A node that is none, but says that its log is ahead of ours, may have
been added while this node was away, and may even lead: then known members are asked for it
(:mod:`cortado.store.peers.vouching`). One that does not even say so is refused at once: every node with the entry that
removed a member refuses it.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import PeerRefused
from cortado.proto.internal.peers_pb2 import Hello
from cortado.raft.registry import Member
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.versions import OURS, check_versions, versions_of

_SHOWN_MAX: Final = 80


def make_hello(ours: Identity, peer_address: str, position: tuple[int, int], to_node_id: str) -> Hello:
    """Our side of the introduction. ``position`` is term and index of our log's last entry."""
    hello = Hello(
        cluster_id=ours.cluster_id,
        node_id=ours.node_id,
        storage_id=ours.storage_id,
        to_node_id=to_node_id,
        peer_address=peer_address,
        last_term=position[0],
        last_index=position[1],
    )
    OURS.tell(hello)
    return hello


def read_hello(message: bytes) -> Hello:
    """Return the Hello of a frame. Raises PeerRefused if it holds none."""
    try:
        hello = Hello.FromString(message)
    except DecodeError:
        raise PeerRefused("the first message is not one of the peers' protocol") from None
    if not hello.node_id or not hello.storage_id:
        raise PeerRefused("the first message holds no whole Hello")
    return hello


def check_certificate(hello_node_id: str, certificate: tuple[str, str] | None) -> None:
    """``certificate``: role and name of the caller's, None if connections have none. Raises PeerRefused."""
    if certificate is None:
        return
    role, name = certificate
    if role != "node":
        whose = f"that of {role} {name}" if role else "no node's"
        raise PeerRefused(f"its certificate is {whose}: a peer needs a node's (cortado:node:<node id>)")
    if name != hello_node_id:
        raise PeerRefused(f"it says to be node {_shown(hello_node_id)}, but its certificate is that of node {name}")


def check_hello(hello: Hello, ours: Identity) -> None:
    """Check that the sender is of our cluster, and meant this node. Raises PeerRefused."""
    theirs = _shown(hello.node_id)
    check_versions(versions_of(hello), theirs, ours.node_id)
    if hello.cluster_id != ours.cluster_id:
        whose = f"belongs to cluster {_shown(hello.cluster_id)}" if hello.cluster_id else "belongs to no cluster yet"
        raise PeerRefused(f"node {theirs} {whose}, this node {ours.node_id} to cluster {ours.cluster_id}")
    if hello.node_id == ours.node_id:
        if hello.storage_id == ours.storage_id:
            raise PeerRefused(f"node {theirs} is this node itself: an address of another member leads back to it")
        raise PeerRefused(
            f"another data directory, {_shown(hello.storage_id)}, calls itself {theirs}, as this node does"
        )
    if hello.to_node_id != ours.node_id:
        meant = _shown(hello.to_node_id)
        raise PeerRefused(f"node {theirs} looks for node {meant} under an address that leads to node {ours.node_id}")


def why_removed(hello: Hello, ours: Identity) -> PeerRefused:
    """Return the refusal of a removed node. It was removed for good: whatever its log, no member is asked for it."""
    problem = f"was removed from cluster {ours.cluster_id}, and its id is never used again"
    advice = "an empty data directory joins under another one (cortado member add)"
    return PeerRefused(f"node {_shown(hello.node_id)} {problem}: {advice}")


def why_no_member(hello: Hello, ours: Identity, member: Member | None) -> PeerRefused | None:
    """Return the refusal of a sender that is no member; None for a member. ``member`` is ours under its node id."""
    theirs = _shown(hello.node_id)
    if member is None:
        problem = f"is no member of cluster {ours.cluster_id}: it was removed, or never announced"
        return PeerRefused(f"node {theirs} {problem} (cortado member add)")
    if not member.storage_id:
        return PeerRefused(f"node {theirs} was announced, but has not joined (cortado server --join)")
    if member.storage_id != hello.storage_id:
        problem = f"has another data directory ({_shown(hello.storage_id)}) than the one that joined under this id"
        advice = "a lost disk comes back under a new node id only (cortado member remove, then add)"
        return PeerRefused(f"node {theirs} {problem} ({member.storage_id}): {advice}")
    return None


def _shown(name: str) -> str:
    """Return a name from outside, as it may stand in a log."""
    return name if name.isprintable() and len(name) <= _SHOWN_MAX else repr(name[:_SHOWN_MAX])
