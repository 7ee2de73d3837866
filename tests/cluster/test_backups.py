"""Backups of a real server: after a kill at any point they continue, and hold the same as an undisturbed backup."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest

from cortado.errors import DataLoss, InvalidArgument, SnapshotTooOld
from cortado.store.backup.chain import chain_of, whole_backup
from cortado.store.backup.check import check_backup
from cortado.store.backup.create import BackupRequest, create_backup
from cortado.store.backup.follow import FollowRequest, follow_backup
from cortado.store.backup.manifest import CHECKPOINT, Manifest, part_name
from cortado.store.client import Client
from cortado.store.client.backups import Wanted
from cortado.store.client.blocking.backups import Backups
from cortado.store.client.kv import Put
from cortado.store.clock.timestamp import Timestamp
from cortado.store.transfer.directory import LocalDirectory
from support.cluster import running_cluster
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = pytest.mark.process

SMALL = 8 << 10
"""Ranges of so many bytes: some dozens of parts."""
VALUE = b"v" * 400
RUN = """
import sys
from pathlib import Path
from cortado.store.backup.create import BackupRequest, create_backup
from cortado.store.client import Client
with Client(sys.argv[1]) as client:
    create_backup(client, BackupRequest(Path(sys.argv[2]), range_bytes=int(sys.argv[3]), at=sys.argv[4]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("server") / "data") as server:
        with Client(server.endpoint) as client:
            pairs = client.kv("log")
            for batch in range(10):
                pairs.batch([Put(b"%03d" % (batch * 40 + number), VALUE) for number in range(40)])
        yield server


def has_begun(process: subprocess.Popen[bytes], wanted: Path) -> bool:
    return wanted.exists() or process.poll() is not None


def contents(manifest: Manifest) -> list[str]:
    return [part.content for part in manifest.parts]


def test_a_backup_that_is_killed_goes_on_and_holds_the_same(server: ServerProcess, tmp_path: Path) -> None:
    with Client(server.endpoint) as client:
        at = str(client.now())
        whole = create_backup(client, BackupRequest(tmp_path / "whole", at=at, range_bytes=SMALL))
        assert len(whole.parts) > 10
        killed = tmp_path / "killed"
        for parts in (0, 3, 7):
            wanted = killed / (CHECKPOINT if not parts else part_name(parts))
            command = [sys.executable, "-c", RUN, server.endpoint, str(killed), str(SMALL), at]
            with subprocess.Popen(command) as process:
                wait_until(partial(has_begun, process, wanted), "it has begun")
                process.kill()
            # The leftover of a write that was cut off.
            (killed / f"{part_name(parts + 20)}.partial").write_bytes(b"cortado")
            client.kv("log").put(b"after", b"%d" % parts)
        again = create_backup(client, BackupRequest(killed, range_bytes=SMALL))
    assert again.shape.timestamp == whole.shape.timestamp
    assert contents(again) == contents(whole)
    assert check_backup(killed).versions == whole.versions == 400
    assert not (killed / CHECKPOINT).exists()


def test_a_backup_that_is_killed_behind_its_last_file_is_done_when_it_is_repeated(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Event()
    stop.set()

    class Killed(BaseException):
        pass

    def killed(_: object, name: str) -> None:
        raise Killed

    with Client(server.endpoint) as client:
        for follow in (False, True):
            directory = tmp_path / f"backup-{follow}"
            with monkeypatch.context() as patch, pytest.raises(Killed):
                patch.setattr(LocalDirectory, "remove", killed)
                create_backup(client, BackupRequest(directory))
            assert (directory / CHECKPOINT).exists()
            with pytest.raises(InvalidArgument, match="history: was begun without it"):
                create_backup(client, BackupRequest(directory, history=True))
            client.kv("log").put(b"after", b"1")
            if follow:
                follow_backup(client, FollowRequest(BackupRequest(directory)), lambda: nullcontext(stop))
            else:
                again = create_backup(client, BackupRequest(directory))
                assert again == whole_backup(LocalDirectory(directory))
            assert not (directory / CHECKPOINT).exists()
            # Now it is as any other: a name that is used twice by mistake loses nothing.
            with pytest.raises(InvalidArgument, match="holds a whole backup of"):
                create_backup(client, BackupRequest(directory))


def test_a_whole_backup_is_what_a_command_asks_for_that_names_its_time(server: ServerProcess, tmp_path: Path) -> None:
    """As one that was killed behind its last step, and is repeated."""
    directory = tmp_path / "backup"
    with Client(server.endpoint) as client:
        request = BackupRequest(directory, at=str(client.now()), range_bytes=SMALL)
        whole = create_backup(client, request)
        client.kv("log").put(b"after", b"1")
        assert create_backup(client, request) == whole
        with pytest.raises(InvalidArgument, match=f"at: must be {whole.shape.timestamp}"):
            create_backup(client, BackupRequest(directory, at=str(client.now())))
        with pytest.raises(InvalidArgument, match="history: was begun without it"):
            create_backup(client, BackupRequest(directory, at=request.at, history=True))
        with pytest.raises(InvalidArgument, match="which can be restored as it is: give an empty directory"):
            create_backup(client, BackupRequest(directory))
        (directory / part_name(0)).unlink()
        with pytest.raises((DataLoss, InvalidArgument), match=part_name(0)):
            create_backup(client, request)


def test_what_follows_holds_what_changed_alone(server: ServerProcess, tmp_path: Path) -> None:
    with Client(server.endpoint) as client:
        create_backup(client, BackupRequest(tmp_path / "base"))
        pairs = client.kv("changes")
        for name in (b"a", b"b", b"b"):
            pairs.put(name, b"1")
        pairs.delete(b"a")
        create_backup(client, BackupRequest(tmp_path / "newest", base=tmp_path / "base"))
        create_backup(client, BackupRequest(tmp_path / "all", base=tmp_path / "base", history=True))
        empty = create_backup(client, BackupRequest(tmp_path / "nothing", base=tmp_path / "newest"))
        assert empty.versions == 0
    chain = chain_of(tmp_path / "nothing")
    assert [str(each.directory) for each in chain] == [str(tmp_path / name) for name in ("base", "newest", "nothing")]

    def kinds(name: str) -> bytes:
        backup = chain_of(tmp_path / name)[-1]
        runs = [run for part in range(len(backup.manifest.parts)) for run in backup.runs(part)]
        return b"".join(value[:1] for run in runs for value in run.values)

    assert kinds("newest") == b"DP"
    assert kinds("all") == b"DPPP"


def test_a_directory_of_another_backup_is_refused(server: ServerProcess, tmp_path: Path) -> None:
    with Client(server.endpoint) as client:
        whole = create_backup(client, BackupRequest(tmp_path / "whole"))
        with pytest.raises(InvalidArgument, match=f"holds a whole backup of {whole.shape.timestamp} already"):
            create_backup(client, BackupRequest(tmp_path / "whole"))
        with (
            running_server(tmp_path / "other") as other,
            Client(other.endpoint) as stranger,
            pytest.raises(InvalidArgument, match=f"is a backup of the cluster {whole.shape.cluster_id}; this one"),
        ):
            create_backup(stranger, BackupRequest(tmp_path / "follows", base=tmp_path / "whole"))
        assert not (tmp_path / "follows").exists()


def is_too_old(client: Client, at: Timestamp) -> bool:
    client.kv("log").put(b"again", b"and again")
    try:
        client.kv("log").get(b"again", at=at)
    except SnapshotTooOld:
        return True
    return False


def test_what_follows_is_refused_where_deletes_since_may_be_collected(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--retention", "1s") as server, Client(server.endpoint) as client:
        base = create_backup(client, BackupRequest(tmp_path / "base")).shape
        wait_until(lambda: is_too_old(client, base.at), "the safepoint has passed the backup")
        with pytest.raises(SnapshotTooOld, match=rf"timestamp {base.timestamp}, oldest readable"):
            create_backup(client, BackupRequest(tmp_path / "follows", base=tmp_path / "base"))
        assert not (tmp_path / "follows").exists()


def test_a_backup_that_takes_long_keeps_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server(tmp_path / "data", "--retention", "1s") as server, Client(server.endpoint) as client:
        for number in range(20):
            client.kv("log").put(b"%02d" % number, VALUE)
        first, at = Event(), list[Timestamp]()
        whole_read = Backups.read

        def slow_read(self: Backups, start: bytes, end: bytes, wanted: Wanted) -> Generator[bytes, None, None]:
            at.append(wanted.at)
            first.wait(60)
            return whole_read(self, start, end, wanted)

        monkeypatch.setattr(Backups, "read", slow_read)
        made: list[Manifest] = []
        request = BackupRequest(tmp_path / "backup")
        thread = Thread(target=lambda: made.append(create_backup(client, request)))
        thread.start()
        wait_until(lambda: bool(at), "it reads")
        client.kv("log").delete_range(prefix=b"")
        wait_until(lambda: oldest(client) == at[0], "the safepoint waits for the backup")
        first.set()
        thread.join(60)
        assert made and made[0].versions == 20


def oldest(client: Client) -> Timestamp:
    """Below which nothing is read."""
    client.kv("log").put(b"again", b"and again")
    return client.admin.backups.plan().oldest


def test_three_nodes_are_backed_up_through_killed_leaders(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster, Client(cluster.endpoints, read_from="any", timeout_s=60) as client:
        for batch in range(20):
            client.kv("log").batch([Put(b"%04d" % (batch * 100 + number), VALUE) for number in range(100)])
        at = client.now()
        directory, made = tmp_path / "backup", list[Manifest]()
        request = BackupRequest(directory, at=at, range_bytes=SMALL, streams=4)
        thread = Thread(target=lambda: made.append(create_backup(client, request)))
        thread.start()
        for parts in (2, 30):
            wait_until(lambda parts=parts: (directory / part_name(parts)).exists(), "some parts are there")
            leader = cluster.leader()
            cluster.kill(leader)
            cluster.start(leader)
        thread.join(120)
        assert made and made[0].versions == check_backup(directory).versions == 2_000
        again = create_backup(client, BackupRequest(tmp_path / "again", at=at, range_bytes=1 << 30))
        assert again.versions == 2_000
