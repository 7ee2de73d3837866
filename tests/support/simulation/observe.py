"""Counting facts that only the inside of a node knows: thin wrappers around a few of its methods, for the time of a
run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from cortado import invariants
from cortado.raft.disputes import Disputes
from cortado.raft.group import RaftLog
from cortado.raft.replication import Replication
from cortado.store.process.peer_clocks import PeerClocks
from cortado.store.replica.compaction import Pacing
from cortado.store.replica.read.read_index import ReadIndex
from cortado.store.replica.repair.damaged_segments import DamagedSegments
from cortado.store.replica.snapshots.receiver import SnapshotReceiver
from cortado.store.replica.snapshots.sender import SnapshotSender
from cortado.store.server import commit_reads
from cortado.store.transactions.ahead import Ahead
from support.simulation.coverage import INVARIANT


@contextmanager
def counting(counts: Counter[str], violation: Callable[[str], None]) -> Iterator[None]:
    """Count into ``counts``, and tell ``violation`` of each broken invariant, even if its exception is caught. Nothing
    behaves otherwise."""

    def lease(held: object, _self: object) -> None:
        counts["reads under a lease"] += bool(held)

    def withdrawn(is_taken_back: object, _self: object) -> None:
        counts["batches withdrawn" if is_taken_back else "batches tried again for want of room"] += 1

    def out_of_bounds(is_out: object, _self: object) -> None:
        counts["clocks found out of bounds"] += bool(is_out)

    def resumed_installation(_result: object, _self: object) -> None:
        counts["installations gone on with after a crash"] += 1

    def put_off(_result: object, _self: object) -> None:
        counts["snapshots put off for damage"] += 1

    def found_segment(_result: object, _self: object) -> None:
        counts["damaged log files found by the patrol"] += 1

    def asserted(what: str, holds: bool) -> None:
        counts[INVARIANT + what] += 1
        if not holds:
            violation(f"it does not hold that {what}")

    def disputed(_result: object, _self: object) -> None:
        counts["disputes opened"] += 1

    def settled(_result: object, _self: object) -> None:
        counts["disputes settled"] += 1

    def slowed(_result: object, pacing: object) -> None:
        assert isinstance(pacing, Pacing)
        counts["entries slowed for a member"] += pacing.rate < math.inf

    def searched(_result: object, _self: object) -> None:
        counts["ranges searched for changes"] += 1

    def evaluated_ahead(_result: object, _self: object) -> None:
        counts["commits evaluated ahead"] += 1

    with ExitStack() as stack:
        for owner, name, told in (
            (Replication, "_has_lease", lease),
            (RaftLog, "withdraw", withdrawn),
            (PeerClocks, "is_out_of_bounds", out_of_bounds),
            (SnapshotReceiver, "_go_on", resumed_installation),
            (SnapshotSender, "_put_off", put_off),
            (DamagedSegments, "report", found_segment),
            (Disputes, "_open", disputed),
            (Disputes, "_close", settled),
            (Pacing, "appended", slowed),
            (commit_reads, "changed_within", searched),
            (Ahead, "evaluate", evaluated_ahead),
        ):
            stack.enter_context(patch.object(owner, name, _told(getattr(owner, name), told)))
        stack.enter_context(patch.object(invariants, "on_asserted", asserted))
        stack.enter_context(patch.object(ReadIndex, "fail", _lost_rounds(ReadIndex.fail, counts)))
        yield


def _told(method: Callable[..., Any], told: Callable[[object, object], None]) -> Callable[..., Any]:
    def wrapped(self: object, *args: Any, **more: Any) -> Any:
        result = method(self, *args, **more)
        told(result, self)
        return result

    return wrapped


def _lost_rounds(fail: Callable[..., Any], counts: Counter[str]) -> Callable[..., Any]:
    def wrapped(self: ReadIndex, error: Any) -> Any:
        if self._asked or self._rounds:
            counts["reads refused for a lost round"] += 1
        return fail(self, error)

    return wrapped
