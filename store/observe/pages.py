"""A node's pages over HTTP: ``/metrics``, ``/healthz`` (it is alive) and ``/readyz`` (it can serve, or why not)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from cortado.store.observe.collecting import Sources, collect
from cortado.store.observe.exposition import expose
from cortado.store.observe.http import Page, Request, Response, json_response, text_response
from cortado.store.observe.readiness import Readiness


class Pages:
    """Made before the node starts, when it can only say that it is alive. :attr:`sources` is set after the start."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self.sources: Sources | None = None

    @property
    def by_path(self) -> Mapping[str, Page]:
        return {"/metrics": self._metrics, "/healthz": self._alive, "/readyz": self._ready}

    async def _metrics(self, request: Request) -> Response:
        families = collect(self.sources)
        # Writing thousands of lines takes longer than finding the numbers, and need not be done on the loop.
        body, content_type = await asyncio.to_thread(expose, families, request.headers.get("accept", ""))
        return Response(200, body, content_type)

    async def _alive(self, _request: Request) -> Response:
        return text_response(200, "alive")

    async def _ready(self, _request: Request) -> Response:
        problems = self._readiness.problems()
        reasons = [{"reason": each.reason.value, "message": each.message} for each in problems]
        return json_response(503 if problems else 200, {"ready": not problems, "reasons": reasons})
