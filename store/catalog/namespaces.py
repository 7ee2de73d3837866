"""Namespaces of pairs that go away and come back.

A namespace needs no creation: it is there while it has a pair. So the catalogue knows of it only once it was dropped,
and then which *generation* of it the name stands for; the keys of all pairs have it
(:mod:`cortado.store.keys.keyspace`)::

    never dropped      no mark              generation 0: all pairs that were ever written
    drop, number 7     mark: generation 7   empty. Generation 0 has a record, and is cleared when the grace is over
    undrop             mark: generation 0   the pairs and their history as they were

The new generation is the number of the record of the drop, and these are never used again: so pairs that are written
after a drop meet nothing of the old ones, and clearing the old ones meets nothing of the new.

The mark is versioned, as all keys are. Each write of one changes the catalogue, by whose timestamp it may be cached
(:meth:`Catalog.generation_of`). A read at an earlier time finds the generation of that time, and a transaction sees
whether the name has come to stand for another one since it began. The mark stays for ever, like the rest of a deleted
subject.

Undrop is refused if pairs were written since: both cannot be the namespace. Pairs that were written and deleted again
since are garbage, and are collected as such.

If a million pairs were deleted of late, it may take long to find out whether one is left. So the search runs beside the
loop, at a time at which all is applied (:class:`Looked`). In its turn a drop or undrop asks only for changes since.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from cortado.errors import AlreadyExists, InvalidArgument, NotFound, ResourceExhausted
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import Drop, DropKind, Dropped
from cortado.store.catalog.dropped import drop_ranges, forget
from cortado.store.catalog.stored import generation_of
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import KeyRange, kv_range, namespace_key, pair_of
from cortado.store.keys.names import check_namespace
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import VALIDATION, Reader


@dataclass(frozen=True, slots=True)
class NamespaceDropped:
    """The reply of :func:`drop_namespace`: the record, with the number by which it can be undropped."""

    dropped: Dropped


@dataclass(frozen=True, slots=True)
class NamespaceUndropped:
    """The reply of :func:`undrop_namespace`."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The first pair of a ``generation`` at the time ``at``, by its key; None if there was none."""

    at: Timestamp
    generation: int
    first: LogicalKey | None

    @classmethod
    def through(cls, reader: Reader, namespace: str) -> Looked:
        """Look at all of it at once, however long that takes."""
        generation = generation_of(reader, namespace)
        found = next(iter(reader.scan(*pairs_range(namespace, generation), limit=1)), None)
        return cls(reader.read_ts, generation, None if found is None else found[0])


LookedChange: TypeAlias = Callable[[Looked, Catalog, Timestamp], Evaluation]
"""A drop or undrop of a namespace that was looked at, with the time of its commit."""


def pairs_range(namespace: str, generation: int) -> KeyRange:
    """Return the keys of all pairs of a generation."""
    return kv_range(namespace, generation=generation)


def drop_namespace(catalog: Catalog, namespace: str, looked: Looked, *, commit_ts: Timestamp) -> Evaluation:
    """Away with all pairs, until they are undropped; replies NamespaceDropped.

    Raises InvalidArgument, NotFound if there is no pair, TooLarge, and ResourceExhausted (its resource is VALIDATION)
    if it must be looked again.
    """
    generation = generation_of(catalog.reader, namespace)
    if not _has_pairs(catalog.reader, namespace, generation, looked):
        raise NotFound("namespace", namespace)
    mutations = Mutations()
    pairs = Drop(DropKind.NAMESPACE, namespace, ranges=(pairs_range(namespace, generation),))
    (made,) = drop_ranges(catalog, mutations, [pairs], commit_ts)
    mutations.put(namespace_key(namespace), stored.encode_generation(made.number))
    return Evaluation(mutations, NamespaceDropped(made))


def undrop_namespace(catalog: Catalog, namespace: str, looked: Looked, *, number: int = 0) -> Evaluation:
    """Bring back a dropped namespace; replies NamespaceUndropped. ``number`` is the record's; 0 for the newest.

    Raises InvalidArgument (also if the grace is over), NotFound, AlreadyExists if there are pairs, and
    ResourceExhausted as :func:`drop_namespace`.
    """
    record = _record(catalog, check_namespace(namespace), number)
    if record.is_clearing:
        problem = f"was dropped at {record.dropped_ts}, its grace is over, and its pairs are being cleared"
        raise InvalidArgument("namespace", problem, namespace)
    if _has_pairs(catalog.reader, namespace, generation_of(catalog.reader, namespace), looked):
        raise AlreadyExists("namespace", namespace)
    mutations = forget(catalog, record.number)
    mutations.put(namespace_key(namespace), stored.encode_generation(dropped_generation(record)))
    return Evaluation(mutations, NamespaceUndropped())


def _has_pairs(reader: Reader, namespace: str, generation: int, looked: Looked) -> bool:
    """Return whether that generation has a pair."""
    if looked.generation == generation:
        if looked.first is not None and reader.get(looked.first) is not None:
            return True
        changed = reader.changed_since((), [pairs_range(namespace, generation)], looked.at)
        if changed is None or reader.get(changed.key) is not None:
            return changed is not None
    problem = f"namespace {namespace} has changed since {looked.at}, when it was looked whether it has pairs"
    raise ResourceExhausted(problem, resource=VALIDATION, retry_delay_ms=50)


def dropped_generation(record: Dropped) -> int:
    """Return the generation of a namespace that was dropped."""
    ((start, _),) = record.what.ranges
    return pair_of(start)[1]


def _record(catalog: Catalog, namespace: str, number: int) -> Dropped:
    for each in reversed(catalog.dropped(stored.field_of_dropped(name=namespace))):
        if each.what.kind is DropKind.NAMESPACE and each.what.name == namespace and number in (0, each.number):
            return each
    numbered = f" with number {number}" if number else ""
    raise NotFound("dropped namespace", f"{namespace}{numbered}")
