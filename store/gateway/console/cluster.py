"""``/ui``: the members as they are now, each by its own words and the leader's, and what needs attention."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from starlette.responses import Response

from cortado.errors import CortadoError, PermissionDenied, Unavailable
from cortado.proto.v1 import cluster_pb2, settings_pb2
from cortado.store.client.cluster import Members, MemberStatus, Status, status_from_proto
from cortado.store.client.jobs import Job
from cortado.store.client.stubs import Stubs
from cortado.store.clock.spans import between_text
from cortado.store.doctor.cluster_checks import cluster_checks
from cortado.store.doctor.node_facts import facts_of_node
from cortado.store.doctor.probes import Facts
from cortado.store.doctor.verdicts import Check, Verdict, worst_first
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.charts import charts_of
from cortado.store.gateway.console.members import NODE_S, members_of
from cortado.store.gateway.console.pages import page, tried
from cortado.store.gateway.console.samples import Samples
from cortado.store.gateway.console.visitor import Visitor

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

T = TypeVar("T")

JOBS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Node:
    """A member, its own status or the reason for its silence, and its clock as the leader sees it. ``facts`` are the
    doctor's."""

    member: MemberStatus
    is_leader: bool
    said: Status | CortadoError
    offset: str
    facts: Facts

    @property
    def role(self) -> str:
        return "leader" if self.is_leader else "voter" if self.member.voter else "learner"

    @property
    def state(self) -> str:
        """ "serving", or the reason against it; "not shown" to a visitor that may not know it."""
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


async def cluster(samples: Samples, call: Call, visitor: Visitor) -> Response:
    """Return the page."""
    client = call.client
    members, brief = await members_of(client), client.with_timeout(NODE_S)
    nodes, jobs, holds, kept = await asyncio.gather(
        nodes_of(client, members), tried(brief.admin.jobs.list()), tried(brief.admin.gc.holds()),
        tried(brief.admin.gc.status()),
    )  # fmt: skip
    ended_last = jobs if isinstance(jobs, CortadoError) else sorted(jobs, key=_job_order)[:JOBS_SHOWN]
    known = [each.said for each in nodes if isinstance(each.said, Status)]
    checked = findings(nodes)
    odd = [each for each in checked if each.verdict is not Verdict.OK]
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
        odd=odd,
        well=len(checked) - len(odd),
        jobs=ended_last,
        holds=holds,
        kept=kept,
        charts=charts_of(samples, samples.nodes),
        no_charts=samples.problem,
    )


def findings(nodes: Sequence[Node]) -> list[Check]:
    """Return the doctor's findings, the worst first; none if the visitor may not know the nodes' state."""
    if any(each.is_hidden for each in nodes):
        return []
    return worst_first(cluster_checks({each.member.address: each.facts for each in nodes if each.member.joined}))


def _job_order(job: Job) -> tuple[bool, int]:
    return job.has_ended, -job.job_id


async def nodes_of(client: AsyncClient, members: Members) -> list[Node]:
    """Return all members, asked at the same time."""
    brief = client.with_timeout(NODE_S)
    told = await asyncio.gather(*(_asked(brief, each) for each in members.members))
    said = [status for status, _ in told]
    lead = next((each for each in said if isinstance(each, Status) and each.node_id == members.leader), None)
    offsets = {} if lead is None else {each.node_id: (each.low_ms, each.high_ms) for each in lead.clock_offsets}
    leads = members.leader
    return [
        Node(member, bool(leads) and member.node_id == leads, status, _offset(offsets, member.node_id), facts)
        for member, (status, facts) in zip(members.members, told, strict=True)
    ]


def _offset(offsets: dict[str, tuple[int, int]], node_id: str) -> str:
    found = offsets.get(node_id)
    return "-" if found is None else between_text(*found)


async def _asked(client: AsyncClient, member: MemberStatus) -> tuple[Status | CortadoError, Facts]:
    """Return the member's own status, and the doctor's facts from it."""
    if not member.joined:
        return Unavailable("it has not joined yet"), {}
    ask = partial(client._open_call_at, member.address)
    status, clock, members, settings = await asyncio.gather(
        tried(ask(Stubs.cluster.Status, cluster_pb2.StatusRequest())),
        tried(_timed(ask(Stubs.cluster.Clock, cluster_pb2.ClockRequest()))),
        tried(ask(Stubs.cluster.Members, cluster_pb2.MembersRequest())),
        tried(ask(Stubs.settings.ListSettings, settings_pb2.ListSettingsRequest())),
    )
    if isinstance(status, CortadoError) or isinstance(clock, CortadoError) or isinstance(members, CortadoError):
        problem = next(each for each in (status, clock, members) if isinstance(each, CortadoError))
        return problem, {"problem": problem.message()}
    said, facts = status_from_proto(status), facts_of_node(status, clock, members, settings)
    if said.node_id != member.node_id:
        return Unavailable(f"node {said.node_id} answers at its address"), facts
    return said, facts


async def _timed(asked: Awaitable[T]) -> tuple[T, float, float]:
    """Return the answer, and when it was asked for and heard, in milliseconds of this host's clock."""
    asked_ms = time.time_ns() / 1e6
    return await asked, asked_ms, time.time_ns() / 1e6
