"""From what the engine holds to a group's log: opened, begun as a group of one, or empty, to be filled by others."""

from __future__ import annotations

import random
from typing import Final

from cortado.errors import DataLoss
from cortado.raft.bootstrap import bootstrap_writes
from cortado.raft.configuration import Configuration, Member
from cortado.raft.group import RaftLog
from cortado.raft.journal import group_range
from cortado.raft.settings import RaftSettings
from cortado.store.engine.interface import Engine, Space
from cortado.store.node.applied_state import AppliedState
from cortado.store.node.state_machine import StateMachine

# Where a group begins: an empty replica stands at 0, and so never matches it.
FIRST_INDEX: Final = 2
FIRST_TERM: Final = 1

_PAGE_ITEMS: Final = 1_000


def stored_log(engine: Engine, group_id: int) -> list[tuple[bytes, bytes]]:
    """All that a group's log has stored, in key order."""
    start, end = group_range(group_id)
    items: list[tuple[bytes, bytes]] = []
    exhausted = False
    while not exhausted:
        with engine.read() as txn:
            page = txn.page(Space.LOG, start, end, max_items=_PAGE_ITEMS)
        items += zip(page.keys, page.values, strict=True)
        exhausted = page.exhausted
        if items:
            start = items[-1][0] + b"\0"
    return items


def open_log(
    engine: Engine,
    machine: StateMachine,
    *,
    member: Member,
    group_id: int,
    joining: Configuration | None,
    settings: RaftSettings,
    source: random.Random,
    now_ms: float,
) -> RaftLog:
    """The group's log as it is stored. Where there is none, begin a group of one; or, ``joining``, stay empty, and hear
    the members that let this node in.

    Writes, durably, where a group begins. Raises DataLoss where what is stored is damaged, or contradicts what is
    applied; ResourceExhausted.
    """
    stored = stored_log(engine, group_id)
    state = machine.state
    if not stored and joining is None:
        if state != AppliedState():
            raise DataLoss("the log", f"it is gone, while entries up to {state.index} are applied")
        writes = bootstrap_writes(group_id, member, index=FIRST_INDEX, term=FIRST_TERM)
        machine.begin(AppliedState(index=FIRST_INDEX, term=FIRST_TERM), writes)
        stored = stored_log(engine, group_id)
    return RaftLog(
        member.node_id,
        settings,
        group_id=group_id,
        random=source,
        stored=stored,
        applied=(machine.state.index, machine.state.term),
        now_ms=now_ms,
        joined=joining,
    )
