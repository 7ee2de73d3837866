"""``cortado slow``: the calls that took long, of all nodes, each with where its time went."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any, Final

from cortado.errors import CortadoError, Unavailable
from cortado.store.cli.answers import Answer, Rows
from cortado.store.cli.failures import OK, UNAVAILABLE
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.clock.timestamp import Timestamp

if TYPE_CHECKING:
    from cortado.store.client.cluster import MemberStatus
    from cortado.store.client.statistics import SlowCall, SlowCalls

_SHOWN: Final = 50


@command(
    "slow",
    examples="""
        cortado slow
        cortado slow --limit 5
        cortado slow -o json
    """,
)
def slow(
    session: Session,
    limit: Annotated[
        int, Option("--limit", help="Number of calls, of all nodes together.", parser=whole("--limit"), metavar="N")
    ] = _SHOWN,
) -> Answer:
    """Show the last calls that took longer than slow-request-ms, of all nodes, and where the time of each went.

    A node keeps its last 200, until it is stopped. The list has no keys and values. Exit code 6 if a node did not
    answer.
    """
    with session.client() as client:
        members = [each for each in client.admin.members.list().members if each.joined]
    with ThreadPoolExecutor(min(16, len(members) or 1)) as pool:
        said = list(pool.map(lambda member: _ask(session, member), members))
    reached = [each for each in said if not isinstance(each, CortadoError)]
    silent = [
        f"{member.node_id} could not be asked: {each}"
        for member, each in zip(members, said, strict=True)
        if isinstance(each, CortadoError)
    ]
    careless = [each.node_id for each in reached if not each.slow_request_ms]
    unwatched = [f"{node_id} has slow-request-ms 0, and looks at none" for node_id in careless]
    found = sorted(
        ((each.node_id, call) for each in reached for call in each.calls), key=lambda pair: -pair[1].ended_ms
    )[:limit]
    return Rows(
        ("ended", "node", "method", "took", "code", "of", "where the time went"),
        [_row(*each) for each in found],
        [_record(*each) for each in found],
        note="; ".join([*silent, *unwatched]) or ("" if found else "no call was slow since the nodes were started"),
        exit_code=UNAVAILABLE if silent else OK,
    )


def _ask(session: Session, member: MemberStatus) -> SlowCalls | CortadoError:
    from cortado.store.client.statistics import NodeStatistics

    try:
        with NodeStatistics(
            member.address, timeout_s=session.timeout_s, tls=session.tls(), token=session.token
        ) as node:
            said = node.slow_calls()
    except CortadoError as error:
        return error
    return said if said.node_id == member.node_id else Unavailable(f"node {said.node_id} answers at its address")


def _row(node_id: str, call: SlowCall) -> list[Any]:
    return [
        f"{Timestamp(0, call.ended_ms, 0).as_datetime():%Y-%m-%d %H:%M:%S}Z",
        node_id,
        call.method.removeprefix("cortado.v1."),
        f"{call.duration_ms:.0f} ms",
        call.code,
        " ".join(call.about.values()) or "-",
        ", ".join(f"{name.replace('_', ' ')} {ms:g} ms" for name, ms in call.stages.items()) or "-",
    ]


def _record(node_id: str, call: SlowCall) -> dict[str, Any]:
    return {
        "node_id": node_id,
        "ended_ms": call.ended_ms,
        "method": call.method,
        "duration_ms": call.duration_ms,
        "code": call.code,
        "stages_ms": dict(call.stages),
        "request_bytes": call.request_bytes,
        "reply_bytes": call.reply_bytes,
        "of": dict(call.about),
        "peer": call.peer,
        "request_id": call.request_id.hex(),
    }
