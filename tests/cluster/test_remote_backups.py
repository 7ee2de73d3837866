"""Backups below a URL: the same commands, in a store that fails now and then."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument
from cortado.store.backup.check import check_backup
from cortado.store.backup.create import BackupRequest, create_backup
from cortado.store.backup.manifest import CHECKPOINT, Manifest
from cortado.store.backup.restore import RestoreRequest, restore_backup
from cortado.store.client import Client
from cortado.store.client.kv import Put
from cortado.store.transfer.directory import RemoteDirectory, directory_at
from support.server_process import ServerProcess, running_server

pytestmark = pytest.mark.process

ObjectStore = pytest.importorskip("support.object_store").ObjectStore

SMALL = 8 << 10
KEYS = [b"%03d" % number for number in range(400)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("server") / "data") as server:
        with Client(server.endpoint) as client:
            client.kv("log").batch([Put(key, b"v" * 400) for key in KEYS])
        yield server


def contents(manifest: Manifest) -> list[str]:
    return [part.content for part in manifest.parts]


def test_a_backup_below_a_url_is_the_one_in_a_directory(server: ServerProcess, tmp_path: Path) -> None:
    with Client(server.endpoint) as client:
        at = client.now()
        local = create_backup(client, BackupRequest(tmp_path / "local", at=at, range_bytes=SMALL))
        url = f"objects://{tmp_path}/remote"
        remote = create_backup(client, BackupRequest(url, at=at, range_bytes=SMALL))
        assert contents(remote) == contents(local)
        client.kv("log").put(b"later", b"tea")
        create_backup(client, BackupRequest(f"{url}-2", base=url, range_bytes=SMALL))
        with pytest.raises(InvalidArgument, match="must be in the same file system"):
            create_backup(client, BackupRequest(f"{url}-3", base=tmp_path / "local"))
        client.kv("log").delete(b"later")
    # The objects of a store can be copied to a disk.
    assert check_backup(tmp_path / "remote-2").versions == check_backup(f"{url}-2").versions == 401
    with running_server(tmp_path / "restored") as other, Client(other.endpoint) as client:
        assert restore_backup(client, RestoreRequest(f"{url}-2")).versions == 401
        assert [pair.key for pair in client.kv("log").scan()] == [*KEYS, b"later"]


def test_a_store_that_fails_in_the_middle_is_gone_on_with(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"objects://{tmp_path}/store"
    with Client(server.endpoint) as client:
        for uploads in (0, 5):
            left, put_file = itertools.count(uploads, -1), ObjectStore.put_file

            def fail(self: object, *args: object, left=left, put_file=put_file, **options: object) -> None:  # type: ignore[no-untyped-def]
                if next(left) <= 0:
                    raise TimeoutError("no answer")
                put_file(self, *args, **options)

            with monkeypatch.context() as patch:
                patch.setattr(ObjectStore, "put_file", fail)
                with pytest.raises(InvalidArgument, match="cannot be written: no answer"):
                    create_backup(client, BackupRequest(url, range_bytes=SMALL))
        directory = directory_at(url)
        assert isinstance(directory, RemoteDirectory)
        assert directory.has(CHECKPOINT)
        # The leftover of a store that shows an object before it is complete.
        part = next(name for name in directory.names() or [] if name.startswith("part-"))
        directory.fs.pipe_file(f"{directory.path}/{part}", b"cortado")
        whole = create_backup(client, BackupRequest(url, range_bytes=SMALL))
        assert not directory.has(CHECKPOINT)
    assert check_backup(url).versions == whole.versions == 400
    with running_server(tmp_path / "restored") as other, Client(other.endpoint) as client:
        left, opened = itertools.count(2 * len(whole.parts) - 3, -1), ObjectStore.open

        def fail_to_open(self: object, *args: object, **options: object) -> object:
            if next(left) <= 0:
                raise ConnectionError("no answer")
            return opened(self, *args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(ObjectStore, "open", fail_to_open)
            with pytest.raises(InvalidArgument, match="cannot be read: no answer"):
                restore_backup(client, RestoreRequest(url))
        assert client.admin.backups.restores.status().restore_id
        assert restore_backup(client, RestoreRequest(url)).versions == 400
        assert [pair.key for pair in client.kv("log").scan()] == KEYS
