"""Acts on members, jobs, holds and garbage collection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from cortado.errors import DeadlineExceeded, NotFound, OutcomeUnknown
from cortado.proto.v1 import cluster_pb2
from cortado.store.client.jobs import Job
from cortado.store.client.stubs import Stubs
from cortado.store.gateway.console.acts.act import WAITS_S, Act, Done, Input, Sight, Texts, in_time, nothing, number

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient


def _cluster(_target: Texts) -> str:
    return "/ui"


# --- members --------------------------------------------------------------------------------------------------------


async def _member(client: AsyncClient, target: Texts) -> Sight:
    members = await client.admin.members.list(at_leader=True)
    found = members.member(target["node"])
    if found is None:
        raise NotFound("member", target["node"])
    role = "leader" if found.node_id == members.leader else "voter" if found.voter else "learner"
    voters = sum(each.voter for each in members.members)
    behind = "-" if not found.joined else "unknown: it is down" if found.behind is None else f"{found.behind:,} entries"
    return Sight(
        (
            ("Node", found.node_id),
            ("Role", role),
            ("Address", found.address or "has not joined yet"),
            ("Behind", behind),
            ("Leader", members.leader),
            ("Voters", str(voters)),
        ),
        f"{found.node_id} {role} {found.peer_address} {members.leader} {voters}",
    )


async def _transfer(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    leader = await client.admin.members.transfer_leader(target["node"])
    return Done(f"{leader} leads.", "/ui")


async def _promote(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    await client.admin.members.promote(target["node"])
    return Done(f"{target['node']} is a voter.", "/ui")


async def _remove(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    await client.admin.members.remove(target["node"])
    return Done(f"{target['node']} is no member any more. Stop its process, and delete its data directory.", "/ui")


async def _add(client: AsyncClient, _target: Texts, given: Texts) -> Done:
    node, address = given["node"].strip(), given["address"].strip()
    await client.admin.members.add(node, address)
    return Done(
        f"{node} is announced at {address}. Start it there with --join; once it has caught up, make it a voter.", "/ui"
    )


async def _rebuild(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    node = target["node"]
    found = (await client.admin.members.list()).member(node)
    if found is None:
        raise NotFound("member", node)
    request, patient = cluster_pb2.RebuildReplicaRequest(node_id=node), client.with_timeout(WAITS_S)
    try:
        await patient._open_call_at(found.address, Stubs.cluster.RebuildReplica, request)
    except DeadlineExceeded:
        problem = f"{node} did not finish within {WAITS_S:g} s; the work continues, and the act may be repeated"
        raise OutcomeUnknown(problem) from None
    return Done(f"{node} has the same data as the other member.", "/ui")


# --- jobs and holds -------------------------------------------------------------------------------------------------


async def _job(client: AsyncClient, target: Texts) -> Sight:
    found = await client.admin.jobs.get(number(target["job"], "job"))
    facts = (("Job", str(found.job_id)), ("Kind", found.kind), ("Of", found.target), ("State", str(found.state)))
    return Sight(facts, f"{found.job_id} {found.state}")


def _of_job(
    change: Callable[[AsyncClient, int], Awaitable[Job]],
) -> Callable[[AsyncClient, Texts, Texts], Awaitable[Done]]:
    async def do(client: AsyncClient, target: Texts, _given: Texts) -> Done:
        job = await change(client, number(target["job"], "job"))
        return Done(f"Job {job.job_id} is {job.state}.", "/ui")

    return do


async def _hold(client: AsyncClient, target: Texts) -> Sight:
    found = next((each for each in await client.admin.gc.holds() if each.hold_id == target["hold"]), None)
    if found is None:
        raise NotFound("hold", target["hold"])
    return Sight(
        (
            ("Hold", found.hold_id),
            ("Consumer", found.consumer or "none: it ends with its holder"),
            ("Label", found.label or "none"),
            ("Keeps from", str(found.timestamp)),
        ),
        f"{found.hold_id} {found.acquired}",
    )


async def _end(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    ended = await client.admin.gc.end_hold(target["hold"])
    return Done("The hold has ended." if ended else "There was no such hold any more.", "/ui")


async def _collect(client: AsyncClient, _target: Texts, _given: Texts) -> Done:
    problem = "there is more to collect than a page waits for; the rest is collected by itself"
    removed = await in_time(client.admin.gc.run(), problem)
    return Done(f"{removed:,} stored items were removed on the leader.", "/ui")


ACTS: Final = (
    Act(
        "transfer-leader", "Hand leadership over", "Make it the leader",
        "Writes wait while leadership moves, usually for less than a second. Nothing is lost.",
        _member, _transfer, _cluster, ("node",),
    ),
    Act(
        "add-member", "Add a member", "Announce it",
        "The node joins as a learner when it is started with --join, and has no vote until it is promoted.",
        nothing, _add, _cluster,
        inputs=(
            Input("node", "Node id", hint="one that was never used in this cluster", required=True),
            Input("address", "Address for its peers", hint="HOST:PORT, as other nodes reach it", required=True),
        ),
    ),
    Act(
        "promote-member", "Make a voter of a learner", "Promote it",
        "From then on it counts for majorities. It must have caught up.",
        _member, _promote, _cluster, ("node",),
    ),
    Act(
        "remove-member", "Remove a member", "Remove it",
        "The node serves no more, and its id can never be used again. With fewer voters, fewer failures are survived. "
        "A leader hands leadership over first.",
        _member, _remove, _cluster, ("node",), typed="node",
    ),
    Act(
        "rebuild-member", "Rebuild a member", "Compare and rebuild it",
        "For a replica that cortado scrub names. It compares all of its data with another member's, the leader's, "
        "and takes over what differs. It serves and votes meanwhile, and keeps its data until the copy is verified.",
        _member, _rebuild, _cluster, ("node",),
    ),
    Act(
        "pause-job", "Pause a job", "Pause it", "No step is done until it is resumed.",
        _job, _of_job(lambda client, job: client.admin.jobs.pause(job)), _cluster, ("job",),
    ),
    Act(
        "resume-job", "Resume a job", "Resume it", "It continues where it was paused.",
        _job, _of_job(lambda client, job: client.admin.jobs.resume(job)), _cluster, ("job",),
    ),
    Act(
        "cancel-job", "Cancel a job", "Cancel it",
        "It ends, and its results are removed: an index that was being built is dropped.",
        _job, _of_job(lambda client, job: client.admin.jobs.cancel(job)), _cluster, ("job",), typed="job",
    ),
    Act(
        "end-hold", "End a hold", "End it",
        "The versions that its holder reads may be collected then: a backup, a scan or a stream that needs them "
        "fails, and a consumer cannot continue from its place.",
        _hold, _end, _cluster, ("hold",), typed="hold",
    ),
    Act(
        "collect", "Collect old versions now", "Collect",
        "Removes what no read may need any more, which the cluster does by itself within minutes. It takes room on the "
        "disk of a busy leader, and keeps what retentions and holds keep.",
        nothing, _collect, _cluster,
    ),
)  # fmt: skip
