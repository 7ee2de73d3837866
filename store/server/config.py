"""What a server is told at its start, checked before anything is opened.

Every bound below has a unit at the end of its name, and a consequence where one exceeds it: the caller is refused with
``RESOURCE_EXHAUSTED`` and a delay, at once. How the settings are written, as flags and in a file, is in
:mod:`cortado.store.server.settings`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.raft.settings import RaftSettings
from cortado.store.node.commands import ENTRY_OVERHEAD_BYTES
from cortado.store.node.limits import NodeLimits, check_bound
from cortado.store.peers.identity import check_name
from cortado.store.server.addresses import check_address, is_loopback, is_wildcard, split_address

DEFAULT_LISTEN: Final = "127.0.0.1:7621"
MESSAGE_BYTES_MAX: Final = 8 << 20
CLOCK_OFFSET_MS_MAX: Final = 50 * 365 * 86_400_000

# A candidate waits between the shortest and the longest time, at random; their ratio is that of the defaults.
ELECTION_MS_DEFAULT: Final = 700
ELECTION_MS_MAX_RATIO: Final = (13, 7)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server. Call :meth:`check` (:func:`~cortado.store.server.serve` does) before use.

    - ``data_dir``: everything durable; made at the first start. One process at a time may use it.
    - ``listen``: ``host:port``; port 0 takes a free one. Other hosts than loopback need certificates, or ``insecure``.
    - ``advertise``: ``host:port`` under which the other nodes and the clients reach this one; empty: what it listens
      on, which must then be one address.
    - ``node_id``: this node's name in the cluster, for ever; empty: what the directory says, or at the first start of
      a cluster a drawn one. A node that joins needs the name under which it was announced.
    - ``join``: addresses of members of the cluster that an empty directory joins; empty: it begins a cluster of its
      own. A directory that belongs to a cluster already ignores it.
    - ``join_timeout_ms``: how long it tries to reach that cluster's leader, before the process ends.
    - ``tls_cert``, ``tls_key``, ``tls_ca``: PEM files; all three or none. Both sides of every connection then show a
      certificate of that authority. They are read again when they change.
    - ``insecure``: listen on other addresses than loopback although nothing is encrypted.
    - ``port_file``: where to write the address that is served, once it is (for scripts); None for nowhere.
    - ``map_size_bytes``: bound on the data; address space rather than disk, since the file grows as it is used. None
      for the engine's default, which is large.
    - ``max_clock_offset_ms``: how far ahead of the physical clock a timestamp from outside may be, and how far the
      clocks of nodes may be apart before one that differs from most gives leadership up.
    - ``clock_offset_ms``: for tests only: added to the physical clock, to see what a wrong one does.
    - ``cluster_id``: name of the cluster; empty: what the directory says, or a new one at the first start.
    - ``verify``: look at every page of the data file before serving, however large it is. Otherwise, of a file of
      more than 2 GiB, at those that lead to others and at about 2 GiB of the rest.
    - ``stop_grace_ms``: how long calls in flight may go on once the server was told to stop.
    - ``heartbeat_ms``: how often a leader is heard. ``election_ms``: after how long without it the others begin to
      look for a new one, at the earliest; at the latest after 13/7 of it. All nodes should have the same.
    - ``lease``: answer linearizable reads without asking the other nodes, on the word of the clocks that none of them
      runs faster than another by more than the drift that is allowed.
    - ``raft``: further settings of replication, by their names in ``RaftSettings``.
    - ``faults_file``: for tests only: a file that names the nodes that nothing is sent to or taken from.
    - ``parent_fd``: for who starts this process: a pipe's end; when the other one closes, the process ends at once.
    """

    data_dir: Path = Path("cortado-data")
    listen: str = DEFAULT_LISTEN
    advertise: str = ""
    node_id: str = ""
    join: tuple[str, ...] = ()
    join_timeout_ms: int = 60_000
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_ca: Path | None = None
    insecure: bool = False
    port_file: Path | None = None
    map_size_bytes: int | None = None
    max_clock_offset_ms: int = 250
    clock_offset_ms: int = 0
    cluster_id: str = ""
    verify: bool = False
    stop_grace_ms: int = 5_000
    heartbeat_ms: int = 100
    election_ms: int = ELECTION_MS_DEFAULT
    lease: bool = False
    raft: dict[str, int] = field(default_factory=dict)
    faults_file: Path | None = None
    parent_fd: int | None = None
    limits: NodeLimits = field(default_factory=NodeLimits)

    def check(self) -> None:
        """Raises InvalidArgument with the field, the value and the bound."""
        self._check_addresses()
        self._check_tls()
        if self.map_size_bytes is not None:
            check_bound("map_size_bytes", self.map_size_bytes, 1 << 20, 1 << 46)
        check_bound("max_clock_offset_ms", self.max_clock_offset_ms, 1, 60_000)
        check_bound("stop_grace_ms", self.stop_grace_ms, 0, 600_000)
        check_bound("join_timeout_ms", self.join_timeout_ms, 1, 3_600_000)
        check_bound("heartbeat_ms", self.heartbeat_ms, 10, 10_000)
        # A lost heartbeat or two must not look like a lost leader.
        check_bound("election_ms", self.election_ms, 4 * self.heartbeat_ms, 60_000)
        # Far enough for any rehearsal; beyond, the clock would leave the timestamps' range.
        check_bound("clock_offset_ms", self.clock_offset_ms, -CLOCK_OFFSET_MS_MAX, CLOCK_OFFSET_MS_MAX)
        if len(self.cluster_id) > 100 or not self.cluster_id.isascii() or not self.cluster_id.isprintable():
            problem = "must be at most 100 ASCII characters that print"
            raise InvalidArgument("cluster_id", problem, repr(self.cluster_id))
        if self.port_file is not None and not self.port_file.absolute().parent.is_dir():
            raise InvalidArgument("port_file", "must be in a directory that exists", str(self.port_file))
        if self.node_id:
            check_name(self.node_id, "node_id")
        self.raft_settings().check()
        self.limits.check()
        self._check_entry_fits()

    def raft_settings(self) -> RaftSettings:
        """The timers and ``raft`` together. Raises InvalidArgument for a name that is none."""
        reserved = {"heartbeat_ms", "election_ms_min", "election_ms_max", "lease"}
        names = [each.name for each in dataclasses.fields(RaftSettings) if each.name not in reserved]
        for name in self.raft:
            if name not in names:
                raise InvalidArgument("raft", f"must be one of {', '.join(names)}", repr(name))
        given: dict[str, Any] = dict(self.raft)
        return RaftSettings(
            heartbeat_ms=self.heartbeat_ms,
            election_ms_min=self.election_ms,
            election_ms_max=self.election_ms_max,
            lease=self.lease,
            **given,
        )

    def _check_entry_fits(self) -> None:
        """One write, and the first of a turn, must find room in an entry of the log."""
        entry_bytes_max = self.raft_settings().entry_bytes_max
        for name in ("command_bytes_max", "turn_bytes_max"):
            value = getattr(self.limits, name)
            if value + ENTRY_OVERHEAD_BYTES <= entry_bytes_max:
                continue
            if "entry_bytes_max" in self.raft:
                problem = f"must be at least {value + ENTRY_OVERHEAD_BYTES}, with limit.{name} of {value}"
                raise InvalidArgument("raft.entry_bytes_max", problem, str(entry_bytes_max))
            check_bound(f"limits.{name}", value, 1, entry_bytes_max - ENTRY_OVERHEAD_BYTES)

    def _check_addresses(self) -> None:
        host, _ = self.address()
        if not self.insecure and not self.has_tls and not is_loopback(host):
            problem = (
                "connections are not encrypted without tls-cert, tls-key and tls-ca, so it must be a loopback address "
                "unless --insecure is given"
            )
            raise InvalidArgument("listen", problem, self.listen)
        if self.advertise:
            check_address("advertise", self.advertise)
        elif is_wildcard(host):
            problem = "must be given, since what the server listens on is no address that others can reach"
            raise InvalidArgument("advertise", problem, f"listen {self.listen}")
        for each in self.join:
            check_address("join", each)
        if self.faults_file is not None and not is_loopback(host):
            problem = "cuts connections, for tests, so the server must listen on a loopback address"
            raise InvalidArgument("faults_file", problem, self.listen)

    def _check_tls(self) -> None:
        files = {"tls_cert": self.tls_cert, "tls_key": self.tls_key, "tls_ca": self.tls_ca}
        missing = [name for name, path in files.items() if path is None]
        if 0 < len(missing) < len(files):
            raise InvalidArgument(missing[0], "must be given too: tls-cert, tls-key and tls-ca belong together")
        if self.has_tls and self.insecure:
            raise InvalidArgument("insecure", "contradicts tls-cert: with certificates every connection is encrypted")
        for name, path in files.items():
            if path is None:
                continue
            try:
                path.open("rb").close()
            except OSError as error:
                raise InvalidArgument(name, f"cannot be read: {error.strerror}", str(path)) from error

    @property
    def has_tls(self) -> bool:
        return self.tls_cert is not None

    @property
    def election_ms_max(self) -> int:
        """The longest that a node waits for a leader before it looks for a new one."""
        more, less = ELECTION_MS_MAX_RATIO
        return self.election_ms * more // less

    def address(self) -> tuple[str, int]:
        """Host and port of ``listen``. Raises InvalidArgument."""
        return split_address("listen", self.listen, port_min=0)
