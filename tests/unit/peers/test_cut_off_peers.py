"""A node that is cut off from another hears nothing of it and reaches it in no way, until it is not any more."""

from __future__ import annotations

from cortado.raft.log import Message
from support.nodes import run, until
from support.peers import connected, members, running_peer


def test_what_is_cut_carries_nothing_and_what_is_healed_carries_again() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2, running_peer("n3") as n3:
            nodes = (n1, n2, n3)
            for each in nodes:
                each.transport.configure(members(*nodes))
            await connected(n1, n2)
            await connected(n2, n3)
            await connected(n1, n3)
            # One side is enough.
            n2.transport.cut({"n1"})
            await until(lambda: not n1.transport.status()[0].is_connected, "n1 has lost n2")
            n1.transport.send(1, [Message("n2", b"lost"), Message("n3", b"kept")])
            n2.transport.send(1, [Message("n1", b"lost"), Message("n3", b"kept")])
            await until(lambda: n3.node.bodies() == [b"kept", b"kept"], "the others are reached")
            await until(lambda: "cut off" in n1.transport.status()[0].problem, "n1 was told")
            assert n1.node.bodies() == n2.node.bodies() == []
            n2.transport.cut(())
            await connected(n1, n2)
            n1.transport.send(1, [Message("n2", b"again")])
            await until(lambda: n2.node.bodies() == [b"again"], "it arrived")

    run(scenario)
