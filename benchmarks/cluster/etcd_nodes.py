"""Three members of etcd on loopback, as Debian packages it (``tools/etcd.sh`` finds or installs it)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import grpc

from benchmarks.cluster.etcd_api import EtcdApi
from benchmarks.cluster.members import Member, free_ports, wait_for

TRANSACTION_OPERATIONS_MAX: Final = 1_024
"""Its default, 128, does not admit batches of 1,000."""


class EtcdCluster:
    """Made by :func:`running_etcd`."""

    name = "etcd"

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        ports = free_ports(6)
        peers = {f"e{number}": f"http://127.0.0.1:{ports[number + 3]}" for number in range(3)}
        self.members = [
            Member(name, f"127.0.0.1:{ports[number]}", self._command(name, ports[number], peers, folder), folder / name)
            for number, name in enumerate(peers)
        ]

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
            "max-txn-ops": str(TRANSACTION_OPERATIONS_MAX),
            "logger": "zap",
            "log-level": "error",
        }
        return [self._program, *(f"--{option}={value}" for option, value in options.items())]

    def leader(self) -> Member | None:
        for member in self.members:
            try:
                with grpc.insecure_channel(member.endpoint) as channel:
                    if EtcdApi(channel).leads():
                        return member
            except grpc.RpcError:
                continue
        return None

    def settings(self) -> str:
        said = subprocess.run([self._program, "--version"], capture_output=True, text=True, check=False).stdout
        version = said.splitlines()[0].rpartition(" ")[2] if said else "?"
        return f"etcd {version}, defaults but --max-txn-ops={TRANSACTION_OPERATIONS_MAX}"


def find_etcd() -> str | None:
    """The program's path, or None where the machine lacks it."""
    return shutil.which("etcd")


@contextmanager
def running_etcd(program: str, folder: Path) -> Iterator[EtcdCluster]:
    """Three members with a leader, ended on the way out. Their data lies below ``folder``."""
    cluster = EtcdCluster(program, folder)
    try:
        for member in cluster.members:
            member.start()
        wait_for(lambda: cluster.leader() is not None, "etcd has a leader")
        yield cluster
    finally:
        for member in cluster.members:
            member.end()
