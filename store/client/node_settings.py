"""One node's settings at its start: asked of that node alone, never of the leader in its place."""

from __future__ import annotations

from dataclasses import dataclass

from cortado.proto.v1 import settings_pb2
from cortado.store.client.node import NodeConnection


@dataclass(frozen=True, slots=True)
class NodeSetting:
    """One setting of a node. ``value`` and ``default`` are text as it may be given again, None if unset.

    ``origin`` is flag, environment, file or default; ``place`` the flag, the variable or the file with the line.
    """

    name: str
    value: str | None
    default: str | None
    unit: str
    bound: str
    meaning: str
    origin: str
    place: str


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Every setting of the node ``node_id``, in the order of the reference."""

    node_id: str
    settings: tuple[NodeSetting, ...]


def settings_of(node: NodeConnection, *, timeout_s: float | None = None) -> NodeSettings:
    """Return the settings of ``node``. Raises Unavailable, DeadlineExceeded."""
    request = settings_pb2.ListSettingsRequest()
    reply = node.ask("Settings/ListSettings", request, settings_pb2.ListSettingsResponse, timeout_s=timeout_s)
    return NodeSettings(reply.header.node_id, tuple(_setting(each) for each in reply.settings))


def _setting(message: settings_pb2.Setting) -> NodeSetting:
    return NodeSetting(
        name=message.name,
        value=message.value if message.HasField("value") else None,
        default=message.default_value if message.HasField("default_value") else None,
        unit=message.unit,
        bound=message.bound,
        meaning=message.meaning,
        origin=message.origin,
        place=message.place,
    )
