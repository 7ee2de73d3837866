"""A file that a user names may be a pipe: it is read once, to its end, up to a bound and for a limited time."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument
from cortado.store.auth.tokens import make_token
from cortado.store.cli.app import run
from cortado.store.cli.input import read_text
from cortado.store.client import Client, Tls
from cortado.store.client.authorization import Authorization
from cortado.store.files.named_files import read_named
from cortado.store.local_cluster.files import ClusterFiles
from cortado.store.local_cluster.prepare import prepare
from cortado.store.server.settings import gathered
from support.certificates import Certifier
from support.pipes import pipe_with

TOKEN = make_token(os.urandom).text


def test_a_pipe_is_read_to_its_end_and_then_remembered() -> None:
    content = b"tea" * 100_000  # More than a pipe holds, so that its writer waits for us.
    with pipe_with(content) as path:
        assert read_named(path, 1 << 20) == content
        assert read_named(path, 1 << 20) == content
        with pytest.raises(OSError, match="it has more than 2 bytes"):
            read_named(path, 2)


def test_a_regular_file_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("f")
    for content in (b"old", b"new"):
        (tmp_path / "f").write_bytes(content)
        assert read_named(tmp_path / "link", 3) == content
    with pytest.raises(OSError, match="it has more than 2 bytes"):
        read_named(tmp_path / "f", 2)


def test_what_has_no_end_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "silent")
    with pytest.raises(TimeoutError, match=r"it is a pipe, and did not end within 0\.01 s"):
        read_named(tmp_path / "silent", 100, wait_s=0.01)
    with pytest.raises(OSError, match="it has more than 100 bytes"):
        read_named("/dev/zero", 100)
    with pytest.raises(IsADirectoryError):
        read_named(tmp_path, 100)
    with closing(socket.socket(socket.AF_UNIX)) as bound:
        bound.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="it is a socket, and no file"):
            read_named(tmp_path / "socket", 100)


def test_a_token_may_come_from_a_pipe_and_serves_every_client() -> None:
    with pipe_with(f"{TOKEN}\n".encode()) as path:
        now_s = [0.0]
        first = Authorization(path, lambda: now_s[0])
        for now_s[0] in (0.0, 60.0):
            assert first.header() == Authorization(path).header() == f"Bearer {TOKEN}"


def test_certificates_may_come_from_pipes(tmp_path: Path) -> None:
    files = Certifier(tmp_path).client("app")
    with (
        pipe_with(files.ca.read_bytes()) as ca,
        pipe_with(files.cert.read_bytes()) as cert,
        pipe_with(files.key.read_bytes()) as key,
    ):
        for _ in range(2):
            Client("127.0.0.1:1", tls=Tls(ca, cert, key)).close()
        assert Tls(ca).authorities() == files.ca.read_text()


@pytest.mark.parametrize("arguments", [["--token-file"], ["-o", "json", "--token-file"]])
def test_a_command_takes_a_token_from_a_pipe(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pipe_with(b"no token") as path:
        assert run([*arguments, str(path), "status", "--endpoint", "127.0.0.1:1"]) == 2
    assert "must be a file that holds a token" in "".join(capsys.readouterr())
    with pipe_with(TOKEN.encode()) as path:
        assert run([*arguments, str(path), "status", "--endpoint", "127.0.0.1:1", "--timeout", "1"]) == 6
    assert "127.0.0.1:1" in "".join(capsys.readouterr())


def test_settings_and_schemas_may_come_from_a_pipe() -> None:
    with pipe_with(b'node-id = "db1"\n') as path:
        found = {each.setting.name: each for each in gathered({}, path)}
        assert (found["node-id"].value, found["node-id"].place) == ("db1", f"{path}:1")
    with pipe_with(b'{"type": "record"}') as path:
        assert read_text(str(path)) == '{"type": "record"}'


def test_a_local_cluster_takes_settings_from_a_pipe_and_holds_none(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path)
    with pipe_with(b"[limit]\nwrites-max = 4096\n") as path:
        prepare(files, nodes=1, config=path)
    assert files.settings.read_text() == "[limit]\nwrites-max = 4096\n"
    files.settings.unlink()
    os.mkfifo(files.settings)
    with pytest.raises(InvalidArgument, match="settings: cannot be read: it is no regular file"):
        prepare(files, nodes=1, config=None)
