"""Open a group's log from the log files and the engine. A log is opened, begun as a group of one, or left empty for a
leader to fill.

The log files come first in everything, so that the data never speaks of an entry that they lack. There are two
exceptions, and a crash between their two stores is made good here::

    a group begins       log files: the group's base      then the data: that place is applied
    a snapshot arrived   the data, and how the log is to be reset      then the log files: reset
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from cortado.errors import DataLoss
from cortado.raft.bootstrap import FIRST_INDEX, FIRST_TERM, bootstrap_writes
from cortado.raft.group import RaftLog
from cortado.raft.records import StoredLog, decode_hard_state, decode_stored, reset_to
from cortado.raft.registry import Member, Roster
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.recovery import StoredGroup
from cortado.store.mvcc.store import VersionStore
from cortado.store.process.process import Process
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.group_range import GroupRange


class OpenedGroup(NamedTuple):
    """A group as it is stored: its range in the engine, its versions, the state that was applied, and its log."""

    of: GroupRange
    store: VersionStore
    machine: StateMachine
    log: RaftLog


def stored_log(groups: Mapping[int, StoredGroup], group_id: int, *, owner: str) -> StoredLog:
    """Return a group's log as the log files held it at their opening, for the data directory with the id ``owner``.

    Raises DataLoss if it is damaged, or is another directory's log that was put here. That log may fit the applied
    state by chance, and its vote and its acknowledgements are another node's.
    """
    group = groups.get(group_id)
    stored = decode_stored(group_id, *((None, ()) if group is None else (group.hard_state, group.entries)))
    state = stored.hard_state
    if state.owner not in ("", owner):
        whose = f"it is that of the data directory {state.owner}, and this one is {owner}"
        raise DataLoss(f"the log of group {group_id}", whose)
    return replace(stored, hard_state=replace(state, owner=owner))


def open_group(
    process: Process, of: GroupRange, stored_groups: Mapping[int, StoredGroup], *, joining: Roster | None
) -> OpenedGroup:
    """Open the group as it is stored, its log among ``stored_groups``. Without a log, begin a group of one; or, if
    ``joining``, stay empty, and hear the members that let this node in.

    Writes, durably, when a group begins. Raises DataLoss if stored data is damaged or contradicts the applied state;
    ResourceExhausted.
    """
    group_id, log_files = of.group_id, process.log_files
    member = process.identity.as_member(process.identity.storage_id)
    store = VersionStore(process.engine)
    machine = StateMachine(process.engine, store, of)
    stored = stored_log(stored_groups, group_id, owner=member.storage_id)
    if stored.is_empty and joining is None and machine.state == AppliedState():
        writes = bootstrap_writes(group_id, member, index=FIRST_INDEX, term=FIRST_TERM)
        log_files.append(writes)
        stored = decode_stored(group_id, writes[0], ())
    if _is_begun(stored, member) and machine.state == AppliedState():
        machine.begin(AppliedState(index=FIRST_INDEX, term=FIRST_TERM))
    stored = complete_reset(machine, log_files, group_id, stored)
    log = RaftLog(
        member.node_id,
        process.raft,
        group_id=group_id,
        random=process.random,
        stored=stored,
        applied=(machine.state.index, machine.state.term),
        now_ms=process.monotonic_ms(),
        joined=joining,
    )
    # Above every timestamp that was ever committed or promised here, even if the physical clock is behind.
    process.clock.observe_log(max(machine.state.last_ts, machine.state.ceiling))
    return OpenedGroup(of, store, machine, log)


def _is_begun(stored: StoredLog, member: Member) -> bool:
    """Return whether this node begins the group, and nothing was appended to it yet."""
    state = stored.hard_state
    is_first = (state.base_index, state.base_term) == (FIRST_INDEX, FIRST_TERM) and not stored.records
    return is_first and state.base_roster.configuration.is_alone(member.node_id)


def complete_reset(machine: StateMachine, log_files: LogFiles, group_id: int, stored: StoredLog) -> StoredLog:
    """Reset the log to an installed snapshot's place, if that was not done. Raises DataLoss,
    ResourceExhausted."""
    encoded = machine.log_reset()
    if encoded is None:
        return stored
    state = decode_hard_state(group_id, encoded)
    if stored.hard_state.base_index < state.base_index:
        stored, writes = reset_to(group_id, stored, state)
        log_files.append(writes)
    machine.forget_log_reset()
    return stored
