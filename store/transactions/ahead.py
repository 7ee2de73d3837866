"""A large commit, evaluated before its turn (T14).

Thousands of operations take hundreds of milliseconds, and the append of a commit must not take long. So they are
evaluated beside it, in pieces, against the state that is applied at a time ``at``, with notes of all that was read.
When its turn comes, one question is left: has a key changed since ``at`` that was read, is written, or is in the
footprint? Mostly no key has, and the evaluation, refusals too, has the result that it would have now::

    evaluated at V, in pieces ──► in line ──► changed since V? ── no ──► its mutations, or its refusal
           ▲                                       │ yes
           └───────────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cortado.errors import CortadoError, ResourceExhausted
from cortado.invariants import invariant
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.drafts import drafted
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import VALIDATION, Reader
from cortado.store.mvcc.seen import Seen
from cortado.store.mvcc.transacting import Origin
from cortado.store.transactions.commit import Staged, check_keys, check_ranges, check_start, check_tables
from cortado.store.transactions.footprint import Footprint
from cortado.store.transactions.limits import LARGEST, TransactionLimits
from cortado.store.transactions.operations import Committed, Operation

AHEAD_FROM = 100
"""Operations of a commit from which on it is evaluated ahead."""
PIECE_OPERATIONS = 4
"""Taken at once: each may be of a document that takes half a second."""


class Ahead:
    """One commit, made ready in pieces on any thread; :meth:`evaluate` is its turn."""

    def __init__(
        self,
        reader: Reader,
        seen: Seen,
        catalog: Catalog,
        start: Timestamp | None,
        footprint: Footprint,
        limits: TransactionLimits = LARGEST,
    ) -> None:
        """``reader`` reads the applied state, and ``seen`` has its notes."""
        self._at = reader.read_ts
        self._reader = reader
        self._seen = seen
        self._start = start
        self._footprint = footprint
        self._catalog = catalog if start is None else catalog.unchanged_since(start)
        self._staged = Staged(Origin(reader, start), self._catalog, limits)
        self._mutations = Mutations()
        self._keys: Sequence[LogicalKey] = ()
        self._refusal: CortadoError | None = None

    def take(self, operations: Iterable[Operation]) -> bool:
        """Take the next operations; False if the commit is refused."""
        return self._unless_refused(lambda: self._staged.run(operations))

    def finish(self) -> None:
        """After the last operations, or the one that is refused."""
        if self._refusal is None:
            self._unless_refused(self._work_out)
        invariant(not self._seen.ranges, "operations look keys up, and read no ranges", len(self._seen.ranges))
        own = () if self._start is None else self._staged.written
        self._keys = list(dict.fromkeys([*self._seen.versions, *own, *self._footprint.keys]))

    def _work_out(self) -> None:
        if self._start is not None:
            check_tables(self._catalog, self._footprint)
            check_keys(self._reader, self._footprint, self._start)
            self._staged.check_written()
        self._mutations = drafted(self._staged.mutations())

    def _unless_refused(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except CortadoError as refusal:
            self._refusal = refusal
            return False
        return True

    def evaluate(self, reader: Reader, commit_ts: Timestamp, unchanged_to: Timestamp | None) -> Evaluation:
        """Reply: :class:`Committed`. Raises as ``evaluate_commit``, and ResourceExhausted (its resource is VALIDATION)
        if a key has changed since."""
        if self._start is not None:
            check_start(self._start, commit_ts)
            check_ranges(reader, self._footprint, self._start, unchanged_to)
        changed = reader.changed_since(self._keys, (), self._at)
        if changed is not None:
            problem = f"what the commit was worked out from changed at {changed.ts}, after {self._at}"
            raise ResourceExhausted(problem, resource=VALIDATION)
        if self._refusal is not None:
            raise self._refusal
        return Evaluation(self._mutations, Committed(commit_ts, tuple(self._staged.sums)))
