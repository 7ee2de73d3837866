"""Prepares a local cluster before its nodes start: a plan, ports, settings, certificates.

If the directory holds a cluster already, that one goes on: its nodes keep their addresses and their data.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cortado.errors import DataDirectoryError, InvalidArgument
from cortado.extras import needing
from cortado.store.client import Client
from cortado.store.client.endpoints import Tls
from cortado.store.files.named_files import read_named
from cortado.store.files.regular_files import open_regular, read_regular, replace_small
from cortado.store.local_cluster.files import NODES_MAX, ClusterFiles, NodePlan, Plan
from cortado.store.local_cluster.ports import HOST, PORT_DEFAULT, free_ports

NODES_DEFAULT: Final = 3
# Ports in a row stay free for the clients of more nodes.
PEER_PORTS_AFTER: Final = 100
CERTIFICATE_DAYS: Final = 3_650
CLIENT_NAME: Final = "local"
_FILE_BYTES_MAX: Final = 1 << 20
# Files that may be in a directory for a new cluster.
_OURS: Final = {"supervisor.lock", "supervisor.log", "server.toml", "tls", "run.json"}


def check_count(nodes: int | None) -> None:
    """Check the count before making a directory. Raises InvalidArgument."""
    if nodes is not None and not 1 <= nodes <= NODES_MAX:
        raise InvalidArgument("--nodes", f"must be between 1 and {NODES_MAX}", str(nodes))


def prepare(
    files: ClusterFiles, *, nodes: int | None, port: int = PORT_DEFAULT, has_tls: bool = False, config: Path | None
) -> Plan:
    """Return the plan to go on with. Call it with the directory locked.

    ``nodes`` may add to a cluster that exists, and not take away. Raises InvalidArgument, DataDirectoryError.
    """
    plan = files.read_plan() if files.exists else _new_plan(files, nodes or NODES_DEFAULT, port, has_tls)
    if files.exists:
        _check_resumed(files, plan, nodes, has_tls)
        plan = _enlarged(plan, nodes or len(plan.members), port)
    if config is not None:
        _take_settings(files, config)
    if files.settings.exists():
        # A server takes a pipe for its settings: one that stands here would hold up its start.
        _check_regular(files.settings, "settings")
    if plan.has_tls:
        make_certificates(files.tls, [each.node_id for each in plan.nodes])
    files.write_plan(plan)
    return plan


def connect(files: ClusterFiles, plan: Plan, *, timeout_s: float = 10.0) -> Client:
    """Return a client of the nodes that have a vote already, or of the first one."""
    known = [each.address for each in plan.members if each.is_voter] or [plan.nodes[0].address]
    return Client(",".join(known), timeout_s=timeout_s, tls=client_tls(files, plan))


def client_tls(files: ClusterFiles, plan: Plan) -> Tls | None:
    """Return the certificates that a client of this cluster needs, if any."""
    if not plan.has_tls:
        return None
    tls = files.tls
    made = Tls(tls / "ca.crt", tls / f"{CLIENT_NAME}.crt", tls / f"{CLIENT_NAME}.key")
    for path in (made.ca, made.cert, made.key):
        _check_regular(path, "tls")
    return made


def _check_regular(path: str | Path | None, field: str) -> None:
    """Raise InvalidArgument for a pipe and the like, which a user may name and a directory may not hold."""
    try:
        if path is not None:
            os.close(open_regular(path, follows_links=True))
    except OSError as error:
        raise InvalidArgument(field, f"cannot be read: {error.strerror}", str(path)) from None


def _new_plan(files: ClusterFiles, count: int, port: int, has_tls: bool) -> Plan:
    foreign = sorted(each.name for each in files.directory.iterdir() if each.name not in _OURS)
    if foreign:
        problem = f"is neither empty nor a local cluster's (it holds {foreign[0]!r}): give another one"
        raise InvalidArgument(files.option, problem, str(files.directory))
    return Plan(_new_nodes(count, port, numbered_from=1, taken=frozenset()), has_tls)


def _check_resumed(files: ClusterFiles, plan: Plan, nodes: int | None, has_tls: bool) -> None:
    if nodes is not None and nodes < len(plan.members):
        problem = f"this cluster has {len(plan.members)}; cortado member remove takes a node away"
        raise InvalidArgument("--nodes", problem, str(nodes))
    if has_tls and not plan.has_tls:
        raise InvalidArgument("--tls", "this cluster was made without certificates")
    for node in plan.members:
        if node.is_voter and not files.data(node.node_id).exists():
            problem = f"the data of {node.node_id} is gone: put it back, or make a cluster in another directory"
            raise DataDirectoryError(str(files.data(node.node_id)), problem)


def _enlarged(plan: Plan, count: int, port: int) -> Plan:
    more = count - len(plan.members)
    if more == 0:
        return plan
    ports = [_port_of(each.address) for each in plan.nodes]
    taken = frozenset([*ports, *(_port_of(each.peer_address) for each in plan.nodes)])
    # Unless another one was asked for, beside the nodes that there are.
    first = port if port != PORT_DEFAULT else min(ports)
    added = _new_nodes(more, first, numbered_from=len(plan.nodes) + 1, taken=taken)
    return Plan((*plan.nodes, *added), plan.has_tls)


def _new_nodes(count: int, port: int, *, numbered_from: int, taken: frozenset[int]) -> tuple[NodePlan, ...]:
    """So many, with free ports for clients from ``port`` on, and for peers ``PEER_PORTS_AFTER`` above."""
    ports = free_ports(count, port, taken=taken)
    peer_ports = free_ports(count, ports[0] + PEER_PORTS_AFTER, taken=taken.union(ports))
    return tuple(
        NodePlan(f"n{number}", f"{HOST}:{port}", f"{HOST}:{peer_port}")
        for number, (port, peer_port) in enumerate(zip(ports, peer_ports, strict=True), numbered_from)
    )


def _port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def _take_settings(files: ClusterFiles, config: Path) -> None:
    try:
        if not (files.settings.exists() and config.samefile(files.settings)):
            replace_small(files.settings, read_named(config, _FILE_BYTES_MAX))
    except OSError as error:
        raise InvalidArgument("--config", f"cannot be read: {error.strerror}", str(config)) from None


def make_certificates(folder: Path, node_ids: list[str]) -> None:
    """Make an authority, and certificates for nodes on loopback and for one client; existing files stay."""
    with needing("server", "--tls"):
        from cortado.store.peers.certificates import Pair, load_authority, make_authority, make_client, make_node
    now = datetime.now(UTC)
    folder.mkdir(exist_ok=True)

    def write(name: str, pair: Pair) -> None:
        replace_small(folder / f"{name}.key", pair.key)
        replace_small(folder / f"{name}.crt", pair.certificate, 0o644)

    if not (folder / "ca.crt").exists():
        write("ca", make_authority("Cortado local cluster", CERTIFICATE_DAYS, now))
    authority = load_authority(
        read_regular(folder / "ca.crt", _FILE_BYTES_MAX),
        read_regular(folder / "ca.key", _FILE_BYTES_MAX),
        certificate_name=str(folder / "ca.crt"),
        key_name=str(folder / "ca.key"),
    )
    for node_id in node_ids:
        if not (folder / f"{node_id}.crt").exists():
            write(node_id, make_node(authority, node_id, ["localhost", HOST], CERTIFICATE_DAYS, now))
    if not (folder / f"{CLIENT_NAME}.crt").exists():
        write(CLIENT_NAME, make_client(authority, CLIENT_NAME, CERTIFICATE_DAYS, now))
