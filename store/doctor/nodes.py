"""What the nodes say of themselves: each is asked alone, beside the others, and may be silent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from cortado.errors import CortadoError
from cortado.proto.v1 import cluster_pb2 as pb
from cortado.store.client.authorization import TokenSource
from cortado.store.client.endpoints import Tls
from cortado.store.client.node import NodeConnection
from cortado.store.client.node_settings import settings_of
from cortado.store.doctor.probes import Facts, describe, problem_of, run_probes


def nodes_facts(endpoints: Sequence[str], tls: Tls | None, token: TokenSource | None, timeout_s: float) -> Facts:
    """By address: the endpoints, then the members that they name. Takes about twice ``timeout_s`` at most."""
    found = _ask_all(endpoints, tls, token, timeout_s)
    named = [member["address"] for each in found.values() for member in each.get("members", []) if member["address"]]
    return found | _ask_all([each for each in dict.fromkeys(named) if each not in found], tls, token, timeout_s)


def _ask_all(addresses: Sequence[str], tls: Tls | None, token: TokenSource | None, timeout_s: float) -> Facts:
    # A little longer than the calls in it take, so that their own reasons are told.
    return run_probes({each: partial(node_facts, each, tls, token, timeout_s) for each in addresses}, timeout_s + 1)


def node_facts(address: str, tls: Tls | None, token: TokenSource | None, timeout_s: float) -> Facts:
    """Status, clock, members and settings of the node at ``address``. Raises CortadoError where it does not answer."""
    deadline_s = time.monotonic() + timeout_s

    def left_s() -> float:
        return max(0.01, deadline_s - time.monotonic())

    with NodeConnection(address, tls=tls, token=token) as node:
        status = node.ask("Cluster/Status", pb.StatusRequest(), pb.StatusResponse, timeout_s=left_s())
        asked_ms = time.time_ns() / 1e6
        clock = node.ask("Cluster/Clock", pb.ClockRequest(), pb.ClockResponse, timeout_s=left_s())
        heard_ms = time.time_ns() / 1e6
        members = node.ask("Cluster/Members", pb.MembersRequest(), pb.MembersResponse, timeout_s=left_s())
        facts = _status(status) | {"clock": _clock(clock, asked_ms, heard_ms), "members": _members(members)}
        try:
            facts["settings"] = [
                {"name": each.name, "value": each.value, "origin": each.origin, "place": each.place}
                for each in settings_of(node, timeout_s=left_s()).settings
            ]
        except CortadoError as error:
            facts["settings"] = {"problem": describe(error)}
    return facts


def answering(nodes: Facts) -> Facts:
    """Those that answered; none where there was nobody to ask."""
    return {} if problem_of(nodes) else {address: facts for address, facts in nodes.items() if not problem_of(facts)}


def setting_of(node: Facts, name: str) -> str | None:
    """What a node's setting is; None where that is not known, or there is no value."""
    settings = node.get("settings")
    if not isinstance(settings, list):
        return None
    return next((each["value"] for each in settings if each["name"] == name), None)


def _status(reply: pb.StatusResponse) -> Facts:
    header = reply.header
    return {
        "cluster_id": header.cluster_id,
        "node_id": header.node_id,
        "term": header.term,
        "version": reply.version,
        "state": reply.state,
        "role": reply.role,
        "leader": reply.leader,
        "applied_index": reply.applied_index,
        "last_index": reply.last_index,
        "uptime_ms": reply.uptime_ms,
        "data_dir": reply.data_dir,
        "disk_free_bytes": reply.disk_free_bytes,
        "log_bytes": reply.log_bytes,
        "map_used_bytes": reply.map.used_bytes,
        "map_limit_bytes": reply.map.limit_bytes,
        "loop_lag_ms_max": reply.loop_lag_ms_max,
        "scan_path": reply.scan_path,
        "damaged": reply.damaged,
        "lost": sum(each.is_lost for each in reply.damage),
        "repaired": reply.repaired,
        "queues": [
            {"name": each.name, "count": each.count, "count_max": each.count_max, "bytes": each.bytes}
            | {"bytes_max": each.bytes_max}
            for each in reply.queues
        ],
        "clock_offsets": [
            {"node_id": each.node_id, "low_ms": each.low_ms, "high_ms": each.high_ms} for each in reply.clock_offsets
        ],
        "patrol": {
            "read_bytes": reply.patrol.read_bytes,
            "expected_bytes": reply.patrol.expected_bytes,
            "passes": reply.patrol.passes,
            "damaged": reply.patrol.damaged,
        },
    }


def _clock(reply: pb.ClockResponse, asked_ms: float, heard_ms: float) -> Facts:
    """The node's physical clock minus ours lies between the two offsets."""
    return {
        "physical_ms": reply.physical_ms,
        "epoch": reply.now.epoch,
        "jump_ms": reply.jump_ms,
        "ahead_ms": reply.now.wall_ms - reply.physical_ms,
        "max_offset_ms": reply.max_offset_ms,
        "offset_low_ms": round(reply.physical_ms - heard_ms),
        "offset_high_ms": round(reply.physical_ms - asked_ms) + 1,
    }


def _members(reply: pb.MembersResponse) -> list[Facts]:
    return [
        {
            "node_id": each.node_id,
            "address": each.address,
            "peer_address": each.peer_address,
            "voter": each.voter,
            "joined": each.joined,
            "behind": each.behind,
            "last_heard_ms": each.last_heard_ms,
            "needs_snapshot": each.needs_snapshot,
        }
        for each in reply.members
    ]
