"""A disk that is slow makes a group slow. One that hangs, if others do better, loses its node the leadership."""

from __future__ import annotations

import pytest

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.log import Encoded
from cortado.raft.records import KIND_DATA, Record
from cortado.raft.settings import RaftSettings
from support.raft_hand import GROUP, Hand
from support.raft_world import World, quiet_rates


@pytest.mark.parametrize("sync_ms", [600.0, 1_500.0, 3_000.0])
@pytest.mark.parametrize("voters", [2, 3, 5])
@pytest.mark.parametrize("seed", [1])
def test_commits_that_take_longer_than_an_election_everywhere_make_a_group_slow_and_no_more(
    sync_ms: float, voters: int, seed: int
) -> None:
    world = World(seed, voters=voters, rates=quiet_rates(propose_ms=200.0), settings=RaftSettings())
    world.disk_delay_ms = lambda replica: sync_ms * (1 + 0.1 * int(replica.node_id[1:]))  # type: ignore[method-assign]
    world.run(1_000)
    assert world.run_until(100 * sync_ms, lambda: world.leader() is not None), "somebody leads"
    world.run_until(world.now_ms + 5 * sync_ms)
    led = world.leader()
    assert led is not None
    term, before = led.log.term, world.counts["acknowledged"]  # type: ignore[union-attr]
    world.run_until(world.now_ms + 20 * sync_ms)
    assert world.leader() is led
    assert led.log.term == term  # type: ignore[union-attr]
    assert world.counts["acknowledged"] - before > 30


def test_disks_that_become_slow_at_once_cost_few_leaderships() -> None:
    world = World(5, rates=quiet_rates(propose_ms=50.0), settings=RaftSettings())
    world.run(5_000)
    led = world.leader()
    assert led is not None
    term = led.log.term  # type: ignore[union-attr]
    world.disk_delay_ms = lambda replica: 2_000.0  # type: ignore[method-assign]
    world.run_until(world.now_ms + 60_000)
    now = world.leader()
    assert now is not None
    assert now.log.term <= term + 3  # type: ignore[union-attr]


@pytest.mark.parametrize("slow_ms", [2_000.0, 1e9])
def test_a_leader_whose_disk_alone_is_slow_gives_way(slow_ms: float) -> None:
    world = World(7, rates=quiet_rates(propose_ms=50.0), settings=RaftSettings())
    world.run(5_000)
    led = world.leader()
    assert led is not None
    world.disk_delay_ms = lambda replica: slow_ms if replica is led else 1.0  # type: ignore[method-assign]
    assert world.run_until(world.now_ms + 8_000, lambda: world.leader() not in (None, led)), "another one leads"
    before = world.counts["acknowledged"]
    world.run_until(world.now_ms + 2_000)
    assert world.counts["acknowledged"] - before > 10


def test_data_that_hangs_costs_no_leadership_and_no_commit() -> None:
    world = World(9, rates=quiet_rates(propose_ms=50.0), settings=RaftSettings())
    world.run(5_000)
    led = world.leader()
    assert led is not None
    world.data_delay_ms = lambda replica: 10_000.0 if replica is led else 1.0  # type: ignore[method-assign]
    before = world.counts["acknowledged"]
    world.run_until(world.now_ms + 8_000)
    assert world.leader() is led
    assert world.counts["acknowledged"] - before > 100
    assert led.log.applying.backlog > 100  # type: ignore[union-attr]


def test_what_a_leader_counted_alone_and_had_not_stored_is_not_decided_once_it_leads_no_more() -> None:
    group = Hand(2)
    group.elect("n1")
    log = group.logs["n1"]
    committed = log.durable_commit_index
    log.members.remove("n2")
    group.append("n1", b"a")
    group.pass_ms(1, "n1")
    assert log.durable_commit_index == committed
    group.forge("n2", "n1", term=log.term + 1, heartbeat=pb.Heartbeat(round=1))
    assert log.leader == "n2"
    assert log.durable_commit_index == committed
    # Nor is it defended against the next leader.
    other = Record(KIND_DATA, Encoded(b"other"), committed + 1, log.term).stored(GROUP)
    append = pb.AppendEntries(prev_index=committed, prev_term=2, commit_index=committed + 1, records=[other])
    group.forge("n2", "n1", term=log.term, append=append)
    assert log.last == (committed + 1, log.term)
    assert log.durable_commit_index == committed, "it is not on the disk"
    group.store("n1")
    assert group.applied["n1"][-1].payload.encode() == b"other"
