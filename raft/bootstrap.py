"""How a group begins, and how one that lost its majority begins again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cortado.errors import InvalidArgument
from cortado.raft.configuration import Configuration, Member
from cortado.raft.records import (
    KIND_CONFIGURATION,
    HardState,
    Record,
    Writes,
    decode_stored,
    entry_key,
)

# An empty replica holds "entry 0 of term 0": a group begins above what such a one could seem to hold.
FIRST_INDEX, FIRST_TERM = 2, 1


def bootstrap_writes(group_id: int, member: Member, *, index: int = FIRST_INDEX, term: int = FIRST_TERM) -> Writes:
    """The log's part of the transaction that founds a group of one, which must record ``(index, term)`` as applied."""
    if index < FIRST_INDEX or term < FIRST_TERM:
        problem = f"a group begins at index {FIRST_INDEX}, term {FIRST_TERM} or above"
        raise InvalidArgument("applied", problem, f"{index}, {term}")
    state = HardState(term, "", index, term, Configuration(voters=(member,)), keeps_entries=False)
    return [state.write(group_id)]


@dataclass(frozen=True, slots=True)
class ForcedReport:
    """What a group that was cut down to one member goes on from. Entries that others decided after ``last_index`` are
    lost; entries up to there count as decided, whether they were or not."""

    last_index: int
    last_term: int
    removed: tuple[Member, ...]


def force_single_writes(
    group_id: int, stored: Sequence[tuple[bytes, bytes]], member: Member
) -> tuple[Writes, ForcedReport]:
    """Make ``member``, which ``stored`` belongs to, the only one of its group. Raises DataLoss where ``stored`` is
    damaged, InvalidArgument where it is empty."""
    log = decode_stored(group_id, stored)
    old = log.configuration
    if not old.members:
        raise InvalidArgument("data_dir", f"it holds no group {group_id}")
    state, (last_index, last_term) = log.hard_state, log.last
    alone = Configuration(voters=(member,))
    report = ForcedReport(last_index, last_term, old.others(member.node_id))
    term = state.term + 1
    if not state.keeps_entries:
        new = HardState(term, "", state.base_index, state.base_term, alone, keeps_entries=False)
        return [new.write(group_id)], report
    record = Record(KIND_CONFIGURATION, alone, last_index + 1, term)
    new = HardState(term, "", state.base_index, state.base_term, state.base_configuration, keeps_entries=True)
    return [(entry_key(group_id, record.index), record.stored(group_id)), new.write(group_id)], report
