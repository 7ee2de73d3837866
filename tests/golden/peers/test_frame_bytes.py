"""The bytes of frames between nodes are a format (docs/formats/peers.md): a change here is a new version of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cortado.errors import PeerRefused
from cortado.proto.internal.peers_pb2 import (
    FetchSnapshotRequest,
    GroupMessage,
    Hello,
    JoinRequest,
    JoinResponse,
    PeerBatch,
    ReadRangeRequest,
    ReadRangeResponse,
    SnapshotChunk,
    VouchRequest,
    VouchResponse,
)
from cortado.proto.internal.raft_pb2 import Configuration, Member, Registry, Roster
from cortado.store.peers.frames import PREAMBLE, Kind, encode_frame
from cortado.store.wire.rpc_errors import rpc_status

GOLDEN = Path(__file__).with_name("frames.txt")
HELLO = Hello(
    protocol=2,
    cluster_id="c",
    node_id="n1",
    storage_id="s1",
    to_node_id="n2",
    peer_address="h1:7622",
    last_index=9,
    last_term=3,
    oldest_protocol=2,
)
MEMBER = Member(node_id="n3", peer_address="h3:7622", storage_id="s3", address="h3:7621")


def _frames() -> Iterator[tuple[str, Kind, bytes]]:
    batch = PeerBatch(physical_ms=1_763_643_600_000, monotonic_ms=1500.0, echo_monotonic_ms=7.5, echo_age_ms=0.25)
    yield "an empty batch: only the clock", Kind.BATCH, batch.SerializeToString()
    batch.messages.extend([GroupMessage(group_id=1, body=b"first"), GroupMessage(group_id=1, body=b"second")])
    yield "a batch of two messages", Kind.BATCH, batch.SerializeToString()
    yield "a Hello", Kind.HELLO, HELLO.SerializeToString()
    yield "a refusal", Kind.ERROR, rpc_status(PeerRefused("because")).SerializeToString()
    joining = JoinRequest(node_id="n3", storage_id="s3", peer_address="h3:7622", address="h3:7621", protocol=2)
    yield "a request to join", Kind.JOIN, joining.SerializeToString()
    roster = Roster(configuration=Configuration(learners=["n2"]), registry=Registry(nodes=[MEMBER]))
    joined = JoinResponse(cluster_id="c", roster=roster)
    yield "joined", Kind.JOINED, joined.SerializeToString()
    yield "who vouches", Kind.VOUCH, VouchRequest(hello=HELLO, node_id="n9", storage_id="s9").SerializeToString()
    yield "a word", Kind.VOUCHED, VouchResponse(is_member=True, last_index=9, last_term=3).SerializeToString()
    wanted = ReadRangeRequest(hello=HELLO, group_id=1, space=1, start=b"a", end=b"b")
    yield "a range is asked for", Kind.READ_RANGE, wanted.SerializeToString()
    found = ReadRangeResponse(
        applied_index=9, keys=b"k", key_lengths=b"\1\0\0\0", values=b"v", value_lengths=b"\1\0\0\0"
    )
    yield "a range", Kind.RANGE, found.SerializeToString()
    fetching = FetchSnapshotRequest(hello=HELLO, group_id=1, snapshot_id="since-1", offset=5)
    yield "a snapshot is asked for", Kind.FETCH_SNAPSHOT, fetching.SerializeToString()
    chunk = SnapshotChunk(offset=5, data=b"data", checksum=0xAABBCCDD)
    yield "a piece of a snapshot", Kind.SNAPSHOT_CHUNK, chunk.SerializeToString()
    yield "the end of a snapshot", Kind.SNAPSHOT_END, b""


def render() -> str:
    lines = [f"the preamble\n    {PREAMBLE.hex()}"]
    lines += [f"{name} ({kind.name})\n    {encode_frame(kind, payload).hex()}" for name, kind, payload in _frames()]
    return "\n".join(lines) + "\n"


def test_frames_have_these_bytes() -> None:
    assert render() == GOLDEN.read_text()


def test_every_kind_is_pinned() -> None:
    assert {kind for _, kind, _ in _frames()} == set(Kind)
