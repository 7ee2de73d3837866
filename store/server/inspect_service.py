"""``cortado.v1.Inspect``: the stored bytes of this node, as they lie there.

Every node answers these calls for itself, leader or not. Each call is one bounded piece of work on the scan thread, and
takes a place among the scans. A caller that wants more asks again, and so sets the pace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cortado.errors import Unavailable
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import ABOVE_KEYS
from cortado.store.host.host import Host
from cortado.store.log_files.files import LogDirectory
from cortado.store.server.convert import timestamp_value
from cortado.store.server.inspection.log import LogPart, log_question, read_log
from cortado.store.server.inspection.log_segments import LogSegments
from cortado.store.server.inspection.state import Stored
from cortado.store.server.inspection.verify import go_on, list_items, verify_range
from cortado.store.server.inspection.versions import read_versions
from cortado.store.server.service import Service

M = TypeVar("M", pb.ReadLogResponse, pb.ReadVersionsResponse, pb.VerifyRangeResponse, pb.ListItemsResponse)

_RETRY_DELAY_MS = 100


class InspectService(Service):
    """Answers for the log, for versions, and for the checks of a scrub."""

    def __init__(self, host: Host, open_log: Callable[[], LogDirectory]) -> None:
        """``open_log`` opens the node's log files beside it, to be read alone."""
        super().__init__(host)
        self._open_log = open_log
        self._stored = Stored(host.process.engine, host.process.monotonic_ms)

    async def read_log(self, request: pb.ReadLogRequest) -> pb.ReadLogResponse:
        question = log_question(request)
        # On the loop: entries that are in memory are not read from the files.
        part = LogPart.of_window(self.host.meta.log.window, question)
        return await self._look(lambda: read_log(self._stored, question, part))

    async def read_versions(self, request: pb.ReadVersionsRequest) -> pb.ReadVersionsResponse:
        read_ts = await self.host.meta.reads.applied_to(self.host.meta.read_ts())
        reply = await self._look(lambda: read_versions(self._stored, request))
        self.host.meta.store.check_readable(read_ts, b"", ABOVE_KEYS)
        return reply

    async def verify_range(self, request: pb.VerifyRangeRequest) -> pb.VerifyRangeResponse:
        steps = verify_range(self._stored, LogSegments(self._open_log, self.host.process.log_files), request)
        if request.space != pb.STORED_SPACE_DATA:
            return await self._look(lambda: go_on(steps))
        up_to = await self._applied(timestamp_value(request.up_to))
        reply = await self._look(lambda: go_on(steps))
        self.host.meta.store.check_readable(up_to, b"", ABOVE_KEYS)
        return reply

    async def list_items(self, request: pb.ListItemsRequest) -> pb.ListItemsResponse:
        up_to = await self._applied(timestamp_value(request.up_to))
        reply = await self._look(lambda: list_items(self._stored, request))
        self.host.meta.store.check_readable(up_to, b"", ABOVE_KEYS)
        return reply

    async def _look(self, look: Callable[[], M | None]) -> M:
        """Call ``look`` until it returns an answer: other scans take turns."""
        reply: M | None = None
        with self.host.process.scans.place():
            while reply is None:
                reply = await self.host.process.scan(look)
        reply.header.CopyFrom(self.header(self.host.meta.read_ts()))
        return reply

    async def _applied(self, up_to: Timestamp) -> Timestamp:
        """Return ``up_to`` once all commits up to it are applied here. Raises Unavailable if this replica cannot apply
        that far yet."""
        self.host.meta.store.check_readable(up_to, b"", ABOVE_KEYS)
        await self.host.meta.reads.applied_to(up_to)
        applied = self.host.meta.applied.last_ts
        if up_to > applied:
            raise Unavailable(f"this replica has applied up to {applied}, not up to {up_to}", _RETRY_DELAY_MS)
        await self.host.meta.reads.in_place(up_to)
        return up_to
