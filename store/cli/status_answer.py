"""The answer of ``cortado status``: one node's status, and the status of each member of its cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from cortado.errors import CortadoError, Unavailable
from cortado.store.cli.failures import OK
from cortado.store.cli.render import Renderer, count, moment
from cortado.store.client import Client, DamagedItem, Members, MemberStatus, Status
from cortado.store.client.cluster import PatrolStatus
from cortado.store.clock.spans import between_text
from cortado.store.settings.sizes import size_text

# A node that does not answer is not waited for as long as one that was asked for alone.
_MEMBER_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """A node's state, and the answer or the error of each member."""

    found: Status
    members: Members
    said: Sequence[Status | CortadoError]
    exit_code: int = OK

    def as_json(self) -> Iterable[Any]:
        members = zip(self.members.members, self.said, strict=True)
        yield {
            **dataclasses.asdict(self.found),
            "ts": str(self.found.ts),
            "damage": [damage_json(each) for each in self.found.damage],
            "members": [_member_json(self.members, *each) for each in members],
        }

    def as_table(self, show: Renderer) -> None:
        show.record(_pairs(self.found))
        show.table(
            ("queue", "in flight", "limit", "bytes", "bytes limit"),
            [
                (q.name, q.count, q.count_max, size_text(q.bytes), size_text(q.bytes_max) if q.bytes_max else "-")
                for q in self.found.queues
            ],
        )
        show.table(
            ("member", "address", "role", "state", "term", "applied", "disk free"),
            [_row(self.members, *each) for each in zip(self.members.members, self.said, strict=True)],
        )
        if not self.found.leader:
            show.note("no leader is known: writes wait until a majority of the voters is back")


def damage_json(item: DamagedItem) -> dict[str, Any]:
    """Return a damaged item for machines."""
    return {"key": item.key.hex() or None, "text": item.text, "problem": item.problem, "is_lost": item.is_lost}


def ask_each(client: Client, members: Members, found: Status, timeout_s: float) -> list[Status | CortadoError]:
    """Return each member's status or error. The one that answered already is not asked again."""
    asking = client.with_timeout(min(timeout_s, _MEMBER_TIMEOUT_S))

    def ask(member: MemberStatus) -> Status | CortadoError:
        if member.node_id == found.node_id:
            return found
        if not member.joined:
            return Unavailable("it has not joined yet")
        try:
            said = asking.status(member.address)
        except CortadoError as error:
            return error
        if (said.cluster_id, said.node_id) != (found.cluster_id, member.node_id):
            return Unavailable(f"node {said.node_id} of cluster {said.cluster_id} answers there")
        return said

    if not members.members:
        return []
    with ThreadPoolExecutor(min(16, len(members.members))) as pool:
        return list(pool.map(ask, members.members))


def _member_json(members: Members, member: MemberStatus, said: Status | CortadoError) -> dict[str, Any]:
    known = said if isinstance(said, Status) else None
    return {
        "node_id": member.node_id,
        "address": member.address,
        "peer_address": member.peer_address,
        "voter": member.voter,
        "joined": member.joined,
        "leader": bool(members.leader) and member.node_id == members.leader,
        "reached": known is not None,
        "problem": None if known is not None else str(said),
        "state": None if known is None else known.state,
        "role": None if known is None else known.role,
        "term": None if known is None else known.term,
        "applied_index": None if known is None else known.applied_index,
    }


def _row(members: Members, member: MemberStatus, said: Status | CortadoError) -> Sequence[object]:
    role = "voter" if member.voter else "learner"
    if members.leader and member.node_id == members.leader:
        role = "leader"
    if isinstance(said, Status):
        state: object = said.state
        more: Sequence[object] = (said.term, said.applied_index, size_text(said.disk_free_bytes))
    else:
        # The address stands beside it.
        why = str(said).removeprefix(f"cannot reach {member.address}: ")
        state, more = "not joined yet" if not member.joined else f"not reached: {why}", ("-", "-", "-")
    return (member.node_id, member.address or "-", role, state, *more)


def _pairs(found: Status) -> list[tuple[str, object]]:
    use = 100 * found.map_used_bytes / found.map_limit_bytes if found.map_limit_bytes else 0.0
    leader = f"{found.leader} ({found.leader_address})" if found.leader_address else found.leader or "none is known"
    pairs: list[tuple[str, object]] = [
        ("state", found.state),
        ("version", found.version),
        ("cluster", found.cluster_id),
        ("node", found.node_id),
        ("role", found.role),
        ("leader", leader),
        ("term", found.term),
        ("applied index", f"{found.applied_index} of {found.last_index}"),
        ("timestamp", moment(found.ts)),
        ("uptime", timedelta(seconds=found.uptime_ms // 1000)),
        ("data directory", found.data_dir),
        ("map", f"{size_text(found.map_used_bytes)} of {size_text(found.map_limit_bytes)} ({use:.2f}%)"),
        ("log files", size_text(found.log_bytes)),
        ("disk free", size_text(found.disk_free_bytes)),
        ("loop lag, last minute", f"{found.loop_lag_ms_max} ms"),
        ("scans", found.scan_path),
    ]
    if found.slowed:
        pairs.append(("writes slowed", found.slowed))
    pairs += (("log disputed", each) for each in found.disputes)
    if found.patrol is not None:
        pairs.append(("verified", _verified(found.patrol)))
    if found.damaged or found.repaired:
        hint = ": see cortado damage list" if found.damaged else ""
        pairs.append(("damaged", count(found.damaged, "item") + hint))
        pairs.append(("repaired since the start", count(found.repaired, "range")))
    clocks = ((f"clock of {each.node_id}", between_text(each.low_ms, each.high_ms)) for each in found.clock_offsets)
    return [*pairs, *clocks]


def _verified(patrol: PatrolStatus) -> str:
    """Return the progress of the pass over all stored data, and the damage that it found."""
    part = min(100, 100 * patrol.read_bytes // max(patrol.expected_bytes, 1))
    before = "none before" if patrol.last_pass_ms is None else f"{patrol.passes} before"
    damaged = f", {patrol.damaged} places damaged" if patrol.damaged else ", no damage"
    return f"{part}% in this pass, {before}{damaged}"
