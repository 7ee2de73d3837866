"""A cluster of real processes grows, shrinks, hands over and restarts under load, and its clients lose nothing."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cortado.store.cli.app import run
from cortado.store.cli.failures import UNAVAILABLE
from cortado.store.client import Client
from support.cluster import Cluster, cortado
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]


class Writer(threading.Thread):
    """Puts one key after the other, and reads each back. Every call must work: ``problem`` is the first that did not.

    Several share a client, so that calls travel alone and together.
    """

    def __init__(self, client: Client, name: str, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._kv = client.kv("written")
        self.writer = name
        self._stop_event = stop
        self.done = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            for number in itertools.count():
                if self._stop_event.is_set():
                    return
                key = f"{self.writer}:{number:08d}".encode()
                self._kv.put(key, b"%d" % number)
                found = self._kv.get(key)
                assert found is not None, f"{key!r} was acknowledged, and is not there"
                self.done = number + 1
        except BaseException as problem:
            self.problem = problem


class Writers:
    """Some at once; ``written`` has the pairs that must be there at the end."""

    def __init__(self, client: Client, count: int) -> None:
        self._stop_event = threading.Event()
        self._threads = [Writer(client, f"w{number}", self._stop_event) for number in range(count)]
        for each in self._threads:
            each.start()

    @property
    def written(self) -> dict[bytes, bytes]:
        return {
            f"{each.writer}:{number:08d}".encode(): b"%d" % number
            for each in self._threads
            for number in range(each.done)
        }

    def wait_for_progress(self) -> None:
        """Every one of them goes on."""
        goals = [each.done + 10 for each in self._threads]

        def is_reached() -> bool:
            assert [each.problem for each in self._threads if each.problem is not None] == []
            return all(each.done >= goal for each, goal in zip(self._threads, goals, strict=True))

        wait_until(is_reached, "all writers go on")

    def stop(self) -> None:
        self._stop_event.set()
        for each in self._threads:
            each.join()
        assert [each.problem for each in self._threads if each.problem is not None] == []


@contextmanager
def written_to(client: Client, count: int = 1) -> Iterator[Writers]:
    """Writes go on meanwhile; at the end none has failed, and each is there."""
    writers = Writers(client, count)
    try:
        writers.wait_for_progress()
        yield writers
        writers.wait_for_progress()
    finally:
        writers.stop()
    assert {pair.key: pair.value for pair in client.kv("written").scan()} == writers.written


def members(cluster: Cluster) -> dict[str, bool]:
    """Node ids, and whether each is a voter, as the leader says."""
    with Client(cluster.addresses[cluster.leader()]) as client:
        return {each.node_id: each.voter for each in client.admin.members.list().members}


def wait_caught_up(cluster: Cluster) -> None:
    """Until every member answers the leader and lacks next to nothing, as an operator waits for."""
    with Client(cluster.endpoints, timeout_s=30) as client:

        def are_caught_up() -> bool:
            found = client.admin.members.list(at_leader=True)
            others = [each for each in found.members if each.node_id != found.leader]
            return all(each.behind is not None and each.behind < 50 and each.last_heard_ms < 1_000 for each in others)

        wait_until(are_caught_up, "all members are caught up")


def test_one_node_with_data_becomes_three_under_load(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.nodes["n1"].start()
        with Client(cluster.addresses["n1"], timeout_s=30) as client:
            client.kv("before").put(b"k", b"v" * 100_000)
            with written_to(client) as writer:
                for name in ("n2", "n3"):
                    cluster.add(name)
                    writer.wait_for_progress()
            assert members(cluster) == {"n1": True, "n2": True, "n3": True}
            cluster.assert_same_contents("before", "written")
            # The first node alone is no majority any more, and the two others are one.
            cluster.kill("n1")
        with Client(cluster.endpoints, timeout_s=30) as client:
            assert client.kv("before").get(b"k").value == b"v" * 100_000  # type: ignore[union-attr]
    finally:
        cluster.end()


def test_a_rolling_restart_loses_no_request(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.form()
        with Client(cluster.endpoints, timeout_s=30) as client, written_to(client, count=8) as writer:
            for name in cluster.nodes:
                was_leader = cluster.leader() == name
                assert cluster.nodes[name].stop() == 0
                assert not was_leader or " leads now" in cluster.nodes[name].log, "it hands over before it stops"
                writer.wait_for_progress()
                cluster.start(name)
                wait_caught_up(cluster)
                writer.wait_for_progress()
        cluster.assert_same_contents("written")
    finally:
        cluster.end()


def test_the_leader_is_removed_and_a_new_node_takes_its_place(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, count=4)
    try:
        cluster.nodes["n1"].start()
        for name in ("n2", "n3"):
            cluster.add(name)
        with Client(cluster.endpoints, timeout_s=30) as client, written_to(client) as writer:
            removed = cluster.leader()
            cortado("member", "remove", removed, "--yes", "--endpoint", cluster.endpoints)
            assert removed not in members(cluster)
            writer.wait_for_progress()
            cluster.add("n4")
            assert members(cluster) == {name: True for name in cluster.nodes if name != removed}
            # A majority is now two others and the new one.
            cluster.kill(removed, next(name for name in ("n1", "n2", "n3") if name != removed))
        assert "n4" in members(cluster)
    finally:
        cluster.end()


def test_a_cluster_grows_by_one_command_that_may_be_run_again(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, count=2)
    first, *others = cluster.nodes
    wanted = [f"{name}={cluster.nodes[name].peer_address}" for name in others]
    asked = ("--endpoint", cluster.endpoints, "-o", "json")
    try:
        cluster.nodes[first].start()
        # It announces the other, which is what that one waits for.
        assert run(["member", "grow", *wanted, "--wait-timeout", "0.1", "--timeout", "0.5", *asked]) == UNAVAILABLE
        assert run(["health", *asked]) == UNAVAILABLE
        for name in others:
            cluster.nodes[name].start()
        for _ in range(2):
            assert json.loads(cortado("member", "grow", *wanted, *asked)) == {"voters": list(cluster.nodes)}
        assert [json.loads(line)["serving"] for line in cortado("health", *asked).splitlines()] == [True] * 2
    finally:
        cluster.end()
