"""Log files in memory, for tests of nodes that are not about the disk."""

from __future__ import annotations

import random

from cortado.store.log_files.log_files import LogFiles
from support.simulation.log_disk import LogDisk


def memory_log_files(disk: LogDisk | None = None) -> LogFiles:
    """Open log files on ``disk``, or on an empty one: durable at once."""
    return LogFiles.open(disk or memory_log_disk())


def memory_log_disk() -> LogDisk:
    """Return the disk that outlives a process."""
    disk = LogDisk(random.Random(0))
    disk.promises_blocks = True
    return disk
