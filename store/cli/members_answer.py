"""Members as they are shown, and found by their ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cortado.errors import NotFound
from cortado.store.cli.failures import OK
from cortado.store.cli.render import Renderer
from cortado.store.client import Client, Members, MemberStatus
from cortado.store.clock.spans import span_text


@dataclass(frozen=True, slots=True)
class MembersAnswer:
    """The members; their progress only if the leader answered, which alone knows it."""

    found: Members
    exit_code: int = OK

    def as_json(self) -> Iterable[Any]:
        return [member_json(member, self.found.leader) for member in self.found.members]

    def as_table(self, show: Renderer) -> None:
        found = self.found
        is_told_by_leader = bool(found.leader) and found.told_by == found.leader
        show.table(
            ("node", "address", "peer address", "role", "state", "behind", "heard"),
            [_row(member, found.leader, is_told_by_leader) for member in found.members],
        )
        if not found.leader:
            show.note("no leader is known")


def member_of(found: Members, node_id: str) -> MemberStatus:
    """Raise NotFound."""
    member = found.member(node_id)
    if member is None:
        raise NotFound("member", node_id)
    return member


def check_member(client: Client, node_id: str) -> None:
    """Raise NotFound if the cluster has no such member."""
    member_of(client.admin.members.list(), node_id)


def member_json(member: MemberStatus, leader: str) -> dict[str, object]:
    """Return a member for scripts."""
    return {**dataclasses.asdict(member), "leader": bool(leader) and member.node_id == leader}


def _row(member: MemberStatus, leader: str, is_told_by_leader: bool) -> Sequence[object]:
    role = "leader" if leader and member.node_id == leader else "voter" if member.voter else "learner"
    state = _state(member)
    where = (member.node_id, member.address or "-", member.peer_address)
    if not is_told_by_leader or not member.joined:
        return (*where, role, state, "-", "-")
    heard = "-" if role == "leader" else f"{span_text(member.last_heard_ms)} ago"
    return (*where, role, state, "unknown" if member.behind is None else member.behind, heard)


def _state(member: MemberStatus) -> str:
    if not member.joined:
        return "not joined yet"
    if member.down:
        return "down"
    if member.needs_snapshot:
        return "needs a snapshot"
    return "has no room" if member.no_room else "joined"
