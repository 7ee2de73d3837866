"""The system calls of a process, and their times: strace's output, read.

The times are the machine's wall clock, so traces of several processes can be laid side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TRACED = "openat,fdatasync,fsync,pwrite64,pwritev,read,recvmsg,recvfrom,write,writev,sendmsg,sendto"
RECEIVED = {"read", "recvmsg", "recvfrom"}
SENT = {"write", "writev", "sendmsg", "sendto"}
STORED = {"pwrite64", "pwritev", "writev"}
_LOG_FILE = re.compile(r"/log/[0-9]{16}>")

_LINE = re.compile(r"^(\d+) +([\d.]+) (?:(\w+)\(|<\.\.\. (\w+) resumed>)(.*)$")
_TOOK = re.compile(r" <([\d.]+)>$")


def tracer(output: Path) -> list[str]:
    """Return the command under which a server is traced. It is a child of the server, so that the process is the
    server."""
    return ["strace", "-D", "-f", "-yy", "-ttt", "-T", "-s", "65536", "-o", str(output), "-e", f"trace={TRACED}"]


@dataclass(frozen=True, slots=True)
class SystemCall:
    """``said`` is strace's text of its arguments and result."""

    name: str
    start_s: float
    end_s: float
    said: str

    @property
    def log_file(self) -> str:
        """Which log file it is on; empty if it is on none."""
        found = _LOG_FILE.search(self.said.partition(",")[0])
        return "" if found is None else found[0]

    @property
    def is_on_disk(self) -> bool:
        return bool(self.log_file) or "data.mdb" in self.said


class Trace:
    """The calls of one process, all threads."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.calls = list(_calls(text))

    def arrival(self, text: str) -> float:
        """Return when the first message with ``text`` had arrived."""
        return min(call.end_s for call in self.calls if call.name in RECEIVED and text in call.said)

    def answer(self, text: str, through: str = "") -> float:
        """Return when the first message with ``text`` was on its way out, through a connection described so."""
        sent = (call for call in self.calls if call.name in SENT and not call.is_on_disk)
        return min(call.start_s for call in sent if text in call.said and through in call.said)

    def durable(self, text: str) -> float:
        """Return when the first frame with ``text`` was on the disk: written to a log file, which was flushed after
        that."""
        stored = (call for call in self.calls if call.name in STORED and call.log_file and text in call.said)
        first = min(stored, key=lambda call: call.end_s, default=None)
        if first is None:
            return float("inf")
        flushes = (call for call in self.calls if call.name == "fdatasync" and call.log_file == first.log_file)
        return min((call.end_s for call in flushes if call.start_s >= first.end_s), default=float("inf"))


def _calls(text: str) -> Iterator[SystemCall]:
    open_calls: dict[str, tuple[str, float, str]] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        thread, at, begun, _, rest = match.groups()
        if begun is not None and rest.endswith("<unfinished ...>"):
            open_calls[thread] = (begun, float(at), rest)
        elif begun is not None:
            took = _TOOK.search(rest)
            yield SystemCall(begun, float(at), float(at) + (float(took[1]) if took else 0.0), rest)
        elif thread in open_calls:
            name, start_s, first = open_calls.pop(thread)
            yield SystemCall(name, start_s, float(at), first + rest)


def majority(times_s: Sequence[float]) -> float:
    """Return by when more than half of the times had come."""
    return sorted(times_s)[len(times_s) // 2]
