"""``cortado member grow``: from a node to a cluster of those that are named, however far it got before."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

from cortado.errors import DeadlineExceeded, InvalidArgument, OutcomeUnknown, TryAgain
from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.numbers import seconds
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.client import Client

_POLL_S: Final = 0.25
_PATIENCE_S: Final = 3.0


@command(
    "member grow",
    examples="""
        cortado member grow n2=10.0.0.2:7622 n3=10.0.0.3:7622
        cortado member grow n2=n2:7622 n3=n3:7622 -e n1:7621 --wait-timeout 300
    """,
)
def grow(
    session: Session,
    nodes: Annotated[
        list[str],
        Argument(
            help="A node's id, and the address at which the other nodes will reach it.", metavar="ID=PEER_ADDRESS"
        ),
    ],
    wait_timeout: Annotated[
        float,
        Option(
            "--wait-timeout",
            help="Maximum time to wait for all of it.",
            parser=seconds("--wait-timeout"),
            metavar="SECONDS",
        ),
    ] = 600.0,
) -> Answer:
    """Announce nodes, and make each a voter when it has joined and caught up.

    Finished steps are skipped, so the command can run at every start of a cluster. Start the nodes with --join. A node
    that starts before it is announced is refused and exits; start it again.
    """
    wanted = dict(_pair(each) for each in nodes)
    deadline_s = time.monotonic() + wait_timeout
    told = ""
    with session.client() as client:
        patient = client.with_timeout(min(session.timeout_s, _PATIENCE_S))
        while True:
            try:
                if _step(patient, wanted):
                    break
            except (TryAgain, DeadlineExceeded, OutcomeUnknown) as not_yet:
                # The next look at the members shows an unknown outcome.
                if time.monotonic() >= deadline_s:
                    raise
                if not session.as_json and not_yet.message() != told:
                    told = not_yet.message()
                    session.show.note(f"waiting: {told}")
                time.sleep(_POLL_S)
        members = client.admin.members.list().members
    voters = [each.node_id for each in members if each.voter]
    return Said(f"{', '.join(wanted)}: all are voters, of {len(voters)}", {"voters": voters})


def _step(client: Client, wanted: dict[str, str]) -> bool:
    """Make the next change; return whether none is left."""
    members = client.admin.members.list(at_leader=True)
    # All are announced first, so that they copy the data at the same time.
    for node_id, peer_address in wanted.items():
        member = members.member(node_id)
        if member is None:
            client.admin.members.add(node_id, peer_address)
            return False
        if not member.voter and member.peer_address != peer_address:
            raise InvalidArgument(node_id, f"is announced at {member.peer_address} already", peer_address)
    for node_id in wanted:
        member = members.member(node_id)
        if member is not None and not member.voter:
            client.admin.members.promote(node_id)
            return False
    return True


def _pair(text: str) -> tuple[str, str]:
    node_id, equals, peer_address = text.partition("=")
    if not (node_id and equals and peer_address):
        raise InvalidArgument("ID=PEER_ADDRESS", "must be a node's id, =, and its address for peers", text)
    return node_id, peer_address
