"""Damage of the log files that no majority survives: each replica says that its log can't be trusted, no node leads,
and no client gets a new answer. (One damaged replica at a time is a fault that all seeds may have.)"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import pytest

from support.simulation.log_lies import LogLies
from support.simulation.run import Plan, Run

pytestmark = pytest.mark.slow

SEEDS = range(6)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def damaged_cluster(seed: int, damaged: int) -> Run:
    """Run three voters under load; then power is lost everywhere, and ``damaged`` of their logs come back damaged."""
    run = Run(seed, Plan(nodes=3, clients=4), lambda _cluster, nemesis: nemesis.enabled.clear())
    cluster = run.cluster
    assert run._grow()
    run._until(lambda: sum(client.done for client in run.clients) > 200, 30_000)
    for host in cluster.hosts.values():
        cluster.crash(host.node_id)
    lies = LogLies(random.Random(seed))
    for host in list(cluster.hosts.values())[:damaged]:
        while not host.disk.log.damaged():
            lies.strike(host.disk.log)
    return run


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("damaged", [2, 3])
def test_where_no_majority_can_trust_its_log_nothing_is_returned_and_the_loss_is_named(seed: int, damaged: int) -> None:
    run = damaged_cluster(seed, damaged)
    cluster = run.cluster
    began_ms = cluster.now_ms
    for host in cluster.hosts.values():
        cluster.start(host.node_id)
    run._until(lambda: False, 5_000)
    hosts = list(cluster.hosts.values())
    assert [host.is_log_refused for host in hosts] == [place < damaged for place in range(3)]
    assert cluster.counts["processes ended by a damaged log"] >= damaged
    assert cluster.leader() is None and not cluster.violations
    assert not [each for each in run.history.writes if each.outcome == "acknowledged" and each.end_ms > began_ms]
    # The past stands, and a node that has it whole may serve it.
    told = [each for each in run.history.reads if each.end_ms > began_ms]
    assert {(each.kind, each.node) for each in told} <= {("at", "n3"), ("stale", "n3")} and (damaged == 2 or not told)
    cluster.bury()


@pytest.mark.parametrize("seed", SEEDS)
def test_where_a_majority_can_the_cluster_goes_on_without_the_third(seed: int) -> None:
    run = damaged_cluster(seed, 1)
    cluster = run.cluster
    for host in cluster.hosts.values():
        cluster.start(host.node_id)
    done = sum(client.done for client in run.clients)
    assert run._until(lambda: sum(client.done for client in run.clients) > done + 50, 30_000)
    assert [host.is_log_refused for host in cluster.hosts.values()] == [True, False, False]
    cluster.bury()
