"""Waiting for a job, with a bar, so that a user that stops waiting knows that the job goes on."""

from __future__ import annotations

from cortado.store.cli.progress import showing_progress
from cortado.store.cli.session import Session
from cortado.store.client import Client, Job
from cortado.store.transfer.progress import Progress


def shown_until_built(session: Session, client: Client, job_id: int, *, quiet: bool) -> Job:
    """Return the job when it has ended."""
    try:
        with showing_progress(quiet=quiet) as report:
            return client.admin.jobs.wait(
                job_id, lambda job: report(Progress(job.target, job.done, done=job.done, total=job.total))
            )
    except KeyboardInterrupt:
        session.show.note(f"job {job_id} goes on: cortado job list shows how far it is")
        raise
