"""Jobs, synchronous."""

from __future__ import annotations

from collections.abc import Callable

from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.jobs import AsyncJobs, Job


@forwards(AsyncJobs)
class Jobs:
    """The cluster's jobs. It is ``client.admin.jobs``, and may be shared by threads."""

    def __init__(self, core: AsyncJobs) -> None:
        self._core = core

    def list(self) -> list[Job]:
        return run(self._core.list())

    def get(self, job_id: int) -> Job:
        return run(self._core.get(job_id))

    def pause(self, job_id: int) -> Job:
        return run(self._core.pause(job_id))

    def resume(self, job_id: int) -> Job:
        return run(self._core.resume(job_id))

    def cancel(self, job_id: int) -> Job:
        return run(self._core.cancel(job_id))

    def wait(self, job_id: int, progress: Callable[[Job], None] | None = None) -> Job:
        return run(self._core.wait(job_id, progress))
