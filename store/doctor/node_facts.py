"""A node's status as facts: for the doctor, which asks in threads, and for the console, which does not.

::

    {"127.0.0.1:7621": {"node_id": "n1", "state": "serving", "members": [...], "clock": {...}, ...},
     "127.0.0.1:7623": {"problem": "nothing listens there"}}
"""

from __future__ import annotations

from cortado.errors import CortadoError
from cortado.proto.v1 import cluster_pb2 as pb
from cortado.proto.v1.settings_pb2 import ListSettingsResponse
from cortado.store.doctor.probes import Facts, describe, problem_of


def facts_of_node(
    status: pb.StatusResponse,
    clock: tuple[pb.ClockResponse, float, float],
    members: pb.MembersResponse,
    settings: ListSettingsResponse | CortadoError,
) -> Facts:
    """``clock`` with when it was asked and heard, in milliseconds of this host's clock; ``settings``, or why not."""
    known = (
        {"problem": describe(settings)}
        if isinstance(settings, CortadoError)
        else [
            {"name": each.name, "value": each.value if each.HasField("value") else None}
            | {"origin": each.origin, "place": each.place}
            for each in settings.settings
        ]
    )
    return _status(status) | {"clock": _clock(*clock), "members": _members(members), "settings": known}


def answering(nodes: Facts) -> Facts:
    """Return those that answered; none if there was no node to ask."""
    return {} if problem_of(nodes) else {address: facts for address, facts in nodes.items() if not problem_of(facts)}


def setting_of(node: Facts, name: str) -> str | None:
    """Return the value of a node's setting; None if it is not known, or has no value."""
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
        "slowed": reply.slowed,
        "disputes": list(reply.disputes),
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
    """Return two offsets; the node's physical clock minus ours lies between them."""
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
            "behind": None if each.down else each.behind,
            "down": each.down,
            "last_heard_ms": each.last_heard_ms,
            "needs_snapshot": each.needs_snapshot,
        }
        for each in reply.members
    ]
