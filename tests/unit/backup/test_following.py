"""The ends of segments, and their contents: from a watch with scripted answers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, Self

import pytest

from cortado.errors import CortadoError, InvalidArgument, SnapshotTooOld, Unavailable
from cortado.store.backup import follow
from cortado.store.backup.chain import chain_of
from cortado.store.backup.check import check_backup
from cortado.store.backup.create import BackupRequest
from cortado.store.backup.follow import Followed, FollowRequest, follow_backup
from cortado.store.backup.manifest import segment_name
from cortado.store.client.backups import VersionSource
from cortado.store.client.watch import Changed, Resolved
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key
from support.backups import CLUSTER, shape, small_run, write_backup

Said = Changed[bytes, bytes] | Resolved | CortadoError | float | bool


def put(name: bytes, wall_ms: int, value: bytes = b"tea") -> Changed[bytes, bytes]:
    return Changed(kv_key("n", name), b"P" + value, Timestamp(0, wall_ms, 0))


def upto(wall_ms: int) -> Resolved:
    return Resolved(Timestamp(0, wall_ms, 0))


class FakeCluster:
    """Gives the answers of its script; a number lets that number of seconds pass, a bool switches roles, and an error
    is raised. Then it is stopped."""

    def __init__(self, *said: Said) -> None:
        self._said = list(said)
        self._stop = Event()
        self.now_s = 0.0
        self.began: list[str] = []
        self.leases: list[str] = []
        self.admin = self.backups = self

    # --- the client

    def status(self) -> Any:
        return SimpleNamespace(cluster_id=CLUSTER)

    def hold(self, at: Timestamp, *, label: str, ttl_s: float) -> AbstractContextManager[None]:
        self.leases.append(str(at))
        return nullcontext()

    def follow(self, after: Timestamp, source: VersionSource, *, resolved_ms: int) -> Self:
        self.began.append(str(after))
        self._source = source
        return self

    # --- the watch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self._said:
            said = self._said.pop(0)
            if isinstance(said, CortadoError):
                raise said
            if isinstance(said, bool):
                self._source.roles_enabled = said
            elif isinstance(said, float):
                self.now_s += said
            else:
                return said
        self._stop.set()
        raise StopIteration

    def run(self, directory: Path, **options: Any) -> Followed:
        request = FollowRequest(BackupRequest(directory), 3.0, monotonic_s=lambda: self.now_s, **options)
        return follow_backup(self, request, lambda: nullcontext(self._stop))  # type: ignore[arg-type]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a backup as of 0.9.0."""
    write_backup(tmp_path / "backup", shape(), [[small_run(b"a")], [small_run(b"q")]])
    return tmp_path / "backup"


def segments(directory: Path) -> list[tuple[str, list[int]]]:
    """Return each segment's end, and the commit times of its versions."""
    return [
        (
            backup.manifest.shape.timestamp,
            sorted(
                Timestamp.from_bytes(ts).wall_ms
                for part in range(len(backup.manifest.parts))
                for run in backup.runs(part)
                for ts in run.timestamps
            ),
        )
        for backup in chain_of(directory)
        if backup.segment
    ]


def test_a_segment_ends_at_the_first_mark_that_is_late_enough(directory: Path) -> None:
    cluster = FakeCluster(put(b"a", 10), upto(11), 2.9, put(b"b", 12), upto(13), 0.1, upto(14), put(b"a", 15), 9.0)
    cluster.run(directory)
    # Versions that no mark covers are in no segment, though they came.
    assert segments(directory) == [("0.14.0", [10, 12])]
    assert (cluster.began, cluster.leases) == (["0.9.0"], ["0.9.0"])
    assert check_backup(directory).versions == 4


def test_another_run_goes_on_where_the_last_segment_ends(directory: Path) -> None:
    FakeCluster(put(b"a", 10), 3.0, upto(11), put(b"b", 12), upto(13), put(b"c", 14)).run(directory)
    again = FakeCluster(put(b"c", 14), put(b"d", 15), upto(16))
    done = again.run(directory)
    assert (done.timestamp, done.segments, done.versions) == (Timestamp(0, 16, 0), 3, 2)
    assert again.began == again.leases == ["0.13.0"]
    assert segments(directory) == [("0.11.0", [10]), ("0.13.0", [12]), ("0.16.0", [14, 15])]


