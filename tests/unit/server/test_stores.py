"""A data directory has two stores from its first moment; one without the other, or damaged, is refused by name."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import CortadoError, DataDirectoryError, DataLoss, ResourceExhausted
from cortado.raft.records import HardState
from cortado.store.cli import failures
from cortado.store.cli.app import run
from cortado.store.engine.failures import StorageFailed
from cortado.store.log_files.log_files import LogFiles
from cortado.store.server.stores import Stores
from support.engines import open_stores

SEGMENT = "0000000000000001"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    stores = open_stores(tmp_path / "data")
    stores.log_files.append([HardState(3, "n2", 9, 2).log_record(1)])
    stores.close()
    return tmp_path / "data"


def contents(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def test_what_was_stored_is_there_at_the_next_start(path: Path) -> None:
    stores = open_stores(path)
    assert (stores.log().hard_state.term, stores.log().hard_state.voted_for) == (3, "n2")
    stores.close()


def test_a_directory_is_made_with_its_log(tmp_path: Path) -> None:
    open_stores(tmp_path / "data").close()
    assert {"FORMAT", f"log/{SEGMENT}", "engine/data.mdb"} <= contents(tmp_path / "data").keys()


@pytest.mark.parametrize("step", ["create", "write", "sync"])
def test_a_creation_that_was_cut_off_goes_on(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as crashing:
        crashing.setattr(f"cortado.store.log_files.files.FolderFiles.{step}", crash)
        with pytest.raises(KeyboardInterrupt):
            open_stores(tmp_path / "data")
    assert "FORMAT" not in contents(tmp_path / "data")
    stores = open_stores(tmp_path / "data")
    assert stores.log().is_empty
    stores.close()


def lose_the_folder(path: Path) -> None:
    shutil.rmtree(path / "log")


def lose_the_file(path: Path) -> None:
    (path / "log" / SEGMENT).unlink()


def lose_the_beginning(path: Path) -> None:
    with (path / "log" / SEGMENT).open("r+b") as file:
        file.write(bytes(1 << 20))


def flip_a_bit(path: Path) -> None:
    content = bytearray((path / "log" / SEGMENT).read_bytes())
    content[200] ^= 1
    (path / "log" / SEGMENT).write_bytes(content)


def make_it_a_folder(path: Path) -> None:
    lose_the_file(path)
    (path / "log" / SEGMENT).mkdir()


@pytest.mark.parametrize(
    ("hurt", "error", "message"),
    [
        (lose_the_folder, DataLoss, r"the log files \(there are none, and there were: this replica's log can't be"),
        (lose_the_file, DataLoss, r"the log files \(there are none, and there were"),
        (lose_the_beginning, DataLoss, r"the log files \(there are none, and there were"),
        (flip_a_bit, DataLoss, rf"the log file {SEGMENT} \(byte \d+: "),
        (make_it_a_folder, DataDirectoryError, rf"its log cannot be opened: the log file {SEGMENT}: .*Is a directory"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_log_that_is_lost_or_damaged_is_refused_and_no_other_is_begun(
    path: Path,
    hurt: Callable[[Path], None],
    error: type[CortadoError],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An empty one would vote again, and forget its acknowledgements."""
    hurt(path)
    before = contents(path)
    for _ in range(2):
        with pytest.raises(error, match=message):
            open_stores(path)
    assert run(["server", "--data-dir", str(path), "--listen", "127.0.0.1:0"]) == failures.DAMAGE
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in said
    after = contents(path)
    assert {name: after[name] for name in after if name.startswith("log/")} == {
        name: before[name] for name in before if name.startswith("log/")
    }


def test_a_disk_without_room_for_the_first_segment_is_told_and_leaves_a_directory_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as filling:
        filling.setattr(os, "posix_fallocate", full)
        with pytest.raises(ResourceExhausted, match="the disk under the data directory is full"):
            open_stores(tmp_path / "data")
    assert list((tmp_path / "data" / "log").iterdir()) == []
    open_stores(tmp_path / "data").close()


def test_a_disk_that_fails_under_the_first_write_of_a_node_ends_the_server_with_the_disks_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: LogFiles, _records: Any) -> None:
        raise StorageFailed(f"the log file {SEGMENT} can't be synced: Input/output error")

    monkeypatch.setattr(LogFiles, "append", fail)
    arguments = ["server", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
    assert run(arguments) == failures.DISK
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(f"the log file {SEGMENT} can't be synced: Input/output error")


def test_neither_store_stays_open_where_the_other_is_refused(path: Path) -> None:
    content = (path / "log" / SEGMENT).read_bytes()
    flip_a_bit(path)
    with pytest.raises(DataLoss):
        open_stores(path)
    (path / "log" / SEGMENT).write_bytes(content)
    stores: Stores = open_stores(path)
    assert stores.log().hard_state.term == 3
    stores.close()
