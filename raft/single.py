"""The log of a group of one: what is appended is committed, and what is committed is durable once the node synced it.

Nothing is stored for the log itself. The node applies each entry in the same synced transaction in which it records
the entry's index and term, so after a restart the log is exactly what was applied, and its last place is all that must
be known of it. A term is a life of the process: each start leads a term above the last one's.

A group of one has a freedom that a larger one lacks: an entry that could not be stored (a full map, a full disk) is
held by nobody, so it can be taken back whole; see :meth:`SingleLog.withdraw`.
"""

from __future__ import annotations

from collections import deque

from cortado.raft.log import Entry, Message, Payload, Ready


class SingleLog:
    """A :class:`~cortado.raft.log.ReplicatedLog` with one voter: ourselves."""

    def __init__(self, node_id: str, *, term: int, last_index: int, last_term: int) -> None:
        """``last_index`` and ``last_term`` name the last applied entry; ``term`` must not be below ``last_term``."""
        if term < last_term:
            raise ValueError(f"term {term} is below the last entry's term {last_term}")
        self._node_id = node_id
        self._term = term
        self._last = self._durable = (last_index, last_term)
        self._appended: deque[Entry] = deque()
        self._handed_over: deque[Entry] = deque()

    @property
    def term(self) -> int:
        return self._term

    @property
    def is_leader(self) -> bool:
        return True

    @property
    def leader(self) -> str:
        return self._node_id

    @property
    def last(self) -> tuple[int, int]:
        return self._last

    def append(self, payload: Payload) -> Entry:
        entry = Entry(self._last[0] + 1, self._term, payload)
        self._appended.append(entry)
        self._last = (entry.index, entry.term)
        return entry

    def tick(self, now_ms: int) -> None:
        """Nothing waits for time in a group of one."""

    def step(self, message: Message) -> None:
        raise ValueError(f"a group of one has no peers, but {message.to!r} sent a message")

    def ready(self) -> Ready:
        committed = tuple(self._appended)
        self._appended.clear()
        self._handed_over.extend(committed)
        return Ready(committed=committed)

    def synced(self, ready: Ready) -> None:
        for entry in ready.committed:
            if not self._handed_over or self._handed_over[0] is not entry:
                raise ValueError(f"entry {entry.index} was not the next one to become durable")
            self._handed_over.popleft()
            self._durable = (entry.index, entry.term)

    def withdraw(self, ready: Ready) -> bool:
        """Take back ``ready``'s entries, which could not be stored, and all after them. Always True."""
        if not ready.committed:
            return True
        first = ready.committed[0]
        if not self._handed_over or self._handed_over[0] is not first:
            raise ValueError(f"entry {first.index} is not the oldest one that is not durable")
        self._handed_over.clear()
        self._appended.clear()
        self._last = self._durable
        return True
