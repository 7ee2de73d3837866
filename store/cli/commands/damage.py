"""``cortado damage``: damaged places on the nodes of a cluster, and how to accept a loss that cannot be undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.asking import YesOption, confirm
from cortado.store.cli.failures import DAMAGE, OK, UNAVAILABLE
from cortado.store.cli.options import Argument
from cortado.store.cli.render import Renderer, count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.client import DamagedItem, Status


@dataclass(frozen=True, slots=True)
class _Damage:
    """The status of each node that answered, and the errors of the others."""

    reached: dict[str, Status]
    silent: dict[str, str]

    @property
    def exit_code(self) -> int:
        if any(each.damaged for each in self.reached.values()):
            return DAMAGE
        return UNAVAILABLE if self.silent else OK

    def as_json(self) -> list[Any]:
        from cortado.store.cli.status_answer import damage_json

        nodes = [
            {
                "node_id": node_id,
                "damaged": each.damaged,
                "repaired": each.repaired,
                "damage": [damage_json(item) for item in each.damage],
            }
            for node_id, each in self.reached.items()
        ]
        return [{"nodes": nodes, "not_reached": self.silent}]

    def as_table(self, show: Renderer) -> None:
        rows = [(node_id, *_row(item)) for node_id, each in self.reached.items() for item in each.damage]
        show.table(("node", "what", "state", "stored key"), rows)
        for node_id, each in self.reached.items():
            more = each.damaged - len(each.damage)
            if more > 0:
                show.note(f"{node_id}: {count(more, 'item')} more")
        for node_id, why in self.silent.items():
            show.note(f"{node_id} could not be asked: {why}")
        if not rows and not self.silent:
            show.note("no node knows of any damage; cortado scrub looks for damage that no read has met")


def _row(item: DamagedItem) -> tuple[str, str, str]:
    state = f"lost: {item.problem}" if item.is_lost else item.problem
    return item.text, state, item.key.hex() or "-"


@command(
    "damage list",
    examples="""
        cortado damage list
        cortado damage list -o json
    """,
)
def list_(session: Session) -> Answer:
    """Show the damage that each node knows of in its data, and why it is not repaired yet.

    A node repairs damage from any other member with an intact copy. "lost" means that no member has one. Exit code 8
    if something is damaged, 6 if a node did not answer.
    """
    from cortado.store.cli.status_answer import ask_each
    from cortado.store.client import Status

    with session.client() as client:
        found = client.status()
        members = client.admin.members.list()
        said = dict(
            zip(
                [each.node_id for each in members.members],
                ask_each(client, members, found, session.timeout_s),
                strict=True,
            )
        )
    return _Damage(
        {node_id: each for node_id, each in said.items() if isinstance(each, Status)},
        {node_id: str(each) for node_id, each in said.items() if not isinstance(each, Status)},
    )


@command(
    "damage accept",
    examples="""
        cortado damage accept 6b306e0001000000002c6b32000100000000000000000000
        cortado damage accept 6b306e0001000000002c6b32000100000000000000000000 --yes
    """,
)
def accept(
    session: Session,
    key: Annotated[str, Argument(help="The stored key, as damage list shows it of the leader.", metavar="KEY")],
    yes: YesOption = False,
) -> Answer:
    """Accept the loss of a damaged version that no member holds intact.

    From its timestamp on the key does not exist, on all replicas alike, until it is written again. If the key itself is
    damaged, the version goes, and nothing takes its place. For a remembered request, all requests up to that one are
    forgotten: repeating one of them has an unknown outcome. Refused if an intact copy is known, or if a member has not
    reported that it has none: start that member, or remove it. This cannot be undone.
    """
    from cortado.store.cli.inspecting import parse_stored_key
    from cortado.store.keys.decoded import decode_key

    engine_key = parse_stored_key(key)
    text = decode_key(engine_key).text()
    with session.client() as client:
        confirm(f"Accept that {text} is lost?", yes=yes)
        client.admin.accept_loss(engine_key)
    return Said(f"accepted the loss of {text}", {"accepted": engine_key.hex(), "text": text})
