"""Tasks of one loop that call one thing after another, in rounds asked for by another process.

They call for a while uncounted, and ``ready`` is printed. Each line of standard input then asks for a round of that
many seconds. ``counting`` is printed when the round's own warm-up is over, and at its end the result, as a line of
JSON. The end of the input ends it all. :class:`~benchmarks.cluster.drivers.LoadProcess` is the other end.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict

from benchmarks.cluster.drivers import Seen, percentile
from benchmarks.cluster.workloads import WARM_CALLS, WARM_MS


class Caller:
    """One call after another. ``ask`` makes one; it raises if the answer is wrong."""

    def __init__(self, ask: Callable[[], Awaitable[None]]) -> None:
        self._ask = ask
        self.latencies_us: list[int] = []
        self.failed = 0

    async def warm(self) -> None:
        for _ in range(WARM_CALLS):
            await self._one()

    async def round(self, phase: Phase) -> None:
        self.latencies_us, self.failed = [], 0
        while not phase.ended:
            began_ns = time.perf_counter_ns()
            if await self._one() and phase.counts:
                self.latencies_us.append((time.perf_counter_ns() - began_ns) // 1_000)

    async def _one(self) -> bool:
        try:
            await self._ask()
        except Exception as error:
            if not self.failed:
                print(f"a call failed: {error!r}", file=sys.stderr)
            self.failed += 1
            return False
        return True


class Phase:
    """A round's phase: warming, counting, ended."""

    def __init__(self) -> None:
        self.counts = False
        self.ended = False

    async def pass_through(self, seconds: float) -> float:
        """Return the CPU seconds that the process used while the round counted."""
        await asyncio.sleep(WARM_MS / 1_000)
        before_s = time.process_time()
        print("counting", flush=True)
        self.counts = True
        await asyncio.sleep(seconds)
        self.counts = False
        cpu_s = time.process_time() - before_s
        self.ended = True
        return cpu_s


async def answer_rounds(callers: Sequence[Caller]) -> None:
    """Run rounds until the input ends."""
    await asyncio.gather(*(caller.warm() for caller in callers))
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(asdict(await _round(callers, float(line)))), flush=True)


async def _round(callers: Sequence[Caller], seconds: float) -> Seen:
    phase = Phase()
    cpu_s, *_ = await asyncio.gather(phase.pass_through(seconds), *(caller.round(phase) for caller in callers))
    latencies = sorted(each for caller in callers for each in caller.latencies_us)
    return Seen(
        calls=len(latencies),
        p50_us=percentile(latencies, 0.50),
        p99_us=percentile(latencies, 0.99),
        cpu_s=cpu_s,
        failed=sum(caller.failed for caller in callers),
    )
