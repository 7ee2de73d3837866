"""The holder of a lease finds a lease that ended though it was held, and takes one that made room."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from cortado.store.collection.leases import Lease
from cortado.store.replica.collection import leases
from cortado.store.replica.collection.leases import Leases
from support.nodes import put
from support.simulation.cluster import Cluster
from support.simulation.collected import Holder, Record
from support.simulation.disk import Scarcity
from support.simulation.process import NodeOptions

RUN_MS = 30_000.0


def held(while_it_runs: Callable[[Cluster], None]) -> Cluster:
    """Run one node for a while, with a writer that leaves garbage behind, and one holder."""
    cluster = Cluster("held", NodeOptions(retention_ms=500))
    cluster.add_host("n1", is_first=True)
    cluster.members.append("n1")
    holder = Holder(cluster, "holder", random.Random(1), [b"k"])

    async def write() -> None:
        while True:
            await holder._ask(lambda node: node.meta.write(put("k", b"v")))
            await cluster.sleep(20)

    with Record().recording(cluster.ended_for_room):
        try:
            cluster.start("n1")
            cluster.world.create_task(write(), name="writer")
            cluster.world.create_task(holder.run(), name="holder")
            while_it_runs(cluster)
            cluster.scheduler.run_until(lambda: bool(cluster.violations), until_ms=RUN_MS)
        finally:
            cluster.bury()
    assert cluster.counts["reads at leases"] > 0
    return cluster


def test_a_lease_that_a_leader_with_next_to_no_room_ends_is_held_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "MAKE_ROOM_MS", 1_000.0)

    def take_room_now_and_then(cluster: Cluster) -> None:
        disk = cluster.hosts["n1"].disk

        async def take() -> None:
            while True:
                await cluster.sleep(1_500)
                # The leader's own writes have room in its reserve.
                disk.scarcity = Scarcity(1 << 20, lambda: None)
                await cluster.sleep(1_200)
                disk.scarcity = None

        cluster.world.create_task(take(), name="take")

    cluster = held(take_room_now_and_then)
    assert cluster.violations == []
    assert cluster.counts["reads at leases that ended for want of room"] > 0


def test_a_lease_that_a_leader_with_room_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_them(each: Leases) -> Sequence[Lease]:
        return [held.lease for held in each._seen()]

    monkeypatch.setattr(Leases, "_in_the_way", all_of_them)
    [violation] = held(lambda _cluster: None).violations
    assert "a read at a lease that is held was refused" in violation


def test_a_lease_that_nothing_ends_is_read_for_as_long_as_it_is_held() -> None:
    assert held(lambda _cluster: None).violations == []
