"""Three real nodes are killed, paused and cut off under load: what clients were told stays true, and they go on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cortado.store.client import Client
from support.callers import Crowd, calling
from support.cluster import Cluster

pytestmark = pytest.mark.process


def kill_the_leader(cluster: Cluster, crowd: Crowd) -> None:
    leader, term = cluster.leader(), cluster.term()
    cluster.kill(leader)
    assert cluster.leader(besides=[leader]) != leader
    assert cluster.term() > term
    crowd.wait_for_progress()
    cluster.start(leader)


def kill_a_follower(cluster: Cluster, crowd: Crowd) -> None:
    leader, follower, term = cluster.leader(), cluster.follower(), cluster.term()
    cluster.kill(follower)
    crowd.wait_for_progress()
    cluster.start(follower)
    crowd.wait_for_progress()
    assert (cluster.leader(), cluster.term()) == (leader, term), "a follower that comes back disturbs nobody"


def kill_all_at_once(cluster: Cluster, crowd: Crowd) -> None:
    cluster.kill(*cluster.nodes)
    cluster.start()
    crowd.wait_for_progress()


def kill_every_leader_that_comes(cluster: Cluster, crowd: Crowd) -> None:
    for _ in range(3):
        leader = cluster.leader()
        cluster.kill(leader)
        cluster.start(leader)
        crowd.wait_for_progress(10)


def pause_the_leader(cluster: Cluster, crowd: Crowd) -> None:
    """It wakes up in a term that is not its own any more, with requests in its hands."""
    leader = cluster.leader()
    cluster.pause(leader)
    other = cluster.leader(besides=[leader])
    crowd.wait_for_progress()
    cluster.resume(leader)
    crowd.wait_for_progress()
    assert cluster.leader() == other


def cut_the_leader_off(cluster: Cluster, crowd: Crowd) -> None:
    leader = cluster.leader()
    cluster.cut(leader)
    other = cluster.leader(besides=[leader])
    crowd.wait_for_progress()
    cluster.heal()
    crowd.wait_for_progress()
    assert cluster.leader() == other


def cut_a_follower_off(cluster: Cluster, crowd: Crowd) -> None:
    leader, follower, term = cluster.leader(), cluster.follower(), cluster.term()
    cluster.cut(follower)
    crowd.wait_for_progress(200)
    cluster.heal()
    cluster.wait_converged()
    assert (cluster.leader(), cluster.term()) == (leader, term), "a follower that was cut off disturbs nobody"


@pytest.mark.parametrize(
    "hurt",
    [
        kill_the_leader,
        kill_a_follower,
        kill_all_at_once,
        kill_every_leader_that_comes,
        pause_the_leader,
        cut_the_leader_off,
        cut_a_follower_off,
    ],
    ids=lambda hurt: hurt.__name__,
)
def test_what_clients_were_told_stays_true(three_nodes: Cluster, hurt: Callable[[Cluster, Crowd], None]) -> None:
    name = hurt.__name__.replace("_", "-")
    with Client(three_nodes.endpoints, timeout_s=30) as client:
        with calling(client, name) as crowd:
            hurt(three_nodes, crowd)
            three_nodes.mend()
        three_nodes.assert_same_contents(name, f"{name}-tokens")


def test_a_rolling_restart_under_load_loses_no_request(three_nodes: Cluster) -> None:
    with Client(three_nodes.endpoints, timeout_s=30) as client, calling(client, "rolling", hasty=False) as crowd:
        for name in three_nodes.nodes:
            node = three_nodes.nodes[name]
            assert node.stop() == 0
            crowd.wait_for_progress()
            node.start()
            three_nodes.wait_converged()
        assert crowd.unknown == [], "somebody does not know what became of a request"


def test_leadership_is_handed_over_under_load_without_a_lost_request(three_nodes: Cluster) -> None:
    with Client(three_nodes.endpoints, timeout_s=30) as client, calling(client, "transfer", hasty=False) as crowd:
        for _ in range(3):
            before = three_nodes.leader()
            after = client.admin.members.transfer_leader()
            assert after != before
            assert three_nodes.leader() == after
            crowd.wait_for_progress()
        assert crowd.unknown == [], "somebody does not know what became of a request"
