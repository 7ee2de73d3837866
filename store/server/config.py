"""The settings of a server at its start, checked before it opens a file or a port.

The settings, their defaults and meanings are in :mod:`cortado.store.settings.server`; the rules between them are here.
:mod:`cortado.store.server.settings` reads them from flags, the environment and a file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.raft.settings import RaftSettings
from cortado.store.files.regular_files import open_regular
from cortado.store.peers.addresses import Addresses
from cortado.store.peers.identity import check_name
from cortado.store.ports.addresses import PORT_MAX, address_of, check_address, is_loopback, is_wildcard, split_address
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.write.log_entry import ENTRY_OVERHEAD_BYTES
from cortado.store.settings.gather import Found
from cortado.store.settings.server import BY_NAME, NONE, RAFT, REQUIRED, SETTINGS
from cortado.store.settings.setting import Setting

MESSAGE_BYTES_MAX: Final = 8 << 20
METADATA_BYTES_MAX: Final = 16 << 10
"""The metadata of a call, as HTTP/2 counts it."""
HEARTBEATS_MIN: Final = 4

# A candidate waits between the shortest and the longest time, at random; their ratio is that of the defaults.
ELECTION_MS_MAX_RATIO: Final = (13, 7)

RAFT_DEFAULTS: Final = {
    each.name.removeprefix("raft.").replace("-", "_"): each.default for each in SETTINGS if each.group == RAFT
}


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server. Call :meth:`check` (:func:`~cortado.store.server.serve` does) before use.

    Each field is the setting of its name, with its default; meanings and bounds are in
    :mod:`cortado.store.settings.server`. ``raft`` and ``limits`` hold the settings with names that begin so;
    ``sources`` has the place of each value, by the settings' names.
    """

    data_dir: Path = BY_NAME["data-dir"].default
    listen: str = BY_NAME["listen"].default
    peer_listen: str = BY_NAME["peer-listen"].default
    advertise: str = BY_NAME["advertise"].default
    peer_advertise: str = BY_NAME["peer-advertise"].default
    node_id: str = BY_NAME["node-id"].default
    join: tuple[str, ...] = BY_NAME["join"].default
    found_cluster: bool = BY_NAME["found-cluster"].default
    join_timeout_ms: int = BY_NAME["join-timeout-ms"].default
    tls_cert: Path | None = BY_NAME["tls-cert"].default
    tls_key: Path | None = BY_NAME["tls-key"].default
    tls_ca: Path | None = BY_NAME["tls-ca"].default
    client_certificates: str = BY_NAME["client-certificates"].default
    insecure: bool = BY_NAME["insecure"].default
    front: str = BY_NAME["front"].default
    port_file: Path | None = BY_NAME["port-file"].default
    scan_kernel: str = BY_NAME["scan-kernel"].default
    map_size: int | None = BY_NAME["map-size"].default
    max_clock_offset_ms: int = BY_NAME["max-clock-offset-ms"].default
    clock_offset_ms: int = BY_NAME["clock-offset-ms"].default
    cluster_id: str = BY_NAME["cluster-id"].default
    verify: bool = BY_NAME["verify"].default
    stop_grace_ms: int = BY_NAME["stop-grace-ms"].default
    retention: int = BY_NAME["retention"].default
    heartbeat_ms: int = BY_NAME["heartbeat-ms"].default
    election_ms: int = BY_NAME["election-ms"].default
    lease: bool = BY_NAME["lease"].default
    metrics_listen: str = BY_NAME["metrics-listen"].default
    ready_lag_ms: int = BY_NAME["ready-lag-ms"].default
    log_format: str = BY_NAME["log-format"].default
    log_level: str = BY_NAME["log-level"].default
    slow_request_ms: int = BY_NAME["slow-request-ms"].default
    trace_endpoint: str = BY_NAME["trace-endpoint"].default
    trace_percent: int = BY_NAME["trace-percent"].default
    faults_file: Path | None = BY_NAME["faults-file"].default
    parent_fd: int | None = BY_NAME["parent-fd"].default
    raft: Mapping[str, int] = field(default_factory=lambda: dict(RAFT_DEFAULTS))
    limits: NodeLimits = field(default_factory=NodeLimits)
    sources: Mapping[str, Found] = field(default_factory=dict, compare=False, repr=False)

    def check(self) -> None:
        """Check all settings. Raises InvalidArgument with the setting's name, the value and the bound."""
        for setting in SETTINGS:
            setting.check(setting.name, self.value(setting))
        self._check_addresses()
        self._check_tls()
        self._check_observing()
        # A lost heartbeat or two must not look like a lost leader.
        if self.election_ms < HEARTBEATS_MIN * self.heartbeat_ms:
            problem = f"must be at least {HEARTBEATS_MIN * self.heartbeat_ms}, four times heartbeat-ms"
            raise InvalidArgument("election-ms", problem, str(self.election_ms))
        if len(self.cluster_id) > 100 or not self.cluster_id.isascii() or not self.cluster_id.isprintable():
            problem = "must be at most 100 ASCII characters that print"
            raise InvalidArgument("cluster-id", problem, repr(self.cluster_id))
        if self.port_file is not None and not self.port_file.absolute().parent.is_dir():
            raise InvalidArgument("port-file", "must be in a directory that exists", str(self.port_file))
        if self.node_id:
            check_name(self.node_id, "node-id")
        self._check_entry_fits()
        self.raft_settings().check()

    def value(self, setting: Setting) -> Any:
        """Return the value of a setting."""
        table, dot, rest = setting.name.partition(".")
        if not dot:
            return getattr(self, setting.field)
        field_name = rest.replace("-", "_")
        return getattr(self.limits, field_name) if table == "limit" else self.raft[field_name]

    def found(self) -> list[Found]:
        """Return every setting with its value and its place."""
        return [self.sources.get(each.name) or Found(each, self.value(each)) for each in SETTINGS]

    def raft_settings(self) -> RaftSettings:
        """Return the timers and ``raft`` together."""
        given: dict[str, Any] = dict(self.raft)
        return RaftSettings(
            heartbeat_ms=self.heartbeat_ms,
            election_ms_min=self.election_ms,
            election_ms_max=self.election_ms_max,
            lease=self.lease,
            **given,
        )

    def _check_entry_fits(self) -> None:
        """Check that one write, and the first of a batch, finds room in an entry of the log."""
        entry_bytes_max = self.raft_settings().entry_bytes_max
        for name in ("command_bytes_max", "batch_bytes_max"):
            value, named = getattr(self.limits, name), f"limit.{name.replace('_', '-')}"
            if value + ENTRY_OVERHEAD_BYTES <= entry_bytes_max:
                continue
            if entry_bytes_max != RaftSettings().entry_bytes_max:
                problem = f"must be at least {value + ENTRY_OVERHEAD_BYTES}, with {named} of {value}"
                raise InvalidArgument("raft.entry-bytes-max", problem, str(entry_bytes_max))
            problem = f"must be at most {entry_bytes_max - ENTRY_OVERHEAD_BYTES}, so that raft.entry-bytes-max holds it"
            raise InvalidArgument(named, problem, str(value))
        in_flight_max, entry_max = self.limits.entries_in_flight_bytes_max, self.limits.entry_bytes_max
        if in_flight_max < entry_max:
            problem = f"must be at least {entry_max}, so that it holds an entry of limit.command-bytes-max"
            raise InvalidArgument("limit.entries-in-flight-bytes-max", problem, str(in_flight_max))
        if self.limits.in_flight_bytes_max < self.limits.in_flight_bytes_min:
            problem = f"must be at least {self.limits.in_flight_bytes_min}: the entries' part, and 128MiB for requests"
            raise InvalidArgument("limit.in-flight-bytes-max", problem, str(self.limits.in_flight_bytes_max))

    def _check_addresses(self) -> None:
        listened = {"listen": self.address(), "peer-listen": self.peer_address()}
        for name, (host, port) in listened.items():
            if not self.insecure and not self.has_tls and not is_loopback(host):
                problem = (
                    "must be a loopback address while nothing is encrypted: give tls-cert, tls-key and tls-ca, or "
                    "--insecure, with which all callers that reach the port may read and change everything"
                )
                raise InvalidArgument(name, problem, address_of(host, port))
        if self.address() == self.peer_address() and self.address()[1]:
            raise InvalidArgument("peer-listen", "must be another address than listen", self.peer_listen)
        self._check_advertised()
        for each in self.join:
            check_address("join", each)
        if self.found_cluster and not self.join:
            raise InvalidArgument("found-cluster", "must be given with join: the nodes that are asked before")
        if self.faults_file is not None and not all(is_loopback(host) for host, _ in listened.values()):
            problem = "cuts connections, for tests, so the server must listen on loopback addresses"
            raise InvalidArgument("faults-file", problem, self.listen)

    def _check_advertised(self) -> None:
        if self.advertise:
            check_address("advertise", self.advertise)
        if self.peer_advertise:
            check_address("peer-advertise", self.peer_advertise)
        problem = "must be given, since what the server listens on is no address that others can reach"
        if not self.advertise and is_wildcard(self.address()[0]):
            raise InvalidArgument("advertise", problem, f"listen {self.listen}")
        if not self.peer_advertise and not self.advertise and is_wildcard(self.peer_address()[0]):
            raise InvalidArgument("peer-advertise", problem, f"peer-listen {self.peer_listen}")
        if self.advertise and self.advertise == self.peer_advertise:
            raise InvalidArgument("peer-advertise", "must be another address than advertise", self.peer_advertise)

    def _check_tls(self) -> None:
        files = {"tls-cert": self.tls_cert, "tls-key": self.tls_key, "tls-ca": self.tls_ca}
        missing = [name for name, path in files.items() if path is None]
        if 0 < len(missing) < len(files):
            raise InvalidArgument(missing[0], "must be given too: tls-cert, tls-key and tls-ca belong together")
        if self.has_tls and self.insecure:
            raise InvalidArgument("insecure", "contradicts tls-cert: with certificates every connection is encrypted")
        if not self.has_tls and self.client_certificates == NONE:
            problem = "must be required without tls-cert: tokens are taken over encrypted connections"
            raise InvalidArgument("client-certificates", problem, NONE)
        for name, path in files.items():
            if path is None:
                continue
            try:
                os.close(open_regular(path, follows_links=True))
            except OSError as error:
                raise InvalidArgument(name, f"cannot be read: {error.strerror}", str(path)) from error

    def _check_observing(self) -> None:
        if self.metrics_listen:
            host, port = self.metrics_address()
            if port and (host, port) == self.address():
                raise InvalidArgument("metrics-listen", "must be another address than listen", self.metrics_listen)
        if self.trace_endpoint:
            scheme, _, address = self.trace_endpoint.partition("://")
            if scheme not in ("http", "https"):
                raise InvalidArgument("trace-endpoint", "must be http://HOST:PORT or https://HOST:PORT", address)
            check_address("trace-endpoint", address.rstrip("/"))
        if self.ready_lag_ms < HEARTBEATS_MIN * self.heartbeat_ms:
            problem = f"must be at least {HEARTBEATS_MIN * self.heartbeat_ms}, four times heartbeat-ms"
            raise InvalidArgument("ready-lag-ms", problem, str(self.ready_lag_ms))

    def metrics_address(self) -> tuple[str, int]:
        """Return host and port of ``metrics_listen``. Raises InvalidArgument."""
        written = self.metrics_listen
        if written.removeprefix(":").isdecimal():
            written = f"127.0.0.1:{written.removeprefix(':')}"
        return split_address("metrics-listen", written, port_min=0)

    @property
    def has_client_certificates(self) -> bool:
        """Whether clients have to show a certificate, if TLS is on."""
        return self.client_certificates == REQUIRED

    @property
    def has_tls(self) -> bool:
        return self.tls_cert is not None

    @property
    def election_ms_max(self) -> int:
        """The longest that a node waits for a leader before it looks for a new one."""
        more, less = ELECTION_MS_MAX_RATIO
        return self.election_ms * more // less

    def address(self) -> tuple[str, int]:
        """Return host and port of ``listen``. Raises InvalidArgument."""
        return split_address("listen", self.listen, port_min=0)

    def peer_address(self) -> tuple[str, int]:
        """Return host and port of ``peer_listen``, or else the next port of ``listen``. Raises InvalidArgument."""
        if self.peer_listen:
            return split_address("peer-listen", self.peer_listen, port_min=0)
        host, port = self.address()
        if port == PORT_MAX:
            raise InvalidArgument(
                "peer-listen", "must be given, since listen has the last port", f"listen {self.listen}"
            )
        return host, port + 1 if port else 0

    def advertised(self, clients: str, peers: str) -> Addresses:
        """Return the addresses at which others reach this node, which listens for ``clients`` and for ``peers`` at
        these."""
        if self.peer_advertise or not self.advertise:
            return Addresses(self.advertise or clients, self.peer_advertise or peers)
        host, _ = split_address("advertise", self.advertise)
        _, port = split_address("peer-listen", peers)
        return Addresses(self.advertise, address_of(host, port))
