"""The members of the cluster, also without a leader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from cortado.errors import CortadoError
from cortado.proto.v1 import cluster_pb2
from cortado.store.client.cluster import Members, members_from_proto
from cortado.store.client.stubs import Stubs
from cortado.store.gateway.console.pages import tried

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

NODE_S: Final = 2.0
"""How long a page waits for one node."""


async def members_of(client: AsyncClient) -> Members:
    """Return the members with their progress while the cluster has a leader; else as the first endpoint knows them that
    answers. A node may hang, so each is given little time."""
    brief = client.with_timeout(NODE_S)
    found = await tried(brief.admin.members.list(at_leader=True))
    if not isinstance(found, CortadoError):
        return found
    request, method = cluster_pb2.MembersRequest(), Stubs.cluster.Members
    asked = [tried(brief._open_call_at(each, method, request)) for each in client.endpoint.split(",")]
    for reply in await asyncio.gather(*asked):
        if not isinstance(reply, CortadoError):
            return members_from_proto(reply)
    raise found
