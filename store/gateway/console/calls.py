"""``/ui/calls``: calls to one node, how many and how fast, since its start or within some seconds; and the slow calls
of all nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from cortado.errors import CortadoError, InvalidArgument, NotFound
from cortado.proto.v1 import statistics_pb2
from cortado.store.client.statistics import (
    HistogramValue,
    Since,
    SlowCall,
    SlowCalls,
    Statistics,
    slow_calls_of,
)
from cortado.store.client.stubs import Stubs
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.charts import charts_of
from cortado.store.gateway.console.members import NODE_S, members_of
from cortado.store.gateway.console.pages import page, tried
from cortado.store.gateway.console.samples import OF_TOOLS, Samples, read
from cortado.store.gateway.console.visitor import Visitor
from cortado.store.keys.names import shown
from cortado.store.observe.measures import quantile

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

SECONDS_MAX: Final = 5
SLOW_SHOWN: Final = 50
_NAMES: Final = (
    "cortado_requests_total", "cortado_request_duration_seconds", "cortado_slow_requests_total",
    "cortado_refusals_total", "cortado_streams_open", "cortado_streams_total", "cortado_uptime_seconds",
    "cortado_storage_sync_seconds", "cortado_entry_commit_seconds", "cortado_loop_lag_max_seconds",
)  # fmt: skip
_OK: Final = "OK"


@dataclass(frozen=True, slots=True)
class Calls:
    """The counts of one method. ``per_s`` and the latencies, in seconds, are None if nothing was measured."""

    method: str
    ended: int
    failed: int
    per_s: float | None
    p50_s: float | None
    p99_s: float | None


def _largest(measured: Callable[[Calls], float | None]) -> Callable[[Calls], tuple[float, str]]:
    """Return an order with the largest first, and unmeasured methods at the end."""
    return lambda each: (-(measured(each) or -1.0), each.method)


SORTS: Final[Mapping[str, Callable[[Calls], Any]]] = {
    "method": lambda each: each.method,
    "calls": _largest(lambda each: each.ended),
    "failed": _largest(lambda each: each.failed),
    "rate": _largest(lambda each: each.per_s),
    "p50": _largest(lambda each: each.p50_s),
    "p99": _largest(lambda each: each.p99_s),
}


async def calls(samples: Samples, call: Call, visitor: Visitor) -> Response:
    """Return the page."""
    client = call.client
    members = await members_of(client)
    joined = [each for each in members.members if each.joined]
    wanted = call.text("node") or members.leader or next((each.node_id for each in joined), "")
    node = next((each for each in joined if each.node_id == wanted), None)
    if node is None:
        raise NotFound("member", wanted)
    within, all_methods = call.number("within", 1, SECONDS_MAX), call.text("methods") == "all"
    sort = call.text("sort") or "calls"
    if sort not in SORTS:
        raise InvalidArgument("sort", f"must be one of {', '.join(SORTS)}", shown(sort))
    counts, slow = await asyncio.gather(
        tried(_counts(client, node.address, within, None if all_methods else OF_TOOLS)),
        asyncio.gather(*(tried(_slow_calls(client, each.address)) for each in joined)),
    )
    return page(
        visitor,
        "calls.html",
        area="calls",
        nodes=[each.node_id for each in joined],
        node=wanted,
        leader=members.leader,
        within=within,
        counts=counts,
        methods=[] if isinstance(counts, CortadoError) else sorted(counts["methods"], key=SORTS[sort]),
        charts=charts_of(samples, [wanted])[:2],
        sort=sort,
        all_methods=all_methods,
        asked={"node": wanted, **({"within": within} if within else {})},
        slow_calls=_newest(slow),
        unasked=[(each.node_id, why) for each, why in zip(joined, slow, strict=True) if isinstance(why, CortadoError)],
    )


async def _counts(
    client: AsyncClient, address: str, within: int | None, hidden: tuple[str, ...] | None
) -> dict[str, Any]:
    """Return a node's counts since its start, or within some seconds, without methods that begin as ``hidden``."""
    before = None if within is None else await read(client, address, _NAMES)
    if within is not None:
        await asyncio.sleep(within)
    now = await read(client, address, _NAMES)
    since = _Measured(now, before)
    methods = _methods(now)
    shown_methods = [each for each in methods if hidden is None or not each.startswith(hidden)]
    return {
        "methods": [_calls(now, since, each) for each in shown_methods],
        "hidden": len(methods) - len(shown_methods),
        "streams": sorted(each for each in now.by_label("cortado_streams_open").items() if each[1]),
        "refusals": sorted(now.by_label("cortado_refusals_total").items()),
        "slow": since.grown("cortado_slow_requests_total"),
        "uptime_ms": 1000 * now.value("cortado_uptime_seconds"),
        "sync_p99_s": since.quantile("cortado_storage_sync_seconds", 0.99),
        "commit_p99_s": since.quantile("cortado_entry_commit_seconds", 0.99),
        "loop_lag_s": now.value("cortado_loop_lag_max_seconds"),
    }


async def _slow_calls(client: AsyncClient, address: str) -> SlowCalls:
    request = statistics_pb2.ListSlowCallsRequest()
    return slow_calls_of(
        await client.with_timeout(NODE_S)._open_call_at(address, Stubs.statistics.ListSlowCalls, request)
    )


def _newest(said: Iterable[SlowCalls | CortadoError]) -> list[tuple[str, SlowCall]]:
    """Return the last slow calls of all nodes that answered, the newest first."""
    found = [(each.node_id, call) for each in said if isinstance(each, SlowCalls) for call in each.calls]
    return sorted(found, key=lambda pair: -pair[1].ended_ms)[:SLOW_SHOWN]


class _Measured:
    """The counts between two readings, or since the node's start if there is only one."""

    def __init__(self, now: Statistics, before: Statistics | None) -> None:
        self._now = now
        self._before = before
        self._since = Since(now, before)

    def grown(self, name: str, of: Iterable[tuple[str, ...]] = ((),)) -> int:
        before = self._before
        grown = sum(self._now.value(name, *each) - (before.value(name, *each) if before else 0) for each in of)
        # A process that was started between the two counts from 0 again.
        return max(int(grown), 0)

    def per_s(self, of: Iterable[tuple[str, ...]]) -> float | None:
        if self._before is not None:
            return self._since.rate("cortado_requests_total", of)
        uptime_s = self._now.value("cortado_uptime_seconds")
        return self.grown("cortado_requests_total", of) / uptime_s if uptime_s else None

    def quantile(self, name: str, q: float, labels: tuple[str, ...] = ()) -> float | None:
        if self._before is not None:
            return self._since.quantile(name, q, [labels])
        found: HistogramValue | None = self._now.histograms.get(name, {}).get(labels)
        return None if found is None else quantile(found.bounds, list(found.counts), q)


def _methods(now: Statistics) -> list[str]:
    return sorted({labels[0] for labels in now.by_label("cortado_requests_total")})


def _calls(now: Statistics, since: _Measured, method: str) -> Calls:
    labels = [each for each in now.by_label("cortado_requests_total") if each[0] == method]
    name = "cortado_request_duration_seconds"
    return Calls(
        method.removeprefix("cortado.v1."),
        since.grown("cortado_requests_total", labels),
        since.grown("cortado_requests_total", [each for each in labels if each[1] != _OK]),
        since.per_s(labels),
        since.quantile(name, 0.5, (method,)),
        since.quantile(name, 0.99, (method,)),
    )
