"""A followed backup: in whatever way it ends, the disk holds any state up to the last segment."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread

import pytest

from cortado.errors import CortadoError, InvalidArgument, Restoring, SnapshotTooOld
from cortado.store.backup.chain import chain_of, last_segment, whole_backup
from cortado.store.backup.check import check_backup
from cortado.store.backup.create import BackupRequest, create_backup
from cortado.store.backup.follow import Followed, FollowRequest, follow_backup
from cortado.store.backup.manifest import MANIFEST, segment_name
from cortado.store.backup.restore import RestoreRequest, restore_backup
from cortado.store.client import Client
from cortado.store.client.kv import Put
from cortado.store.client.tables import Index
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.transfer.directory import LocalDirectory, directory_at
from support.cluster import running_cluster
from support.random_history import SCHEMA, TABLE, RandomHistory, state_of, versions_of
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

SMALL = 4 << 10
FOLLOW = """
import sys
from contextlib import nullcontext
from threading import Event
from cortado.store.backup.create import BackupRequest
from cortado.store.backup.follow import FollowRequest, follow_backup
from cortado.store.client import Client
with Client(sys.argv[1].split(","), read_from="any") as client:
    request = FollowRequest(BackupRequest(sys.argv[2]), segment_s=0.05, idle_s=0.5)
    follow_backup(client, request, lambda: nullcontext(Event()))
