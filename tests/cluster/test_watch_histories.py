"""Conditions of three real nodes, while leaders are killed, nodes are cut off and started again: each watcher saw the
committed changes, in order, without gaps, and never below a mark."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence

import pytest

from cortado.errors import CortadoError
from cortado.store.client import Client, Delete, Put
from cortado.store.clock.timestamp import ZERO, Timestamp
from support.cluster import Cluster, running_cluster
from support.cluster_watchers import ClientWatcher, NodeWatcher, everything
from support.server_process import wait_until
from support.watch_history import Seen, problems, state_after

NAMESPACE = "watched"
KEYS = [b"k%02d" % number for number in range(40)]
CAUGHT_UP_S = 60.0
LOAD_S = 60.0


class Writer(threading.Thread):
    """Writes batches of several keys, and notes those that were acknowledged."""

    def __init__(self, client: Client, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._kv = client.kv(NAMESPACE)
        self._number = number
        self._random = random.Random(number)
        self._stop_event = stop
        self.acknowledged: list[Seen] = []
        self.written = 0

    def run(self) -> None:
        while not self._stop_event.wait(0.004):
            self.written += 1
            keys = self._random.sample(KEYS, self._random.choice([1, 1, 3]))
            value = b"%d-%d" % (self._number, self.written)
            operations = [Delete(key) if self._random.random() < 0.2 else Put(key, value) for key in keys]
            try:
                ts = Timestamp.parse(self._kv.batch(operations))
            except CortadoError:
                continue  # The watchers see the outcome.
            self.acknowledged += [Seen(ts, each.key, value if isinstance(each, Put) else None) for each in operations]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("watched")) as running:
        yield running


def test_watchers_see_what_was_committed_through_kills_cuts_and_restarts(cluster: Cluster) -> None:
    stop = threading.Event()
    with Client(cluster.endpoints, timeout_s=30) as client:
        client.kv(NAMESPACE).put(b"k00", b"before")
        begin = client.now()
        writers = [Writer(client, number, stop) for number in range(3)]
        watchers = [NodeWatcher(address, NAMESPACE, ZERO) for address in cluster.addresses.values()]
        through = [ClientWatcher(client, NAMESPACE, after) for after in (ZERO, begin)]
        for each in (*writers, *watchers, *through):
            each.start()
        hurt(cluster, writers)
        stop.set()
        for writer in writers:
            writer.join(60)
        cluster.mend()
        last = Timestamp.parse(client.kv(NAMESPACE).put(b"k00", b"last"))
        seen_all = [*watchers, *through]
        wait_until(
            lambda: all(each.resolved >= last or each.problem for each in seen_all), "all have seen all", CAUGHT_UP_S
        )
        for each in seen_all:
            each.stop()
            assert each.problem is None, each.problem
        committed, *others = (everything(address, NAMESPACE, last) for address in cluster.addresses.values())
        assert all(other == committed for other in others), "replicas tell different histories"
        acknowledged = [each for writer in writers for each in writer.acknowledged]
        for lost in set(acknowledged) - set(committed):
            # Deleting an absent key changes nothing.
            assert lost.value is None, lost
            assert lost.key not in state_after({}, committed, lost.ts)
        for each in seen_all:
            history = [event for event in each.history if event.ts <= last]
            assert problems(history, each.after, committed) == []
        stored = {pair.key: pair.value for pair in client.kv(NAMESPACE).scan(at=last)}
        assert state_after({}, watchers[0].history, last) == stored
        # The nodes were indeed left and found again.
        assert sum(each.streams for each in watchers) >= 2


def hurt(cluster: Cluster, writers: Sequence[Writer]) -> None:
    """A killed leader, nodes that are cut off, a restart in order: each with load before, after and in between."""
    load(writers)
    leader = cluster.leader()
    cluster.kill(leader)
    cluster.leader(besides=[leader])
    load(writers)
    cluster.start(leader)
    follower = cluster.follower()
    cluster.cut(follower)
    load(writers)
    cluster.heal()
    cluster.wait_converged()
    leader = cluster.leader()
    cluster.cut(leader)
    cluster.leader(besides=[leader])
    load(writers)
    cluster.heal()
    cluster.wait_converged()
    leader = cluster.leader()
    cluster.nodes[leader].stop()
    load(writers)
    cluster.start(leader)


def load(writers: Sequence[Writer], writes: int = 40) -> None:
    """Return when so many writes more were acknowledged."""
    goal = sum(len(each.acknowledged) for each in writers) + writes
    wait_until(lambda: sum(len(each.acknowledged) for each in writers) >= goal, "writes go on", LOAD_S)
