"""Decisions that are repeated where entries are appended, and entries of no caller."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import CortadoError, PermissionDenied, Unauthenticated
from cortado.store.auth import changes
from cortado.store.auth.caller import CALLER, Caller
from cortado.store.auth.current import Credential
from cortado.store.auth.roles import Demand, Permission
from cortado.store.auth.stored import Kind
from cortado.store.auth.tokens import make_token
from cortado.store.host.host import Host
from cortado.store.mvcc.evaluation import Evaluate
from support.node_world import World
from support.nodes import put

ROOT, OPERATOR = (make_token(lambda count, number=number: bytes([number]) * count) for number in (1, 2))


async def with_operator(node: Host) -> None:
    await node.meta.write(changes.enable("root", Kind.TOKEN, changes.NewToken(ROOT.token_id, ROOT.digest)))
    new = changes.NewToken(OPERATOR.token_id, OPERATOR.digest)
    await node.meta.write(changes.create("op", Kind.TOKEN, new))
    await node.meta.write(changes.grant("op", "operator", "cluster"))


@pytest.mark.parametrize(
    ("revocation", "refusal"),
    [(changes.ungrant("op", "operator", "cluster"), PermissionDenied), (changes.revoke("op"), Unauthenticated)],
)
def test_a_change_of_members_is_refused_behind_a_revocation_that_is_in_flight(
    revocation: Evaluate, refusal: type[CortadoError]
) -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await with_operator(n1)
        caller = Caller(Credential(OPERATOR.text), (Demand(Permission.OPERATE),))
        CALLER.set(caller)
        await n1.meta.members.add("n2", "n2.test:1")
        CALLER.set(None)
        place = world.places["n1"]
        place.disk.hold()
        revoking = asyncio.ensure_future(n1.meta.write(revocation))
        await world.sleep(5)
        members = n1.meta.roster
        CALLER.set(caller)
        # No node was told of it, and a call that begins is let in: but the log has it already.
        assert n1.meta.roles.committed.known(caller.credential, lambda: 0) is not None
        for change in (n1.meta.members.add("n3", "n3.test:1"), n1.meta.members.remove("n2")):
            with pytest.raises(refusal):
                await change
        CALLER.set(None)
        place.disk.release()
        await revoking
        assert n1.meta.roster is members
        await n1.meta.members.add("n3", "n3.test:1")

    world.run(scenario)


def test_what_a_leader_does_beside_writes_is_nobodys_call() -> None:
    """Otherwise it would belong to the caller at the beginning of the term: a job would end with his rights."""
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await with_operator(n1)
        written = asyncio.get_running_loop().create_future()

        async def duty() -> None:
            written.set_result((CALLER.get(), await n1.meta.write(put("k", b"v"))))

        n1.meta.duties.add("a duty", duty)
        CALLER.set(Caller(Credential(OPERATOR.text), (Demand(Permission.ADMINISTER),)))
        n1.meta.duties.begin()
        caller, _ = await written
        assert caller is None

    world.run(scenario)
