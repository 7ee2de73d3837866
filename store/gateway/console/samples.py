"""The gateway's memory of its cluster: ten minutes of each node's rates, latencies, lag and size.

::

    every 5 s:  each node ── Statistics/ReadStatistics ──► one Sample a node ──► the last 120 of them ──► charts

A reading counts from a node's start, so a sample is the difference of two. A node that does not answer has samples
without values: its line has a gap. The gateway asks with its own credentials. If the cluster refuses them, it asks
once a minute, and the pages say which right is missing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cortado.errors import CortadoError, PermissionDenied, Unauthenticated
from cortado.proto.v1 import statistics_pb2
from cortado.store.client.statistics import Since, Statistics, statistics_of
from cortado.store.client.stubs import Stubs
from cortado.store.gateway.console.members import NODE_S, members_of
from cortado.store.gateway.console.pages import tried

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

_LOG: Final = logging.getLogger(__name__)

EVERY_S: Final = 5.0
REFUSED_S: Final = 60.0
KEPT: Final = 120
"""Ten minutes."""
OF_TOOLS: Final = (
    "cortado.v1.Calls/", "cortado.v1.Cluster/", "cortado.v1.Settings/", "cortado.v1.Statistics/", "cortado.v1.Inspect/",
    "cortado.v1.Auth/WhoAmI", "grpc.",
)  # fmt: skip
"""Calls of tools and of the clients' own plumbing, which do not show the applications' load."""
_NAMES: Final = (
    "cortado_requests_total", "cortado_request_duration_seconds", "cortado_uptime_seconds",
    "cortado_member_lag_seconds", "cortado_map_used_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """The measures of one node within some seconds before ``at_s``, wall time. None: not known."""

    at_s: float
    calls_per_s: float | None = None
    p99_s: float | None = None
    lag_s: float | None = None
    data_bytes: float | None = None


class Samples:
    """The last samples of each member. ``problem`` is the reason for having no samples."""

    def __init__(self, wall_s: Callable[[], float] = time.time) -> None:
        self.problem: CortadoError | None = None
        self._wall_s = wall_s
        self._kept: dict[str, deque[Sample]] = {}
        self._before: dict[str, Statistics] = {}

    def of(self, node_id: str) -> Sequence[Sample]:
        """Return the samples of one member, the oldest first."""
        return self._kept.get(node_id, ())

    @property
    def nodes(self) -> list[str]:
        """The members that there are samples of."""
        return sorted(self._kept)

    async def follow(self, client: AsyncClient) -> None:
        """Take samples until it is cancelled."""
        while True:
            try:
                await self.take(client)
            except Exception:
                _LOG.exception("a sample could not be taken")
            is_refused = isinstance(self.problem, Unauthenticated | PermissionDenied)
            await asyncio.sleep(REFUSED_S if is_refused else EVERY_S)

    async def take(self, client: AsyncClient) -> None:
        """Take one sample of each member."""
        try:
            members = await members_of(client)
        except CortadoError as error:
            # The members that were known are down or cut off, and their lines say so.
            self.problem = error
            self._add(dict.fromkeys(self._kept), {})
            return
        joined = [each for each in members.members if each.joined]
        told = await asyncio.gather(*(tried(read(client, each.address)) for each in joined))
        said = {each.node_id: found for each, found in zip(joined, told, strict=True)}
        refused = [found for found in said.values() if isinstance(found, Unauthenticated | PermissionDenied)]
        self.problem = refused[0] if refused else None
        if not refused:
            known = {node: None if isinstance(found, CortadoError) else found for node, found in said.items()}
            self._add(known, _lags(known.get(members.leader)))

    def _add(self, said: dict[str, Statistics | None], lags: dict[str, float]) -> None:
        at_s = self._wall_s()
        for gone in self._kept.keys() - said.keys():
            del self._kept[gone]
        for node, now in said.items():
            kept = self._kept.setdefault(node, deque(maxlen=KEPT))
            kept.append(Sample(at_s) if now is None else self._sample(node, now, at_s, lags.get(node)))
        self._before = {node: now for node, now in said.items() if now is not None}

    def _sample(self, node: str, now: Statistics, at_s: float, lag_s: float | None) -> Sample:
        since = Since(now, self._before.get(node))
        methods = {labels[0] for labels in now.by_label("cortado_requests_total")}
        of_applications = sorted(each for each in methods if not each.startswith(OF_TOOLS))
        return Sample(
            at_s,
            since.calls_per_s(of_applications),
            since.latency(0.99, of_applications),
            lag_s,
            now.value("cortado_map_used_bytes"),
        )


def _lags(leader: Statistics | None) -> dict[str, float]:
    """Return how far each member is behind, by the leader's word."""
    if leader is None:
        return {}
    lags = {labels[0]: lag_s for labels, lag_s in leader.by_label("cortado_member_lag_seconds").items()}
    return {leader.node_id: 0.0, **lags}


async def read(client: AsyncClient, address: str, names: Sequence[str] = _NAMES) -> Statistics:
    """Return a node's counts."""
    request = statistics_pb2.ReadStatisticsRequest(names=names)
    return statistics_of(
        await client.with_timeout(NODE_S)._open_call_at(address, Stubs.statistics.ReadStatistics, request)
    )
