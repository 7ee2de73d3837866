"""A data directory is created whole, belongs to one process, and is refused if it is not as it should be."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cortado.errors import DataDirectoryError, InvalidArgument
from cortado.store.engine import data_directory
from cortado.store.engine.data_directory import DataDirectory, Identity
from cortado.store.engine.data_file import newest_meta
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from support.engines import IDENTITY, open_lmdb

FIRST = Identity("cluster-a", "node-1", "storage-1")
TESTS = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a data directory with one value in it, closed."""
    engine = open_lmdb(tmp_path / "data")
    with engine.write() as txn:
        txn.put_many(Space.DATA, [(b"k%04d" % number, b"v" * 100) for number in range(1_000)])
    engine.close()
    return tmp_path / "data"


def refused(path: Path) -> str:
    with pytest.raises(DataDirectoryError) as error:
        open_lmdb(path).close()
    assert error.value.path == str(path)
    return error.value.problem


def test_a_new_directory_is_made_with_its_parents_and_an_identity(tmp_path: Path) -> None:
    engine = open_lmdb(tmp_path / "a" / "b")
    assert engine.identity == IDENTITY
    engine.close()
    assert sorted(each.name for each in (tmp_path / "a" / "b").iterdir()) == [
        "FORMAT",
        "LOCK",
        "engine",
        "identity.json",
    ]


def test_the_names_of_all_new_directories_are_synced_before_it_counts_as_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []

    def sync(path: Path) -> None:
        assert not (tmp_path / "a" / "b" / "c" / "FORMAT").exists() or path == tmp_path / "a" / "b" / "c"
        synced.append(path)

    monkeypatch.setattr(data_directory, "_sync_directory", sync)
    open_lmdb(tmp_path / "a" / "b" / "c").close()
    assert {tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"} <= set(synced)


def test_a_disk_without_room_for_the_owners_name_is_opened_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    engine = open_lmdb(path)
    assert refused(path).startswith("in use by process")
    with engine.read() as txn:
        assert txn.get(Space.DATA, b"k0000") == b"v" * 100
    engine.close()
    open_lmdb(path).close()


def test_the_identity_is_drawn_once(path: Path) -> None:
    engine = LmdbEngine.open(path, new_identity=lambda: pytest.fail("drawn again"), map_bytes=1 << 24)
    assert engine.identity == FIRST
    engine.close()


def test_a_second_opening_in_this_process_is_refused(path: Path) -> None:
    engine = open_lmdb(path)
    assert refused(path) == f"in use by process {os.getpid()}"
    engine.close()
    open_lmdb(path).close()


def test_a_second_process_is_refused_until_the_first_ends_however_it_ends(path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom support.engines import open_lmdb\n"
        "engine = open_lmdb(Path(sys.argv[1]))\nprint('open', flush=True)\nsys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        assert refused(path) == f"in use by process {holder.pid}"
        holder.kill()
    open_lmdb(path).close()


@pytest.mark.parametrize("cut_after", ["nothing", "engine", "half an engine", "identity"])
def test_a_creation_that_was_cut_off_goes_on(tmp_path: Path, cut_after: str) -> None:
    class PowerCut(Exception):
        pass

    def cut(engine_path: Path) -> None:
        if cut_after == "half an engine":
            (engine_path / "data.mdb").write_bytes(b"\0" * 100)
        raise PowerCut

    path = tmp_path / "data"
    if cut_after == "nothing":
        path.mkdir()
        (path / "LOCK").write_text("12345\n")
    elif cut_after == "identity":
        open_lmdb(path).close()
        (path / "FORMAT").rename(path / "FORMAT.new")
    else:
        with pytest.raises(PowerCut):
            DataDirectory.open(path, new_identity=lambda: FIRST, create_engine=cut)
    engine = open_lmdb(path)
    assert engine.identity == IDENTITY
    engine.close()


def test_a_directory_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"x")
    assert refused(tmp_path) == "not empty, and not a Cortado data directory (it holds 'photo.jpg'): give another path"
    assert [each.name for each in tmp_path.iterdir()] == ["photo.jpg"]


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refused(tmp_path / "file") == "not a directory"


def test_another_format_version_is_refused(path: Path) -> None:
    (path / "FORMAT").write_text("cortado-data 4\n")
    assert refused(path) == "of format version 4; this build of Cortado reads version 12 only"


@pytest.mark.parametrize("text", ["", "cortado-data\n", "cortado-data one\n", "\0\0\0\0", "sqlite 1\n"])
def test_a_damaged_format_file_is_refused(path: Path, text: str) -> None:
    (path / "FORMAT").write_text(text)
    assert refused(path).startswith("its FORMAT file is damaged")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "\0",
        '{"cluster_id": "c"}',
        '{"cluster_id": "c", "node_id": "n"}',
        '{"cluster_id": "c", "node_id": "", "storage_id": "s"}',
        '{"cluster_id": "c", "node_id": "n", "storage_id": ""}',
        '{"cluster_id": null, "node_id": "n", "storage_id": "s"}',
    ],
)
def test_a_damaged_identity_is_refused(path: Path, text: str) -> None:
    (path / "identity.json").write_text(text)
    assert refused(path).startswith("its identity.json is damaged")


