"""Jobs as they are stored: versioned keys of the space ``m``, so snapshots, scrubs and reads in the past have them.

======================  ============  ==========================================================================
key, in the space ``m``  value         holds
======================  ============  ==========================================================================
``jobs``                StoredJobs    the next number; written whenever a job begins or goes on
``job`` number          StoredJob     what is done, how far it is, and how it ended
======================  ============  ==========================================================================

A job is done in steps. Each step is a write: its effect and the job's new ``cursor`` are one commit. So the next leader
goes on after the last step, and nothing is done twice or left out::

    RUNNING ──last step──► DONE             PAUSED ◄──pause / resume──► RUNNING
       │  └──a step cannot be done──► FAILED
       └──cancel──► CANCELLED               (from PAUSED, too)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from cortado.errors import DataLoss, InvalidArgument, NotFound, TooLarge
from cortado.proto.internal import jobs_pb2 as pb
from cortado.store.auth.owners import ANYBODY, Asker, check_share
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.keyspace import meta_key, meta_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.stored_messages import decode_stored

JOBS_KEY: Final = meta_key("jobs")
UNFINISHED_MAX: Final = 100
"""Jobs that have not ended, running or paused."""
_JOB_ID_MAX: Final = (1 << 63) - 1
FINISHED_MAX: Final = 1_000
"""Jobs that have ended and are remembered."""


class JobState(StrEnum):
    """See the picture above."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def has_ended(self) -> bool:
        return self not in (JobState.RUNNING, JobState.PAUSED)


class JobKind(StrEnum):
    """The kind of work."""

    INDEX = "index"


@dataclass(frozen=True, slots=True)
class Job:
    """``target`` is for people; ``parameters`` and ``cursor`` are the kind's own. ``done`` and ``total`` count items;
    ``total`` is about how many there were when it began, 0 before that is known."""

    job_id: int
    kind: JobKind
    target: str
    parameters: bytes
    created_ts: Timestamp
    state: JobState = JobState.RUNNING
    cursor: bytes = b""
    done: int = 0
    total: int = 0
    ended_ts: Timestamp = ZERO
    error: str = ""
    principal: str = ""
    """Which began it, empty if there was none."""

    def ended(self, state: JobState, ts: Timestamp, error: str = "") -> Job:
        return replace(self, state=state, ended_ts=ts, error=error)


def job_key(job_id: int) -> LogicalKey:
    return meta_key("job", job_id)


def find_job(reader: Reader, job_id: int) -> Job | None:
    """Return the job of that number, None if it is not known any more, or never was."""
    version = reader.get(job_key(job_id))
    return None if version is None else decode_job(version.payload)


def job_of(reader: Reader, job_id: int) -> Job:
    """Raises NotFound."""
    job = find_job(reader, job_id) if job_id <= _JOB_ID_MAX else None
    if job is None:
        raise NotFound("job", str(job_id))
    return job


def jobs_of(reader: Reader) -> list[Job]:
    """Return all jobs, in the order of their numbers."""
    return [decode_job(version.payload) for _, version in reader.scan(*meta_range("job"))]


def put_job(mutations: Mutations, job: Job) -> None:
    mutations.put(job_key(job.job_id), encode_job(job))


def begin_job(
    reader: Reader,
    mutations: Mutations,
    kind: JobKind,
    target: str,
    parameters: bytes,
    commit_ts: Timestamp,
    asker: Asker = ANYBODY,
) -> Job:
    """Put a new job into ``mutations``, and return it. If more than FINISHED_MAX have ended, the principal with most of
    them loses its oldest. Raises TooLarge, and ResourceExhausted if the caller has its share of unfinished jobs."""
    # This runs on the loop, where decoding a thousand jobs would take too long.
    known = [decode_stored(pb.StoredJob, version.payload, "jobs") for _, version in reader.scan(*meta_range("job"))]
    ended = sorted((each.ended_ts, each.job_id, each.principal) for each in known if each.ended_ts)
    unfinished = len(known) - len(ended)
    if unfinished >= UNFINISHED_MAX:
        problem = f"there are {unfinished} that have not ended, the most that are allowed"
        raise TooLarge("jobs", problem, "", unfinished, UNFINISHED_MAX)
    own = sum(each.principal == asker.principal for each in known if not each.ended_ts)
    check_share(asker, "jobs", own=own, total=unfinished, limit=UNFINISHED_MAX)
    for job_id in _forgotten(ended):
        mutations.delete(job_key(job_id))
    job = Job(next_job_id(reader), kind, target, parameters, commit_ts, principal=asker.principal)
    put_job(mutations, job)
    mutations.put(JOBS_KEY, _encode_counter(job.job_id + 1))
    return job


