"""``cortado member``: who belongs to the cluster, and who leads it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Annotated, Final

from cortado.errors import DeadlineExceeded, NotFound, NotLeader, TryAgain, Unavailable
from cortado.store.cli.asking import DryRunOption, YesOption, confirm
from cortado.store.cli.numbers import seconds
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client import Client, Members, MemberStatus
from cortado.store.client.inspect import NodeInspector
from cortado.store.clock.spans import span_text

_NodeId = Argument(help="The node's id.", metavar="NODE_ID")
_POLL_S: Final = 0.25
# Within this time a change that has to wait for another one, or for a member to catch up, is tried again.
_PATIENCE_S: Final = 3.0


@command(
    "member list",
    examples="""
        cortado member list
        cortado member list -e 10.0.0.1:7621,10.0.0.2:7621 -o json
    """,
)
def list_members(session: Session) -> None:
    """List the cluster's members, and where the leader answers how far each of them is."""
    with session.client() as client:
        try:
            found = client.with_timeout(min(session.timeout_s, _PATIENCE_S)).membership.members(at_leader=True)
        except (TryAgain, DeadlineExceeded):
            # Without a leader any member's word is better than none.
            found = client.membership.members()
    if session.as_json:
        for member in found.members:
            session.show.json(as_json(member, found.leader))
        return
    show_members(session, found)


@command(
    "member add",
    examples="""
        cortado member add n2 10.0.0.2:7621
        cortado member add n2 127.0.0.1:7622 -o json
    """,
)
def add(
    session: Session,
    node_id: Annotated[str, _NodeId],
    address: Annotated[
        str,
        Argument(help="Where the other nodes and the clients will reach it.", metavar="HOST:PORT"),
    ],
) -> None:
    """Announce a new node, which joins as a learner when it is started with --join.

    A learner gets all data and has no vote; cortado member promote makes it a voter. The id must be one that this
    cluster never had: a disk that was lost comes back under a new one.
    """
    with session.client() as client:
        members = client.membership.add(node_id, address)
    joined = ",".join(each.address for each in members if each.joined)
    run = f"cortado server --node-id {node_id} --listen {address} --join {joined} --data-dir DIRECTORY"
    if session.as_json:
        added = next(each for each in members if each.node_id == node_id)
        session.show.json({**as_json(added, ""), "run": run})
        return
    session.show.line(f"{node_id} is announced; it has no vote yet")
    session.show.line("on its host, run, with an empty directory and the options that its other settings need:")
    session.show.line(f"  {run}")
    session.show.line("then, when it has caught up:")
    session.show.line(f"  cortado member promote {node_id} --wait")


@command(
    "member promote",
    examples="""
        cortado member promote n2
        cortado member promote n2 --wait
        cortado member promote n2 --wait --wait-timeout 3600
    """,
)
def promote(
    session: Session,
    node_id: Annotated[str, _NodeId],
    wait: Annotated[bool, Option("--wait", help="Wait until it has joined and caught up.")] = False,
    wait_timeout: Annotated[
        float,
        Option(help="With --wait: how long at most.", parser=seconds("--wait-timeout"), metavar="SECONDS"),
    ] = 600.0,
) -> None:
    """Give a learner that has caught up a vote."""
    with session.client() as client:
        members = _promote(session, client, node_id, wait_timeout if wait else 0.0)
    if session.as_json:
        session.show.json(as_json(next(each for each in members if each.node_id == node_id), ""))
    else:
        session.show.line(f"{node_id} is a voter, one of {sum(each.voter for each in members)}")


def _promote(session: Session, client: Client, node_id: str, wait_s: float) -> tuple[MemberStatus, ...]:
    """Promotes, again and again until ``wait_s`` have passed where the member is not that far."""
    deadline_s = time.monotonic() + wait_s
    shown = ""
    patient = client.with_timeout(min(session.timeout_s, _PATIENCE_S))
    while True:
        try:
            return patient.membership.promote(node_id)
        except Unavailable as not_yet:
            if isinstance(not_yet, NotLeader) or time.monotonic() >= deadline_s:
                raise
            if not session.as_json and not_yet.message() != shown:
                shown = not_yet.message()
                session.show.note(f"waiting: {shown}")
        time.sleep(_POLL_S)


