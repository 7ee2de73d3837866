"""What a server is told at its start, checked before anything is opened.

Every bound below has a unit at the end of its name, and a consequence where one exceeds it: the caller is refused with
``RESOURCE_EXHAUSTED`` and a delay, at once.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cortado.errors import InvalidArgument
from cortado.store.node.limits import NodeLimits, check_bound

DEFAULT_LISTEN: Final = "127.0.0.1:7621"
MESSAGE_BYTES_MAX: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server. Call :meth:`check` (:func:`~cortado.store.server.serve` does) before use.

    - ``data_dir``: everything durable; made at the first start. One process at a time may use it.
    - ``listen``: ``host:port``; port 0 takes a free one. Other hosts than loopback need ``insecure``, since nothing
      protects the connection yet.
    - ``port_file``: where to write the address that is served, once it is (for scripts); None for nowhere.
    - ``map_size_bytes``: bound on the data; address space rather than disk, since the file grows as it is used. None
      for the engine's default, which is large.
    - ``max_clock_offset_ms``: how far ahead of the physical clock a timestamp from outside may be.
    - ``clock_offset_ms``: for tests only: added to the physical clock, to see what a wrong one does.
    - ``cluster_id``: name of the cluster; empty: what the directory says, or a new one at the first start.
    - ``verify``: look at every page of the data file before serving, however large it is. Otherwise, of a file of
      more than 2 GiB, at those that lead to others and at about 2 GiB of the rest.
    - ``stop_grace_ms``: how long calls in flight may go on once the server was told to stop.
    """

    data_dir: Path = Path("cortado-data")
    listen: str = DEFAULT_LISTEN
    insecure: bool = False
    port_file: Path | None = None
    map_size_bytes: int | None = None
    max_clock_offset_ms: int = 250
    clock_offset_ms: int = 0
    cluster_id: str = ""
    verify: bool = False
    stop_grace_ms: int = 5_000
    limits: NodeLimits = field(default_factory=NodeLimits)

    def check(self) -> None:
        """Raises InvalidArgument with the field, the value and the bound."""
        host, _ = self.address()
        if not self.insecure and not _is_loopback(host):
            problem = "connections are not encrypted, so it must be a loopback address unless --insecure is given"
            raise InvalidArgument("listen", problem, self.listen)
        if self.map_size_bytes is not None:
            check_bound("map_size_bytes", self.map_size_bytes, 1 << 20, 1 << 46)
        check_bound("max_clock_offset_ms", self.max_clock_offset_ms, 1, 60_000)
        check_bound("stop_grace_ms", self.stop_grace_ms, 0, 600_000)
        if len(self.cluster_id) > 100 or not self.cluster_id.isascii():
            raise InvalidArgument("cluster_id", "must be at most 100 ASCII characters", self.cluster_id)
        self.limits.check()

    def address(self) -> tuple[str, int]:
        """Host and port of ``listen``. Raises InvalidArgument."""
        host, colon, port = self.listen.rpartition(":")
        if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
            raise InvalidArgument("listen", "must be host:port with a port from 0 to 65535", self.listen)
        return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
