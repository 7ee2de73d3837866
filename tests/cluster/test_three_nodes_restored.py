"""Three nodes under backup and restore: afterwards each node holds the backup, key by key and version by version,
whichever node led or was down meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import grpc
import pytest

from cortado.proto.v1 import backups_pb2 as pb
from cortado.proto.v1 import common_pb2
from cortado.proto.v1.backups_pb2_grpc import BackupsStub
from cortado.store.backup.check import check_backup
from cortado.store.backup.create import BackupRequest, create_backup
from cortado.store.backup.manifest import Manifest, part_name
from cortado.store.backup.restore import Restored, RestoreRequest, restore_backup
from cortado.store.backup.runs import decode_run
from cortado.store.client import Client
from cortado.store.client.kv import Put
from cortado.store.client.values import timestamp_to_proto
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.mvcc.archive import archived_ranges
from support.cluster import Cluster, running_cluster
from support.random_history import TABLE, RandomHistory, Versions, state_of, versions_of
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

SMALL = 2 << 10
RETAIN = ("--raft.retain-entries", "20", "--raft.retain-bytes", "1000000")
"""So few entries are kept that a node is behind at once."""
VALUE = b"v" * 2_000


def beside(work: Callable[[], Any]) -> tuple[Thread, list[Any]]:
    """It runs in a thread; its result is in the list at the end."""
    returned: list[Any] = []
    thread = Thread(target=lambda: returned.append(work()))
    thread.start()
    return thread, returned


def held_by(cluster: Cluster, name: str, at: Timestamp) -> Versions:
    """All versions up to ``at`` that this node itself has."""
    found: Versions = set()
    with grpc.insecure_channel(cluster.addresses[name]) as channel:
        for start, end in archived_ranges():
            request = pb.ReadBackupRequest(
                start=start,
                end=end,
                at=common_pb2.ReadAt(timestamp=timestamp_to_proto(at)),
                since=timestamp_to_proto(ZERO),
                history=True,
            )
            for reply in BackupsStub(channel).Read(request, timeout=60):
                run = decode_run(reply.run, "a reply")
                found |= set(zip(run.keys, run.timestamps, run.values, strict=True))
    return found


def change_leaders(cluster: Cluster, times: int, ready: Callable[[int], bool]) -> None:
    for number in range(times):
        wait_until(lambda number=number: ready(number), "some parts are there")  # type: ignore[misc]
        leader = cluster.leader()
        cluster.kill(leader)
        cluster.start(leader)


def parts_done(cluster: Cluster) -> int:
    """As far as a node that answers has applied it; a restore that has ended has all."""
    with Client(cluster.endpoints, timeout_s=30) as client:
        status = client.admin.backups.restores.status()
        return 1 << 30 if status.ended else len(status.parts_done)


def test_leaders_are_killed_under_a_backup_and_under_its_restore(tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    with running_cluster(tmp_path) as cluster, Client(cluster.endpoints, read_from="any", timeout_s=60) as client:
        history = RandomHistory(client, 7)
        for _ in range(80):
            history.step()
        at = client.now()
        request = BackupRequest(folder, at=at, history=True, range_bytes=SMALL, streams=4)
        backup, made = beside(lambda: create_backup(client, request))
        change_leaders(cluster, 2, lambda number: (folder / part_name(5 * number)).exists())
        # Writes go on, and are not in it.
        for _ in range(10):
            history.step()
        backup.join(120)
        expected, state = versions_of(client, at, ZERO), state_of(client, at)
        assert isinstance(made[0], Manifest)
        assert check_backup(folder).versions == len(expected)
    (tmp_path / "restored").mkdir()
    with running_cluster(tmp_path / "restored") as cluster, Client(cluster.endpoints, timeout_s=60) as client:
        restore, restored = beside(lambda: restore_backup(client, RestoreRequest(folder, streams=4)))
        change_leaders(cluster, 2, lambda number: parts_done(cluster) >= 1 + 10 * number)
        restore.join(120)
        assert isinstance(restored[0], Restored)
        assert not restored[0].problems
        cluster.wait_converged()
        for name in cluster.addresses:
            assert held_by(cluster, name, at) == expected
        assert state_of(client, at) == state
        # Restored keys are written again, and every node has those writes, too.
        client.table(TABLE).put({"id": 1_000, "name": "later", "left": 1})
        client.kv("log").delete_range(prefix=b"")
        now = client.now()
        cluster.wait_converged()
        held = [held_by(cluster, name, now) for name in cluster.addresses]
        assert held[0] == held[1] == held[2] > expected


@pytest.mark.parametrize("comes_back", ["meanwhile", "afterwards"])
def test_a_node_that_was_down_gets_what_was_restored_by_snapshot(tmp_path: Path, comes_back: str) -> None:
    folder = tmp_path / "backup"
    with running_cluster(tmp_path, count=1) as cluster, Client(cluster.endpoints) as client:
        for batch in range(30):
            client.kv("log").batch([Put(b"%04d" % (batch * 100 + number), VALUE) for number in range(100)])
        manifest = create_backup(client, BackupRequest(folder, history=True, range_bytes=64 << 10))
        at = manifest.shape.at
    (tmp_path / "restored").mkdir()
    with running_cluster(tmp_path / "restored", *RETAIN) as cluster, Client(cluster.endpoints, timeout_s=60) as client:
        down = cluster.follower()
        cluster.kill(down)
        restore, restored = beside(lambda: restore_backup(client, RestoreRequest(folder)))
        if comes_back == "meanwhile":
            wait_until(lambda: parts_done(cluster) >= len(manifest.parts) // 2, "half of it is there")
            cluster.start(down)
        restore.join(120)
        assert isinstance(restored[0], Restored)
        if comes_back == "afterwards":
            cluster.start(down)
        cluster.wait_converged()
        assert "installed snapshot" in cluster.nodes[down].log
        expected = versions_of(client, at, ZERO)
        assert len(expected) == manifest.versions
        for name in cluster.addresses:
            assert held_by(cluster, name, at) == expected
        # With one of the others gone, nothing is read without the node that was down.
        cluster.kill(*[name for name in cluster.addresses if name != down][:1])
        assert sum(1 for pair in client.kv("log").scan() if pair.value == VALUE) == 3_000