@command(
    "member remove",
    examples="""
        cortado member remove n2
        cortado member remove n2 --dry-run
        cortado member remove n2 --yes
    """,
)
def remove(
    session: Session,
    node_id: Annotated[str, _NodeId],
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Remove a member for ever: its data directory is of no use after that.

    A leader hands leadership over first. Refused where too few of the voters that are left could be reached: the
    cluster would stand still.
    """
    with session.client() as client:
        found = client.membership.members()
        member = found.member(node_id)
        if member is None:
            raise NotFound("member", node_id)
        if dry_run:
            _show_removal(session, found, member)
            return
        who, left = _removal(found, member)
        confirm(f"Remove {who}, for ever? {left}.", yes=yes)
        members = client.membership.remove(node_id)
    if session.as_json:
        session.show.json({"removed": node_id, "members": [each.node_id for each in members]})
    else:
        session.show.line(f"{node_id} is removed; {sum(each.voter for each in members)} voters are left")


def _show_removal(session: Session, found: Members, member: MemberStatus) -> None:
    if session.as_json:
        left = [each.node_id for each in found.members if each.node_id != member.node_id]
        session.show.json({"would_remove": member.node_id, "members": left})
    else:
        who, left_text = _removal(found, member)
        session.show.line(f"would remove {who}, for ever; {left_text}")
        session.show.note("nothing was changed")


def _removal(found: Members, member: MemberStatus) -> tuple[str, str]:
    """Who is removed, and who is left."""
    voters = sum(each.voter for each in found.members)
    left = voters - member.voter
    what = "voter" if member.voter else "learner"
    leads = ", which leads now" if member.node_id == found.leader else ""
    survives = max(0, (left - 1) // 2)
    return (
        f"{what} {member.node_id} ({member.address}){leads}",
        f"{left} of {voters} voters are left, of which {survives} may fail",
    )


@command(
    "member rebuild",
    examples="""
        cortado member rebuild n2
        cortado member rebuild n2 --dry-run
        cortado member rebuild n2 --yes --wait-timeout 3600
    """,
)
def rebuild(
    session: Session,
    node_id: Annotated[str, _NodeId],
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    wait_timeout: Annotated[
        float,
        Option(
            "--wait-timeout",
            help="How long to wait until it is whole; it goes on after that.",
            parser=seconds("--wait-timeout"),
            metavar="SECONDS",
        ),
    ] = 600.0,
) -> None:
    """Compare all of a member's data with another member's, and make it the same: after cortado scrub found that
    it differs.

    The other member is the leader, or one of the rest where that is damaged or does not answer. It serves and
    votes meanwhile, and keeps what it has until the other's copy of it is there and verified.
    """
    with session.client() as client:
        found = client.membership.members()
    member = found.member(node_id)
    if member is None:
        raise NotFound("member", node_id)
    with NodeInspector([member.address], tls=session.tls(), timeout_s=session.timeout_s) as node:
        if dry_run:
            _show_rebuild(session, found, member)
            return
        confirm(f"Make the data of {member.node_id} ({member.address}) the same as another member's?", yes=yes)
        node.rebuild(wait_timeout)
    if session.as_json:
        session.show.json({"rebuilt": node_id})
    else:
        session.show.line(f"{node_id} holds the same data as another member now")


def _show_rebuild(session: Session, found: Members, member: MemberStatus) -> None:
    others = [each.node_id for each in found.members if each.node_id != member.node_id]
    if session.as_json:
        session.show.json({"would_rebuild": member.node_id, "from": others})
        return
    source = f"one of {', '.join(others)}" if others else "nobody: there is no other member"
    session.show.line(
        f"would compare the data of {member.node_id} ({member.address}) with {source}, and make it the same"
    )
    session.show.note("nothing was changed")


@command(
    "member transfer-leader",
    examples="""
        cortado member transfer-leader
        cortado member transfer-leader n2
    """,
)
def transfer_leader(
    session: Session,
    node_id: Annotated[
        str, Argument(help="The voter that is to lead.", metavar="NODE_ID", show_default="the one furthest")
    ] = "",
) -> None:
    """Hand leadership to another voter. Writes wait for a moment, and none fails."""
    with session.client() as client:
        leader = client.membership.transfer_leader(node_id)
    if node_id and leader != node_id:
        raise Unavailable(f"{leader} leads now, and not {node_id}")
    if session.as_json:
        session.show.json({"leader": leader})
    else:
        session.show.line(f"{leader} leads")


# --- how members are shown -------------------------------------------------------------------------------------


def as_json(member: MemberStatus, leader: str) -> dict[str, object]:
    """A member for scripts."""
    return {**dataclasses.asdict(member), "leader": bool(leader) and member.node_id == leader}


def show_members(session: Session, found: Members) -> None:
    """A table; the progress only where the leader answered, who alone knows it."""
    is_told_by_leader = bool(found.leader) and found.told_by == found.leader
    session.show.table(
        ("node", "address", "role", "state", "behind", "heard"),
        [_row(member, found.leader, is_told_by_leader) for member in found.members],
    )
    if not found.leader:
        session.show.note("no leader is known")


def _row(member: MemberStatus, leader: str, is_told_by_leader: bool) -> Sequence[object]:
    role = "leader" if leader and member.node_id == leader else "voter" if member.voter else "learner"
    state = "not joined yet" if not member.joined else "needs a snapshot" if member.needs_snapshot else "joined"
    if not is_told_by_leader or not member.joined:
        return (member.node_id, member.address, role, state, "-", "-")
    heard = "-" if role == "leader" else f"{span_text(member.last_heard_ms)} ago"
    return (member.node_id, member.address, role, state, member.behind, heard)
