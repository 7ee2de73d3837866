"""The leader's part in jobs: one step after another of each that runs, with rests between them.

A step is a write that is evaluated where it is appended (:mod:`cortado.store.tables.build`), so all that is kept here
is what a next leader would find in the store. Before a step, beside the loop, this looks where the step will end, and
counts the rows before the first one.

While others write, a job rests four times as long as its last step took: they keep four fifths. While nobody does, it
goes on at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from cortado.errors import DataLoss, KeyLocked
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.jobs.job import JOBS_KEY, Job, JobState, jobs_of
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.node.driver import Driver
from cortado.store.node.duties import AGAIN_S
from cortado.store.node.group_context import GroupContext
from cortado.store.node.proposals import WriteResult
from cortado.store.node.read_timestamps import ReadPoints
from cortado.store.tables.build import STEP_ROWS, Pace, build_step, rows_left

_LOG: Final = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 0.2
REST: Final = 4
"""Times what the last step took, while others write."""


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
        """``write`` returns once it is committed. ``catalog`` is the one that a reader sees."""
        self._group = group
        self._driver = driver
        self._reads = reads
        self._write = write
        self._catalog = catalog
        self._monotonic_ms = group.host.monotonic_ms
        self.running: list[Job] = []
        """What this node does as a leader, as it was after the last step of each."""
        self.steps = 0
        """How many this node has done since the start."""

    async def run(self) -> None:
        """Do what there is to do, for as long as this node leads."""
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
        """When a job was last begun, paused or resumed."""
        pipeline = self._driver.pipeline
        version = pipeline.reader(pipeline.newest_ts).get(JOBS_KEY)
        return None if version is None else version.ts

    async def _look(self) -> list[Job]:
        read_ts = await self._reads.applied_to(await self._reads.linearize())
        found = await self._group.host.scan(lambda: jobs_of(self._group.store.snapshot(read_ts)))
        return [each for each in found if each.state is JobState.RUNNING]

    async def _step(self, job: Job) -> Job:
        """The job after its next step, and after the rest that follows."""
        try:
            pace = await self._pace(job)

            def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
                unresolved = self._group.machine.unresolved.all
                return build_step(reader, commit_ts, self._catalog(reader), job.job_id, pace, unresolved)

            began_ms, evaluated = self._monotonic_ms(), self._evaluated
            result = await self._write(evaluate)
        except (DataLoss, KeyLocked) as refusal:
            # It is repaired, or given up; the large transaction ends. Other jobs go on meanwhile.
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
        # Its own write is one of those that were evaluated.
        others_write = self._evaluated - evaluated > 1
        await asyncio.sleep(REST * (self._monotonic_ms() - began_ms) / 1000 if others_write else 0)
        return after

    @property
    def _evaluated(self) -> int:
        return self._driver.pipeline.measures.waiting.count

    async def _pace(self, job: Job) -> Pace:
        """Where the step may end: behind so many rows as they are applied by now."""
        applied_ts, store = self._driver.applied.last_ts, self._group.store
        left = await self._group.host.scan(lambda: rows_left(self._catalog(store.snapshot(applied_ts)), job))
        if left is None:
            return Pace(self._monotonic_ms)
        total = await self._count(left, applied_ts) if not job.cursor else 0
        upto = await self._group.host.scan(lambda: self._behind_rows(left, applied_ts))
        return Pace(self._monotonic_ms, STEP_ROWS, upto=upto, total=total)

    async def _count(self, rows: KeyRange, read_ts: Timestamp) -> int:
        counting = self._group.store.split(*rows, 1, read_ts)
        while not await self._group.host.scan(counting.step):
            pass
        return counting.rows

    def _behind_rows(self, rows: KeyRange, read_ts: Timestamp) -> LogicalKey | None:
        start, end = rows
        if start >= end:
            return None
        return self._group.store.scan_chunk(start, end, read_ts, max_rows=STEP_ROWS).resume
