"""Data that roles protected is not restored into an open cluster, unless that is requested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from cortado.errors import InvalidArgument, Unauthenticated
from cortado.store.backup import restore
from cortado.store.backup.chain import chain_of
from cortado.store.backup.create import BackupRequest, create_backup
from cortado.store.backup.follow import FollowRequest, follow_backup
from cortado.store.backup.restore import RestoreRequest, restore_backup
from cortado.store.client import Client
from cortado.store.clock.timestamp import Timestamp
from support.command_line import CommandLine
from support.server_process import running_server, wait_until

pytestmark = pytest.mark.process

REFUSED = "roles: were on in the cluster of this backup, and are off here"


def with_roles(endpoint: str) -> str:
    """Switches roles on; returns the token of an admin."""
    with Client(endpoint) as client:
        token = client.admin.auth.enable("root").token
    assert token is not None
    return token.text


@contextmanager
def following(client: Client, directory: Path) -> Iterator[None]:
    """Beside the block, and stopped at its end."""
    stop = Event()
    request = FollowRequest(BackupRequest(directory), segment_s=0.05, idle_s=0.1)
    thread = Thread(target=follow_backup, args=(client, request, lambda: nullcontext(stop)))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


def said(directory: Path) -> list[bool]:
    """Return for each backup in the directory whether roles were on."""
    return [each.manifest.shape.roles_enabled for each in chain_of(directory)]


def test_data_behind_roles_is_restored_once_roles_are_on(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monday, tuesday = tmp_path / "monday", tmp_path / "tuesday"
    with running_server(tmp_path / "old") as server:
        with Client(server.endpoint) as client:
            client.kv("n").put(b"k", b"1")
            create_backup(client, BackupRequest(monday))
        with Client(server.endpoint, token=with_roles(server.endpoint)) as client:
            client.kv("n").put(b"k", b"2")
            create_backup(client, BackupRequest(tuesday, base=monday))
    assert said(tuesday) == [False, True]
    with running_server(tmp_path / "new") as server, Client(server.endpoint) as client:
        with pytest.raises(InvalidArgument, match=REFUSED):
            restore_backup(client, RestoreRequest(tuesday))
        cli = CommandLine(server.endpoint, capfdbinary, monkeypatch)
        cli("backup", "restore", str(tuesday), "-q", expect=2)
        assert "cortado auth enable" in cli.err
        assert client.kv("n").get(b"k") is None
        token = with_roles(server.endpoint)
        with Client(server.endpoint, token=token) as admin:
            assert restore_backup(admin, RestoreRequest(tuesday)).versions == 2
        with pytest.raises(Unauthenticated):
            client.kv("n").get(b"k")
    with running_server(tmp_path / "open") as server, Client(server.endpoint) as client:
        cli = CommandLine(server.endpoint, capfdbinary, monkeypatch)
        cli("backup", "restore", str(tuesday), "-q", "--without-roles")
        assert client.kv("n").get(b"k").value == b"2"  # type: ignore[union-attr]


def test_the_newest_segment_says_whether_roles_were_on(tmp_path: Path) -> None:
    directory = tmp_path / "followed"
    with running_server(tmp_path / "old") as server, Client(server.endpoint) as client:
        with following(client, directory):
            wait_until(lambda: (directory / "manifest.json").exists(), "the backup")
            client.kv("n").put(b"k", b"1")
            wait_until(lambda: len(said(directory)) > 1, "a segment")
        before: Timestamp = chain_of(directory)[-1].manifest.shape.at
        with Client(server.endpoint, token=with_roles(server.endpoint)) as admin, following(admin, directory):
            wait_until(lambda: said(directory)[-1], "a segment that says it")
    with running_server(tmp_path / "new") as server, Client(server.endpoint) as client:
        # Also as of a time when they were off: data that is protected now existed then.
        for at in (None, before):
            with pytest.raises(InvalidArgument, match=REFUSED):
                restore_backup(client, RestoreRequest(directory, at))


def test_roles_that_go_off_while_the_files_are_verified_end_the_restore_before_anything_is_put(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files may be verified for hours."""
    directory = tmp_path / "backup"
    with running_server(tmp_path / "old") as server:
        with Client(server.endpoint) as client:
            client.kv("n").put(b"k", b"1")
        with Client(server.endpoint, token=with_roles(server.endpoint)) as client:
            create_backup(client, BackupRequest(directory))
    with running_server(tmp_path / "new") as server:
        with Client(server.endpoint, token=with_roles(server.endpoint)) as admin:
            verified = restore.check_chain

            def switched_off(*arguments: Any) -> None:
                verified(*arguments)
                admin.admin.auth.disable()

            with monkeypatch.context() as patched:
                patched.setattr(restore, "check_chain", switched_off)
                with pytest.raises(InvalidArgument, match=REFUSED):
                    restore_backup(admin, RestoreRequest(directory))
        with Client(server.endpoint) as client:
            assert client.kv("n").get(b"k") is None
            assert not client.admin.backups.restores.status().restore_id
            with Client(server.endpoint, token=with_roles(server.endpoint)) as admin:
                assert restore_backup(admin, RestoreRequest(directory)).versions == 1
            with pytest.raises(Unauthenticated):
                client.kv("n").get(b"k")
