"""Two nodes find each other over real connections, keep one stream, and carry messages in order."""

from __future__ import annotations

from cortado.raft.log import Message
from support.nodes import run, until
from support.peers import members, running_peer


def test_messages_arrive_in_order_both_ways_with_their_sender_and_group() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await until(lambda: n1.is_connected_to("n2") and n2.is_connected_to("n1"), "both are connected")
            for number in range(200):
                n1.transport.send(number % 2, [Message("n2", b"%d" % number), Message("n2", b"%d again" % number)])
            n2.transport.send(7, [Message("n1", b"answer")])
            await until(lambda: len(n2.node.received) == 400 and len(n1.node.received) == 1, "all arrived")
            assert n1.node.received == [("n2", 7, b"answer")]
            for group_id in (0, 1):
                expected = [b"%d%s" % (i, tail) for i in range(group_id, 200, 2) for tail in (b"", b" again")]
                assert [body for _, group, body in n2.node.received if group == group_id] == expected

    run(scenario)
