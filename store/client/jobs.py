"""Long work that the cluster does by itself: its jobs, their progress, and how to hold or end them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cortado.proto.v1 import jobs_pb2 as pb
from cortado.store.client.arguments import callback, whole
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face
from cortado.store.client.stubs import Method
from cortado.store.client.values import timestamp_of
from cortado.store.clock.timestamp import Timestamp

_ID_MAX: Final = (1 << 63) - 1
_UNFINISHED: Final = ("running", "paused")
_LOOK_FIRST_S: Final = 0.05
_LOOK_EVERY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is at one moment. ``state`` is running, paused, done, failed or cancelled.

    ``done`` counts items, rows of a table say, of about ``total``, which is 0 while they are counted. ``ended`` is None
    before it has; ``error`` says why it failed or was cancelled.
    """

    job_id: int
    kind: str
    target: str
    state: str
    done: int
    total: int
    created: Timestamp
    ended: Timestamp | None
    error: str

    @property
    def has_ended(self) -> bool:
        return self.state not in _UNFINISHED


@public_face
class AsyncJobs:
    """The cluster's jobs."""

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._stub = connection.stubs.jobs

    async def list(self) -> list[Job]:
        """Return all jobs that have not ended, and the last thousand that have; the oldest first."""
        found: list[Job] = []
        request = pb.ListJobsRequest()
        while True:
            reply = await self._connection.call(self._stub.List, request, timeout_s=self._timeout_s)
            found += map(_job, reply.jobs)
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token

    async def get(self, job_id: int) -> Job:
        """Return one job as it is now. Raises NotFound."""
        request = pb.GetJobRequest(job_id=_check_id(job_id))
        return _job((await self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)).job)

    async def pause(self, job_id: int) -> Job:
        """Pause a job before its next step until it is resumed. Raises NotFound, InvalidArgument if it has ended."""
        return await self._change(self._stub.Pause, job_id)

    async def resume(self, job_id: int) -> Job:
        """Resume a job at its place. Raises NotFound, InvalidArgument if it has ended."""
        return await self._change(self._stub.Resume, job_id)

    async def cancel(self, job_id: int) -> Job:
        """End a job, and remove its results. Raises NotFound, InvalidArgument if it has ended."""
        return await self._change(self._stub.Cancel, job_id)

    async def wait(self, job_id: int, progress: Callable[[Job], None] | None = None) -> Job:
        """Wait for a job's end without a bound; ``progress`` is told of it meanwhile. Raises NotFound."""
        callback(progress, "progress")
        pause_s = _LOOK_FIRST_S
        while not (job := await self.get(job_id)).has_ended:
            if progress is not None:
                progress(job)
            await self._connection.runtime.sleep(pause_s)
            pause_s = min(2 * pause_s, _LOOK_EVERY_S)
        return job

    async def _change(self, method: Method, job_id: int) -> Job:
        request = pb.ChangeJobRequest(job_id=_check_id(job_id))
        return _job((await self._connection.write(method, request, timeout_s=self._timeout_s)).job)


def _check_id(job_id: int) -> int:
    return whole(job_id, "job_id", 1, _ID_MAX)


def _job(job: pb.Job) -> Job:
    return Job(
        job_id=job.job_id,
        kind=job.kind,
        target=job.target,
        state=pb.JobState.Name(job.state).removeprefix("JOB_STATE_").lower(),
        done=job.done,
        total=job.total,
        created=timestamp_of(job.created),
        ended=timestamp_of(job.ended) if job.HasField("ended") else None,
        error=job.error,
    )
