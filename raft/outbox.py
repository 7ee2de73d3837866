"""Messages on their way out, each held until the state that it tells is durable.

A vote or an acknowledgement that leaves before its state is on the disk is a promise that a crash breaks: two leaders
in one term, or an acknowledged entry lost. So each message carries the number of the writes after which it may leave. A
held message of an earlier term is dropped: the entries that it acknowledged may have been truncated since.
"""

from __future__ import annotations

from cortado.invariants import invariant
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.journal import Journal
from cortado.raft.log import Message

# Needs nothing to be durable.
AT_ONCE = 0
# How many messages wait for the disk at most, in case it is full for days. Peers ask again for dropped ones.
HELD_MAX = 4_096


class Outbox:
    """In the order of putting, for each peer and each need."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._free: list[Message] = []
        self._held: list[tuple[int, int, Message]] = []

    def put(self, to: str, message: pb.RaftMessage, sent_ms: float, needs: int = AT_ONCE) -> None:
        """Stamp ``message`` with our term and ``sent_ms``, and let it leave once writes ``needs`` are durable."""
        journal = self._journal
        invariant(needs <= journal.open_sequence, "a message waits for the next writes at most", needs)
        message.term = journal.term
        message.sent_ms = sent_ms
        out = Message(to, message.SerializeToString())
        if needs <= journal.synced_sequence:
            self._free.append(out)
        elif len(self._held) < HELD_MAX:
            self._held.append((needs, journal.term, out))

    def take(self) -> list[Message]:
        if self._held:
            self._release()
        out, self._free = self._free, []
        return out

    def _release(self) -> None:
        synced, term = self._journal.synced_sequence, self._journal.term
        still: list[tuple[int, int, Message]] = []
        for held in self._held:
            if held[1] != term:
                continue
            if held[0] <= synced:
                self._free.append(held[2])
            else:
                still.append(held)
        self._held = still
