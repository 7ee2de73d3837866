"""The remains of a client in this process: its threads, sockets and tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cortado.store.client import Client
from support.faces import loop_of, open_client
from support.server_process import wait_until


def own_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("cortado-")]


def sockets_to(endpoint: str) -> int:
    """Return the number of this process's connections to the port of ``endpoint``."""
    mine = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            mine.add(str(each.readlink()))
    port = f":{int(endpoint.rpartition(':')[2]):04X}"
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table]
    return sum(fields[2].endswith(port) and f"socket:[{fields[9]}]" in mine for fields in lines)


@contextmanager
def client_that_leaves_nothing(face: str, endpoint: str, **options: Any) -> Iterator[Client]:
    """Open a client, and find nothing of it once it is closed."""
    before = own_threads()
    with open_client(face, endpoint, **options) as client:
        yield client
    loop = loop_of(client)
    if loop is not None:
        wait_until(lambda: not loop.is_running(), "the loop has ended")
        assert asyncio.all_tasks(loop) == set()
    wait_until(lambda: own_threads() == before, "the client's threads have ended")
    wait_until(lambda: sockets_to(endpoint) == 0, "the client's sockets are closed")
