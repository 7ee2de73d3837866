"""``cortado.v1.Jobs``: long work that the leader does, step by step."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import Message

from cortado.proto.v1 import jobs_pb2 as pb
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.jobs.job import Job, job_of, jobs_of, pause, resume
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.server.convert import timestamp_message
from cortado.store.server.listing import behind, next_page
from cortado.store.server.service import Service
from cortado.store.tables.build import cancel_build

_NUMBER_DIGITS = 20


class JobsService(Service):
    """Lists and changes jobs; all listed states are acknowledged. The job itself runs at the leader."""

    async def list(self, request: pb.ListJobsRequest) -> Message:
        with self.host.process.reads.place():
            newest = await self.newest()
            read_ts, jobs, token = next_page(
                request,
                newest=newest,
                items=lambda ts, after: behind(after, jobs_of(self.host.meta.reader(ts)), _name),
                name=_name,
                size_bytes=lambda job: _message(job).ByteSize(),
            )
        return pb.ListJobsResponse(header=self.header(read_ts), jobs=map(_message, jobs), next_page_token=token)

    async def get(self, request: pb.GetJobRequest) -> Message:
        read_ts = await self.newest()
        job = job_of(self.host.meta.reader(read_ts), request.job_id)
        return pb.JobResponse(header=self.header(read_ts), job=_message(job))

    async def pause(self, request: pb.ChangeJobRequest) -> bytes:
        return await self._change(request, lambda catalog, _ts: pause(catalog.reader, request.job_id))

    async def resume(self, request: pb.ChangeJobRequest) -> bytes:
        return await self._change(request, lambda catalog, _ts: resume(catalog.reader, request.job_id))

    async def cancel(self, request: pb.ChangeJobRequest) -> bytes:
        return await self._change(request, lambda catalog, ts: cancel_build(catalog, ts, request.job_id))

    async def _change(self, request: pb.ChangeJobRequest, change: Callable[[Catalog, Timestamp], Evaluation]) -> bytes:
        return await self.change_catalog(request, change, Job, lambda job: pb.JobResponse(job=_message(job)))


def _name(job: Job) -> str:
    return str(job.job_id).zfill(_NUMBER_DIGITS)


def _message(job: Job) -> pb.Job:
    return pb.Job(
        job_id=job.job_id,
        kind=job.kind,
        target=job.target,
        state=f"JOB_STATE_{job.state.name}",
        done=job.done,
        total=job.total,
        created=timestamp_message(job.created_ts),
        ended=None if job.ended_ts == ZERO else timestamp_message(job.ended_ts),
        error=job.error,
    )
