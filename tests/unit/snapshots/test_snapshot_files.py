"""One suite over the files and their twin in memory: the promises of a directory of snapshot files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cortado.errors import NotFound, ResourceExhausted, Unavailable
from cortado.store.process.snapshot_files import DiskSnapshotFiles, SnapshotFiles
from support.memory_snapshot_files import MemorySnapshotFiles


@pytest.fixture(params=["disk", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> SnapshotFiles:
    return MemorySnapshotFiles() if request.param == "memory" else DiskSnapshotFiles(tmp_path / "snapshots")


def test_bytes_are_read_where_they_were_written(files: SnapshotFiles) -> None:
    assert files.names() == []
    files.write("out-1", 0, b"abc")
    files.write("out-1", 3, b"defg")
    files.write("in-2", 0, b"")
    assert files.names() == ["in-2", "out-1"]
    assert (files.size("out-1"), files.size("in-2")) == (7, 0)
    assert files.read("out-1", 2, 3) == b"cde"
    assert files.read("out-1", 5, 100) == b"fg"
    assert files.read("out-1", 7, 100) == b""


def test_a_write_at_the_beginning_empties_the_file(files: SnapshotFiles) -> None:
    files.write("in-1", 0, b"a long first attempt")
    files.write("in-1", 0, b"again")
    assert files.read("in-1", 0, 100) == b"again"


def test_a_file_that_is_gone_is_not_made_anew_by_what_comes_late(files: SnapshotFiles) -> None:
    files.write("in-1", 0, b"abc")
    files.remove("in-1")
    files.remove("in-1")
    attempts: list[Callable[[], object]] = [
        lambda: files.write("in-1", 3, b"def"),
        lambda: files.read("in-1", 0, 1),
        lambda: files.size("in-1"),
        lambda: files.sync("in-1"),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound):
            attempt()
    assert files.names() == []


@pytest.mark.parametrize(
    "name", ["", "in-", "../engine", "in-../../x", "in-a/b", "in-" + "a" * 65, "in-a\n", "identity"]
)
def test_a_name_that_a_peer_made_up_reaches_no_other_file(files: SnapshotFiles, name: str) -> None:
    with pytest.raises(NotFound):
        files.write(name, 0, b"evil")
    assert files.names() == []


def test_a_crash_takes_what_was_not_synced() -> None:
    files = MemorySnapshotFiles()
    files.write("in-1", 0, b"synced")
    files.sync("in-1")
    files.write("in-1", 6, b", and not")
    files.write("in-2", 0, b"never")
    files.crash()
    assert files.names() == ["in-1"]
    assert files.read("in-1", 0, 100) == b"synced"
    files.write("in-1", 0, b"anew")
    files.crash()
    assert files.names() == []


def test_the_twin_has_no_more_room_than_it_says() -> None:
    files = MemorySnapshotFiles(limit_bytes=10)
    files.write("in-1", 0, b"12345678")
    assert files.free_bytes() == 2
    with pytest.raises(ResourceExhausted):
        files.write("in-2", 0, b"123")
    assert files.size("in-1") == 8


@pytest.mark.parametrize(
    ("problem", "expected"),
    [(errno.ENOSPC, ResourceExhausted), (errno.EDQUOT, ResourceExhausted), (errno.EIO, Unavailable)],
)
def test_failures_of_the_disk_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: int, expected: type[Exception]
) -> None:
    files = DiskSnapshotFiles(tmp_path / "snapshots")

    def fail(*_: object) -> int:
        raise OSError(problem, os.strerror(problem))

    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(expected, match="in-1"):
        files.write("in-1", 0, b"abc")


def test_a_write_that_was_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = DiskSnapshotFiles(tmp_path / "snapshots")
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, offset: pwrite(descriptor, data[:2], offset))
    files.write("in-1", 0, b"abcdefg")
    assert files.read("in-1", 0, 100) == b"abcdefg"


def test_a_sync_covers_the_bytes_and_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = DiskSnapshotFiles(tmp_path / "snapshots")
    files.write("in-1", 0, b"abc")
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
    )
    files.sync("in-1")
    assert synced == [str(tmp_path / "snapshots" / "in-1"), str(tmp_path / "snapshots"), str(tmp_path)]


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    files = DiskSnapshotFiles(tmp_path / "snapshots")
    (tmp_path / "identity.json").write_text("{}")
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "in-1").symlink_to(tmp_path / "identity.json")
    with pytest.raises(Unavailable):
        files.write("in-1", 0, b"evil")
    assert (tmp_path / "identity.json").read_text() == "{}"


def test_files_of_others_in_the_directory_can_be_deleted(tmp_path: Path) -> None:
    files = DiskSnapshotFiles(tmp_path / "snapshots")
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "Some Notes.txt").write_text("x")
    for name in files.names():
        files.remove(name)
    assert files.names() == []
    assert files.free_bytes() > 0
