"""The status of the nodes: each is asked on its own thread, and may be silent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from cortado.errors import CortadoError
from cortado.proto.v1 import cluster_pb2 as pb
from cortado.proto.v1.settings_pb2 import ListSettingsRequest, ListSettingsResponse
from cortado.store.client.authorization import TokenSource
from cortado.store.client.endpoints import Tls
from cortado.store.client.node import NodeConnection
from cortado.store.doctor.node_facts import facts_of_node
from cortado.store.doctor.probes import Facts, run_probes


def nodes_facts(endpoints: Sequence[str], tls: Tls | None, token: TokenSource | None, timeout_s: float) -> Facts:
    """Return facts by address: of the endpoints, then of their members. Takes about twice ``timeout_s`` at most."""
    found = _ask_all(endpoints, tls, token, timeout_s)
    named = [member["address"] for each in found.values() for member in each.get("members", []) if member["address"]]
    return found | _ask_all([each for each in dict.fromkeys(named) if each not in found], tls, token, timeout_s)


def _ask_all(addresses: Sequence[str], tls: Tls | None, token: TokenSource | None, timeout_s: float) -> Facts:
    # A little longer than the calls in it take, so that their own reasons are told.
    return run_probes({each: partial(node_facts, each, tls, token, timeout_s) for each in addresses}, timeout_s + 1)


def node_facts(address: str, tls: Tls | None, token: TokenSource | None, timeout_s: float) -> Facts:
    """Return status, clock, members and settings of a node. Raises CortadoError if it does not answer."""
    deadline_s = time.monotonic() + timeout_s

    def left_s() -> float:
        return max(0.01, deadline_s - time.monotonic())

    with NodeConnection(address, tls=tls, token=token) as node:
        status = node.ask("Cluster/Status", pb.StatusRequest(), pb.StatusResponse, timeout_s=left_s())
        asked_ms = time.time_ns() / 1e6
        clock = node.ask("Cluster/Clock", pb.ClockRequest(), pb.ClockResponse, timeout_s=left_s())
        heard_ms = time.time_ns() / 1e6
        members = node.ask("Cluster/Members", pb.MembersRequest(), pb.MembersResponse, timeout_s=left_s())
        settings: ListSettingsResponse | CortadoError
        try:
            settings = node.ask(
                "Settings/ListSettings", ListSettingsRequest(), ListSettingsResponse, timeout_s=left_s()
            )
        except CortadoError as error:
            settings = error
    return facts_of_node(status, (clock, asked_ms, heard_ms), members, settings)
