"""The base of every look at an engine: the applied state, the catalog, the names of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cortado.errors import CortadoError, InvalidArgument
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.catalog.catalog import Catalog, CatalogCache
from cortado.store.catalog.descriptors import key_names
from cortado.store.clock.timestamp import LARGEST, ZERO, Timestamp
from cortado.store.engine.interface import Engine, Space
from cortado.store.keys.decoded import NO_NAMES, KeyNames, decode_key
from cortado.store.mvcc.store import VersionStore
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.marker import applied_key
from cortado.store.staging.records import unresolved_of

SLICE_MS_MAX = 10.0


@dataclass(slots=True)
class Slice:
    """The time that one piece of work may take. ``clock_ms`` is monotonic."""

    clock_ms: Callable[[], float]
    until_ms: float

    @classmethod
    def begin(cls, clock_ms: Callable[[], float]) -> Slice:
        return cls(clock_ms, clock_ms() + SLICE_MS_MAX)

    @property
    def is_over(self) -> bool:
        return self.clock_ms() >= self.until_ms


class Stored:
    """An engine to be looked at. ``clock_ms`` (monotonic) bounds each piece of work.

    It reads through a store of its own: damage that an inspection meets is reported to its caller alone.
    """

    def __init__(self, engine: Engine, clock_ms: Callable[[], float]) -> None:
        self.engine = engine
        self.store = VersionStore(engine)
        self._clock_ms = clock_ms
        self._cache = CatalogCache()
        self._names: tuple[Timestamp, KeyNames] | None = None

    def begin_slice(self) -> Slice:
        return Slice.begin(self._clock_ms)

    def applied(self) -> AppliedState:
        """Return the applied state. Raises DataLoss if the record is damaged."""
        with self.engine.read() as txn:
            encoded = txn.get(Space.META, applied_key(META_GROUP.group_id))
        return AppliedState.decode_stored(encoded)

    def catalog(self, at: Timestamp | None = None) -> Catalog:
        """Return the newest applied catalog; with ``at``, with the tables of that time. Raises DataLoss."""
        newest = Catalog(self.store.snapshot(self.applied().last_ts), self._cache)
        return newest if at is None else newest.named_as_in(Catalog(self.store.snapshot(at), self._cache))

    def know_unresolved(self) -> None:
        """Let reads find staged rows of large transactions that are committed as of now. Raises DataLoss."""
        self.store.unresolved = unresolved_of(self.store.snapshot(LARGEST))

    def names(self) -> KeyNames:
        """Return the names of tables, for display; no names if the catalog cannot be read: keys are shown even then."""
        try:
            catalog = self.catalog()
            if self._names is None or self._names[0] != catalog.changed_ts or catalog.changed_ts == ZERO:
                self._names = catalog.changed_ts, key_names(catalog.tables())
        except CortadoError:
            return NO_NAMES
        return self._names[1]


def stored_key(key: bytes, names: KeyNames) -> pb.StoredKey:
    """Return a key with its readable text."""
    return pb.StoredKey(key=key, text=decode_key(key).text(names))


def bounded(field: str, asked: int, default: int, bound: int) -> int:
    """Return the number to show; 0 asks for the default. Raises InvalidArgument above ``bound``."""
    if asked > bound:
        raise InvalidArgument(field, f"must be at most {bound}", str(asked))
    return asked or default
