"""The logs of a local cluster's nodes: kept short while they are written, and read as one.

::

    n1/server.log      the node's output, always at the end of the file
    n1/server.log.1    its content before it had grown to LOG_BYTES_MAX

A node holds its log open, so the file is copied and cut rather than moved. It is cut as soon as a copy has caught up
with it; lines that a node writes in between, within some microseconds, are lost.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cortado.store.files.regular_files import create_anew, open_regular

LOG_BYTES_MAX: Final = 10 << 20
_CHUNK_BYTES: Final = 1 << 20
_TAIL_BYTES_MAX: Final = 1 << 20
_POLL_S: Final = 0.1
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z?")


def rotate(log: Path, bytes_max: int = LOG_BYTES_MAX) -> bool:
    """Begin ``log`` anew if it is longer than ``bytes_max``. A full disk leaves it as it is."""
    with suppress(OSError):
        if log.stat().st_size <= bytes_max:
            return False
        old = log.with_name(f"{log.name}.1")
        new = log.with_name(f"{log.name}.new")
        with os.fdopen(open_regular(log, os.O_RDWR), "r+b") as source, os.fdopen(create_anew(new), "wb") as target:
            while chunk := source.read(_CHUNK_BYTES):
                target.write(chunk)
            os.ftruncate(source.fileno(), 0)
        new.replace(old)
        return True
    return False


def last_line(log: Path) -> str:
    """Return a node's last line, which is the reason for its end."""
    lines = tail(log, 1)
    return lines[-1].removeprefix("error: ") if lines else f"see {log}"


def tail(log: Path, lines: int, *, follows_links: bool = False) -> list[str]:
    """Return the last lines of a log, also from the file before it if needed. Of very long ones the last part; none
    from a path that is no regular file."""
    found: list[str] = []
    for path in (log, log.with_name(f"{log.name}.1")):
        with suppress(OSError), os.fdopen(open_regular(path, follows_links=follows_links), "rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - _TAIL_BYTES_MAX))
            found = opened.read().decode(errors="replace").splitlines() + found
        if len(found) >= lines:
            break
    return found[-lines:] if lines else []


def merged(logs: Mapping[str, Path], lines: int) -> list[tuple[str, str]]:
    """Return the last lines of several nodes, as (node, line), in the order of their times. One without goes with the
    last."""
    found: list[tuple[str, int, str, str]] = []
    for order, (node_id, log) in enumerate(logs.items()):
        at = ""
        for line in tail(log, lines):
            match = _TIME.search(line[:64])
            at = match[0] if match is not None else at
            found.append((at, order, node_id, line))
    # Sorting is stable, so the lines of a node stay in their order.
    found.sort(key=lambda each: each[:2])
    return [(node_id, line) for _, _, node_id, line in found]


@dataclass(slots=True)
class Follower:
    """The lines written to a log from now on; over a rotation too."""

    log: Path
    _position: int = field(init=False, default=0)
    _rest: bytes = field(init=False, default=b"")

    def __post_init__(self) -> None:
        with suppress(OSError):
            self._position = self.log.stat().st_size

    def lines(self) -> list[str]:
        """Whole lines that came since the last call."""
        try:
            with os.fdopen(open_regular(self.log), "rb") as opened:
                if opened.seek(0, os.SEEK_END) < self._position:
                    self._position = 0
                opened.seek(self._position)
                new = opened.read(_TAIL_BYTES_MAX)
        except OSError:
            return []
        self._position += len(new)
        *whole, self._rest = (self._rest + new).split(b"\n")
        return [each.decode(errors="replace") for each in whole]


def follow(logs: Mapping[str, Path], sleep: Callable[[float], None] = time.sleep) -> Iterator[tuple[str, str]]:
    """(node, line) as they are written from this call on, for ever."""
    return _follow({node_id: Follower(log) for node_id, log in logs.items()}, sleep)


def _follow(followers: Mapping[str, Follower], sleep: Callable[[float], None]) -> Iterator[tuple[str, str]]:
    while True:
        for node_id, follower in followers.items():
            for line in follower.lines():
                yield node_id, line
        sleep(_POLL_S)