"""


def tip(directory: Path) -> Timestamp:
    """Up to when the directory holds everything."""
    place = LocalDirectory(directory)
    return last_segment(place, whole_backup(place)).manifest.shape.at


def reaches(directory: Path, ts: Timestamp) -> bool:
    return (directory / MANIFEST).exists() and tip(directory) >= ts


@contextmanager
def following(client: Client, request: FollowRequest) -> Iterator[list[Followed | CortadoError]]:
    """Run it beside the block, and stop it at the end; the list then has its error."""
    stop, ended = Event(), list[Followed | CortadoError]()

    def follow() -> None:
        try:
            ended.append(follow_backup(client, request, lambda: nullcontext(stop)))
        except CortadoError as error:
            ended.append(error)

    thread = Thread(target=follow)
    thread.start()
    try:
        yield ended
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


def quick(directory: Path | str, *, history: bool = False, base: Path | None = None) -> FollowRequest:
    backup = BackupRequest(directory, history=history, base=base, range_bytes=SMALL)
    return FollowRequest(backup, segment_s=0.05, idle_s=0.5, lease_moves_s=0.5)


@pytest.mark.parametrize("seed", range(3))
def test_a_followed_backup_comes_back_as_of_any_time(tmp_path: Path, seed: int) -> None:
    is_history = bool(seed % 2)
    directory, times = tmp_path / "backup", list[Timestamp]()
    with running_server(tmp_path / "data") as server, Client(server.endpoint, read_from="any") as client:
        history = RandomHistory(client, seed)
        for _ in range(20):
            history.step()
        with following(client, quick(directory, history=is_history)):
            wait_until((directory / MANIFEST).exists, "the backup is there")
            for _ in range(60):
                history.step()
                times.append(client.now())
            while not (directory / segment_name(3)).exists():
                history.step()
                times.append(client.now())
            wait_until(lambda: reaches(directory, times[-1]), "all is followed")
        since = whole_backup(LocalDirectory(directory)).shape.at
        times = [at for at in times if at > since]
        states = {at: state_of(client, at) for at in times[::7]}
        all_versions = versions_of(client, times[-1], ZERO if is_history else since)
    chain = chain_of(directory)
    assert len(chain) > 3
    assert check_backup(directory).backups == len(chain)
    for number, at in enumerate((times[len(times) // 2], times[-1])):
        with running_server(tmp_path / f"restored-{number}") as server, Client(server.endpoint) as client:
            restored = restore_backup(client, RestoreRequest(directory, at=at))
            assert (restored.timestamp, restored.problems) == (at, ())
            assert {each: state_of(client, each) for each in states if each <= at} == {
                each: state for each, state in states.items() if each <= at
            }
            expected = {each for each in all_versions if each[1] <= bytes(at)}
            assert versions_of(client, at, ZERO if is_history else since) == expected
    with pytest.raises(InvalidArgument, match=rf"can be restored as of .*\d to {chain[-1].manifest.shape.timestamp}"):
        restore_backup(client, RestoreRequest(directory, at=chain[-1].manifest.shape.at.next()))


def put_while(endpoints: object, until: Callable[[], bool]) -> list[tuple[bytes, Timestamp]]:
    """Pairs that were acknowledged, one after the other."""
    put: list[tuple[bytes, Timestamp]] = []
    with Client(endpoints, timeout_s=60) as client:  # type: ignore[arg-type]
        while not until():
            key = b"%06d" % len(put)
            put.append((key, Timestamp.parse(client.kv("log").put(key, b"v" * 100))))
    return put


def test_a_follower_that_is_killed_goes_on_without_gap_or_repetition(tmp_path: Path) -> None:
    directory = tmp_path / "backup"
    with running_server(tmp_path / "data") as server:
        ended = Event()
        put: list[tuple[bytes, Timestamp]] = []
        writer = Thread(target=lambda: put.extend(put_while(server.endpoint, ended.is_set)))
        writer.start()
        for segments in (0, 3, 8, 15):
            with subprocess.Popen([sys.executable, "-c", FOLLOW, server.endpoint, str(directory)]) as process:
                wanted = directory / (segment_name(segments) if segments else MANIFEST)
                wait_until(wanted.exists, "it follows")
                process.kill()
            if segments:
                # A segment that was cut off before its manifest.
                torn = directory / segment_name(max(each.segment for each in chain_of(directory)) + 1)
                torn.mkdir(exist_ok=True)
                (torn / "part-00000.cortado.partial").write_bytes(b"cortado")
        ended.set()
        writer.join(60)
        with Client(server.endpoint, read_from="any") as client, following(client, quick(directory)):
            wait_until(lambda: reaches(directory, put[-1][1]), "all is followed")
    found = [
        (key, timestamp)
        for backup in chain_of(directory)
        for part in range(len(backup.manifest.parts))
        for run in backup.runs(part)
        for key, timestamp in zip(run.keys, run.timestamps, strict=True)
    ]
    assert len(found) == len(set(found)) == len(put)
    with running_server(tmp_path / "restored") as server, Client(server.endpoint) as client:
        assert restore_backup(client, RestoreRequest(directory)).versions == len(put)
        assert [pair.key for pair in client.kv("log").scan()] == [key for key, _ in put]


def test_what_was_collected_meanwhile_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "backup"
    with running_server(tmp_path / "data", "--retention", "1s") as server, Client(server.endpoint) as client:
        create_backup(client, BackupRequest(directory))
        at = tip(directory)

        def is_too_old() -> bool:
            client.kv("log").put(b"a", b"again")
            return client.admin.backups.plan().oldest > at

        wait_until(is_too_old, "the safepoint has passed the backup")
        with following(client, quick(directory)) as ended:
            wait_until(lambda: bool(ended), "it is refused")
        assert isinstance(ended[0], SnapshotTooOld)
        assert [each.segment for each in chain_of(directory)] == [0]


def test_a_follower_keeps_what_it_has_not_written_yet(tmp_path: Path) -> None:
    directory = tmp_path / "backup"
    with running_server(tmp_path / "data", "--retention", "1s") as server, Client(server.endpoint) as client:
        with following(client, FollowRequest(BackupRequest(directory), segment_s=3600)):
            wait_until((directory / MANIFEST).exists, "the backup is there")
            wait_until(lambda: len(client.admin.gc.holds()) == 1, "it has a lease of its own")
            at = tip(directory)
            assert client.admin.gc.holds()[0].timestamp == at
            for number in range(20):
                client.kv("log").put(b"a", b"%d" % number)
        assert not client.admin.gc.holds()
    values = [value for run in chain_of(directory)[-1].runs(0) for value in run.values]
    # All that came before it was stopped, newest first.
    assert values == [b"P%d" % number for number in reversed(range(len(values)))]


def test_a_directory_is_followed_by_one_process_at_a_time(tmp_path: Path) -> None:
    directory = tmp_path / "backup"
    with (
        running_server(tmp_path / "data") as server,
        Client(server.endpoint) as client,
        following(client, quick(directory)) as first,
    ):
        wait_until((directory / segment_name(1)).exists, "it follows")
        with pytest.raises(InvalidArgument, match="is followed by another process"):
            follow_backup(client, quick(directory), lambda: nullcontext(Event()))
        assert not first
    check_backup(directory)


def test_a_segment_that_somebody_else_wrote_ends_a_follower(tmp_path: Path) -> None:
    """As in an object store, which has no locks for directories."""
    pytest.importorskip("support.object_store")
    directory = tmp_path / "backup"
    with running_server(tmp_path / "data") as server, Client(server.endpoint) as client:
        with following(client, FollowRequest(BackupRequest(directory), segment_s=3600)) as first:
            wait_until(lambda: bool(client.admin.gc.holds() and (directory / MANIFEST).exists()), "it follows")
            client.kv("log").put(b"a", b"tea")
            with following(client, quick(f"objects://{directory}")):
                wait_until((directory / segment_name(2) / MANIFEST).exists, "the other one follows")
        assert isinstance(first[0], InvalidArgument)
        assert "is followed by another process: segment-00000001 is there already" in first[0].message()
    assert check_backup(directory).versions == 1


def test_a_directory_that_is_followed_is_followed_as_it_was_begun(tmp_path: Path) -> None:
    directory = tmp_path / "backup"
    with running_server(tmp_path / "data") as server, Client(server.endpoint) as client:
        create_backup(client, BackupRequest(directory))
        for request, problem in (
            (FollowRequest(BackupRequest(directory, history=True)), "history: was begun without it"),
            (FollowRequest(BackupRequest(directory, at=client.now())), "must not be given with follow"),
        ):
            with pytest.raises(InvalidArgument, match=problem):
                follow_backup(client, request, lambda: nullcontext(Event()))
    with (
        running_server(tmp_path / "other") as server,
        Client(server.endpoint) as client,
        pytest.raises(InvalidArgument, match="of the cluster"),
    ):
        follow_backup(client, quick(directory), lambda: nullcontext(Event()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_with_a_whole_segment(tmp_path: Path, number: signal.Signals) -> None:
    directory = tmp_path / "backup"
    with running_server(tmp_path / "data") as server, Client(server.endpoint) as client:
        command = [sys.executable, "-m", "cortado.store.cli", "-e", server.endpoint, "backup", "create", str(directory)]
        with subprocess.Popen([*command, "--follow", "-q"], stdout=subprocess.PIPE, text=True) as process:
            wait_until((directory / MANIFEST).exists, "the backup is there")
            client.kv("log").put(b"a", b"tea")
            wait_until((directory / segment_name(1) / MANIFEST).exists, "it follows")
            client.kv("log").put(b"a", b"again")
            process.send_signal(number)
            said, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert re.search(r"holds everything up to \d+\.\d+\.\d+, \d segments?", said)
    check_backup(directory)


def test_three_nodes_are_followed_through_killed_leaders(tmp_path: Path) -> None:
    directory = tmp_path / "backup"
    with running_cluster(tmp_path) as cluster, Client(cluster.endpoints, read_from="any", timeout_s=60) as client:
        ended, put = Event(), list[tuple[bytes, Timestamp]]()
        writer = Thread(target=lambda: put.extend(put_while(cluster.endpoints, ended.is_set)))
        with following(client, quick(directory)) as followed:
            wait_until((directory / MANIFEST).exists, "the backup is there")
            writer.start()
            for segments in (3, 9):
                wait_until((directory / segment_name(segments)).exists, "it follows")
                leader = cluster.leader()
                cluster.kill(leader)
                cluster.start(leader)
            wait_until((directory / segment_name(15)).exists, "it follows")
            ended.set()
            writer.join(60)
            wait_until(lambda: reaches(directory, put[-1][1]), "all is followed")
            assert not followed
        expected = versions_of(client, put[-1][1], ZERO)
    (tmp_path / "restored").mkdir()
    with running_cluster(tmp_path / "restored") as cluster, Client(cluster.endpoints, read_from="any") as client:
        assert restore_backup(client, RestoreRequest(directory, at=put[-1][1])).versions == len(put)
        assert versions_of(client, put[-1][1], ZERO) == expected
        assert [pair.key for pair in client.kv("log").scan()] == [key for key, _ in put]


def test_a_server_that_is_down_for_a_while_is_waited_for(tmp_path: Path) -> None:
    directory = tmp_path / "backup"
    server = ServerProcess(tmp_path / "data").start()
    try:
        with Client(server.endpoint, timeout_s=1.0) as client, following(client, quick(directory)) as ended:
            wait_until((directory / MANIFEST).exists, "the backup is there")
            server.kill()
            with pytest.raises(CortadoError):
                client.kv("log").put(b"a", b"1")
            server.start()
            with Client(server.endpoint) as other:
                ts = Timestamp.parse(other.kv("log").put(b"b", b"2"))
            wait_until(lambda: reaches(directory, ts), "all is followed")
            assert not ended
    finally:
        server.kill()


def rows_of(client: Client, at: Timestamp | None = None) -> dict[str, list[object]]:
    """The documents of every table, and the pairs; those of tables through their index if there is one."""
    reading = client if at is None else client.at(at)
    found: dict[str, list[object]] = {}
    for table in client.tables("shop"):
        indexes = [each.name for each in table.indexes]
        handle = reading.table(table.full_name)
        found[table.full_name] = sorted((each.value for each in handle.scan()), key=str)
        for index in indexes:
            found[f"{table.full_name}:{index}"] = sorted((each.value for each in handle.scan(index=index)), key=str)
    found["log"] = [(pair.key, pair.value) for pair in reading.kv("log").scan()]
    return found


def test_what_is_built_dropped_cleared_and_collected_meanwhile_comes_back_as_it_was(tmp_path: Path) -> None:
    directory = tmp_path / "backup"
    with running_server(tmp_path / "data", "--retention", "1s") as server, Client(server.endpoint) as client:
        client.create_database("shop")
        client.schemas.register(TABLE, SCHEMA)
        for name in (TABLE, "shop.dropped", "shop.truncated"):
            client.create_table(name, ["id"], subject=TABLE)
            client.table(name).put_many(
                {"id": number, "name": f"name {number % 7}", "left": 0} for number in range(500)
            )
        with following(client, quick(directory)) as ended:
            wait_until((directory / MANIFEST).exists, "the backup is there")
            client.create_index(TABLE, Index("by_name", ("name",)))
            client.drop_table("shop.dropped")
            client.truncate_table("shop.truncated")
            client.table("shop.truncated").put({"id": 1, "name": "again", "left": 1})
            wait_until(lambda: not client.dropped(), "what was dropped is cleared")
            with client.large_transaction([TABLE]) as large:
                large.table(TABLE).put_many({"id": number, "name": "large", "left": 2} for number in range(400, 900))
            client.kv("log").batch([Put(b"%d" % number, b"tea") for number in range(50)])
            client.kv("log").delete_range(b"1", b"2")
            at = client.now()
            expected = rows_of(client)
            wait_until(lambda: reaches(directory, at), "all is followed")
            client.drop_table(TABLE)
            after = client.now()
            wait_until(lambda: reaches(directory, after), "all is followed")
            assert not ended
    check_backup(directory)
    assert expected[TABLE] == expected[f"{TABLE}:by_name"]
    assert len(expected[TABLE]) == 900
    with running_server(tmp_path / "restored") as server, Client(server.endpoint) as client:
        restored = restore_backup(client, RestoreRequest(directory, at=at))
        assert (restored.timestamp, restored.problems) == (at, ())
        assert rows_of(client) == expected
    with running_server(tmp_path / "newest") as server, Client(server.endpoint) as client:
        restored = restore_backup(client, RestoreRequest(directory))
        assert [table.full_name for table in client.tables("shop")] == ["shop.truncated"]
        # Dropped a moment ago: it comes back as anywhere else.
        client.undrop_table(TABLE)
        assert rows_of(client)[TABLE] == expected[TABLE]


def test_a_backup_in_an_object_store_is_followed_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, url = pytest.importorskip("support.object_store").ObjectStore, f"objects://{tmp_path}/followed"
    with running_server(tmp_path / "data") as server, Client(server.endpoint) as client:

        def reaches_url(ts: Timestamp) -> bool:
            place = directory_at(url)
            return (
                MANIFEST in (place.names() or []) and last_segment(place, whole_backup(place)).manifest.shape.at >= ts
            )

        put_file, left = store.put_file, iter(range(7))

        def fail(self: object, *args: object, **options: object) -> None:
            if next(left, None) is None:
                raise TimeoutError("no answer")
            put_file(self, *args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(store, "put_file", fail)
            with following(client, quick(url)) as ended:

                def has_ended() -> bool:
                    client.kv("log").put(b"a", b"tea")
                    return bool(ended)

                wait_until(has_ended, "the store fails")
        assert isinstance(ended[0], InvalidArgument)
        assert "cannot be written: no answer" in ended[0].message()
        with following(client, quick(url)):
            ts = Timestamp.parse(client.kv("log").put(b"b", b"tea"))
            wait_until(lambda: reaches_url(ts), "all is followed")
        expected = versions_of(client, ts, ZERO)
    with running_server(tmp_path / "restored") as server, Client(server.endpoint) as client:
        assert restore_backup(client, RestoreRequest(url, at=ts)).timestamp == ts
        assert versions_of(client, ts, whole_backup(directory_at(url)).shape.at) <= expected
        assert state_of(client, ts)


def test_what_a_restore_brought_is_in_no_backup_that_goes_on_from_before(tmp_path: Path) -> None:
    """Restored versions are older than the followed ones, and came later."""
    brought, followed = tmp_path / "brought", tmp_path / "followed"
    with running_server(tmp_path / "data") as server, Client(server.endpoint) as client:
        client.kv("log").put(b"old", b"tea")
        create_backup(client, BackupRequest(brought))
    with running_server(tmp_path / "new") as server, Client(server.endpoint) as client:
        # The first one's lease is all that the cluster has committed: the second one is of a time after that.
        for name in ("first", "base"):
            create_backup(client, BackupRequest(tmp_path / name))
        assert tip(tmp_path / "base") > tip(brought)
        with following(client, quick(followed)) as ended:
            wait_until((followed / segment_name(1)).exists, "it follows")
            restore_backup(client, RestoreRequest(brought))
            wait_until(lambda: bool(ended), "it ends")
        assert isinstance(ended[0], Restoring | SnapshotTooOld)
        with pytest.raises(SnapshotTooOld):
            follow_backup(client, quick(followed), lambda: nullcontext(Event()))
        with pytest.raises(SnapshotTooOld):
            create_backup(client, BackupRequest(tmp_path / "changes", base=tmp_path / "base"))
        # A new one has it, and its history.
        assert create_backup(client, BackupRequest(tmp_path / "again", history=True)).versions == 1
