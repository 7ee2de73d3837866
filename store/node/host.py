"""The process: what it has once, whatever it replicates.

::

    Host ──┬── engine, clock and what peers' clocks say of it
           ├── gates and one budget: what may be in line and in flight
           └── the scan thread, the loop's delay
    Node ── one group's replica on a host: log, driver, reads, members, watches, snapshots

A request is admitted by the host, and answered by the replica.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

from cortado.store.clock.hlc import Clock
from cortado.store.clock.host_time import HostTime
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine
from cortado.store.node.admission import Gate
from cortado.store.node.budget import Budget
from cortado.store.node.clock_watch import ClockWatch
from cortado.store.node.limits import NodeLimits
from cortado.store.node.loop_delay import LoopDelay

T = TypeVar("T")


class Host:
    """Made by the node that serves on it, which starts and stops it. Everything but scans runs on the loop."""

    def __init__(
        self,
        engine: Engine,
        *,
        node_id: str,
        host_time: HostTime,
        monotonic_ms: Callable[[], float],
        limits: NodeLimits,
        max_clock_offset_ms: int,
        last_ts: Timestamp,
        run_scan: Executor | None,
    ) -> None:
        """``last_ts`` is above everything that was ever committed or promised on this engine, whatever the physical
        clock says. ``run_scan`` runs slices of scans (one thread, unless given)."""
        self.engine = engine
        """All that is stored here, to be looked at as it lies there. Nobody but the replica writes to it."""
        self.limits = limits
        self.monotonic_ms = monotonic_ms
        self.host_time = host_time
        self.clock = Clock(host_time.now_ms, last=last_ts, max_offset_ms=max_clock_offset_ms)
        self.clock_watch = ClockWatch(node_id, host_time, monotonic_ms, max_offset_ms=max_clock_offset_ms)
        self.budget = Budget(limits)
        self.writes = Gate("writes", count_max=limits.writes_max, bytes_max=limits.write_bytes_max)
        self.reads = Gate("reads", count_max=limits.reads_max)
        self.scans = Gate("scans", count_max=limits.scans_max)
        self.bulk_streams = Gate("bulk streams", count_max=limits.bulk_streams_max)
        self.loop_delay = LoopDelay(monotonic_ms)
        self._run_scan = run_scan or ThreadPoolExecutor(max_workers=1, thread_name_prefix="cortado-scan")
        self._started_ms = monotonic_ms()

    @property
    def uptime_ms(self) -> int:
        return int(self.monotonic_ms() - self._started_ms)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Measure the loop's delay."""
        self.loop_delay.start(loop)

    def stop(self) -> None:
        """End the thread; slices that have not begun are cancelled."""
        self.loop_delay.stop()
        self.clock_watch.stop()
        self._run_scan.shutdown(wait=True, cancel_futures=True)

    async def scan(self, step: Callable[[], T]) -> T:
        """Run one bounded slice of a scan on the scan thread; slices of all scans alternate."""
        return await asyncio.get_running_loop().run_in_executor(self._run_scan, step)
