"""Nodes of Cortado on loopback, three or another number, made as an operator makes them, with default settings."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc

from benchmarks.cluster.members import Member, free_ports, wait_for
from cortado.proto.v1 import cluster_pb2, cluster_pb2_grpc


class CortadoCluster:
    """Made by :func:`running_cortado`."""

    def __init__(self, folder: Path, count: int, name: str) -> None:
        self.name = name
        ports = [f"127.0.0.1:{port}" for port in free_ports(2 * count)]
        names = [f"n{number}" for number in range(1, count + 1)]
        self._peer_addresses = dict(zip(names, ports[count:], strict=True))
        self.members = [
            Member(name, endpoint, self._command(name, endpoint, folder), folder / f"{name}.log")
            for name, endpoint in zip(names, ports, strict=False)
        ]

    def _command(self, name: str, endpoint: str, folder: Path) -> list[str]:
        command = [sys.executable, "-m", "cortado.store.cli", "server", "--data-dir", str(folder / name)]
        command += ["--node-id", name, "--listen", endpoint, "--peer-listen", self._peer_addresses[name]]
        return command if name == "n1" else [*command, "--join", self._peer_addresses["n1"]]

    def form(self) -> None:
        first, *others = self.members
        first.start()
        wait_for(lambda: self.leader() is first, "the first node leads")
        for member in others:
            peer_address = self._peer_addresses[member.name]
            self._ask(first, "AddMember", cluster_pb2.AddMemberRequest(node_id=member.name, peer_address=peer_address))
            member.start()
            request = cluster_pb2.PromoteMemberRequest(node_id=member.name)
            wait_for(lambda request=request: self._is_done(first, request), f"{member.name} is a voter")  # type: ignore[misc]

    def _is_done(self, leader: Member, request: cluster_pb2.PromoteMemberRequest) -> bool:
        try:
            self._ask(leader, "PromoteMember", request)
        except grpc.RpcError:
            return False
        return True

    def leader(self) -> Member | None:
        for member in self.members:
            try:
                if self._ask(member, "Status", cluster_pb2.StatusRequest()).role == "leader":
                    return member
            except grpc.RpcError:
                continue
        return None

    def follows(self, member: Member) -> bool:
        try:
            return bool(self._ask(member, "Status", cluster_pb2.StatusRequest()).leader)
        except grpc.RpcError:
            return False

    def settle(self) -> None:
        """Do nothing: it settles by itself."""

    @property
    def endpoints(self) -> str:
        """Return all addresses, as clients take them."""
        return ",".join(member.endpoint for member in self.members)

    def load_command(self, workload: str, callers: int, endpoints: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "benchmarks.cluster.cortado_load", workload, str(callers), ",".join(endpoints)]

    def _ask(self, member: Member, method: str, request: object) -> cluster_pb2.StatusResponse:
        with grpc.insecure_channel(member.endpoint, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            return getattr(cluster_pb2_grpc.ClusterStub(channel), method)(request, timeout=5)  # type: ignore[no-any-return,no-untyped-call]

    def settings(self) -> str:
        return "Cortado with default settings"


@contextmanager
def running_cortado(folder: Path, count: int = 3, name: str = "cortado") -> Iterator[CortadoCluster]:
    """Yield ``count`` voters, ended on the way out. Their data lies below ``folder``; results call them ``name``."""
    cluster = CortadoCluster(folder, count, name)
    try:
        cluster.form()
        yield cluster
    finally:
        for member in cluster.members:
            member.end()
