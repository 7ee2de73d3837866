"""The state that a read has chosen, and its lease: the rows of a DataFrame are kept for as long as tasks read them.

::

    driver    load() ── acquired, at the whole minute before the DataFrame's timestamp ──────┐
              partitions() ── found again, or acquired anew where it had ended               │ carried by the
    executor  read() ── the same, and kept alive beside the task for as long as it runs  <───┘ partitions
    nobody    ten minutes after the last task was heard of, it ends

Nothing of the driver lives between ``load()`` and the tasks, and the end of a DataFrame's use is not announced. So the
lease is *shared*: a task that asks for the same one finds it, and it ends by itself. All reads of a table at times
within one minute share one: ten thousand small loads in a row are some ten leases, and all but the first of each minute
write nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cortado.errors import CortadoError, SnapshotTooOld
from cortado.store.client import Client
from cortado.store.client.values import parse_at
from cortado.store.clock.text import wall_ms_of
from cortado.store.clock.timestamp import Timestamp

TTL_S: Final = 600.0
_SHARED_MS: Final = 60_000
_TOLD_S: Final = 5.0
"""So long a task waits for a leader to tell it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choice of a DataFrame: the table at the time ``at``, as ``version`` of its subject shows it. ``lease`` is the
    argument of :func:`held`."""

    at: str
    version: int
    lease: str | None


def protect(client: Client, table: str, at: str) -> str | None:
    """Keep the rows of ``table`` at ``at``, and return the timestamp that is :func:`held` for as long as they are read.

    None if no lease can be acquired so far back: a table may keep its past for longer than the cluster does. Raises
    TimestampInFuture, ResourceExhausted, Unavailable.
    """
    moment = _timestamp(client, at)
    minute = Timestamp(moment.epoch, moment.wall_ms - moment.wall_ms % _SHARED_MS, 0)
    for ts in (minute, moment):
        with suppress(SnapshotTooOld), client.hold(ts, label=_label(table), ttl_s=TTL_S, shared=True):
            return str(ts)
    return None


@contextmanager
def held(client: Client, table: str, lease: str | None) -> Iterator[None]:
    """Keep the lease at the timestamp ``lease`` alive; None stands for no lease.

    If the cluster cannot be told, or the kept rows are gone, this raises nothing: the read of those rows raises.
    """
    if lease is None:
        yield
        return
    shared = client.with_timeout(_TOLD_S).hold(lease, label=_label(table), ttl_s=TTL_S, shared=True)
    is_held = False
    with suppress(CortadoError):
        shared.__enter__()
        is_held = True
    try:
        yield
    finally:
        if is_held:
            shared.__exit__(None, None, None)


def _label(table: str) -> str:
    return f"Spark, {table}"


def _timestamp(client: Client, at: str) -> Timestamp:
    """Return a timestamp at or below the read's time ``at``, which may be a wall time."""
    moment = parse_at(at)
    return Timestamp(client.now().epoch, wall_ms_of(moment), 0) if isinstance(moment, datetime) else moment
