"""``/metrics``, ``/healthz`` and ``/readyz`` of a gateway, for scrapers and probes, at a separate address.

The pages are like those of a node, from the same small server (:mod:`cortado.store.observe.pages`). The address differs
from that of callers, because counts of all callers' calls are for operators only.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from cortado.errors import CortadoError, PermissionDenied, Unauthenticated
from cortado.store.gateway.bounds import Bounds
from cortado.store.observe.exposition import expose
from cortado.store.observe.families import Found, families
from cortado.store.observe.gateway_definitions import GATEWAY_DEFINITIONS
from cortado.store.observe.http import Page, Request, Response, json_response, text_response
from cortado.store.observe.process import process_numbers
from cortado.version import __version__

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

READY_S: Final = 2.0
"""Within which the cluster must answer."""


class Pages:
    """``connections`` tells how many are open."""

    def __init__(self, client: AsyncClient, bounds: Bounds, connections: Callable[[], int]) -> None:
        self._client = client.with_timeout(READY_S)
        self._bounds = bounds
        self._connections = connections

    @property
    def by_path(self) -> Mapping[str, Page]:
        return {"/metrics": self._metrics, "/healthz": self._alive, "/readyz": self._ready}

    async def _metrics(self, request: Request) -> Response:
        body, content_type = expose(families(GATEWAY_DEFINITIONS, self._found()), request.headers.get("accept", ""))
        return Response(200, body, content_type)

    async def _alive(self, _request: Request) -> Response:
        return text_response(200, "alive")

    async def _ready(self, _request: Request) -> Response:
        """Answer whether a leader is reached; a leader that lets the gateway itself do nothing counts, too."""
        reasons = [{"reason": "stopping", "message": "it was told to stop"}] if self._bounds.is_stopping else []
        try:
            await self._client.clock()
        except (Unauthenticated, PermissionDenied):
            pass
        except CortadoError as error:
            reasons.append({"reason": "cluster", "message": error.message()})
        return json_response(503 if reasons else 200, {"ready": not reasons, "reasons": reasons})

    def _found(self) -> Iterator[Found]:
        measures, limits = self._bounds.measures, self._bounds.limits
        yield "gateway_info", (__version__, platform.python_version()), 1
        for route, each in measures.routes.items():
            for status, count in each.statuses.items():
                yield "gateway_requests_total", (*route, str(status)), count
            yield "gateway_request_duration_seconds", route, each.durations
            yield "gateway_received_bytes_total", route, each.received_bytes
            yield "gateway_sent_bytes_total", route, each.sent_bytes
            yield "gateway_cut_total", route, each.cut
        yield "gateway_connections", (), self._connections()
        yield "gateway_connections_limit", (), limits.connections_max
        yield "gateway_calls", (), self._bounds.calls
        yield "gateway_calls_limit", (), limits.calls_max
        yield "gateway_streams", (), self._bounds.streams
        yield "gateway_streams_limit", (), limits.streams_max
        yield "gateway_body_bytes", (), self._bounds.bodies.size_bytes
        yield "gateway_body_bytes_limit", (), limits.bodies_bytes_max
        for cause, count in measures.rejections.items():
            yield "gateway_rejections_total", (cause,), count
        for reason, count in measures.upstream_errors.items():
            yield "gateway_upstream_errors_total", (reason,), count
        for name, value in process_numbers():
            yield name, (), value