def test_a_segment_ends_sooner_where_it_is_large_and_later_where_it_is_empty(directory: Path) -> None:
    large = [put(b"a", 10, b"x" * 600), upto(10), put(b"b", 11, b"x" * 600), upto(11), put(b"c", 12), upto(12)]
    cluster = FakeCluster(*large, 3.0, upto(13), 59.9, upto(14), 0.1, upto(15), upto(15))
    cluster.run(directory, segment_bytes=1000, lease_moves_s=60.0)
    assert segments(directory) == [("0.11.0", [10, 11]), ("0.13.0", [12]), ("0.15.0", [])]
    assert cluster.leases == ["0.9.0", "0.15.0"]


def test_a_segment_says_whether_roles_are_on(directory: Path) -> None:
    cluster = FakeCluster(put(b"a", 10), 3.0, upto(11), True, put(b"a", 12), 3.0, upto(13))
    cluster.run(directory)
    # Another run knows it from the last segment, until it hears of the cluster.
    FakeCluster(put(b"a", 14), 3.0, upto(15), False, put(b"a", 16), 3.0, upto(17)).run(directory)
    assert [each.manifest.shape.roles_enabled for each in chain_of(directory)] == [False, False, True, True, False]


def test_a_watch_that_ends_for_good_leaves_what_came_before(directory: Path) -> None:
    too_old = SnapshotTooOld("0.11.0", "0.40.0")
    cluster = FakeCluster(put(b"a", 10), upto(11), put(b"b", 12), too_old)
    with pytest.raises(SnapshotTooOld):
        cluster.run(directory)
    assert segments(directory) == [("0.11.0", [10])]


def test_nobody_who_answers_is_waited_for(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_AGAIN_S", 0.0)
    FakeCluster(put(b"a", 10), Unavailable("nobody leads"), Unavailable("nobody leads"), upto(11)).run(directory)
    assert segments(directory) == [("0.11.0", [10])]


def test_what_cannot_be_written_is_written_by_the_next_run(directory: Path) -> None:
    (directory / segment_name(1)).write_text("in the way")
    with pytest.raises(InvalidArgument, match="segment-00000001"):
        FakeCluster(put(b"a", 10), 3.0, upto(11), put(b"b", 12), upto(13)).run(directory)
    (directory / segment_name(1)).unlink()
    FakeCluster(put(b"a", 10), put(b"b", 12), upto(13)).run(directory)
    assert segments(directory) == [("0.13.0", [10, 12])]


def test_the_number_of_segments_is_bounded(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "SEGMENTS_MAX", 1)
    cluster = FakeCluster(put(b"a", 10), 3.0, upto(11), put(b"b", 12), 3.0, upto(13))
    with pytest.raises(InvalidArgument, match="holds 1 segments, the limit: begin a new backup in another directory"):
        cluster.run(directory)
    assert segments(directory) == [("0.11.0", [10])]


def test_a_segment_that_is_missing_is_named(directory: Path) -> None:
    FakeCluster(put(b"a", 10), 3.0, upto(11), put(b"b", 12), 3.0, upto(13), put(b"b", 14), upto(15)).run(directory)
    shutil.rmtree(directory / segment_name(2))
    with pytest.raises(InvalidArgument, match=r"follows the backup \w+ of 0.13.0, which is not in .*segment-00000002"):
        chain_of(directory)


def test_a_last_segment_that_is_damaged_is_not_followed(directory: Path) -> None:
    FakeCluster(put(b"a", 10), upto(11)).run(directory)
    part = directory / segment_name(1) / "part-00000.cortado"
    part.write_bytes(part.read_bytes()[:-5])
    with pytest.raises(CortadoError, match=r"segment-00000001/part-00000\.cortado"):
        FakeCluster(upto(12)).run(directory)
