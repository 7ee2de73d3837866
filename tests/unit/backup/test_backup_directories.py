"""The places of a backup's files: the same on a disk, below a URL, and in a store that fails in the middle."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from cortado.errors import DataLoss, InvalidArgument, Unsupported
from cortado.store.backup.chain import Empty, chain_of, look
from cortado.store.backup.check import check_backup
from cortado.store.backup.manifest import MANIFEST, BaseBackup, part_name
from cortado.store.transfer.directory import Directory, LocalDirectory, Where, directory_at
from support.backups import shape, small_run, write_backup

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("support.object_store")

Make = Callable[[str], Where]


@pytest.fixture(params=["path", "file", "memory", "objects"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return a function that gives the place of a name, all of them beside each other."""
    kind = request.param
    folder = f"/{uuid.uuid4().hex}"
    if kind == "memory":
        fsspec.filesystem("memory").mkdir(folder)

    def make(name: str) -> Where:
        if kind == "path":
            return tmp_path / name
        return f"memory:/{folder}/{name}" if kind == "memory" else f"{kind}://{tmp_path}/{name}"

    return make


def write(directory: Directory, name: str, data: bytes) -> None:
    with directory.writing(name) as file:
        file.write(data)


def read(directory: Directory, name: str) -> bytes:
    with directory.reading(name) as file:
        return file.read()


def test_a_file_is_there_once_it_is_whole(where: Make) -> None:
    directory = directory_at(where("d"))
    assert directory.names() is None
    assert not directory.has("a")
    directory.make()
    directory.make()
    write(directory, "a", b"tea")
    write(directory, "b", b"")
    write(directory, "b", b"again")
    with pytest.raises(KeyError), directory.writing("c") as file:
        file.write(b"half")
        assert not directory.has("c")
        raise KeyError
    assert directory.names() == ["a", "b"]
    assert (read(directory, "a"), read(directory, "b")) == (b"tea", b"again")
    directory.remove("a")
    assert directory.names() == ["b"]
    assert not directory.has("a")


def test_a_file_url_is_a_path_of_the_disk(tmp_path: Path) -> None:
    """fsspec itself shows half a file while it writes, and does not sync."""
    for url in (f"file://{tmp_path}/d", f"file://{tmp_path}/d/"):
        assert directory_at(url) == LocalDirectory(tmp_path / "d")


def test_what_is_not_there_is_named(where: Make) -> None:
    directory = directory_at(where("d"))
    directory.make()
    for act in (lambda: read(directory, "a"), lambda: directory.remove("a")):
        with pytest.raises(InvalidArgument) as refused:
            act()
        assert f"{directory}/a" in refused.value.message()


@pytest.mark.parametrize("scheme", ["", "file://", "objects://"])
def test_no_directory_is_made_above(scheme: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be written"):
        directory_at(f"{scheme}{tmp_path}/nowhere/d").make()


def test_a_chain_leads_from_one_place_to_another(where: Make) -> None:
    base, newer = directory_at(where("base")), directory_at(where("newer"))
    path = newer.path_to(base)
    assert path == "../base"
    write_backup(base, shape(), [[small_run(b"a")], [small_run(b"q")]])
    write_backup(newer, shape("bb", "0.12.0", BaseBackup("aa", "0.9.0", path)), [[small_run(b"b", wall_ms=11)]])
    assert [str(each.directory) for each in chain_of(where("newer"))] == [str(base), str(newer)]
    assert (check_backup(where("newer")).backups, check_backup(where("newer")).versions) == (2, 3)
    assert look(directory_at(where("empty"))) == Empty()


def test_a_byte_that_is_changed_is_found(where: Make) -> None:
    directory = directory_at(where("d"))
    write_backup(directory, shape(), [[small_run(b"a")]])
    written = read(directory, part_name(0))
    write(directory, part_name(0), written[:-9] + bytes([written[-9] ^ 1]) + written[-8:])
    with pytest.raises(DataLoss, match=f"{directory}/part-00000.cortado"):
        check_backup(where("d"))
    write(directory, MANIFEST, b"no manifest")
    with pytest.raises(DataLoss, match=f"{directory}/manifest.json"):
        check_backup(where("d"))


def test_a_backup_is_followed_in_one_file_system_alone(tmp_path: Path) -> None:
    local, memory = LocalDirectory(tmp_path), directory_at("memory://d")
    for here, there in ((local, memory), (memory, local), (memory, directory_at(f"file://{tmp_path}"))):
        with pytest.raises(InvalidArgument, match="base: must be in the same file system as"):
            here.path_to(there)


def test_a_store_that_fails_in_the_middle_leaves_no_file_that_seems_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Exception):
        """No OSError: stores have errors of their own."""

    directory = directory_at(f"memory://{uuid.uuid4().hex}")
    fs = fsspec.filesystem("memory")

    def fail(*_: object, **__: object) -> None:
        raise Gone("the bucket\nis gone")

    directory.make()
    write(directory, "a", b"tea")
    with monkeypatch.context() as patch:
        patch.setattr(type(fs), "put_file", fail)
        with pytest.raises(InvalidArgument, match=rf"cannot be written: the bucket is gone.*{directory}/b"):
            write(directory, "b", b"tea")
    assert directory.names() == ["a"]
    with monkeypatch.context() as patch:
        for name in ("open", "ls", "exists"):
            patch.setattr(type(fs), name, fail)
        for act in (lambda: read(directory, "a"), directory.names, lambda: directory.has("a")):
            with pytest.raises(InvalidArgument, match="cannot be read: the bucket is gone"):
                act()


@pytest.mark.parametrize("url", ["nothing://bucket/d", "simplecache::nothing://x"])
def test_a_url_of_no_file_system_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="DIR: is no URL of a file system that is known"):
        directory_at(url)


def test_what_a_url_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "s3fs", None)
        with pytest.raises(Unsupported, match=r"the URL s3://bucket/d .*s3fs"):
            directory_at("s3://bucket/d")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(Unsupported, match=r"without the extra \[remote\].*pip install 'cortadodb\[remote\]'"):
        directory_at("s3://bucket/d")
