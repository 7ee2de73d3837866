"""``cortado job``: long work that the cluster does by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.asking import UNCHANGED, DryRunOption, YesOption, confirm
from cortado.store.cli.common_options import QuietOption
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import moment
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.client import Job

JobArgument = Annotated[int, Argument(help="The job's number.", metavar="JOB", parser=whole("JOB", 1))]


@command(
    "job list",
    examples="""
        cortado job list
        cortado job list --all -o json
    """,
)
def list_jobs(
    session: Session,
    all_: Annotated[bool, Option("--all", help="Include jobs that have ended.")] = False,
) -> Answer:
    """List the jobs that have not ended, with their targets and progress."""
    with session.client() as client:
        found = [each for each in client.admin.jobs.list() if all_ or not each.has_ended]
    rows = [(each.job_id, each.target, each.state, _share(each), moment(each.created), each.error) for each in found]
    return Rows(("job", "builds", "state", "rows", "since", "problem"), rows, map(_as_json, found))


@command("job wait", examples="cortado job wait 1")
def wait(session: Session, job: JobArgument, quiet: QuietOption = False) -> Answer:
    """Wait until a job has ended, and show its progress. Ctrl-C ends the wait, not the job."""
    from cortado.store.cli.building import shown_until_built

    with session.client() as client:
        return _told(shown_until_built(session, client, job, quiet=quiet))


@command("job pause", examples="cortado job pause 1")
def pause(session: Session, job: JobArgument) -> Answer:
    """Pause a job. Its finished work stays, and it continues when it is resumed."""
    with session.client() as client:
        return _told(client.admin.jobs.pause(job))


@command("job resume", examples="cortado job resume 1")
def resume(session: Session, job: JobArgument) -> Answer:
    """Resume a paused job."""
    with session.client() as client:
        return _told(client.admin.jobs.resume(job))


@command("job cancel", examples="cortado job cancel 1 --yes")
def cancel(session: Session, job: JobArgument, dry_run: DryRunOption = False, yes: YesOption = False) -> Answer:
    """Cancel a job, and remove its results: the index that it builds is dropped."""
    with session.client() as client:
        found = client.admin.jobs.get(job)
        if dry_run:
            return Said(f"would cancel job {job}, and drop {found.target}", _as_json(found), note=UNCHANGED)
        confirm(f"Cancel job {job}, and drop {found.target}?", yes=yes)
        return _told(client.admin.jobs.cancel(job))


def _told(job: Job) -> Said:
    because = f": {job.error}" if job.error else ""
    return Said(f"job {job.job_id} ({job.target}) is {job.state}{because}", _as_json(job))


def _share(job: Job) -> str:
    return f"{job.done:,}" if not job.total else f"{job.done:,} of {job.total:,}"


def _as_json(job: Job) -> dict[str, Any]:
    return {
        "job": job.job_id,
        "kind": job.kind,
        "target": job.target,
        "state": job.state,
        "done": job.done,
        "total": job.total,
        "created": str(job.created),
        "ended": None if job.ended is None else str(job.ended),
        "error": job.error,
    }
