"""Servers that start in a tenth of a second: one process imports the server once, and forks when a test wants one.

::

    pytest ── socket ──► zygote (has imported cortado server, started no thread, made no connection)
                           ├─ fork ─► cortado server --data-dir a ...
                           └─ fork ─► cortado server --data-dir b ...

Each server is a process of its own, with its own memory, files and signals: it is killed, stopped and cut off as one
that was executed. Only the import of its modules, half a second of processor, is shared. A test that is about starting
(another build, a tracer, an environment) executes the command line instead.

The zygote is the parent of the processes that it forks, so it reaps them and says how each ended. It ends with its
socket.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_MESSAGE_BYTES: Final = 1 << 20
_POLL_S: Final = 0.01


class Forked:
    """The counterpart of ``subprocess.Popen`` for a forked process: ``pid``, ``poll``, ``wait``, ``send_signal``,
    ``kill``."""

    def __init__(self, zygote: Zygote, pid: int) -> None:
        self._zygote = zygote
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, or minus the signal that ended it; None while it runs."""
        if self.returncode is None:
            self._zygote.hear_who_ended()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code, once it ended. Raises subprocess.TimeoutExpired after ``timeout`` seconds."""
        deadline_s = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline_s is not None and time.monotonic() > deadline_s:
                raise subprocess.TimeoutExpired("a forked server", timeout or 0)
            time.sleep(_POLL_S)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Zygote:
    """The process that forks servers, and the side of it that tests hold."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "support.zygote", str(theirs.fileno())]
        path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        env = {**os.environ, "PYTHONPATH": path}
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=env)
        theirs.close()
        # By process id, while they run: the id of one that ended may come round again.
        self._running: dict[int, Forked] = {}
        self._lock = threading.Lock()

    def start(self, arguments: Sequence[str], log: int) -> Forked:
        """Start ``cortado server`` with ``arguments``, which writes to ``log``, in this directory, environment and
        umask."""
        umask = os.umask(0)
        os.umask(umask)
        cwd, env = os.getcwd(), dict(os.environ)  # noqa: PTH109
        wanted = {"arguments": list(arguments), "cwd": cwd, "env": env, "umask": umask}
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(wanted).encode()], [log])
            while "started" not in (told := self._hear()):
                self._ended(told)
            started = self._running[told["started"]] = Forked(self, told["started"])
        return started

    def hear_who_ended(self) -> None:
        """Give each that ended its exit code."""
        with self._lock:
            while select.select([self._socket], [], [], 0)[0]:
                self._ended(self._hear())

    def _ended(self, told: dict[str, int]) -> None:
        self._running.pop(told["ended"]).returncode = told["code"]

    def end(self) -> None:
        self._socket.close()
        self._process.wait()

    def _hear(self) -> dict[str, int]:
        heard = self._socket.recv(_MESSAGE_BYTES)
        assert heard, "the zygote ended"
        return dict(json.loads(heard))


def serve(fd: int) -> tuple[dict[str, Any], int]:
    """Run the zygote: import the server as its command does, then fork for each message, and tell of each that ends.

    Returns in a forked child alone: the request, and the file that it writes to.
    """
    sys.argv[1:] = ["server"]
    before = set(os.environ)
    import cortado.store.cli.app
    import cortado.store.server.serving  # noqa: F401

    _load_kernel()
    # The command chooses gRPC's poller by its environment when it is loaded, if the caller has not.
    chosen = {name: value for name, value in os.environ.items() if name not in before}
    wake, woken = os.pipe()
    for each in (wake, woken):
        os.set_blocking(each, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ours = socket.socket(fileno=fd)
    while True:
        readable, _, _ = select.select([ours, wake], [], [])
        if wake in readable:
            os.read(wake, 4096)
        _tell_who_ended(ours)
        if ours in readable:
            text, files, _, _ = socket.recv_fds(ours, _MESSAGE_BYTES, 1)
            if not text:
                sys.exit()
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                ours.close()
                os.close(wake)
                os.close(woken)
                wanted = json.loads(text)
                wanted["env"] = chosen | wanted["env"]
                return wanted, files[0]
            os.close(files[0])
            ours.send(json.dumps({"started": pid}).encode())


def _load_kernel() -> None:
    """Load the kernel that each server would load: half a second of processor, and ten if it is not compiled yet."""
    from cortado.store.mvcc.kernel.seam import COMPILING, Unfit, compiled_folder, load

    with suppress(Unfit):
        if compiled_folder() is None:
            subprocess.run([sys.executable, "-m", COMPILING], check=False)
        folder = compiled_folder()
        if folder is not None:
            load(folder)


def _tell_who_ended(ours: socket.socket) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            ours.send(json.dumps({"ended": ended[0], "code": os.waitstatus_to_exitcode(ended[1])}).encode())


def become(wanted: dict[str, Any], log: int) -> None:
    """Set up the process as ``exec`` would have, then run the command; the interpreter ends as it does after any."""
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    os.chdir(wanted["cwd"])
    os.umask(wanted["umask"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    sys.argv = ["cortado", "server", *wanted["arguments"]]
    from cortado.store.cli import main as cortado

    cortado()


if __name__ == "__main__":
    become(*serve(int(sys.argv[1])))
