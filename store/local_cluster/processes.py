"""Processes by an identity that is never used again, and signals that reach no other process.

A process id comes back for another process some time after the first one has ended. Together with the time of its
start, as the system counts it, it does not.

The file that names a process may be any user's. So a process is signalled only if it has a file open that it was
started with: the supervisor its lock, a node its log. A process of another user hides its open files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cortado.errors import InvalidArgument

_IS_LINUX: Final = sys.platform == "linux"

# Places in /proc/PID/stat, counted after the name, which may hold anything but the last parenthesis.
_STATE: Final = 0
_STARTED: Final = 19


@dataclass(frozen=True, slots=True)
class ProcessId:
    """``started`` is the system's time of its start: clock ticks since the boot on Linux."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """Return the id of a process that exists: a child, which is there until it is waited for, or ourselves."""
        found = _look_at(pid)
        return cls(pid, "" if found is None else found[1])

    def is_alive(self) -> bool:
        found = _look_at(self.pid)
        return found is not None and found[1] == self.started and found[0] != "Z"

    def _is_there(self, holding: Path) -> bool:
        if self.is_alive() and _has_open(self.pid, holding):
            return True
        if self.is_alive():
            problem = f"names process {self.pid}, which does not have {holding} open: it is another one, and left alone"
            raise InvalidArgument("run.json", problem)
        return False

    def is_paused(self) -> bool:
        found = _look_at(self.pid)
        return found is not None and found[1] == self.started and found[0] in "Tt"

    def send(self, signal_number: signal.Signals, *, holding: Path) -> bool:
        """Return True if it was sent; False if the process is gone. Raises InvalidArgument if it does not have the
        file ``holding`` open, and so is another one."""
        try:
            if not hasattr(os, "pidfd_open"):
                if not self._is_there(holding):
                    return False
                os.kill(self.pid, signal_number)
                return True
            # Opened first and checked then: the signal goes to the process that has been checked.
            held = os.pidfd_open(self.pid)
            try:
                if not self._is_there(holding):
                    return False
                signal.pidfd_send_signal(held, signal_number)
                return True
            finally:
                os.close(held)
        except ProcessLookupError:
            return False


def _has_open(pid: int, file: Path) -> bool:
    if not _IS_LINUX:
        # It shows no open files: the user and the name of the program must do.
        shown = subprocess.run(
            ["ps", "-o", "uid=,command=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        uid, _, command = shown.stdout.strip().partition(" ")
        return uid == str(os.geteuid()) and "cortado" in command
    try:
        wanted = file.lstat()
        opened = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    for each in opened:
        with suppress(OSError):
            if os.path.samestat(each.stat(), wanted):
                return True
    return False


def _look_at(pid: int) -> tuple[str, str] | None:
    """Return the state letter and the time of the start; None if there is no such process."""
    if _IS_LINUX:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return fields[_STATE], fields[_STARTED]
    shown = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = shown.stdout.strip().partition(" ")
    return (state[:1], started.strip()) if state else None
