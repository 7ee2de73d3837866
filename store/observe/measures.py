"""The numbers that hot paths keep: counters are plain ints, histograms have their buckets beforehand.

One thread writes each of them, and readers may see a moment between two additions: a count without its sum, say. That
is as exact as a scrape ever is, and it needs no lock.

Durations are seconds and sizes bytes wherever they are kept, as Prometheus wants them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cortado.errors import Conflict, CortadoError, DidNotHappen, WriteConflict

SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds for durations: from a tenth of a millisecond, which a read takes, to more than any caller waits."""
COUNTS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0)
BYTES: Final = (256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 8388608.0)


class Histogram:
    """How often a value fell between two bounds. ``counts`` has one place more than ``bounds``: beyond the last."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count ``value`` in the first bucket with a bound at or above it."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    @property
    def count(self) -> int:
        return sum(self.counts)


def quantile(bounds: Sequence[float], counts: Sequence[float], q: float) -> float | None:
    """Return the value that a part ``q`` (0 to 1) of all lie at or below, None without values.

    Within a bucket values are taken to be spread evenly, from its lower bound (0 for the first), as Prometheus'
    ``histogram_quantile`` does it; beyond the last bound nothing is known but that bound.
    """
    total = sum(counts)
    if total <= 0:
        return None
    wanted, below = q * total, 0.0
    for place, upper in enumerate(bounds):
        inside = counts[place]
        if inside > 0 and below + inside >= wanted:
            lower = bounds[place - 1] if place else 0.0
            return lower + (upper - lower) * max(wanted - below, 0.0) / inside
        below += inside
    return bounds[-1]


@dataclass(slots=True, eq=False)
class EntryTimes:
    """The times of one log entry's steps, in monotonic milliseconds of the node; 0 for a step that has not happened.

    All writes of a batch share one, so that their times can be read without keeping the batch.
    """

    appended_ms: float = 0.0
    stored_ms: float = 0.0
    committed_ms: float = 0.0


@dataclass(slots=True, eq=False)
class WriteMeasures:
    """A leader's writes: ``waiting`` in line, for each; the others for each entry of the log."""

    waiting: Histogram = field(default_factory=Histogram)
    evaluating: Histogram = field(default_factory=Histogram)
    committing: Histogram = field(default_factory=Histogram)
    applying: Histogram = field(default_factory=Histogram)
    commands: Histogram = field(default_factory=lambda: Histogram(COUNTS))
    bytes: Histogram = field(default_factory=lambda: Histogram(BYTES))
    commits: CommitOutcomes = field(default_factory=lambda: CommitOutcomes())

    def appended(self, commands: int, size_bytes: int, evaluating_ms: float) -> None:
        """Measure an appended entry."""
        self.commands.observe(commands)
        self.bytes.observe(size_bytes)
        self.evaluating.observe(evaluating_ms / 1000)


CONFLICTS: Final = ("write", "read", "range", "table", "namespace")
"""The kinds of WriteConflict."""


@dataclass(slots=True, eq=False)
class CommitOutcomes:
    """Commits of transactions by their outcome, and how often one was evaluated again, since something that it read had
    changed before its turn."""

    committed: int = 0
    refused: int = 0
    conflicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CONFLICTS, 0))
    evaluated_again: int = 0

    def ended(self, error: CortadoError | None) -> None:
        """Count a commit that ended with this ``error``, or well."""
        match error:
            case None:
                self.committed += 1
            case WriteConflict():
                self.conflicts[error.kind] += 1
            case DidNotHappen() | Conflict():
                self.refused += 1


@dataclass(slots=True, eq=False)
class RoundMeasures:
    """The driver's rounds, and the terms that it led."""

    rounds: int = 0
    terms_led: int = 0


@dataclass(slots=True, eq=False)
class ReadMeasures:
    """Linearizable reads that had to wait for a round of heartbeats, and stale ones that this replica was too far
    behind for."""

    waits: Histogram = field(default_factory=Histogram)
    failed: int = 0
    stale_refused: int = 0


@dataclass(slots=True, eq=False)
class TransactionMeasures:
    """Transactions that the loop gave to the storage thread: from then to the word that they are durable."""

    transactions: Histogram = field(default_factory=Histogram)
    refused: int = 0


@dataclass(slots=True, eq=False)
class CommitMeasures:
    """An engine's write transactions: the filling of each, and the commit, which waits for the disk."""

    filling: Histogram = field(default_factory=Histogram)
    committing: Histogram = field(default_factory=Histogram)


@dataclass(slots=True, eq=False)
class Traffic:
    """The traffic with a peer, over all streams to it since the start."""

    connections: int = 0
    sent_batches: int = 0
    sent_bytes: int = 0
    received_batches: int = 0
    received_bytes: int = 0
