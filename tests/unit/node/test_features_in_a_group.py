"""The effect of features on the writes and reads of a group."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import OutcomeUnknown, Unavailable
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluation, Removal
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.features.feature import Effect
from cortado.store.replica.run_submission import submit_run
from cortado.store.replica.write.run import RunEffects
from support.node_world import World
from support.nodes import increment, key, put
from support.noting_features import ONE, registered, taken


def change_one(_reader: Reader, _ts: Timestamp) -> Evaluation:
    mutations = Mutations()
    mutations.put(ONE, b"")
    return Evaluation(mutations, None)


@pytest.mark.parametrize("effect", [Effect.FOLLOWED, Effect.CLOSES, Effect.ANSWERED_APPLIED])
def test_an_effect_says_when_the_next_command_is_evaluated_and_when_callers_are_answered(effect: Effect) -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        data, committed = world.places["n1"].data, n1.meta.log.durable_commit_index
        data.hold()
        first = asyncio.ensure_future(n1.meta.write(change_one))
        await world.until(lambda: n1.meta.log.durable_commit_index > committed, "it is committed")
        second = asyncio.ensure_future(n1.meta.write(put("k", b"v")))
        await world.sleep(1_000)
        assert first.done() == (effect < Effect.ANSWERED_APPLIED)
        assert second.done() == (effect < Effect.CLOSES)
        data.release()
        await asyncio.gather(first, second)

    with registered(effect):
        world.run(scenario)


def test_a_feature_follows_its_change_when_it_is_taken_committed_and_applied() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        assert made[0].notes[:2] == ["more load 0", "more follow 0 0"]
        await n1.meta.write(put("k", b"v"))
        await world.settled()
        data, more = world.places["n1"].data, made[0]
        data.hold()
        taken(more.notes)
        await n1.meta.write(change_one)
        assert taken(more.notes) == ["more touches", "more follow 0 1", "more follow 1 0"]
        await n1.meta.write(put("k", b"v"))
        assert taken(more.notes) == [], "another command's batch has none of its changes"
        await world.until(lambda: data.waiting > 0, "a transaction is held")
        data.release()
        await world.until(lambda: n1.meta.driver.pipeline.newest_in_flight is None, "all is applied")
        applied = ["more begin", "more apply 1", "more settle", "more follow 0 0"]
        assert taken(more.notes)[: len(applied)] == applied

    with registered(Effect.FOLLOWED) as made:
        world.run(scenario)


def test_changes_in_flight_that_are_given_up_are_followed_no_more() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        world.cut_off("n1")
        writing = asyncio.ensure_future(n1.meta.write(change_one))
        await world.until(lambda: made[0].followed == (0, 1), "it is taken")
        with pytest.raises(OutcomeUnknown):
            await writing
        assert made[0].followed == (0, 0)

    with registered(Effect.FOLLOWED) as made:
        world.run(scenario)


def test_a_closed_feature_refuses_calls_and_writes_but_for_those_made_while_closed() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        replica, pipeline, more = n1.meta, n1.meta.driver.pipeline, made[0]
        more.closed = True
        await replica.write(put("k", b"v"))
        pipeline.repaired()
        with pytest.raises(Unavailable, match="more is closed"):
            await replica.write(put("k", b"w"))
        with pytest.raises(Unavailable, match="more is closed"):
            replica.reads.resolve(None)
        with pytest.raises(Unavailable, match="more is closed"):
            await replica.collector.pass_now()
        await replica.write(put("k", b"x"), while_closed=True)
        more.closed = False
        pipeline.repaired()
        await replica.write(put("k", b"y"))

    with registered(Effect.FOLLOWED) as made:
        world.run(scenario)


def test_features_add_to_a_write_and_part_a_run() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        assert (await n1.meta.write(change_one)).value == "None more"
        for number, written in enumerate((ONE, key("k"))):
            request_id = bytes(n1.process.clock.now()) + bytes([number] * 8)
            effects = RunEffects([written], [b"v"], [b""])
            run = submit_run(
                n1.meta,
                lambda _reader, _first, effects=effects: effects,
                size_bytes=10,
                request_ids=[request_id],
                hashes=[b"h" * 16],
            )
            await run.done
            assert (run.outcome is run.parting) == (written == ONE)

    with registered(Effect.FOLLOWED):
        world.run(scenario)


def test_reads_are_not_compared_while_a_feature_moves_values() -> None:
    world = World(limits=NodeLimits(examined_percent=100))

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        for moving in (True, False):
            for each in made:
                each.moving = moving
            await world.settled()
            examined = n2.meta.integrity.examiner.examined
            await n1.meta.write(increment("k"))
            await world.settled()
            assert (n2.meta.integrity.examiner.examined > examined) != moving

    with registered(Effect.FOLLOWED) as made:
        world.run(scenario)


def test_garbage_that_was_found_before_a_disruption_is_not_removed_after_it() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await n1.meta.collector.pass_now()
        removing = n1.meta.collector._removing(Removal(keys=[key("k") + bytes(12)]))
        await n1.meta.write(removing)
        made[0].disrupted += 1
        with pytest.raises(Unavailable, match="found before a restore"):
            await n1.meta.write(removing)

    with registered(Effect.FOLLOWED) as made:
        world.run(scenario)


def test_changes_before_a_restores_begin_or_end_are_recent_no_more() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        before = (await n1.meta.write(put("k", b"v"))).ts
        await n1.meta.write(put("k", b"w"))
        recent = n1.meta.driver.feed.recent
        await world.until(lambda: bool(recent.all_since(before)), "both are applied")
        n1.meta.features.on_disrupted()
        assert recent.all_since(before) is None

    world.run(scenario)
