"""``/ui``: the members as they are now, each by its own words and the leader's, and what needs attention."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from cortado.errors import CortadoError, PermissionDenied, Unavailable
from cortado.proto.v1 import cluster_pb2
from cortado.store.client.cluster import Members, MemberStatus, Status, members_from_proto, status_from_proto
from cortado.store.client.jobs import Job
from cortado.store.client.stubs import Stubs
from cortado.store.clock.spans import between_text
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.pages import page, tried
from cortado.store.gateway.console.visitor import Visitor
from cortado.store.sizes import size_text

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

NODE_S: Final = 2.0
"""How long a page waits for one node."""
JOBS_SHOWN: Final = 20
_DISK_FREE_LOW: Final = 10
_OFFSET_MS_HIGH: Final = 250


@dataclass(frozen=True, slots=True)
class Node:
    """A member, what it says of itself or why it says nothing, and the leader's word of its clock."""

    member: MemberStatus
    is_leader: bool
    said: Status | CortadoError
    offset: str

    @property
    def role(self) -> str:
        return "leader" if self.is_leader else "voter" if self.member.voter else "learner"

    @property
    def state(self) -> str:
        """ "serving", or why it is not; "not shown" to who may not know it."""
        if self.is_hidden:
            return "not shown"
        if isinstance(self.said, Status):
            return self.said.state
        return self.said.message() if self.member.joined else "announced, has not joined yet"

    @property
    def is_hidden(self) -> bool:
        """Whether its visitor may not know how it is."""
        return isinstance(self.said, PermissionDenied)

    @property
    def serves(self) -> bool:
        return isinstance(self.said, Status) and self.said.state == "serving"


async def cluster(call: Call, visitor: Visitor) -> Response:
    """The page."""
    client = call.client
    members, brief = await members_of(client), client.with_timeout(NODE_S)
    nodes, jobs, leases, kept = await asyncio.gather(
        nodes_of(client, members), tried(brief.jobs.list()), tried(brief.collection.leases()),
        tried(brief.collection.status()),
    )  # fmt: skip
    ended_last = jobs if isinstance(jobs, CortadoError) else sorted(jobs, key=_job_order)[:JOBS_SHOWN]
    known = [each.said for each in nodes if isinstance(each.said, Status)]
    return page(
        visitor,
        "cluster.html",
        area="cluster",
        leader=members.leader,
        nodes=nodes,
        known=known[0] if known else None,
        term=max((each.term for each in known), default=0),
        denied=next((each.said for each in nodes if isinstance(each.said, PermissionDenied)), None),
        unknown_visitor=visitor.problem,
        attention=list(attention(members, nodes)),
        jobs=ended_last,
        leases=leases,
        kept=kept,
    )


def _job_order(job: Job) -> tuple[bool, int]:
    return job.has_ended, -job.job_id


async def members_of(client: AsyncClient) -> Members:
    """With everybody's progress where somebody leads, else as one of the endpoints knows them that answers at once: a
    node may hang."""
    brief = client.with_timeout(NODE_S)
    found = await tried(brief.membership.members(at_leader=True))
    if not isinstance(found, CortadoError):
        return found
    request, method = cluster_pb2.MembersRequest(), Stubs.cluster.Members
    asked = [tried(brief.open_call_at(each, method, request)) for each in client.endpoint.split(",")]
    for reply in await asyncio.gather(*asked):
        if not isinstance(reply, CortadoError):
            return members_from_proto(reply)
    raise found


async def nodes_of(client: AsyncClient, members: Members) -> list[Node]:
    """All members, asked at the same time."""
    brief = client.with_timeout(NODE_S)
    said = await asyncio.gather(*(_status_of(brief, each) for each in members.members))
    lead = next((each for each in said if isinstance(each, Status) and each.node_id == members.leader), None)
    offsets = {} if lead is None else {each.node_id: (each.low_ms, each.high_ms) for each in lead.clock_offsets}
    return [
        Node(member, bool(members.leader) and member.node_id == members.leader, each, _offset(offsets, member.node_id))
        for member, each in zip(members.members, said, strict=True)
    ]


def _offset(offsets: dict[str, tuple[int, int]], node_id: str) -> str:
    found = offsets.get(node_id)
    return "-" if found is None else between_text(*found)


async def _status_of(client: AsyncClient, member: MemberStatus) -> Status | CortadoError:
    if not member.joined:
        return Unavailable("it has not joined yet")
    request = cluster_pb2.StatusRequest()
    reply = await tried(client.open_call_at(member.address, Stubs.cluster.Status, request))
    if isinstance(reply, CortadoError):
        return reply
    said = status_from_proto(reply)
    if said.node_id != member.node_id:
        return Unavailable(f"node {said.node_id} answers at its address")
    return said


def attention(members: Members, nodes: list[Node]) -> Iterator[tuple[str, str]]:
    """What somebody should look at: of whom, and why."""
    if not members.leader:
        yield "cluster", "no leader is known: writes wait until a majority of the voters is back"
    versions = sorted({each.said.version for each in nodes if isinstance(each.said, Status)})
    if len(versions) > 1:
        yield "cluster", f"its nodes are of different versions: {', '.join(versions)}"
    voters = sum(each.voter for each in members.members)
    if voters > 1 and voters % 2 == 0:
        yield "cluster", f"{voters} voters survive no more failures than {voters - 1} do"
    for node in nodes:
        said, name = node.said, node.member.node_id
        if not node.serves and not node.is_hidden:
            yield name, node.state
        if node.member.needs_snapshot:
            yield name, "lacks more entries than are kept: it gets a snapshot"
        if not isinstance(said, Status):
            continue
        if said.damaged:
            yield name, f"{said.damaged} damaged items: cortado damage list"
        if said.slowed:
            yield name, f"writes are slowed: {said.slowed}"
        total = said.disk_free_bytes + said.map_used_bytes + said.log_bytes
        if 100 * said.disk_free_bytes < _DISK_FREE_LOW * total:
            yield name, f"only {size_text(said.disk_free_bytes)} of disk are free"
        for each in said.clock_offsets:
            if max(each.low_ms, -each.high_ms) > _OFFSET_MS_HIGH and node.is_leader:
                yield each.node_id, f"its clock is off the leader's by {between_text(each.low_ms, each.high_ms)}"
