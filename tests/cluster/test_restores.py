"""A restore equals its backup: key by key, version by version, through kills of all processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cortado.errors import CortadoError, InvalidArgument, SnapshotTooOld, TooLarge
from cortado.store.backup.create import BackupRequest, create_backup
from cortado.store.backup.restore import RestoreRequest, abandon_restore, restore_backup
from cortado.store.client import Client
from cortado.store.client.blocking.backups import Restores
from cortado.store.client.kv import Put
from cortado.store.client.tables import Index
from cortado.store.clock.timestamp import ZERO, Timestamp
from support.cluster import running_cluster
from support.random_history import SCHEMA, TABLE, RandomHistory, state_of, versions_of
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

SMALL = 4 << 10
RUN = """
import sys
from pathlib import Path
from cortado.store.backup.restore import RestoreRequest, restore_backup
from cortado.store.client import Client
with Client(sys.argv[1]) as client:
    restore_backup(client, RestoreRequest(Path(sys.argv[2])))
"""


def begin_restoring(endpoint: str, directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", RUN, endpoint, str(directory)])


def parts_done(endpoint: str) -> int:
    """-1 if no node answers."""
    try:
        with Client(endpoint, timeout_s=2) as client:
            status = client.admin.backups.restores.status()
            return sys.maxsize if status.ended else len(status.parts_done)
    except CortadoError:
        return -1


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A backup of some dozens of parts, and how many versions it has."""
    folder = tmp_path_factory.mktemp("backed-up")
    with running_server(folder / "data") as server, Client(server.endpoint) as client:
        pairs = client.kv("log")
        for batch in range(20):
            pairs.batch([Put(b"%04d" % (batch * 100 + number), b"v" * 500) for number in range(100)])
        manifest = create_backup(client, BackupRequest(folder / "backup", range_bytes=32 << 10))
    assert len(manifest.parts) > 20
    return folder / "backup", manifest.versions


@pytest.mark.parametrize("seed", range(4))
def test_a_random_history_comes_back_version_by_version(tmp_path: Path, seed: int) -> None:
    is_history = bool(seed % 2)
    with running_server(tmp_path / "data") as server, Client(server.endpoint, read_from="any") as client:
        history, times = RandomHistory(client, seed), list[Timestamp]()
        base: Path | None = None
        for number in range(3):
            for _ in range(25):
                history.step()
                times.append(client.now())
            directory = tmp_path / f"backup-{number}"
            create_backup(client, BackupRequest(directory, base=base, history=is_history, range_bytes=SMALL))
            base = directory
        assert base is not None
        newest = times[-1]
        states = {at: state_of(client, at) for at in times[::7]}
        all_versions, state = versions_of(client, newest, ZERO), state_of(client, newest)
    with running_server(tmp_path / "restored") as server, Client(server.endpoint, read_from="any") as client:
        restored = restore_backup(client, RestoreRequest(base))
        assert (restored.timestamp, restored.backups, restored.problems) == (newest, 3, ())
        assert state_of(client, newest) == state
        if is_history:
            assert versions_of(client, newest, ZERO) == all_versions
            assert {at: state_of(client, at) for at in states} == states
        else:
            with pytest.raises(SnapshotTooOld):
                versions_of(client, newest, ZERO)
            with pytest.raises(SnapshotTooOld):
                client.kv("log").get(b"k1", at=max(at for at in times if at < newest))
        client.kv("log").put(b"k1", b"again")
        assert client.kv("log").get(b"k1").value == b"again"  # type: ignore[union-attr]
    if is_history:
        at = times[40]
        with running_server(tmp_path / "earlier") as server, Client(server.endpoint) as client:
            restored = restore_backup(client, RestoreRequest(base, at=at))
            assert (restored.timestamp, restored.backups, restored.problems) == (at, 2, ())
            assert state_of(client, client.now()) >= state_of(client, at)
            assert versions_of(client, client.now(), ZERO) == {each for each in all_versions if each[1] <= bytes(at)}
    else:
        with pytest.raises(InvalidArgument, match="is in no history of this backup"):
            restore_backup(client, RestoreRequest(base, at=times[40]))


def test_a_restore_whose_command_is_killed_goes_on(backed_up: tuple[Path, int], tmp_path: Path) -> None:
    directory, versions = backed_up
    with running_server(tmp_path / "data") as server:
        for parts in (1, 8):
            with begin_restoring(server.endpoint, directory) as process:
                wait_until(lambda parts=parts: parts_done(server.endpoint) >= parts, "some parts are there")
                process.kill()
        with Client(server.endpoint) as client:
            assert restore_backup(client, RestoreRequest(directory)).versions == versions
            assert sum(1 for _ in client.kv("log").scan()) == 2_000


def test_a_restore_outlives_its_server(backed_up: tuple[Path, int], tmp_path: Path) -> None:
    directory, _ = backed_up
    server = ServerProcess(tmp_path / "data").start()
    try:
        with begin_restoring(server.endpoint, directory) as process:
            for parts in (2, 9):
                wait_until(lambda parts=parts: parts_done(server.endpoint) >= parts, "some parts are there")
                server.kill()
                server.start()
            assert process.wait(120) == 0
        with Client(server.endpoint) as client:
            assert sum(1 for _ in client.kv("log").scan()) == 2_000
    finally:
        server.kill()


