"""The client over a cluster of three processes whose leader is killed, stopped or replaced while it works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cortado.store.client import Client, Stale, Table
from cortado.store.client.aggregates import Groups
from support.cluster import Cluster, cortado, running_cluster
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]}
THREADS = 8


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.mend()


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.endpoints, timeout_s=30) as opened:
        yield opened


def kill(cluster: Cluster) -> None:
    cluster.kill(cluster.leader())


def pause(cluster: Cluster) -> None:
    cluster.pause(cluster.leader())


def cut(cluster: Cluster) -> None:
    cluster.cut(cluster.leader())


def hand_over(cluster: Cluster) -> None:
    cortado("member", "transfer-leader", "--endpoint", cluster.endpoints)


HOW = pytest.mark.parametrize("hurt", [kill, pause, cut, hand_over], ids=lambda each: each.__name__)


@HOW
def test_increments_count_once_each_whatever_becomes_of_the_leader(
    cluster: Cluster, client: Client, hurt: Callable[[Cluster], None]
) -> None:
    kv = client.kv(f"count-{hurt.__name__}")
    progress = [0] * THREADS
    stop = threading.Event()

    def count(thread: int) -> int:
        key, number = b"%d" % thread, 0
        kv.put(key, b"0")
        while not stop.is_set():
            # The condition holds exactly once: a write that happened twice, or was lost, fails the next one.
            kv.put(key, b"%d" % (number + 1), if_value=b"%d" % number)
            number += 1
            progress[thread] = number
        return number

    with ThreadPoolExecutor(THREADS) as pool:
        counting = [pool.submit(count, thread) for thread in range(THREADS)]
        try:
            wait_until(lambda: min(progress) > 5, "counting is under way")
            hurt(cluster)
            reached = list(progress)
            wait_until(
                lambda: all(now > then + 5 for now, then in zip(progress, reached, strict=True)),
                "every counter goes on",
            )
        finally:
            stop.set()
        counts = [each.result() for each in counting]
    assert [int(pair.value) for pair in kv.scan()] == counts


def rows_of(client: Client, name: str) -> Table:
    client.create_database(name)
    client.schemas.register(f"{name}.rows", ROW)
    client.create_table(f"{name}.rows", ["id"])
    return client.table(f"{name}.rows")


@pytest.mark.parametrize("hurt", [kill, pause, hand_over], ids=lambda each: each.__name__)
def test_a_bulk_load_outlives_its_leader_and_writes_every_row_once(
    cluster: Cluster, client: Client, hurt: Callable[[Cluster], None]
) -> None:
    table = rows_of(client, f"bulk_{hurt.__name__}")
    hurt_at = [3_000]

    def documents() -> Iterator[dict[str, Any]]:
        for number in range(10_000):
            if hurt_at and number >= hurt_at[0]:
                hurt_at.pop()
                hurt(cluster)
            yield {"id": number, "text": "x" * 100}

    # "insert" refuses a row that is there already: one that was written twice would be counted as refused.
    result = table.put_many(documents(), mode="insert", chunk_rows=200)
    assert (result.written, result.refused) == (10_000, 0)
    assert [document.value["id"] for document in table.scan()] == list(range(10_000))
    assert client.verify_indexes(table.full_name).rows_checked == 10_000


@pytest.mark.parametrize("hurt", [kill, pause], ids=lambda each: each.__name__)
def test_a_scan_goes_on_at_another_leader_at_the_same_timestamp(
    cluster: Cluster, client: Client, hurt: Callable[[Cluster], None]
) -> None:
    table = rows_of(client, f"scan_{hurt.__name__}")
    table.put_many({"id": number, "text": "x" * 200} for number in range(30_000))
    found = table.scan()
    seen = [next(found).value["id"] for _ in range(10)]
    table.update((29_999,), {"text": "changed"})
    hurt(cluster)
    rest = list(found)
    assert seen + [document.value["id"] for document in rest] == list(range(30_000))
    assert rest[-1].value["text"] == "x" * 200


@pytest.mark.parametrize("hurt", [kill, pause], ids=lambda each: each.__name__)
def test_an_aggregate_goes_on_at_another_leader_and_counts_each_row_once(
    cluster: Cluster, client: Client, hurt: Callable[[Cluster], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rows_of(client, f"aggregate_{hurt.__name__}")
    table.put_many({"id": number, "text": f"{number % 15_000:>01000}"} for number in range(30_000))
    replies = []
    add = Groups._add

    def counted(groups: Groups, reply: Any) -> None:
        replies.append(reply.header.node_id)
        if len(replies) == 3:
            hurt(cluster)
        add(groups, reply)

    monkeypatch.setattr(Groups, "_add", counted)
    # More groups than one reply holds, and each twice: the client merges those of different replies.
    rows = table.aggregate("count(*) as n, sum(id) as ids", group_by="text")
    assert [(row["n"], row["ids"]) for row in rows] == [(2, 2 * number + 15_000) for number in range(15_000)]
    assert len(set(replies)) == 2


def test_one_endpoint_is_enough_for_a_client_that_has_called_once(cluster: Cluster) -> None:
    leader = cluster.leader()
    with Client(cluster.addresses[leader], timeout_s=30) as client:
        kv = client.kv("one")
        kv.put(b"k", b"1")
        kv.put(b"k", b"2")
        wait_until(lambda: len(client._core._connection._route.addresses) == 3, "the members are known")
        cluster.kill(leader)
        kv.put(b"k", b"3", if_value=b"2")


def test_a_follower_answers_what_may_be_stale_and_what_is_past(cluster: Cluster, client: Client) -> None:
    kv = client.kv("past")
    kv.put(b"k", b"1")
    ts = client.now()
    kv.put(b"k", b"2")
    cluster.wait_converged()
    with Client(cluster.endpoints, read_from="any") as reader:
        answered = set()
        connection = reader._core._connection
        observe = connection.observe
        connection.observe = lambda header: (answered.add(header.node_id), observe(header))[1]  # type: ignore[func-returns-value, method-assign]
        for _ in range(6):
            found = reader.kv("past").get(b"k", at=ts)
            assert found is not None
            assert found.value == b"1"
        assert answered == set(cluster.nodes)
        found = reader.kv("past").get(b"k", at=Stale(5_000))
        assert found is not None
        assert found.value == b"2"


def test_a_rolling_restart_loses_no_request(cluster: Cluster, client: Client) -> None:
    kv = client.kv("rolling")
    progress = [0] * THREADS
    stop = threading.Event()

    def work(thread: int) -> None:
        while not stop.is_set():
            kv.put(b"%d" % thread, b"%d" % progress[thread])
            progress[thread] += 1

    with ThreadPoolExecutor(THREADS) as pool:
        working = [pool.submit(work, thread) for thread in range(THREADS)]
        try:
            for name in list(cluster.nodes):
                reached = list(progress)
                assert cluster.nodes[name].stop() == 0
                cluster.start(name)
                cluster.leader()
                wait_until(
                    lambda reached=reached: (
                        any(each.done() for each in working)
                        or all(now > then for now, then in zip(progress, reached, strict=True))
                    ),
                    "writes go on",
                )
        finally:
            stop.set()
        for each in working:
            each.result()


def test_the_command_line_takes_several_endpoints(cluster: Cluster, tmp_path: Path) -> None:
    dead = "127.0.0.1:1"
    cortado("kv", "put", "cli", "k", "v", "--endpoint", f"{dead},{cluster.endpoints}")
    assert "v" in cortado("kv", "get", "cli", "k", "--endpoint", f"{cluster.endpoints},{dead}")
