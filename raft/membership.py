"""Changes of a group's members and of their addresses: the rules, and the entries that are appended if they allow it.

One member at a time, and only when the last change is committed and an entry of the leader's own term is applied: two
leaders could otherwise each complete a change that the other does not know (Ongaro's erratum to §4.1). New members
begin as learners; one becomes a voter when it is bound to a data directory and has caught up. A leader is not removed:
it hands leadership over first.

A new member is in the registry before it is in a configuration; a removed member leaves the registry after it::

    add       registry + n4 ─► configuration + n4      cut off between: n4 is no member yet, and may be added again
    bind      registry: n4's data directory, addresses
    remove    configuration - n4 ─► registry - n4      cut off between: the next leader removes it there (tidy)

The registry's own changes need not wait for each other: no majority is counted by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from cortado.errors import InvalidArgument, Unavailable
from cortado.invariants import invariant
from cortado.raft.configuration import Configuration
from cortado.raft.core import Core
from cortado.raft.log import Entry, Payload
from cortado.raft.records import KIND_CONFIGURATION, KIND_REGISTRY
from cortado.raft.registry import IDS_MAX, Member, Registry, Roster
from cortado.raft.replication import Replication

_NODE_ID: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,63})")
_STORAGE_ID_LENGTH_MAX: Final = 128
_RETRY_MS: Final = 500


class Membership:
    """For the leader. Each change raises NotLeader, InvalidArgument or Unavailable, and nothing is appended then."""

    def __init__(
        self,
        core: Core,
        replication: Replication,
        append: Callable[[int, Payload], Entry],
        *,
        send_entries: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        """``append`` takes the kind of an entry; ``changed`` is to be called when a configuration was appended."""
        self._core = core
        self._replication = replication
        self._append = append
        self._send_entries = send_entries
        self._changed = changed

    def add_learner(self, member: Member) -> Entry | None:
        """Announce a member that has no data directory yet. Returns None if it is announced already, with this
        address."""
        roster = self._current()
        configuration, registry, node_id = roster.configuration, roster.registry, member.node_id
        if member in roster.learners:
            return None  # A caller that asks again did not hear the answer.
        check_node_id(node_id)
        check_address("peer_address", member.peer_address)
        if node_id in configuration.members:
            raise InvalidArgument("node_id", "is a member already", node_id)
        known = registry.node(node_id)
        if node_id in registry.removed or (known is not None and known.storage_id):
            raise InvalidArgument("node_id", "was removed, and an id is never used again: take another one", node_id)
        if len(registry.nodes) + len(registry.removed) >= IDS_MAX:
            problem = f"there are {IDS_MAX} ids in the registry of nodes already, and it takes no more"
            raise InvalidArgument("node_id", problem, node_id)
        self._check_addresses_are_free(member)
        self._check_last_change_is_committed()
        if known != member:
            self._register(registry.with_node(member))
        return self._configure(configuration.with_learner(node_id))

    def bind(self, bound: Member) -> Entry | None:
        """Bind a member to the data directory that presents itself: remember its storage id if none is known, and new
        addresses. Returns None if all is known already. Raises InvalidArgument if another data directory is known by
        this id."""
        registry = self._current().registry
        member = self._known(bound.node_id)
        check_address("peer_address", bound.peer_address)
        check_address("address", bound.address)
        if not 0 < len(bound.storage_id) <= _STORAGE_ID_LENGTH_MAX:
            raise InvalidArgument("storage_id", f"must have 1 to {_STORAGE_ID_LENGTH_MAX} characters", bound.storage_id)
        if member.storage_id and member.storage_id != bound.storage_id:
            problem = f"{bound.node_id} is known by another data directory; a lost one comes back under a new node id"
            raise InvalidArgument("storage_id", problem, bound.storage_id)
        if bound == member:
            return None
        self._check_addresses_are_free(bound)
        return self._register(registry.with_node(bound))

    def promote(self, node_id: str) -> Entry:
        """Make a learner that has caught up a voter."""
        configuration = self._current().configuration
        member = self._known(node_id)
        if configuration.is_voter(node_id):
            raise InvalidArgument("node_id", "is a voter already", node_id)
        self._check_last_change_is_committed()
        self._check_has_caught_up(member)
        return self._configure(configuration.with_voter(node_id))

    def remove(self, node_id: str) -> Entry:
        """Remove a member other than ourselves. Its id is never used again, if it has joined."""
        roster = self._current()
        self._known(node_id)
        self._check_last_change_is_committed()
        left = roster.configuration.without(node_id)
        if roster.is_voter(node_id):
            self._check_keeps_a_majority(node_id, left)
        # Last, so that a leader hands nothing over for a removal that would be refused anyway.
        if node_id == self._core.node_id:
            raise InvalidArgument("node_id", "leads the group: hand leadership over first", node_id)
        self._configure(left)
        return self._register(roster.registry.without([node_id]))

    def tidy(self) -> Entry | None:
        """Remove nodes that belong to no configuration from the registry: an earlier leader was cut off between the two
        entries of a removal, or of an addition. Returns None if there are none."""
        roster = self._current()
        strays = [each.node_id for each in roster.registry.nodes if each.node_id not in roster.configuration.members]
        return self._register(roster.registry.without(strays)) if strays else None

    def _configure(self, configuration: Configuration) -> Entry:
        # A member that leaves is sent the entries before the change, and never the change. If it knew of the change
        # before the commit, it would neither campaign nor vote for members that lack it. A group of two could not go
        # on.
        self._send_entries()
        before, after = set(self._core.journal.configuration.voters), set(configuration.voters)
        invariant(bool(after), "a new configuration has voters")
        invariant(len(before ^ after) <= 1, "voters change one at a time", before, after)
        entry = self._append(KIND_CONFIGURATION, configuration)
        self._changed()
        return entry

    def _register(self, registry: Registry) -> Entry:
        return self._append(KIND_REGISTRY, registry)

    def _current(self) -> Roster:
        self._core.check_may_append()
        return self._core.journal.roster

    def _known(self, node_id: str) -> Member:
        member = self._core.journal.roster.member(node_id)
        if member is None:
            raise InvalidArgument("node_id", "is not a member", node_id)
        return member

    def _check_last_change_is_committed(self) -> None:
        core = self._core
        if core.journal.configuration_index > core.durable_commit_index:
            raise Unavailable("the last change of members is not committed yet", retry_delay_ms=_RETRY_MS)

    def _check_addresses_are_free(self, member: Member) -> None:
        """Neither is another node's, of either kind, and the two are not one."""
        if member.peer_address == member.address:
            raise InvalidArgument("address", "must be another one than the peers'", member.address)
        for each in self._core.journal.roster.registry.nodes:
            if each.node_id == member.node_id:
                continue
            for field, address in (("peer_address", member.peer_address), ("address", member.address)):
                if address and address in (each.peer_address, each.address):
                    raise InvalidArgument(field, f"belongs to member {each.node_id}", address)

    def _check_has_caught_up(self, member: Member) -> None:
        core = self._core
        progress = self._replication.member(member.node_id)
        assert progress is not None
        behind = core.journal.last_index - progress.match_index
        if not member.storage_id:
            problem = "has not joined yet: start it with --join"
        elif not progress.was_heard_within(core.settings.election_ms_min, core.now_ms):
            problem = f"has not answered for {core.settings.election_ms_min:.0f} ms"
        elif progress.needs_snapshot or progress.match_index < core.journal.base[0]:
            # Also before the first attempt has shown it: with a short log, the member would seem to lack nothing.
            problem = "waits for a snapshot"
        elif behind > core.settings.caught_up_entries:
            problem = f"is {behind} entries behind, at most {core.settings.caught_up_entries} are allowed"
        else:
            return
        raise Unavailable(f"{member.node_id} cannot become a voter now: it {problem}", retry_delay_ms=_RETRY_MS)

    def _check_keeps_a_majority(self, node_id: str, left: Configuration) -> None:
        core = self._core
        reachable = {each.node_id for each in self._replication.reachable_voters()} | {core.node_id}
        count = sum(each in reachable for each in left.voters)
        if count < left.majority:
            raise Unavailable(
                f"without {node_id}, {count} of the {len(left.voters)} voters left can be reached, "
                f"and {left.majority} are needed",
                retry_delay_ms=_RETRY_MS,
            )


def check_node_id(node_id: str) -> None:
    """Raises InvalidArgument."""
    if _NODE_ID.fullmatch(node_id) is None:
        problem = "must be 1 to 64 letters, digits, '.', '_' or '-', and begin with a letter or digit"
        raise InvalidArgument("node_id", problem, repr(node_id))


def check_address(field: str, address: str) -> None:
    """Raises InvalidArgument naming ``field``."""
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidArgument(field, "must be host:port", repr(address))
