"""``cortado member``: the cluster's members and its leader."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

from cortado.errors import DeadlineExceeded, NotLeader, TryAgain, Unavailable
from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.asking import UNCHANGED, DryRunOption, YesOption, confirm
from cortado.store.cli.common_options import NodeIdArgument
from cortado.store.cli.numbers import seconds
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.client import Client, Members, MemberStatus

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
def list_members(session: Session) -> Answer:
    """List the cluster's members and, if the leader answers, the progress of each."""
    from cortado.store.cli.members_answer import MembersAnswer

    with session.client() as client:
        try:
            found = client.with_timeout(min(session.timeout_s, _PATIENCE_S)).admin.members.list(at_leader=True)
        except (TryAgain, DeadlineExceeded):
            # Without a leader any member's word is better than none.
            found = client.admin.members.list()
    return MembersAnswer(found)


@command(
    "member add",
    examples="""
        cortado member add n2 10.0.0.2:7622
        cortado member add n2 127.0.0.1:7722 -o json
    """,
)
def add(
    session: Session,
    node_id: NodeIdArgument,
    peer_address: Annotated[
        str,
        Argument(
            help="The address at which the other nodes will reach it: its peer-listen or peer-advertise.",
            metavar="PEER_ADDRESS",
        ),
    ],
) -> Answer:
    """Announce a new node, which joins as a learner when it is started with --join.

    A learner receives all data and has no vote; cortado member promote makes it a voter. The id must be new to this
    cluster: a node that lost its disk returns under a new id.
    """
    from cortado.store.cli.members_answer import member_json

    with session.client() as client:
        members = client.admin.members.add(node_id, peer_address)
    joined = ",".join(each.peer_address for each in members if each.joined)
    run = f"cortado server --node-id {node_id} --peer-listen {peer_address} --join {joined} --data-dir DIRECTORY"
    added = next(each for each in members if each.node_id == node_id)
    steps = (
        f"announced {node_id}; it has no vote yet",
        "on its host, run, with an empty directory and the options that its other settings need:",
        f"  {run}",
        "then, when it has caught up:",
        f"  cortado member promote {node_id} --wait",
    )
    return Said("\n".join(steps), {**member_json(added, ""), "run": run})


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
    node_id: NodeIdArgument,
    wait: Annotated[bool, Option("--wait", help="Wait until the learner has joined and caught up.")] = False,
    wait_timeout: Annotated[
        float,
        Option(help="With --wait: maximum time to wait.", parser=seconds("--wait-timeout"), metavar="SECONDS"),
    ] = 600.0,
) -> Answer:
    """Make a learner that has caught up a voter."""
    from cortado.store.cli.members_answer import check_member, member_json

    with session.client() as client:
        check_member(client, node_id)
        members = _promote(session, client, node_id, wait_timeout if wait else 0.0)
    promoted = next(each for each in members if each.node_id == node_id)
    voters = sum(each.voter for each in members)
    return Said(f"{node_id} is a voter, one of {voters}", member_json(promoted, ""))


def _promote(session: Session, client: Client, node_id: str, wait_s: float) -> tuple[MemberStatus, ...]:
    """Promote the member, again and again until ``wait_s`` have passed, if it is not that far."""
    deadline_s = time.monotonic() + wait_s
    shown = ""
    patient = client.with_timeout(min(session.timeout_s, _PATIENCE_S))
    while True:
        try:
            return patient.admin.members.promote(node_id)
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
    node_id: NodeIdArgument,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Answer:
    """Remove a member permanently: its data directory cannot be used again.

    A leader transfers leadership first. Refused if too few of the remaining voters can be reached to form a majority.
    """
    from cortado.store.cli.members_answer import member_of

    with session.client() as client:
        found = client.admin.members.list()
        member = member_of(found, node_id)
        if dry_run:
            return _removal_rehearsed(found, member)
        who, left = _removal(found, member)
        confirm(f"Permanently remove {who}? {left}.", yes=yes)
        members = client.admin.members.remove(node_id)
    left_ids = [each.node_id for each in members]
    voters = sum(each.voter for each in members)
    return Said(f"removed {node_id}; {voters} voters are left", {"removed": node_id, "members": left_ids})


def _removal_rehearsed(found: Members, member: MemberStatus) -> Answer:
    left = [each.node_id for each in found.members if each.node_id != member.node_id]
    who, left_text = _removal(found, member)
    text = f"would permanently remove {who}; {left_text}"
    return Said(text, {"would_remove": member.node_id, "members": left}, note=UNCHANGED)


def _removal(found: Members, member: MemberStatus) -> tuple[str, str]:
    """Return the text of the removed member, and of the members that are left."""
    voters = sum(each.voter for each in found.members)
    left = voters - member.voter
    what = "voter" if member.voter else "learner"
    leads = ", which leads now" if member.node_id == found.leader else ""
    survives = max(0, (left - 1) // 2)
    return (
        f"{what} {member.node_id} ({member.address}){leads}",
        f"{left} of {voters} voters are left, and {survives} of them may fail",
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
    node_id: NodeIdArgument,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    wait_timeout: Annotated[
        float,
        Option(
            "--wait-timeout",
            help="Maximum time to wait; the rebuild continues after that.",
            parser=seconds("--wait-timeout"),
            metavar="SECONDS",
        ),
    ] = 600.0,
) -> Answer:
    """Compare a member's data with another member's, and make it the same: after cortado scrub found a difference.

    The other member is the leader, or another one if the leader is damaged or does not answer. The member serves and
    votes meanwhile, and keeps its data until the other's copy has arrived and is verified.
    """
    from cortado.store.cli.members_answer import member_of
    from cortado.store.client.inspect import NodeInspector

    with session.client() as client:
        found = client.admin.members.list()
    member = member_of(found, node_id)
    if not member.joined:
        raise Unavailable(f"{node_id} has not joined yet")
    with NodeInspector([member.address], tls=session.tls(), token=session.token, timeout_s=session.timeout_s) as node:
        if dry_run:
            return _rebuild_rehearsed(found, member)
        question = f"Make the data of {member.node_id} ({member.address}) the same as another member's?"
        confirm(question, yes=yes)
        node.rebuild(wait_timeout)
    return Said(f"{node_id} holds the same data as another member now", {"rebuilt": node_id})


def _rebuild_rehearsed(found: Members, member: MemberStatus) -> Answer:
    others = [each.node_id for each in found.members if each.node_id != member.node_id]
    source = f"one of {', '.join(others)}" if others else "no other member: there is none"
    text = f"would compare the data of {member.node_id} ({member.address}) with {source}, and make it the same"
    return Said(text, {"would_rebuild": member.node_id, "from": others}, note=UNCHANGED)


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
        str, Argument(help="The voter to make leader.", metavar="NODE_ID", show_default="the most up-to-date voter")
    ] = "",
) -> Answer:
    """Transfer leadership to another voter. Writes pause for a moment, and none fails."""
    from cortado.store.cli.members_answer import check_member

    with session.client() as client:
        if node_id:
            check_member(client, node_id)
        leader = client.admin.members.transfer_leader(node_id)
    if node_id and leader != node_id:
        raise Unavailable(f"{leader} leads now, and not {node_id}")
    return Said(f"{leader} leads", {"leader": leader})
