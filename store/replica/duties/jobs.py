"""The leader's part in jobs: run each job's steps one after another, with rests between them.

A step is a write that is evaluated at append (:mod:`cortado.store.tables.build`), so this keeps only state that a next
leader would find in the store. Before a step, beside the loop, it looks up the step's end, and counts the rows before
the first one.

A step takes its share of resources that others wait for::

    scan thread   the look ahead   ─┐ Python runs one thread at a time: a millisecond of each is one of theirs.
    event loop    the evaluation    │ All of it is in proportion to the rows, and comes to about four times what
    log           the entry's bytes │ evaluating them takes, which is the part that is measured
    data          applying them    ─┘
    log           the entry's turn ── until it is committed, which is mostly waiting

So while others write, a job rests ``REST`` times as long as the evaluation of its last step, however long that waited,
and at least as long as the step took: every second turn of the log is for others. It looks for other writes while it
rests, and once there are none it goes on at once.

Some writers never pause, and a build has to end beside them, too. So its rest is short enough for ``ROWS_S_AIM``,
unless its rows are so dear that this would cost others more than a fifth: it rests ``REST_MIN`` times in any case.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final

from cortado.errors import DataLoss, KeyLocked
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.jobs.job import JOBS_KEY, Job, JobState, jobs_of
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.replica.context import GroupContext
from cortado.store.replica.driver import Driver
from cortado.store.replica.duties.duties import AGAIN_S
from cortado.store.replica.read.read_timestamps import ReadPoints
from cortado.store.replica.write.proposals import WriteResult
from cortado.store.tables.build import STEP_ROWS, Pace, build_step, rows_left

_LOG: Final = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 0.2
REST: Final = 64
"""The rest while others write, in evaluation times of the last step: a job costs a seventeenth in all then."""
REST_MIN: Final = 16
"""The same if the job would be slower than ``ROWS_S_AIM`` otherwise: it costs a fifth."""
ROWS_S_AIM: Final = 2_000
"""Rows a second that a job does beside others, if that costs them no more than a fifth."""
LOOK_AROUND_MS: Final = 20.0
"""Others write if they wrote within this time. A less frequent writer loses less than a fifth to a step in between."""


def _rest_ms(rows: int, evaluating_ms: float, took_ms: float) -> float:
    """Return the rest after a step of ``rows`` rows."""
    longest_ms = max(REST_MIN * evaluating_ms, rows * 1_000 / ROWS_S_AIM - took_ms)
    return min(max(REST * evaluating_ms, took_ms), longest_ms)


class JobRunner:
    """One replica's. On the loop."""

    def __init__(
        self,
        group: GroupContext,
        driver: Driver,
        reads: ReadPoints,
        *,
        write: Callable[[Evaluate], Awaitable[WriteResult]],
        catalog: Callable[[Reader], Catalog],
    ) -> None:
        """``write`` returns once it is committed. ``catalog`` returns the one that a reader sees."""
        self._group = group
        self._driver = driver
        self._reads = reads
        self._write = write
        self._catalog = catalog
        self._monotonic_ms = group.process.monotonic_ms
        self.running: list[Job] = []
        """The jobs that this node runs as a leader, as they were after the last step of each."""
        self.steps = 0
        """How many steps this node has done since the start."""
        self._written_ms = -inf  # When others were last seen to write.

    async def run(self) -> None:
        """Run the jobs, for as long as this node leads."""
        try:
            while True:
                changed_ts = self._changed_ts()
                self.running = await self._look()
                while self.running and self._changed_ts() == changed_ts:
                    for place, job in enumerate(self.running):
                        self.running[place] = await self._step(job)
                    self.running = [each for each in self.running if each.state is JobState.RUNNING]
                while self._changed_ts() == changed_ts:
                    await asyncio.sleep(LOOK_EVERY_S)
        finally:
            self.running = []

    def _changed_ts(self) -> Timestamp | None:
        """Return when a job was last begun, paused or resumed."""
        pipeline = self._driver.pipeline
        version = pipeline.reader(pipeline.newest_ts).get(JOBS_KEY)
        return None if version is None else version.ts

    async def _look(self) -> list[Job]:
        read_ts = await self._reads.applied_to(await self._reads.linearize())
        found = await self._group.process.scan(lambda: jobs_of(self._group.store.snapshot(read_ts)))
        return [each for each in found if each.state is JobState.RUNNING]

    async def _step(self, job: Job) -> Job:
        """Return the job after its next step, and after the rest that follows."""
        began_ms, evaluated = self._monotonic_ms(), self._evaluated
        evaluating_ms = 0.0
        try:
            pace = await self._pace(job)

            def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
                nonlocal evaluating_ms
                unresolved = self._group.store.unresolved.all
                started_ms = self._monotonic_ms()
                step = build_step(reader, commit_ts, self._catalog(reader), job.job_id, pace, unresolved)
                evaluating_ms = self._monotonic_ms() - started_ms
                return step

            result = await self._write(evaluate)
        except (DataLoss, KeyLocked) as refusal:
            # Its data is repaired, or given up; the large transaction ends. Other jobs go on meanwhile.
            _LOG.warning("job %d (%s) waits: %s", job.job_id, job.target, refusal)
            await asyncio.sleep(AGAIN_S)
            return job
        after = result.value
        assert isinstance(after, Job)
        self.steps += 1
        if after.state.has_ended:
            _LOG.info("job %d (%s) has ended: %s %s", job.job_id, job.target, after.state, after.error)
        if after == job:
            # It waits for others to end.
            await asyncio.sleep(LOOK_EVERY_S)
        ended_ms = self._monotonic_ms()
        # The job's own write is one of those evaluated.
        if self._evaluated - evaluated > 1:
            self._written_ms = ended_ms
        await self._rest(_rest_ms(after.done - job.done, evaluating_ms, ended_ms - began_ms))
        return after

    async def _rest(self, rest_ms: float) -> None:
        """Rest for ``rest_ms``, or until no other write came for a while; let others go first in any case."""
        await asyncio.sleep(0)
        now_ms = self._monotonic_ms()
        until_ms = now_ms + rest_ms
        while now_ms < min(until_ms, self._written_ms + LOOK_AROUND_MS):
            evaluated = self._evaluated
            await asyncio.sleep(min(until_ms - now_ms, LOOK_AROUND_MS / 2) / 1000)
            now_ms = self._monotonic_ms()
            if self._evaluated > evaluated or not self._driver.pipeline.is_idle:
                self._written_ms = now_ms

    @property
    def _evaluated(self) -> int:
        return self._driver.pipeline.measures.waiting.count

    async def _pace(self, job: Job) -> Pace:
        """Return where the step may end, by the rows applied by now."""
        applied_ts = self._driver.applied.last_ts
        ahead = await self._group.process.scan(lambda: self._look_ahead(job, applied_ts))
        if ahead is None:
            return Pace(self._monotonic_ms)
        left, upto = ahead
        total = await self._count(left, applied_ts) if not job.cursor else 0
        return Pace(self._monotonic_ms, STEP_ROWS, upto=upto, total=total)

    async def _count(self, rows: KeyRange, read_ts: Timestamp) -> int:
        counting = self._group.store.split(*rows, 1, read_ts)
        while not await self._group.process.scan(counting.step):
            pass
        return sum(part.rows for part in counting.parts())

    def _look_ahead(self, job: Job, read_ts: Timestamp) -> tuple[KeyRange, LogicalKey | None] | None:
        """Return the range of rows left, and the place behind the next step's rows; None if the table is gone."""
        store = self._group.store
        left = rows_left(self._catalog(store.snapshot(read_ts)), job)
        if left is None:
            return None
        start, end = left
        if start >= end:
            return left, None
        return left, store.scan_chunk(start, end, read_ts, max_rows=STEP_ROWS).resume
