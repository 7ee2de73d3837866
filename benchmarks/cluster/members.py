"""Measured processes: start them, end them, and read their use from the kernel."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

START_S: Final = 40.0
_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Member:
    """One process of a cluster: its ``command`` serves clients on ``endpoint`` (host:port)."""

    name: str
    endpoint: str
    command: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end(self, *, kill: bool = False) -> None:
        """End the process, in order or as a crash would."""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill() if kill else process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Cluster(Protocol):
    """Three members of either system."""

    name: str
    members: list[Member]

    def leader(self) -> Member | None:
        """Return the current leader, as far as known."""

    def follows(self, member: Member) -> bool:
        """Return whether it answers and knows a leader, perhaps itself."""

    def settle(self) -> None:
        """Begin to put away data that the last calls left in memory, if it does not do so by itself."""

    def load_command(self, workload: str, callers: int, endpoints: Sequence[str]) -> list[str] | None:
        """Return the program that asks it by its own client; None if it is missing."""

    def settings(self) -> str:
        """Return one line: version and settings that are not its default."""


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that were free a moment ago, all different."""
    taken = [socket.socket() for _ in range(count)]
    try:
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in taken]
    finally:
        for each in taken:
            each.close()


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = START_S) -> float:
    """Return the seconds until ``condition`` held. Raises TimeoutError naming ``what``."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + timeout_s:
            raise TimeoutError(f"{what}: not within {timeout_s:.0f} s")
        time.sleep(0.02)
    return time.monotonic() - began


@dataclass(frozen=True, slots=True)
class Use:
    """A process's use over some time: ``cores`` of CPU, and at most ``memory_mib`` at once."""

    cores: float
    memory_mib: float


class Meter:
    """Counts a process's use from the making of the meter to :meth:`read`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._cpu_s = cpu_seconds(pid)
        self._began_s = time.monotonic()
        # Let the kernel count the peak anew.
        Path(f"/proc/{pid}/clear_refs").write_text("5")

    def cpu_s(self) -> float:
        return cpu_seconds(self._pid) - self._cpu_s

    def read(self) -> Use:
        return Use(self.cpu_s() / (time.monotonic() - self._began_s), _peak_mib(self._pid))


def cpu_seconds(pid: int) -> float:
    """Return user and system time of all threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def _peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
