"""The senders whose messages count: members, and nodes that members vouched for.

A certificate proves a node's name, never that it belongs here. So each message is asked for its sender first::

    committed        log's end
     |  C1   C2  C3     |          a member of C1, C2 or C3 may speak
     +-------+---+------+

*Every configuration that may be in force* counts: the one at the last entry that is known to be committed, and each
that follows it. The newest alone would be wrong. If it removes a member and was never committed, that member may lead
the others, and must be heard for the removal to be taken back.

*A replica that was away* may lack the entry that added its leader. It believes a stranger if members that it knows
vouch for it (:mod:`cortado.store.peers.vouching`), and only until its own log is as long as the voucher's was: from
then on its own configuration answers. By log matching (Ongaro 2014, §3.5), a log with no lower last term and index
contains all committed entries of the other.

*A replica without a log* knows the members that let it join, and no other node.

*A removed member is refused for good* once the removal is committed, whatever it says of its own log: its id is never
used again (:mod:`~cortado.raft.registry`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cortado.raft.bounds import problem_of_position
from cortado.raft.configuration import Configuration
from cortado.raft.core import Core
from cortado.raft.registry import Member, Roster


class Word(NamedTuple):
    """A member's word about a stranger, and the last place of its own log (term, index)."""

    is_member: bool
    position: tuple[int, int]


def vouched_position(words: Iterable[Word], ours: tuple[int, int]) -> tuple[int, int] | None:
    """Return up to which position a stranger is to be believed; None if it is not. The word of the member with the
    furthest log counts, if that is further than ``ours``. Members behind it may not know of a removal yet. A position
    that no log reaches is no answer."""
    words = [each for each in words if not problem_of_position(each.position, ours[0])]
    furthest = max(words, key=lambda word: (word.position, not word.is_member), default=None)
    if furthest is None or not furthest.is_member or furthest.position <= ours:
        return None
    return furthest.position


class Standing:
    """The nodes that this replica hears: members in any configuration that may be in force, and believed strangers."""

    def __init__(self, core: Core, joined: Roster) -> None:
        """``joined``: the members that let this replica in, known to it before it has a log."""
        self._core = core
        self._joined = joined
        self._newest = Configuration()
        self._node_ids: frozenset[str] = frozenset()
        self._believed: dict[str, tuple[int, int]] = {}

    def may_speak(self, node_id: str) -> bool:
        """Return whether a message of ``node_id`` is to be looked at."""
        newest = self._core.journal.configuration
        if newest is not self._newest:
            self._newest = newest
            self._node_ids = frozenset(newest.members)
        if node_id in self._node_ids:
            return True
        return self.member(node_id) is not None or self.is_believed(node_id)

    def member(self, node_id: str) -> Member | None:
        """Return the member as the newest registry knows it, if a configuration has it: also one that is being
        removed."""
        found = (each.member(node_id) for each in reversed(self._in_force()))
        return next((each for each in found if each is not None), None)

    @property
    def members(self) -> tuple[Member, ...]:
        """Return all that :meth:`member` finds. Before any entry was received: the members that let this replica in."""
        found = {each.node_id: each for roster in self._in_force() for each in roster.members}
        return tuple(found[node_id] for node_id in sorted(found))

    def is_removed(self, node_id: str) -> bool:
        """Return whether a committed entry says that this id is used up."""
        return node_id in self._in_force()[0].registry.removed

    def believe(self, node_id: str, position: tuple[int, int]) -> None:
        """Hear ``node_id`` although no configuration here has it: members vouched for it, the log of the one that is
        furthest ends at ``position`` (term, index). Until ours is as long."""
        self._believed[node_id] = max(position, self._believed.get(node_id, position))

    def is_believed(self, node_id: str) -> bool:
        """Return whether a voucher's word for ``node_id`` still tells more than our own log."""
        position = self._believed.get(node_id)
        if position is None:
            return False
        index, term = self._core.journal.last
        if (term, index) < position:
            return True
        del self._believed[node_id]
        return False

    def _in_force(self) -> list[Roster]:
        found = self._core.journal.rosters_from(self._core.durable_commit_index)
        return found if found[-1].configuration.members else [self._joined]
