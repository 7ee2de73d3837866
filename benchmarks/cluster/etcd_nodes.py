"""Three members of etcd on loopback, as Debian packages it (``tools/etcd.sh`` finds or installs it)."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.cluster.members import Member, free_ports, wait_for
from benchmarks.cluster.workloads import sizes

QUOTA_BYTES: Final = 8 << 30
"""The quota of a member's data. A long run would fill the default, 2 GiB: history is not compacted."""

LEASE_S: Final = 3_600


class EtcdCluster:
    """Made by :func:`running_etcd`."""

    name = "etcd"

    def __init__(self, program: str, load_program: str | None, folder: Path) -> None:
        self._program = program
        self._load_program = load_program
        ports = free_ports(6)
        peers = {f"e{number}": f"http://127.0.0.1:{ports[number + 3]}" for number in range(3)}
        self.members = [
            Member(
                name, f"127.0.0.1:{ports[number]}", self._command(name, ports[number], peers, folder),
                folder / f"{name}.log",
            )
            for number, name in enumerate(peers)
        ]  # fmt: skip

    def _command(self, name: str, port: int, peers: dict[str, str], folder: Path) -> list[str]:
        options = {
            "name": name,
            "data-dir": str(folder / f"{name}.etcd"),
            "listen-client-urls": f"http://127.0.0.1:{port}",
            "advertise-client-urls": f"http://127.0.0.1:{port}",
            "listen-peer-urls": peers[name],
            "initial-advertise-peer-urls": peers[name],
            "initial-cluster": ",".join(f"{each}={url}" for each, url in peers.items()),
            "initial-cluster-token": folder.name,
            "quota-backend-bytes": str(QUOTA_BYTES),
            "logger": "zap",
            "log-level": "error",
        }
        return [self._program, *(f"--{option}={value}" for option, value in options.items())]

    def leader(self) -> Member | None:
        for member in self.members:
            status = self._status(member)
            if status is not None and status.get("leader") == status["header"]["member_id"]:
                return member
        return None

    def follows(self, member: Member) -> bool:
        status = self._status(member)
        return status is not None and "leader" in status

    def settle(self) -> None:
        """Grant a lease, which is written without a key.

        Each read of etcd 3.4 copies its whole buffer of keys that are not yet in its tree. The buffer keeps its largest
        length until there is a commit without keys. After many puts, gets were a third as fast.
        """
        leader = self.leader()
        if leader is None or _ask(leader, "lease/grant", {"TTL": LEASE_S}) is None:
            raise RuntimeError("etcd granted no lease")

    def _status(self, member: Member) -> dict[str, Any] | None:
        return _ask(member, "maintenance/status", {})

    def load_command(self, workload: str, callers: int, endpoints: Sequence[str]) -> list[str] | None:
        if self._load_program is None:
            return None
        flags = [f"-{name}={value}" for name, value in {**sizes(), "callers": callers}.items()]
        return [self._load_program, *flags, workload, ",".join(endpoints)]

    def settings(self) -> str:
        said = subprocess.run([self._program, "--version"], capture_output=True, text=True, check=False).stdout
        version = said.splitlines()[0].rpartition(" ")[2] if said else "?"
        return f"etcd {version} with default settings, but --quota-backend-bytes={QUOTA_BYTES}"


def _ask(member: Member, method: str, request: dict[str, int]) -> dict[str, Any] | None:
    """Make a call by JSON: 64-bit numbers of the answer are text, and a zero is left out. None without an answer."""
    call = urllib.request.Request(f"http://{member.endpoint}/v3/{method}", data=json.dumps(request).encode())
    try:
        with urllib.request.urlopen(call, timeout=2) as reply:
            answer: dict[str, Any] = json.load(reply)
            return answer
    except OSError:
        return None


def find_etcd() -> str | None:
    """Return the program's path, or None if the machine lacks it."""
    return shutil.which("etcd")


@contextmanager
def running_etcd(program: str, load_program: str | None, folder: Path) -> Iterator[EtcdCluster]:
    """Yield three members with a leader, ended on the way out. Their data lies below ``folder``."""
    cluster = EtcdCluster(program, load_program, folder)
    try:
        for member in cluster.members:
            member.start()
        wait_for(lambda: cluster.leader() is not None, "etcd has a leader")
        yield cluster
    finally:
        for member in cluster.members:
            member.end()