def test_no_flipped_bit_of_the_identity_makes_it_another_one(path: Path) -> None:
    whole = (path / "identity.json").read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        (path / "identity.json").write_bytes(damaged)
        with pytest.raises(DataDirectoryError) as error:
            DataDirectory.open_stopped(path)
        assert error.value.problem.startswith("its identity.json is damaged: ")


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_an_identity_that_was_cut_off_or_grew_is_refused(path: Path, cut: int) -> None:
    whole = (path / "identity.json").read_text()
    (path / "identity.json").write_text(whole[:cut])
    assert refused(path).startswith("its identity.json is damaged")
    (path / "identity.json").write_text(whole + "\n")
    assert "its ids are whole, but other text stands between or behind them" in refused(path)


def test_a_missing_identity_is_refused_and_not_drawn_again(path: Path) -> None:
    (path / "identity.json").unlink()
    assert refused(path).startswith("its identity.json is missing; what this node is called can't be told")


def test_a_missing_data_file_is_refused_and_not_made_again(path: Path) -> None:
    (path / "engine" / "data.mdb").unlink()
    assert "data.mdb cannot be read: No such file" in refused(path)
    assert not (path / "engine" / "data.mdb").exists()


@pytest.mark.parametrize("kept", [0, 100, 4_096, 5_000, 8_192, 40_000])
def test_a_truncated_data_file_is_refused_before_it_is_mapped(path: Path, kept: int) -> None:
    data = path / "engine" / "data.mdb"
    assert data.stat().st_size > 40_000
    os.truncate(data, kept)
    assert "truncated" in refused(path)


def test_one_missing_byte_is_noticed(path: Path) -> None:
    data = path / "engine" / "data.mdb"
    meta = newest_meta(data)
    os.truncate(data, (meta.last_page + 1) * meta.page_size - 1)
    assert "truncated" in refused(path)


def test_a_data_file_with_more_pages_than_it_needs_is_taken(path: Path) -> None:
    data = path / "engine" / "data.mdb"
    os.truncate(data, data.stat().st_size + 100_000)
    open_lmdb(path).close()


@pytest.mark.parametrize("offset", [0, 4_096])
def test_a_garbage_header_is_refused(path: Path, offset: int) -> None:
    data = path / "engine" / "data.mdb"
    with data.open("r+b") as file:
        file.seek(offset)
        file.write(bytes(range(1, 201)))
    assert "no LMDB meta page" in refused(path)


def test_another_version_of_lmdb_is_refused(path: Path) -> None:
    data = path / "engine" / "data.mdb"
    with data.open("r+b") as file:
        file.seek(16 + 4)
        file.write((3).to_bytes(4, sys.byteorder))
    assert "LMDB data version 3; this build reads 1" in refused(path)


