"""A real server in a process of its own, for tests that go over the wire.

It serves on a free port of loopback, says so in a file, and is waited for. Every process ends, whatever the test does:
a process that is still there when its owner is done, or when the test run ends, is killed.
"""

from __future__ import annotations

import atexit
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from support.ports import free_ports
from support.zygote import Forked, Zygote

READY_S = 60.0
STOP_S = 60.0
_POLL_S_MIN, _POLL_S_MAX = 0.005, 0.025
PATIENCE_S = 240.0
"""How long tests wait for what must come: also on a machine whose processors have ten times the work."""
CORTADO = (sys.executable, "-m", "cortado.store.cli")
"""The command line of this environment and tree."""

_RUNNING: set[subprocess.Popen[bytes] | Forked] = set()


@cache
def zygote() -> Zygote:
    """Return the zygote of this test process, from its first server on. It ends with us, since its socket does."""
    return Zygote()


@atexit.register
def _kill_leftovers() -> None:
    for process in list(_RUNNING):
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S) -> None:
    """Returns once ``condition`` holds. Raises AssertionError naming ``what`` after ``timeout_s``.

    The longer it has waited, the seldomer it asks: the process under test wants the processor, too."""
    began_s = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - began_s
        assert waited_s < timeout_s, f"{what}: not within {timeout_s} s"
        time.sleep(min(max(_POLL_S_MIN, waited_s / 20), _POLL_S_MAX))


def is_stopped(pid: int) -> bool:
    """Return whether it stands still, as SIGSTOP lets it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except (FileNotFoundError, ProcessLookupError):
        return False


def peer_address_of(address: str) -> str:
    """Return the address at which a node at ``address`` listens for peers by default."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + 1}"


class ServerProcess:
    """``cortado server`` on ``data_dir``. ``endpoint`` is its address, ``log`` its output so far.

    ``under`` is a command that runs it, such as a tracer; it must become the server, or end with it. ``cortado`` is the
    command line of another build or environment; it may be set anew for the next start.
    """

    def __init__(
        self,
        data_dir: Path,
        *options: str,
        listen: str = "",
        under: Sequence[str] = (),
        cortado: Sequence[str] = CORTADO,
    ) -> None:
        self.data_dir = data_dir
        self.cortado = cortado
        self._options = options
        self._listen = listen or f"127.0.0.1:{free_ports(2)[0]}"
        self._under = under
        self._port_file = data_dir.with_name(f"{data_dir.name}.port")
        self._log_file = data_dir.with_name(f"{data_dir.name}.log")
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._log_before_bytes = 0
        self.endpoint = ""

    @property
    def peer_address(self) -> str:
        """Return the address for its peers: the port after its clients' one."""
        return peer_address_of(self._listen)

    @property
    def log(self) -> str:
        return self._log_file.read_text() if self._log_file.exists() else ""

    @property
    def log_since_its_start(self) -> str:
        return self._log_file.read_bytes()[self._log_before_bytes :].decode()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def served_at(self) -> str:
        """Return the address at which it serves, empty while it does not yet."""
        return self._port_file.read_text().strip() if self._port_file.exists() else ""

    @property
    def code(self) -> int | None:
        """With which the process has ended by itself; None while it runs."""
        assert self._process is not None
        return self._process.poll()

    def start(self) -> ServerProcess:
        """Start it and wait until it serves. A second start serves on the same address."""
        self.launch()
        return self.await_ready()

    def launch(self) -> None:
        """Start it, and wait for nothing."""
        self._port_file.unlink(missing_ok=True)
        with self._log_file.open("ab") as log:
            self._log_before_bytes = log.tell()
            if self._under or self.cortado != CORTADO:
                command = [*self._under, *self.cortado, "server", *self._arguments()]
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            else:
                self._process = zygote().start(self._arguments(), log.fileno())
        _RUNNING.add(self._process)

    def await_ready(self) -> ServerProcess:
        """Wait until the launched process serves; kill it if it does not."""
        try:
            wait_until(self._is_ready, f"the server is ready\n{self.log}", READY_S)
        except BaseException:
            self.kill()
            raise
        self.endpoint = self._port_file.read_text().strip()
        self._listen = self.endpoint
        return self

    def stop(self) -> int:
        """Ask it to end, as an operator does, and return its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    @property
    def is_paused(self) -> bool:
        return self.is_running and is_stopped(self.pid)

    def pause(self) -> None:
        """Stop all its work, with its connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _arguments(self) -> Sequence[str]:
        return [
            *("--data-dir", str(self.data_dir), "--listen", self._listen, "--port-file", str(self._port_file)),
            *self._options,
        ]

    def _is_ready(self) -> bool:
        assert self._process is not None
        code = self._process.poll()
        assert code is None, f"the server ended with {code}\n{self.log}"
        return self.served_at != ""

    def _end(self, sent: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(sent)
        process.send_signal(signal.SIGCONT)
        try:
            code = process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the server did not end within {STOP_S} s\n{self.log}") from None
        finally:
            _RUNNING.discard(process)
        return code


@contextmanager
def running_server(data_dir: Path, *options: str) -> Iterator[ServerProcess]:
    """Run a server for the length of a ``with`` block; kill it if it does not end by itself."""
    server = ServerProcess(data_dir, *options)
    try:
        yield server.start()
    finally:
        server.kill()
