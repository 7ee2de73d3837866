"""The operating system's figures of this process. Missing ones are left out, never made up."""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc/self")
_STAT_START_TICKS: Final = 19  # Fields behind the command's name, from 0: proc_pid_stat(5), starttime.


def process_numbers() -> Iterator[tuple[str, float]]:
    """(name of a metric, value), of those that there are here."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield "process_cpu_seconds_total", used.ru_utime + used.ru_stime
    yield "process_threads", threading.active_count()
    yield "process_max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    yield from _from_proc() if sys.platform == "linux" else _from_elsewhere()


def _from_proc() -> Iterator[tuple[str, float]]:
    pages = int((_PROC / "statm").read_text().split()[1])
    yield "process_resident_memory_bytes", pages * os.sysconf("SC_PAGE_SIZE")
    yield "process_open_fds", sum(1 for _ in (_PROC / "fd").iterdir())
    ticks = int((_PROC / "stat").read_text().rpartition(")")[2].split()[_STAT_START_TICKS])
    yield "process_start_time_seconds", _booted_s() + ticks / os.sysconf("SC_CLK_TCK")


def _from_elsewhere() -> Iterator[tuple[str, float]]:
    # The largest that it ever was: the only number without a package of its own. Bytes on macOS.
    yield "process_resident_memory_bytes", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if Path("/dev/fd").is_dir():
        yield "process_open_fds", sum(1 for _ in Path("/dev/fd").iterdir())


def _booted_s() -> float:
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0
