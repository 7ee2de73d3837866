"""Namespaces that are dropped and brought back while nodes are killed: every acknowledged write is in one of the lives,
once; and around the end of the grace all pairs come back, or none."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from cortado.errors import CortadoError, InvalidArgument, NotFound, OutcomeUnknown
from cortado.store.client import Client
from cortado.store.client.kv import Put
from support.cluster import Cluster
from support.server_process import running_server, wait_until

pytestmark = pytest.mark.process

NAME = "over-kills"
ADDERS, KILLS = 3, 3
PAIRS = 2_000
NAMESPACES = 4


class Adders:
    """Each adds to a counter of its own, and counts acknowledged adds, and adds with an unknown outcome."""

    def __init__(self, endpoints: str) -> None:
        self.acknowledged, self.unknown = [0] * ADDERS, [0] * ADDERS
        self.stop = Event()
        self._endpoints = endpoints
        self._threads = [Thread(target=self._add, args=(place,)) for place in range(ADDERS)]
        self._threads.append(Thread(target=self._drop))

    def __enter__(self) -> Adders:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for each in self._threads:
            each.join()

    def _add(self, place: int) -> None:
        with Client(self._endpoints, timeout_s=30) as client:
            while not self.stop.is_set():
                try:
                    client.kv(NAME).add(b"%d" % place, 1)
                    self.acknowledged[place] += 1
                except OutcomeUnknown:
                    self.unknown[place] += 1

    def _drop(self) -> None:
        with Client(self._endpoints, timeout_s=30) as client:
            while not self.stop.is_set():
                for verb in (client.drop_namespace, client.undrop_namespace):
                    with suppress(CortadoError):
                        verb(NAME)


def test_no_add_is_lost_or_doubled_over_all_lives(three_nodes: Cluster) -> None:
    with Adders(three_nodes.endpoints) as adders:
        for _ in range(KILLS):
            before = sum(adders.acknowledged)
            wait_until(lambda before=before: sum(adders.acknowledged) > before + 50, "adds go on")  # type: ignore[misc]
            leader = three_nodes.leader()
            three_nodes.kill(leader)
            three_nodes.start(leader)
    total = [0] * ADDERS
    with Client(three_nodes.endpoints, timeout_s=30) as client:
        with suppress(NotFound):
            client.drop_namespace(NAME)
        records = [each for each in client.dropped() if each.name == NAME]
        for record in records:
            client.undrop_namespace(NAME, number=record.number)
            for pair in client.kv(NAME).scan():
                total[int(pair.key)] += int.from_bytes(pair.value)
            client.kv(NAME).delete_range(prefix=b"")
    assert len(records) > 1
    for acknowledged, unknown, there in zip(adders.acknowledged, adders.unknown, total, strict=True):
        assert acknowledged <= there <= acknowledged + unknown
    three_nodes.wait_converged()


def test_at_the_end_of_the_grace_all_pairs_come_back_or_none(tmp_path: Path) -> None:
    pick = random.Random(7)
    with running_server(tmp_path / "data", "--retention", "1s") as server, Client(server.endpoint) as client:
        for number in range(NAMESPACES):
            client.kv(f"n{number}").batch([Put(b"%d" % key, b"v") for key in range(PAIRS)])
        for number in range(NAMESPACES):
            name = f"n{number}"
            client.drop_namespace(name)
            if number % 2:
                server.kill()
                server.start()
            # Some of them only once their record goes, or is marked; the others at any time before.
            if pick.random() < 0.5:
                wait_until(lambda name=name: not _may_come_back(client, name), "the grace is over")  # type: ignore[misc]
            try:
                client.undrop_namespace(name)
                expected = PAIRS
            except (InvalidArgument, NotFound):
                expected = 0
            assert sum(1 for _ in client.kv(name).scan(keys_only=True)) == expected
        wait_until(lambda: not client.dropped(), "all that stays away is cleared")


def _may_come_back(client: Client, name: str) -> bool:
    return any(each.name == name and not each.is_clearing for each in client.dropped())
