"""Bounds of the messages between nodes: how many items each may have, counted before it is parsed into objects."""

from __future__ import annotations

from typing import Final

from cortado.proto.bounds import MessageBounds
from cortado.proto.internal.peers_pb2 import JoinResponse, PeerBatch, ReadRangeResponse
from cortado.raft.registry import IDS_MAX

FRAME_BYTES_MAX: Final = 8 << 20

MESSAGES_MAX: Final = 16_384
"""Messages in one batch: four times the most that wait for a peer."""
MEMBERS_MAX: Final = 1_000
_ROSTER: Final = {
    "cortado.internal.Configuration.voters": MEMBERS_MAX,
    "cortado.internal.Configuration.learners": MEMBERS_MAX,
    "cortado.internal.Registry.nodes": IDS_MAX,
    "cortado.internal.Registry.removed": IDS_MAX,
}
ITEMS_MAX: Final = 200_000
"""Damaged keys in an answer about a range."""
BATCH_BOUNDS: Final = MessageBounds(
    PeerBatch,
    {"cortado.internal.PeerBatch.messages": MESSAGES_MAX},
    bytes_max=FRAME_BYTES_MAX,
    what="message",
)
RANGE_BOUNDS: Final = MessageBounds(
    ReadRangeResponse,
    {
        "cortado.internal.ReadRangeResponse.damaged": ITEMS_MAX,
        "cortado.internal.ReadRangeResponse.damaged_right_keys": ITEMS_MAX,
    },
    bytes_max=FRAME_BYTES_MAX,
    what="reply",
)
JOINED_BOUNDS: Final = MessageBounds(JoinResponse, _ROSTER, bytes_max=FRAME_BYTES_MAX, what="reply")