def test_a_damaged_lock_file_of_lmdb_is_made_anew(path: Path) -> None:
    (path / "engine" / "lock.mdb").write_bytes(os.urandom(8_192))
    open_lmdb(path).close()


def test_a_refused_directory_is_not_left_locked(path: Path) -> None:
    identity = path / "identity.json"
    text = identity.read_text()
    identity.write_text("{}")
    refused(path)
    identity.write_text(text)
    ids = {"cluster_id": "cluster-a", "node_id": "node-1", "storage_id": "storage-1"}
    assert json.loads(text) == ids | {"crc32c": "82c7ca5a"}
    open_lmdb(path).close()


def test_a_path_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refused(tmp_path / "file" / "data") == "cannot be opened: Not a directory"


# --- joining a cluster -----------------------------------------------------------------------------------------


def open_unjoined(path: Path) -> LmdbEngine:
    return LmdbEngine.open(path, new_identity=lambda: Identity("", "node-2", "storage-2"), map_bytes=1 << 24)


def test_a_directory_exists_before_it_belongs_to_a_cluster_and_belongs_to_it_for_ever(tmp_path: Path) -> None:
    engine = open_unjoined(tmp_path)
    assert engine.identity.cluster_id == ""
    engine.close()
    engine = open_unjoined(tmp_path)
    engine.join_cluster("cluster-a")
    engine.join_cluster("cluster-a")
    assert engine.identity == Identity("cluster-a", "node-2", "storage-2")
    engine.close()
    engine = open_unjoined(tmp_path)
    assert engine.identity == Identity("cluster-a", "node-2", "storage-2")
    engine.close()


def test_a_directory_of_one_cluster_joins_no_other(tmp_path: Path) -> None:
    engine = open_unjoined(tmp_path)
    engine.join_cluster("cluster-a")
    with pytest.raises(DataDirectoryError) as error:
        engine.join_cluster("cluster-b")
    assert error.value.problem == "belongs to cluster cluster-a, and cannot join cluster cluster-b"
    assert engine.identity.cluster_id == "cluster-a"
    with pytest.raises(InvalidArgument):
        engine.join_cluster("")
    engine.close()


def test_the_cluster_id_is_synced_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_unjoined(tmp_path)
    steps: list[str] = []
    real_fsync, real_replace = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        steps.append("sync " + Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real_fsync(descriptor)

    def rename(old: Path, new: Path) -> Path:
        steps.append(f"rename {new.name}")
        return real_replace(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", rename)
    engine.join_cluster("cluster-a")
    assert steps == ["sync identity.json.new", "rename identity.json", f"sync {tmp_path.name}"]
    engine.close()


def test_a_crash_while_joining_leaves_a_directory_that_has_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_unjoined(tmp_path)

    def cut(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", cut)
    with pytest.raises(DataDirectoryError) as error:
        engine.join_cluster("cluster-a")
    assert error.value.problem == "its identity.json cannot be written: No space left on device"
    assert engine.identity.cluster_id == ""
    engine.close()
    monkeypatch.undo()
    assert (tmp_path / "identity.json.new").exists()
    engine = open_unjoined(tmp_path)
    assert engine.identity.cluster_id == ""
    engine.join_cluster("cluster-a")
    engine.close()


@pytest.mark.parametrize("name", ["FORMAT", "identity.json", "LOCK", "engine/data.mdb", "engine/lock.mdb"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_stands_in_the_place_of_a_file_is_neither_waited_for_nor_followed(
    path: Path, tmp_path: Path, name: str, kind: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes((path / name).read_bytes())
    before = elsewhere.read_bytes()
    (path / name).unlink()
    if kind == "pipe":
        os.mkfifo(path / name)
    else:
        (path / name).symlink_to(elsewhere)
    problem = "it is no regular file" if kind == "pipe" else "it is a link, and is not followed"
    assert problem in refused(path)
    with pytest.raises(DataDirectoryError, match=problem):
        LmdbEngine.open_stopped(path).close()
    assert elsewhere.read_bytes() == before
