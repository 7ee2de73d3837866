"""A node's files are for the user that runs it alone, with any umask and over any earlier files."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.errors import DataDirectoryError
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.process.snapshot_files import DiskSnapshotFiles
from support.engines import open_lmdb
from support.private_files import no_umask, shared


@pytest.fixture(autouse=True)
def without_a_umask() -> Iterator[None]:
    with no_umask():
        yield


def test_a_new_directory_is_private_without_any_umask(tmp_path: Path) -> None:
    open_lmdb(tmp_path / "data").close()
    DiskSnapshotFiles(tmp_path / "data" / "snapshots").write("in-1", 0, b"rows")
    assert shared(tmp_path / "data") == []


def test_a_directory_that_was_shared_is_made_private_before_it_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data"
    open_lmdb(path).close()
    (path / "snapshots").mkdir()
    (path / "snapshots" / "in-1").write_bytes(b"rows")
    for each in (path, *path.rglob("*")):
        each.chmod(0o777 if each.is_dir() else 0o666)
    open_lmdb(path).close()
    assert shared(path) == []
    assert "9 files and directories" in caplog.text
    caplog.clear()
    open_lmdb(path).close()
    assert caplog.text == ""


def test_an_empty_directory_that_is_shared_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.mkdir(mode=0o755)
    open_lmdb(path).close()
    assert shared(path) == []


def test_a_directory_of_something_else_keeps_its_modes(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"x")
    tmp_path.chmod(0o755)
    with pytest.raises(DataDirectoryError):
        open_lmdb(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "photo.jpg").stat().st_mode) == 0o666


def test_what_a_link_in_the_directory_leads_to_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("x")
    path = tmp_path / "data"
    open_lmdb(path).close()
    (path / "snapshots").mkdir()
    (path / "snapshots" / "in-1").symlink_to(tmp_path / "elsewhere")
    open_lmdb(path).close()
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o666


def test_an_engine_that_is_linked_to_a_shared_directory_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "data"
    open_lmdb(path).close()
    (path / "engine").rename(tmp_path / "other-disk")
    (path / "engine").symlink_to(tmp_path / "other-disk")
    open_lmdb(path).close()
    (tmp_path / "other-disk").chmod(0o755)
    with pytest.raises(DataDirectoryError) as error:
        open_lmdb(path)
    assert error.value.problem == ("its engine leads to a directory that other users may enter (mode 755): make it 700")


def test_what_belongs_to_somebody_else_and_is_shared_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data"
    open_lmdb(path).close()
    (path / "FORMAT").chmod(0o644)

    def not_ours(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", not_ours)
    with pytest.raises(DataDirectoryError) as error:
        open_lmdb(path)
    owner = (path / "FORMAT").stat().st_uid
    assert error.value.problem == (
        f"its FORMAT may be read or written by other users (mode 644), and belongs to user {owner}, so this process"
        " cannot change that: give it to the user who runs the server, or another path"
    )
    monkeypatch.undo()
    open_lmdb(path).close()


def test_a_directory_that_is_read_only_keeps_its_modes(tmp_path: Path) -> None:
    path = tmp_path / "data"
    open_lmdb(path).close()
    path.chmod(0o755)
    LmdbEngine.open_stopped(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
