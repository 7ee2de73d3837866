"""How a group begins, how one that lost its majority begins again, and how a replica leaves a term out of bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cortado.errors import DataLoss, InvalidArgument
from cortado.raft.bounds import TERM_AHEAD_MAX, TERM_MAX
from cortado.raft.log import LogRecord, RecordKind
from cortado.raft.records import (
    KIND_CONFIGURATION,
    KIND_REGISTRY,
    HardState,
    Record,
    StoredLog,
    Writes,
)
from cortado.raft.registry import Member, Roster

# An empty replica holds "entry 0 of term 0": a group begins above what such a one could seem to hold.
FIRST_INDEX, FIRST_TERM = 2, 1


def bootstrap_writes(group_id: int, member: Member, *, index: int = FIRST_INDEX, term: int = FIRST_TERM) -> Writes:
    """Return the log-file records of a new group of one. The data must record ``(index, term)`` as applied."""
    if index < FIRST_INDEX or term < FIRST_TERM:
        problem = f"a group begins at index {FIRST_INDEX}, term {FIRST_TERM} or above"
        raise InvalidArgument("applied", problem, f"{index}, {term}")
    state = HardState(term, "", index, term, Roster.of(voters=(member,)), member.storage_id)
    return [state.log_record(group_id)]


@dataclass(frozen=True, slots=True)
class ForcedReport:
    """The place from which a group goes on after it was cut down to one member. Entries that others committed after
    ``last_index`` are lost; entries up to there count as committed, whether they were or not."""

    last_index: int
    last_term: int
    removed: tuple[Member, ...]


def force_single_writes(group_id: int, log: StoredLog, member: Member) -> tuple[Writes, ForcedReport]:
    """Make ``member``, which ``log`` belongs to, the only one of its group, which knows no other id from now on. Raises
    InvalidArgument for an empty log."""
    old = log.roster
    if not old.members:
        raise InvalidArgument("data_dir", f"it holds no group {group_id}")
    state, (last_index, last_term) = log.hard_state, log.last
    check_term(group_id, state.term)
    report = ForcedReport(last_index, last_term, old.others(member.node_id))
    term = state.term + 1
    alone = Roster.of(voters=(member,))
    records = (
        Record(KIND_CONFIGURATION, alone.configuration, last_index + 1, term),
        Record(KIND_REGISTRY, alone.registry, last_index + 2, term),
    )
    new = replace(state, term=term, voted_for="")
    return [new.log_record(group_id), *(each.log_record(group_id) for each in records)], report


def check_term(group_id: int, term: int) -> None:
    """Raise DataLoss if a stored term is above all that elections can reach."""
    if term > TERM_MAX:
        problem = f"term {term} is above {TERM_MAX}, which no elections reach"
        advice = "cortado recover --reset-term, on the stopped node, takes it back"
        raise DataLoss(f"the hard state of group {group_id}", f"{problem}: {advice}")


@dataclass(frozen=True, slots=True)
class TermReport:
    """``dropped`` entries at the log's end were of terms out of bounds, and not known to be committed."""

    old_term: int
    new_term: int
    dropped: int


def reset_term_writes(group_id: int, log: StoredLog, applied: tuple[int, int]) -> tuple[Writes, TermReport]:
    """Take a replica back from a term that its log cannot have come to by elections.

    Its new term is above every term in which it may have voted. It is half of ``TERM_AHEAD_MAX`` ahead of its log, so
    that the other members accept it in whichever term they are. ``applied`` is the last applied entry's index and term.
    Raises InvalidArgument if its term is in bounds, or if an entry out of bounds was applied.
    """
    state, term = log.hard_state, log.hard_state.base_term
    kept = 0
    for record in log.records:
        if record.term > term + TERM_AHEAD_MAX:
            break
        kept, term = kept + 1, record.term
    if state.term <= term + TERM_AHEAD_MAX:
        problem = f"its term, {state.term}, is in bounds: its log ends in term {log.last[1]}"
        raise InvalidArgument("data_dir", problem)
    out_of_bounds = log.records[kept:]
    if term > TERM_MAX or (out_of_bounds and out_of_bounds[0].index <= applied[0]):
        problem = f"its applied entries are of term {applied[1]}, out of bounds: take another node's, or a backup"
        raise InvalidArgument("data_dir", problem)
    new_term = term + TERM_AHEAD_MAX // 2
    new = replace(state, term=new_term, voted_for="")
    cut = [LogRecord(RecordKind.TRUNCATE, group_id, each.index, 0) for each in out_of_bounds[:1]]
    return [*cut, new.log_record(group_id)], TermReport(state.term, new_term, len(out_of_bounds))
