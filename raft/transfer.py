"""Handing leadership over: stop appending, wait until the target has everything, tell it to campaign at once.

Until the target has won or an election timeout has passed, nothing can be appended: the target's log would lose such an
entry, or be delayed by it. The target's request says that the leader asked for it, so that voters do not refuse it for
having heard of a leader; from then on a lease proves nothing.
"""

from __future__ import annotations

from typing import Final

from cortado.errors import InvalidArgument, Unavailable
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.core import Core
from cortado.raft.replication import Replication

# How many election timeouts a leader that should not lead waits after no voter took over.
_REST_ELECTIONS: Final = 10


class Transfer:
    """At most one at a time, to :attr:`Core.transferee <cortado.raft.core.Core.transferee>`."""

    def __init__(self, core: Core, replication: Replication) -> None:
        self._core = core
        self._replication = replication
        self._failed: set[str] = set()
        self._unasked_from_ms = 0.0
        self._gives_up_ms = 0.0
        self._next_word_ms = 0.0

    def begin(self, to: str = "") -> str:
        """Begin to hand leadership to the voter ``to`` (empty: the one that is furthest), and return its id. Raises
        NotLeader; InvalidArgument if ``to`` is no other voter; Unavailable if no voter can be reached."""
        self._core.check_may_append()
        return self._begin(to)

    def _begin(self, to: str) -> str:
        core = self._core
        reachable = {each.node_id: each for each in self._replication.reachable_voters()}
        if to == core.node_id:
            raise InvalidArgument("to_node_id", "already leads the group", to)
        if to and not core.journal.configuration.is_voter(to):
            raise InvalidArgument("to_node_id", "must name a voter of the group", to)
        if to and to not in reachable:
            raise Unavailable(f"{to} has not answered for {core.settings.election_ms_min:.0f} ms", retry_delay_ms=500)
        if not reachable:
            raise Unavailable("no other voter can be reached", retry_delay_ms=500)
        untried = [each for each in reachable if each not in self._failed]
        core.transferee = to or (untried or list(reachable))[0]
        self._gives_up_ms = core.now_ms + core.settings.election_ms_max
        self._next_word_ms = core.now_ms
        self._replication.is_lease_void = True
        return core.transferee

    def begin_unasked(self) -> None:
        """Hand over, since we should not lead: to each voter that can be reached, one after another, and then rest for
        a while. If no voter takes over, a leader that should not be one is better than none."""
        core = self._core
        reachable = self._replication.reachable_voters()
        if core.transferee or not reachable or core.now_ms < self._unasked_from_ms:
            return
        if all(each.node_id in self._failed for each in reachable):
            self._failed.clear()
            self._unasked_from_ms = core.now_ms + _REST_ELECTIONS * core.settings.election_ms_max
            return
        self._begin("")

    def end(self) -> None:
        """Leadership ended, or the hand-over."""
        self._core.transferee = ""
        self._failed.clear()
        self._unasked_from_ms = 0.0

    def tick(self) -> None:
        """During a hand-over: send the word when the target has everything; give up in time."""
        core = self._core
        progress = self._replication.member(core.transferee)
        if progress is None or core.now_ms >= self._gives_up_ms:
            self._failed.add(core.transferee)
            core.transferee = ""
        elif core.now_ms >= self._next_word_ms and progress.match_index == core.journal.last_index:
            self._next_word_ms = core.now_ms + core.settings.heartbeat_ms
            core.send(
                core.transferee,
                pb.RaftMessage(timeout_now=pb.TimeoutNow()),
                core.journal.sequence_of(core.journal.last_index),
            )
