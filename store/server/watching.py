"""The watches of a running server: its parent process, its readiness, and the connections that a test wants cut."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from grpc_health.v1 import health, health_pb2

from cortado.errors import InvalidArgument
from cortado.store.files.regular_files import read_regular

_LOG: Final = logging.getLogger(__name__)

PERIOD_S: Final = 0.1
# The state takes a look at the disk, too, so it is taken less often.
STATE_PERIODS: Final = 10
EXIT_ORPHANED: Final = 1

_PR_SET_PDEATHSIG: Final = 1
_FAULTS_BYTES_MAX: Final = 64 << 10


def end_with_parent(pipe_fd: int) -> None:
    """End this process, at once, when the other end of ``pipe_fd`` is closed: the process that holds it is gone.

    On Linux the kernel sees to it, too, which ends a process that is stopped. Raises InvalidArgument for no pipe.
    """
    try:
        os.set_inheritable(pipe_fd, False)
    except OSError as error:
        raise InvalidArgument("parent-fd", f"is no open file: {error.strerror}", str(pipe_fd)) from error
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def wait_for_its_end() -> None:
        # Nothing is ever written to it; if the parent was gone already, this returns at once.
        os.read(pipe_fd, 1)
        os._exit(EXIT_ORPHANED)

    threading.Thread(target=wait_for_its_end, name="cortado-parent", daemon=True).start()


async def report_health(
    servicer: health.aio.HealthServicer, services: Sequence[str], is_ready: Callable[[], bool], state: Callable[[], str]
) -> None:
    """Keep the health of all services true, and log each change of state. Runs until it is cancelled."""
    said: bool | None = None
    logged = "serving"
    for period in itertools.count():
        ready = is_ready()
        has_changed = ready != said
        if has_changed:
            said = ready
            status = health_pb2.HealthCheckResponse.SERVING if ready else health_pb2.HealthCheckResponse.NOT_SERVING
            for name in services:
                await servicer.set(name, status)
        if (has_changed or period % STATE_PERIODS == 0) and (now := state()) != logged:
            logged = now
            _LOG.log(logging.INFO if now == "serving" else logging.WARNING, "state: %s", now)
        await asyncio.sleep(PERIOD_S)


async def follow_faults(path: Path, cut: Callable[[Collection[str]], None]) -> None:
    """Keep this node cut off from the nodes that ``path`` names, one a line, as it changes: for tests. Runs until
    cancelled."""
    seen: frozenset[str] = frozenset()
    while True:
        named = _named(path)
        if named != seen:
            seen = named
            cut(named)
            # Logged last: a reader of the line finds the cut made.
            _LOG.warning("cut off from %s by %s", ", ".join(sorted(named)) or "nobody", path)
        await asyncio.sleep(PERIOD_S)


def _named(path: Path) -> frozenset[str]:
    try:
        return frozenset(read_regular(path, _FAULTS_BYTES_MAX).decode(errors="replace").split())
    except OSError:
        return frozenset()
