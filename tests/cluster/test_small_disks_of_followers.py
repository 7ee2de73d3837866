"""Followers with smaller disks than their leader's: writes are refused before a majority's disks are full, and what
frees room brings writes back. Nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from cortado.errors import ResourceExhausted, Unavailable
from cortado.store.client import Client
from support.cluster import Cluster
from support.server_process import wait_until
from support.small_disk import mounted_disk

pytestmark = pytest.mark.process

DISKS_MIB = {"n1": 200, "n2": 110, "n3": 110}
VALUE = b"v" * 20_000
FREED_S = 240


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three nodes, each on a disk of its own, without old versions."""
    with ExitStack() as disks:
        for node_id, size_mib in DISKS_MIB.items():
            disk = disks.enter_context(mounted_disk(tmp_path / f"disk-{node_id}", size_mib))
            (disk / "data").mkdir()
            # The data alone is on the small disk; log and port file are not.
            (tmp_path / node_id).symlink_to(disk / "data", target_is_directory=True)
        formed = Cluster(tmp_path, "--retention", "10s")
        try:
            yield formed.form()
        finally:
            formed.end()


def fill(cluster: Cluster, client: Client, namespace: str) -> tuple[dict[bytes, bytes], ResourceExhausted]:
    """Return the writes that were acknowledged until the leader n1 refused one, since another member has no room; and
    that refusal."""
    kv, stored = client.kv(namespace), dict[bytes, bytes]()
    while True:
        key, value = b"%06d" % len(stored), b"%06d" % len(stored) + VALUE
        try:
            # With time for a machine that is slow: where a majority is full there is never an answer.
            kv.put(key, value)
        except ResourceExhausted as refused:
            assert kv.get(key) is None, "what was refused is not there"
            if cluster.leader() == "n1" and "n2" in refused.message():
                return stored, refused
            # Another one leads for a moment, whose own disk is small.
            lead(cluster, client)
            continue
        stored[key] = value


def lead(cluster: Cluster, client: Client) -> None:
    """The node with the large disk leads."""
    while cluster.leader() != "n1":
        with suppress(Unavailable):  # It may be silent for a moment.
            client.admin.members.transfer_leader("n1")


def is_writable(client: Client) -> bool:
    try:
        client.kv("kept").put(b"again", VALUE)
    except ResourceExhausted:
        return False
    return True


def test_writes_are_refused_before_a_majority_is_full_and_what_frees_room_brings_them_back(cluster: Cluster) -> None:
    with Client(cluster.endpoints, timeout_s=60) as client:
        lead(cluster, client)
        client.kv("kept").put(b"k", VALUE)
        stored, refused = fill(cluster, client, "filled")
        assert "n3" in refused.message()
        assert refused.retry_delay_ms
        wait_until(
            lambda: (
                {each.node_id for each in client.admin.members.list(at_leader=True).members if each.no_room}
                == {"n2", "n3"}
            ),
            "the members without room are listed",
        )
        frees: list[Callable[[], object]] = [
            lambda: client.kv("filled").delete(b"000000"),
            lambda: client.kv("filled").delete_range(prefix=b"0000"),
            lambda: client.drop_namespace("filled"),
        ]
        # All of them crash where they stand, and find their room as it was.
        cluster.kill(*DISKS_MIB)
        cluster.start(*DISKS_MIB)
        lead(cluster, client)
        for free in frees:
            free()
        wait_until(lambda: is_writable(client), "writes are taken again", FREED_S)
        # Once more, into the room that came back; and its end.
        lead(cluster, client)
        again, _ = fill(cluster, client, "again")
        assert len(again) > len(stored) // 2
        client.drop_namespace("again")
        wait_until(lambda: is_writable(client), "writes are taken again", FREED_S)
        assert {pair.key: pair.value for pair in client.kv("kept").scan()} == {b"k": VALUE, b"again": VALUE}
        assert not list(client.kv("again").scan())
    cluster.wait_converged()
    cluster.assert_same_contents("kept", "filled", "again")
