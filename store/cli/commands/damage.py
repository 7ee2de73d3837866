"""``cortado damage``: what is damaged on the nodes of a cluster, and how a loss is accepted that nobody can undo."""

from __future__ import annotations

from typing import Annotated, Any

from cortado.store.cli.asking import YesOption, confirm
from cortado.store.cli.commands.status import ask_each, damage_json
from cortado.store.cli.failures import DAMAGE, UNAVAILABLE, CheckFailed
from cortado.store.cli.inspecting import parse_stored_key
from cortado.store.cli.options import Argument
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client import DamagedItem, Status
from cortado.store.keys.decoded import decode_key


@command(
    "damage list",
    examples="""
        cortado damage list
        cortado damage list -o json
    """,
)
def list_(session: Session) -> None:
    """Show what each node knows to be damaged in its data, and why it is not repaired yet.

    A node repairs what it finds from any other member that has it whole. What is "lost" no member has whole. Exit
    code 8 where something is damaged, 6 where a node could not be asked.
    """
    with session.client() as client:
        found = client.status()
        members = client.membership.members()
    said = dict(zip([each.node_id for each in members.members], ask_each(session, members, found), strict=True))
    reached = {node_id: each for node_id, each in said.items() if isinstance(each, Status)}
    silent = {node_id: str(each) for node_id, each in said.items() if not isinstance(each, Status)}
    if session.as_json:
        nodes: list[dict[str, Any]] = [
            {"node_id": node_id, "damaged": each.damaged, "repaired": each.repaired,
             "damage": [damage_json(item) for item in each.damage]}
            for node_id, each in reached.items()
        ]  # fmt: skip
        session.show.json({"nodes": nodes, "not_reached": silent})
    else:
        rows = [(node_id, *_row(item)) for node_id, each in reached.items() for item in each.damage]
        session.show.table(("node", "what", "state", "stored key"), rows)
        for node_id, each in reached.items():
            more = each.damaged - len(each.damage)
            if more > 0:
                session.show.note(f"{node_id}: {count(more, 'item')} more")
        for node_id, why in silent.items():
            session.show.note(f"{node_id} could not be asked: {why}")
        if not rows and not silent:
            session.show.note("no node knows of any damage; cortado scrub looks for what nobody has met")
    if any(each.damaged for each in reached.values()):
        raise CheckFailed(DAMAGE)
    if silent:
        raise CheckFailed(UNAVAILABLE)


def _row(item: DamagedItem) -> tuple[str, str, str]:
    state = f"lost: {item.problem}" if item.is_lost else item.problem
    return item.text, state, item.key.hex() or "-"


@command(
    "damage accept",
    examples="""
        cortado damage accept 6b306e00012c6b320001ffff
        cortado damage accept 6b306e00012c6b320001ffff --yes
    """,
)
def accept(
    session: Session,
    key: Annotated[str, Argument(help="The stored key, as `damage list` shows it.", metavar="KEY")],
    yes: YesOption = False,
) -> None:
    """Accept that a damaged version is lost, of which no member has a whole copy.

    From its timestamp on its key does not exist, on every replica alike, until it is written again. Refused where
    a whole copy is known, or where a member has not said that it has none: start it, or remove it. This cannot be
    taken back.
    """
    engine_key = parse_stored_key(key)
    text = decode_key(engine_key).text()
    with session.client() as client:
        confirm(f"Accept that {text} is lost?", yes=yes)
        client.accept_loss(engine_key)
    if session.as_json:
        session.show.json({"accepted": engine_key.hex(), "text": text})
    else:
        session.show.line(f"{text} is given up")
