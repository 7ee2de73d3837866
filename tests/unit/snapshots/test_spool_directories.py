"""One suite over the files and their twin in memory: what a directory of spools promises."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cortado.errors import NotFound, ResourceExhausted, Unavailable
from cortado.store.node.snapshots.spools import DiskSpools, MemorySpools, SpoolDirectory


@pytest.fixture(params=["disk", "memory"])
def spools(request: pytest.FixtureRequest, tmp_path: Path) -> SpoolDirectory:
    return MemorySpools() if request.param == "memory" else DiskSpools(tmp_path / "snapshots")


def test_bytes_are_read_where_they_were_written(spools: SpoolDirectory) -> None:
    assert spools.names() == []
    spools.write("out-1", 0, b"abc")
    spools.write("out-1", 3, b"defg")
    spools.write("in-2", 0, b"")
    assert spools.names() == ["in-2", "out-1"]
    assert (spools.size("out-1"), spools.size("in-2")) == (7, 0)
    assert spools.read("out-1", 2, 3) == b"cde"
    assert spools.read("out-1", 5, 100) == b"fg"
    assert spools.read("out-1", 7, 100) == b""


def test_a_write_at_the_beginning_empties_the_file(spools: SpoolDirectory) -> None:
    spools.write("in-1", 0, b"a long first attempt")
    spools.write("in-1", 0, b"again")
    assert spools.read("in-1", 0, 100) == b"again"


def test_a_file_that_is_gone_is_not_made_anew_by_what_comes_late(spools: SpoolDirectory) -> None:
    spools.write("in-1", 0, b"abc")
    spools.remove("in-1")
    spools.remove("in-1")
    attempts: list[Callable[[], object]] = [
        lambda: spools.write("in-1", 3, b"def"),
        lambda: spools.read("in-1", 0, 1),
        lambda: spools.size("in-1"),
        lambda: spools.sync("in-1"),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound):
            attempt()
    assert spools.names() == []


@pytest.mark.parametrize(
    "name", ["", "in-", "../engine", "in-../../x", "in-a/b", "in-" + "a" * 65, "in-a\n", "identity"]
)
def test_a_name_that_a_peer_made_up_reaches_no_other_file(spools: SpoolDirectory, name: str) -> None:
    with pytest.raises(NotFound):
        spools.write(name, 0, b"evil")
    assert spools.names() == []


def test_a_crash_takes_what_was_not_synced() -> None:
    spools = MemorySpools()
    spools.write("in-1", 0, b"synced")
    spools.sync("in-1")
    spools.write("in-1", 6, b", and not")
    spools.write("in-2", 0, b"never")
    spools.crash()
    assert spools.names() == ["in-1"]
    assert spools.read("in-1", 0, 100) == b"synced"
    spools.write("in-1", 0, b"anew")
    spools.crash()
    assert spools.names() == []


def test_the_twin_has_no_more_room_than_it_says() -> None:
    spools = MemorySpools(limit_bytes=10)
    spools.write("in-1", 0, b"12345678")
    assert spools.free_bytes() == 2
    with pytest.raises(ResourceExhausted):
        spools.write("in-2", 0, b"123")
    assert spools.size("in-1") == 8


@pytest.mark.parametrize(
    ("problem", "expected"),
    [(errno.ENOSPC, ResourceExhausted), (errno.EDQUOT, ResourceExhausted), (errno.EIO, Unavailable)],
)
def test_failures_of_the_disk_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: int, expected: type[Exception]
) -> None:
    spools = DiskSpools(tmp_path / "snapshots")

    def fail(*_: object) -> int:
        raise OSError(problem, os.strerror(problem))

    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(expected, match="in-1"):
        spools.write("in-1", 0, b"abc")


def test_a_write_that_was_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spools = DiskSpools(tmp_path / "snapshots")
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, offset: pwrite(descriptor, data[:2], offset))
    spools.write("in-1", 0, b"abcdefg")
    assert spools.read("in-1", 0, 100) == b"abcdefg"


def test_a_sync_covers_the_bytes_and_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spools = DiskSpools(tmp_path / "snapshots")
    spools.write("in-1", 0, b"abc")
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
    )
    spools.sync("in-1")
    assert synced == [str(tmp_path / "snapshots" / "in-1"), str(tmp_path / "snapshots"), str(tmp_path)]


def test_a_link_in_the_place_of_a_spool_is_not_followed(tmp_path: Path) -> None:
    spools = DiskSpools(tmp_path / "snapshots")
    (tmp_path / "identity.json").write_text("{}")
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "in-1").symlink_to(tmp_path / "identity.json")
    with pytest.raises(Unavailable):
        spools.write("in-1", 0, b"evil")
    assert (tmp_path / "identity.json").read_text() == "{}"


def test_files_of_others_in_the_directory_can_be_deleted(tmp_path: Path) -> None:
    spools = DiskSpools(tmp_path / "snapshots")
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "Some Notes.txt").write_text("x")
    for name in spools.names():
        spools.remove(name)
    assert spools.names() == []
    assert spools.free_bytes() > 0
