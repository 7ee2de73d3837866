"""The shell's prompt: its history, and its behaviour on a terminal."""

from __future__ import annotations

import os
import pty
import select
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cortado.proto.v1 import tables_pb2, watch_pb2
from cortado.store.cli.history import LINE_LENGTH_MAX, LINES_MAX, History
from support.fake_server import FakeServer, header


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_typed_is_remembered_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "state" / "cortado" / "history"
    history = History(path)
    assert history.load() == []
    assert [history.add(each) for each in ("db list", "kv get n \udcff", "kv get n \udcff")] == [True, True, False]
    assert History(path).load() == ["db list", "kv get n \udcff"]
    assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)


@pytest.mark.parametrize("line", ["", " kv put n secret v", "x" * (LINE_LENGTH_MAX + 1)])
def test_an_empty_line_one_behind_a_space_and_pasted_data_are_not(line: str, tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    history.load()
    assert not history.add(line)
    assert (tmp_path / "history").read_bytes() == b""


def test_the_file_is_bounded_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f"{number}\n" for number in range(LINES_MAX + 5)) + "torn")
    path.chmod(0o644)
    lines = History(path).load()
    assert (len(lines), lines[0], lines[-1]) == (LINES_MAX, "5", str(LINES_MAX + 4))
    assert path.read_text().count("\n") == LINES_MAX
    assert mode_of(path) == 0o600


def test_a_file_of_any_size_is_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "history"
    with path.open("wb") as file:
        file.truncate(1 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"\ndb list\n")
    assert History(path).load() == ["db list"]
    assert path.stat().st_size == len(b"db list\n")


def test_nothing_is_written_through_a_link_or_into_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="it is a link, and is not followed"):
        History(tmp_path / "link").load()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is no regular file"):
        History(tmp_path / "pipe").load()


class Terminal:
    """A process at a terminal of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.shown = ""

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def expect(self, text: str, timeout_s: float = 60.0) -> None:
        """Return once ``text`` is shown, and forget the output up to there."""
        assert self._is_shown(text, timeout_s), f"{text!r} was not shown: {self.shown!r}"
        self.shown = self.shown.partition(text)[2]

    def complete(self, keys: str, text: str) -> None:
        """Type ``keys``, and Tab until they become ``text``. The shell asks the server half a second, then gives up."""
        self.type(keys)
        for _ in range(30):
            self.type("\t")
            if self._is_shown(text, 5.0):
                break
        self.expect(text)

    def interrupt(self, text: str) -> None:
        """Type Ctrl-C until ``text`` is shown. Python hears of a signal while readline waits for a key, and not in the
        moment before: then it would wait for the next key."""
        for _ in range(30):
            self.type("\x03")
            if self._is_shown(text, 2.0):
                break
        self.expect(text)

    def _is_shown(self, text: str, timeout_s: float) -> bool:
        end_s = time.monotonic() + timeout_s
        while text not in self.shown and (left_s := end_s - time.monotonic()) > 0:
            if select.select([self._descriptor], [], [], left_s)[0]:
                self.shown += os.read(self._descriptor, 4096).decode()
        return text in self.shown


@contextmanager
def at_terminal(*arguments: str, environment: dict[str, str]) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    ours, theirs = pty.openpty()
    # The child has a session of its own, with the terminal to control it: only so Ctrl-C is a signal.
    code = (
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
        "from cortado.store.cli import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    try:
        yield Terminal(ours), process
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.slow
def test_a_shell_at_a_terminal(tmp_path: Path) -> None:
    pytest.importorskip("readline")
    server = FakeServer()
    server.handlers["Tables.ListDatabases"] = lambda *_: tables_pb2.ListDatabasesResponse(
        header=header(), databases=["flights"]
    )
    over = threading.Event()

    def watch(_: Any, context: Any) -> Iterator[Any]:
        context.add_callback(over.set)
        yield watch_pb2.WatchKeyValueResponse(header=header(), resolved=header().timestamp)
        over.wait(60)

    server.handlers["Watch.KeyValue"] = watch
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("CORTADO_")},
        "XDG_STATE_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "TERM": "dumb",
        "INPUTRC": os.devnull,
    }
    history = tmp_path / "cortado" / "history"
    with (
        server.running(),
        at_terminal("shell", "-e", server.endpoint, environment=environment) as (terminal, process),
    ):
        terminal.expect("cortado> ")
        terminal.complete("db dr", "db drop ")
        terminal.complete("fli", "flights ")
        terminal.type("--dry-run\n")
        terminal.expect("--dry-run")
        terminal.expect("cortado [")  # The server of the test lists databases, and drops none.
        terminal.type("namespace drop n\n")
        terminal.expect("[y/N]: ")
        terminal.type("n\n")
        terminal.expect("cortado [130]> ")
        terminal.type("watch kv n -o json\n")
        terminal.expect('"resolved"')
        terminal.interrupt("cortado [130]> ")
        terminal.type("now\n")
        terminal.expect("cortado> ")
        terminal.type("half of a")
        # Ctrl-C discards the terminal's input. Readline would wait for a key that it was told of.
        terminal.expect("half of a")
        terminal.interrupt("cortado> ")
        terminal.type("\x10\x10\x10\n")  # Up, three times.
        terminal.expect("[y/N]: ")
        terminal.interrupt("cortado [130]> ")
        terminal.type("\x04")
        assert process.wait(60) == 0
        over.set()
    assert history.read_text().splitlines() == [
        "db drop flights --dry-run",
        "namespace drop n",
        "watch kv n -o json",
        "now",
        "namespace drop n",
    ]
    assert mode_of(history) == 0o600
