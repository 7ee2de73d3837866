"""How long clients cannot write when the leader is killed (kill -9), with default settings.

Several callers put one key after another, each through a client of its own, so that no caller waits for another one's
put. The leader is killed. The measure is the time from the kill to the end of the first put that began after it and was
acknowledged. Then the killed one is started again and has time to catch up, while it is the other system's turn.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.cluster.members import Cluster, Member, wait_for

CALLERS: Final = 4
PUTS_BEFORE: Final = 200
"""Puts that all callers together have acknowledged before the kill."""
BACK_S: Final = 60.0
CATCH_UP_S: Final = 1.0


class _Puts:
    """The callers' process, and its acknowledged puts: (began, ended) in nanoseconds of wall time."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.acknowledged: list[tuple[int, int]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # The kill may cut the last line short.
            if line.endswith("\n"):
                began, ended = line.split()
                self.acknowledged.append((int(began), int(ended)))

    def first_after(self, killed_ns: int) -> int | None:
        """Return the end of the first put that began after the kill."""
        return min((end for began, end in self.acknowledged[-1_000:] if began > killed_ns), default=None)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()


def trials(clusters: Sequence[Cluster], count: int) -> dict[str, list[float]]:
    """Return milliseconds for each of ``count`` kills, the systems in turns."""
    spent_ms: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
    for _ in range(count):
        for cluster in clusters:
            spent_ms[cluster.name].append(_trial(cluster))
    return spent_ms


def _trial(cluster: Cluster) -> float:
    leader = cluster.leader()
    assert leader is not None
    command = cluster.load_command("failover", CALLERS, [member.endpoint for member in cluster.members])
    assert command is not None
    puts = _Puts(command, leader.log.with_name("failover.log"))
    try:
        wait_for(lambda: len(puts.acknowledged) >= PUTS_BEFORE, "puts are acknowledged")
        killed_ns = time.time_ns()
        leader.end(kill=True)
        wait_for(lambda: puts.first_after(killed_ns) is not None, f"clients of {cluster.name} write again", BACK_S)
        first_ns = puts.first_after(killed_ns)
    finally:
        puts.close()
    assert first_ns is not None
    _start_again(cluster, leader)
    return (first_ns - killed_ns) / 1_000_000


def _start_again(cluster: Cluster, killed: Member) -> None:
    killed.start()
    wait_for(lambda: cluster.follows(killed), f"{killed.name} is back", BACK_S)
    time.sleep(CATCH_UP_S)
