"""Three nodes on virtual time: what is acknowledged stays, whoever leads; what is not known is said to be so."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import NotLeader, OutcomeUnknown
from support.node_world import World
from support.nodes import increment, put, read


def test_three_nodes_replicate_what_is_written() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        results = await asyncio.gather(*(n1.write(increment("n")) for _ in range(64)))
        assert sorted(result.value for result in results) == list(range(1, 65))
        nodes = (n1, n2, n3)
        await world.until(lambda: all(node.read_ts() == results[-1].ts for node in nodes), "all have applied all")
        for node in nodes:
            assert read(node, "n") == b"64"
            assert read(node, "n", results[9].ts) == b"10"
        assert [each.node_id for each in n2.configuration.voters] == ["n1", "n2", "n3"]

    world.run(scenario)


def test_the_leader_stops_and_another_one_goes_on_with_everything() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        written = await n1.write(put("k", b"v"))
        world.places["n1"].crash()
        began_ms = world.now_ms
        leader = await world.led(but="n1")
        assert world.now_ms - began_ms < 2_000
        assert read(leader, "k", await leader.linearize()) == b"v"
        again = await leader.write(put("k", b"w"))
        assert again.ts > written.ts
        await world.places["n1"].start()
        n1 = world.places["n1"].node
        await world.until(lambda: n1.applied.last_ts == again.ts, "the one that was away has caught up")
        assert read(n1, "k") == b"w"
        assert n1.status().role == "follower"

    world.run(scenario)


def test_a_follower_sends_callers_to_the_leaders_address() -> None:
    world = World()

    async def scenario() -> None:
        _, n2, _ = await world.grow("n1", "n2", "n3")
        for call in (n2.write(put("k", b"v")), n2.linearize(), n2.add_member("n4", "n4.test:1")):
            with pytest.raises(NotLeader) as refused:
                await call
            assert refused.value.leader == "n1.test:7621"

    world.run(scenario)


def test_a_cut_off_leader_says_that_it_does_not_know_and_answers_no_read() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await n1.write(put("k", b"old"))
        world.cut_off("n1")
        write = asyncio.ensure_future(n1.write(put("k", b"lost?")))
        reading = asyncio.ensure_future(n1.linearize())
        leader = await world.led(but="n1")
        await leader.write(put("k", b"new"))
        with pytest.raises(OutcomeUnknown):
            await write
        with pytest.raises(NotLeader):
            await reading
        with pytest.raises(NotLeader):
            await n1.write(put("k", b"never"))
        world.heal()
        await world.until(lambda: n1.applied == leader.applied, "it has caught up")
        assert read(n1, "k") == b"new"

    world.run(scenario)
