"""The driver that asks one system, round by round, and its results."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Seen:
    """One round: calls that ended in it, their latencies, and the callers' CPU time."""

    calls: int
    p50_us: int
    p99_us: int
    cpu_s: float
    failed: int


def percentile(ordered: Sequence[int], share: float) -> int:
    """Return the value below which ``share`` of them lie; 0 if there are none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0


class Driver(Protocol):
    """Callers of one system, which rest between rounds."""

    def begin(self, seconds: float) -> None:
        """Start a round. Return when it is warm and counting begins."""

    def end(self) -> Seen:
        """Wait for the round's end. Raises RuntimeError if the callers failed as a whole."""

    def close(self) -> None:
        """End the callers."""


class LoadProcess:
    """Callers in a process that speaks the protocol of ``cortado_load.py`` and ``etcd_load/main.go``."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._expect("ready")

    def begin(self, seconds: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        self._expect("counting")

    def end(self) -> Seen:
        return Seen(**json.loads(self._line()))

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _expect(self, word: str) -> None:
        line = self._line()
        if line != word:
            raise RuntimeError(f"a load generator said {line!r}, not {word!r}")

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a load generator ended early: {self._process.args!r:.120}")
        return line.rstrip("\n")