def test_three_nodes_restore_through_killed_leaders(backed_up: tuple[Path, int], tmp_path: Path) -> None:
    directory, versions = backed_up
    with running_cluster(tmp_path) as cluster, Client(cluster.endpoints, read_from="any") as client:
        ended = threading.Event()
        found: list[int] = []

        def restore() -> None:
            found.append(restore_backup(client, RestoreRequest(directory, streams=4)).versions)
            ended.set()

        thread = threading.Thread(target=restore)
        thread.start()
        for parts in (3, 12):
            wait_until(lambda parts=parts: parts_done(cluster.endpoints) >= parts, "some parts are there")
            leader = cluster.leader()
            cluster.kill(leader)
            cluster.start(leader)
        thread.join(120)
        assert ended.is_set() and found == [versions]
        cluster.wait_converged()
        keys = [b"%04d" % number for number in range(2_000)]
        for address in cluster.addresses.values():
            with Client(address, read_from="any") as one:
                assert [pair.key for pair in one.kv("log").scan(at=client.now())] == keys
        backup = create_backup(client, BackupRequest(tmp_path / "again", range_bytes=32 << 10))
        assert backup.versions == versions


def test_one_that_is_abandoned_leaves_room_for_another(backed_up: tuple[Path, int], tmp_path: Path) -> None:
    directory, versions = backed_up
    with running_server(tmp_path / "data") as server, Client(server.endpoint) as client:
        with begin_restoring(server.endpoint, directory) as process:
            wait_until(lambda: parts_done(server.endpoint) >= 5, "some parts are there")
            process.kill()
        assert abandon_restore(client)
        assert not list(client.kv("log").scan())
        assert restore_backup(client, RestoreRequest(directory)).versions == versions
        assert not abandon_restore(client)
        assert restore_backup(client, RestoreRequest(directory)).was_done


def test_a_cluster_that_is_not_empty_keeps_what_it_has(backed_up: tuple[Path, int], tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, Client(server.endpoint) as client:
        client.create_database("shop")
        with pytest.raises(InvalidArgument, match=r"has versions of .*catalog"):
            restore_backup(client, RestoreRequest(backed_up[0]))
        assert client.databases() == ["shop"]


def test_a_cluster_whose_clock_is_behind_begins_an_epoch(backed_up: tuple[Path, int], tmp_path: Path) -> None:
    hour_ms = 3_600_000
    with (
        running_server(tmp_path / "data", "--clock-offset-ms", str(-hour_ms)) as server,
        Client(server.endpoint) as client,
    ):
        restore_backup(client, RestoreRequest(backed_up[0]))
        client.kv("log").put(b"0007", b"later")
        assert client.now().epoch == 1
        assert client.kv("log").get(b"0007").value == b"later"  # type: ignore[union-attr]


def test_a_cluster_that_is_refused_begins_no_epoch(backed_up: tuple[Path, int], tmp_path: Path) -> None:
    hour_ms = 3_600_000
    with (
        running_server(tmp_path / "data", "--clock-offset-ms", str(-hour_ms)) as server,
        Client(server.endpoint) as client,
    ):
        client.create_database("shop")
        with pytest.raises(InvalidArgument, match="must never have held anything"):
            restore_backup(client, RestoreRequest(backed_up[0]))
        assert client.now().epoch == 0


def test_a_run_that_is_too_large_for_one_write_is_put_in_pieces(
    backed_up: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Restores.put

    def put_less(self: Restores, restore_id: str, versions: bytes, part_done: int | None) -> None:
        if len(versions) > 4_096:
            raise TooLarge("request", "one write may change less", length=len(versions), limit=4_096)
        put(self, restore_id, versions, part_done)

    monkeypatch.setattr(Restores, "put", put_less)
    with running_server(tmp_path / "data") as server, Client(server.endpoint) as client:
        assert restore_backup(client, RestoreRequest(backed_up[0])).versions == backed_up[1]


def test_an_index_that_was_being_built_is_built_to_its_end_in_the_new_cluster(tmp_path: Path) -> None:
    rows = [{"id": number, "name": f"name {number % 7}", "left": 0} for number in range(20_000)]
    with running_server(tmp_path / "data") as server, Client(server.endpoint) as client:
        client.create_database("shop")
        client.schemas.register(TABLE, SCHEMA)
        client.create_table(TABLE, ["id"])
        client.table(TABLE).put_many(rows)
        client.create_index(TABLE, Index("by_name", ("name",)), wait=False)
        [job] = client.admin.jobs.list()
        # Within the milliseconds that it takes: forty steps and more are to be done.
        paused = client.admin.jobs.pause(job.job_id)
        assert paused.state == "paused"
        create_backup(client, BackupRequest(tmp_path / "backup"))
    with running_server(tmp_path / "restored") as server, Client(server.endpoint) as client:
        restored = restore_backup(client, RestoreRequest(tmp_path / "backup"))
        assert not restored.problems
        assert client.admin.jobs.get(job.job_id) == paused
        client.admin.jobs.resume(job.job_id)
        assert client.admin.jobs.wait(job.job_id).state == "done"
        found = [document.value for document in client.table(TABLE).scan(index="by_name", prefix="name 3")]
        assert found == [row for row in rows if row["name"] == "name 3"]
        assert not client.verify_indexes(TABLE).problems