def _forgotten(ended: Sequence[tuple[bytes, int, str]]) -> list[int]:
    """Return which of the jobs that have ended are remembered no longer: when, number and principal of each, the oldest
    first. No principal's jobs push out those of one that has fewer."""
    left, found = list(ended), []
    counts = Counter(principal for *_, principal in ended)
    while len(left) > FINISHED_MAX:
        most = max(counts.values())
        going = next(each for each in left if counts[each[2]] == most)
        left.remove(going)
        counts[going[2]] -= 1
        found.append(going[1])
    return found


def next_job_id(reader: Reader) -> int:
    """Return the number of the job that is begun next."""
    version = reader.get(JOBS_KEY)
    if version is None:
        return 1
    return decode_stored(pb.StoredJobs, version.payload, "jobs").next_job_id


def pause(reader: Reader, job_id: int) -> Evaluation:
    """No step is done until it is resumed; replies the job. Raises NotFound, InvalidArgument."""
    return _turn(reader, job_id, JobState.PAUSED)


def resume(reader: Reader, job_id: int) -> Evaluation:
    """Go on where it was; replies the job. Raises NotFound, InvalidArgument."""
    return _turn(reader, job_id, JobState.RUNNING)


def check_unfinished(job: Job) -> Job:
    """Raises InvalidArgument if it has ended."""
    if job.state.has_ended:
        raise InvalidArgument("job_id", f"is of a job that has ended: it is {job.state}", str(job.job_id))
    return job


def _turn(reader: Reader, job_id: int, state: JobState) -> Evaluation:
    mutations = Mutations()
    job = check_unfinished(job_of(reader, job_id))
    if job.state is not state:
        job = replace(job, state=state)
        put_job(mutations, job)
        mutations.put(JOBS_KEY, _encode_counter(next_job_id(reader)))
    return Evaluation(mutations, job)


def _encode_counter(next_id: int) -> bytes:
    return pb.StoredJobs(next_job_id=next_id).SerializeToString()


def encode_job(job: Job) -> bytes:
    return pb.StoredJob(
        job_id=job.job_id,
        kind=job.kind.value,
        target=job.target,
        parameters=job.parameters,
        state=job.state.value,
        cursor=job.cursor,
        done=job.done,
        total=job.total,
        created_ts=bytes(job.created_ts),
        ended_ts=b"" if job.ended_ts == ZERO else bytes(job.ended_ts),
        error=job.error,
        principal=job.principal,
    ).SerializeToString(deterministic=True)


def decode_job(payload: bytes) -> Job:
    """Raises DataLoss."""
    stored = decode_stored(pb.StoredJob, payload, "jobs")
    try:
        return Job(
            job_id=stored.job_id,
            kind=JobKind(stored.kind),
            target=stored.target,
            parameters=stored.parameters,
            created_ts=Timestamp.from_bytes(stored.created_ts),
            state=JobState(stored.state),
            cursor=stored.cursor,
            done=stored.done,
            total=stored.total,
            ended_ts=Timestamp.from_bytes(stored.ended_ts) if stored.ended_ts else ZERO,
            error=stored.error,
            principal=stored.principal,
        )
    except (ValueError, InvalidArgument) as malformed:
        raise DataLoss("jobs", f"a job does not decode: {malformed}") from malformed
