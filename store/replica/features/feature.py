"""A feature: a part of a replica's state that is kept in memory, and follows the log.

Its keys lie in the space ``m`` and are versioned like all others, so every member has them, through changes of leaders,
restarts and snapshots. The feature hears of them at these places::

    open, or a snapshot installed ──► load, else unread                         loop
    items put in place by a repair ─► repaired ──► mended                       storage thread; then the loop
    a command evaluated ────────────► add_to ──► touches(keys) ──► Effect       loop; its batch is not applied yet
    a transaction of entries ───────► begin ──► apply, apply, ... ──► settle    storage thread; then the loop, durable
                                                   `─────────────► take_back    no room: the same entries come again

``follow`` comes whenever one of its changes in flight is taken, committed or given up, or its applied state differs.
A feature that ``is_closed`` refuses every call and every write, but for those that are made ``while_closed``.

Writes know no feature by name. :mod:`cortado.store.replica.features.registration` lists them; the order of the list is
the order of every call. A hook that a feature does not need costs nothing: only overridden hooks are called, and none
is for a write without a key in ``m``.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from itertools import chain
from operator import itemgetter
from typing import ClassVar, Final, TypeAlias

from cortado.errors import CortadoError
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.keyspace import META_SPACE, KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Changes
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.versions import Item
from cortado.store.replica.apply.applied_state import AppliedState

_LOG: Final = logging.getLogger(__name__)
_engine_key: Final[Callable[[Item], bytes]] = itemgetter(0)
_FIRST: Final = META_SPACE
_BEHIND: Final = successor_of_prefix(META_SPACE)


class Effect(IntEnum):
    """The effect of a command on a feature, and so on its batch. The strongest one counts."""

    NONE = 0
    FOLLOWED = 1
    """The feature follows the change while it is in flight."""
    CLOSES = 2
    """No command is evaluated before its batch is applied."""
    ANSWERED_APPLIED = 3
    """The same, and the batch's callers are answered once it is applied."""


class Feature:
    """One of a replica's. Override the hooks that it needs."""

    name: ClassVar[str] = ""
    """Its name in the log of the process."""
    keys_max: ClassVar[int] = 0
    """A command that touches it has no more keys than these."""

    @property
    def is_behind(self) -> bool:
        """True if its applied state differs from the one that it followed last."""
        return False

    @property
    def is_closed(self) -> bool:
        """True if no caller is served, by the state that was settled last."""
        return False

    def refusal(self) -> CortadoError:
        """Return the refusal of all callers, while it is closed."""
        raise NotImplementedError

    @property
    def progress(self) -> str:
        """Return the progress of the work for which it is closed, as text."""
        raise NotImplementedError

    @property
    def is_unordered(self) -> bool:
        """True if entries may put versions at any timestamps, by the entries applied, or just being applied."""
        return False

    @property
    def disruptions(self) -> int:
        """Return how many times the order of versions in time was given up, or held again, since the start."""
        return 0

    @property
    def is_moving(self) -> bool:
        """True while commands move stored values, so that replicas may have them in different places."""
        return False

    # --- stored state ------------------------------------------------------------------------------------------

    def load(self, newest: Reader, state: AppliedState) -> None:
        """Load the stored state. Nothing is applied meanwhile. Raises DataLoss, and changes nothing then."""

    def unread(self) -> None:
        """Stand in for a stored state that cannot be loaded."""

    def repaired(self, newest: Reader, state: AppliedState) -> None:
        """Load a state that could not be read: stored items were put in place, or are in doubt no more. On the storage
        thread: nothing is applied meanwhile. Raises DataLoss, and changes nothing then."""

    def mended(self, newest: Reader, state: AppliedState) -> None:
        """Load again: stored items were put in place, or given up, below the log's back. Entries may be applied
        meanwhile, on their thread."""

    # --- in flight ---------------------------------------------------------------------------------------------

    def add_to(self, reader: Reader, ts: Timestamp, evaluation: Evaluation) -> Evaluation:
        """Return a command's evaluation with the changes that belong to it. Raises the refusal."""
        raise NotImplementedError

    def parts(self, keys: Sequence[LogicalKey]) -> bool:
        """Return whether writes of ``keys`` must be evaluated one by one: :meth:`add_to` may add to some."""
        raise NotImplementedError

    def touches(self, keys: Sequence[LogicalKey]) -> Effect:
        """Return the effect of a command that writes ``keys``, one in ``m`` at least."""
        raise NotImplementedError

    def follow(self, committed: Sequence[Changes], uncommitted: Sequence[Changes]) -> None:
        """Follow its applied state and the changes in flight that touch it, oldest first."""

    # --- applying ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a transaction of entries. Runs on the storage thread, as the next two do."""

    def apply(self, items: Sequence[Item], state: AppliedState) -> AppliedState:
        """Take an entry's versions of keys in ``m``, at least one, in the order of their keys. Returns ``state`` with
        the feature's own fields. Raises DataLoss."""
        raise NotImplementedError

    def take_back(self) -> None:
        """Return to the state at :meth:`begin`: nothing was stored."""

    def settle(self) -> None:
        """Take over the applied entries: they are durable and readable, and no others are being applied."""

    # --- changes for watches -----------------------------------------------------------------------------------

    def late_from(self, start: bytes, end: bytes) -> Timestamp | None:
        """Return the timestamp at which versions in ``[start, end)`` are still to be put; None if all are there."""
        raise NotImplementedError

    def broken(self) -> Sequence[KeyRange]:
        """Return the ranges to which the settled entries bring versions later, at timestamps that are over by then."""
        return ()


Touched: TypeAlias = "tuple[Feature, Effect]"
InFlight: TypeAlias = "Sequence[tuple[Feature, Changes]]"
"""A batch's changes of features, in their order."""


class Features:
    """All features of one replica, in their order."""

    def __init__(self, features: Iterable[Feature]) -> None:
        self.all: Final = tuple(features)
        self._keys_max = max([each.keys_max for each in self.all], default=0)
        self._touching = self._with(Feature.touches.__name__)
        self._following = self._with(Feature.follow.__name__)
        self._applying = self._with(Feature.apply.__name__)
        self._adding = self._with(Feature.add_to.__name__)
        self._parting = self._with(Feature.parts.__name__)
        self._moving = self._with("is_moving")
        self._unordering = self._with("is_unordered")
        self.is_closed = False
        """Whether no caller is served. Changed by :meth:`load`, :meth:`mended` and :meth:`settle` alone."""
        self._announced = 0
        self.on_disrupted: Callable[[], None] = _nothing
        """Called when the order of versions in time was given up, or is held again, by entries that all parts know."""

    def _with(self, hook: str) -> Sequence[Feature]:
        """Return the features that override a hook."""
        return [each for each in self.all if getattr(type(each), hook) is not getattr(Feature, hook)]

    # --- stored state ------------------------------------------------------------------------------------------

    def load(self, newest: Reader, state: AppliedState) -> None:
        """Load all of them, at the start or after a snapshot was installed."""
        for each in self.all:
            try:
                each.load(newest, state)
            except CortadoError as damage:
                _unreadable(each, damage)
                each.unread()
        self._look()

    def load_again(self, newest: Reader, state: AppliedState) -> None:
        """Load all of them: stored items were given up. Raises DataLoss of the first that cannot be read; it, and those
        behind it, stay as they are."""
        try:
            for each in self.all:
                each.load(newest, state)
        finally:
            self._look()

    def repaired(self, newest: Reader, state: AppliedState) -> None:
        """Load those that could not be read. On the storage thread: nothing is applied meanwhile."""
        for each in self.all:
            try:
                each.repaired(newest, state)
            except CortadoError as damage:
                _unreadable(each, damage)

    def mended(self, newest: Reader, state: AppliedState) -> None:
        """Follow a repair on the loop."""
        for each in self.all:
            each.mended(newest, state)
        self._look()

    def _look(self) -> None:
        self.is_closed = any(each.is_closed for each in self.all)

    def refusal(self) -> CortadoError | None:
        """Return the refusal of all callers; None if callers are served."""
        return next((each.refusal() for each in self.all if each.is_closed), None)

    def check_open(self) -> None:
        """Raise the refusal of all callers, if no caller is served."""
        if self.is_closed and (refusal := self.refusal()) is not None:
            raise refusal

    @property
    def progress(self) -> str:
        """Return the progress of the work for which no caller is served; empty if callers are served."""
        return next((each.progress for each in self.all if each.is_closed), "")

    # --- in flight ---------------------------------------------------------------------------------------------

    def add_to(self, reader: Reader, ts: Timestamp, evaluation: Evaluation) -> Evaluation:
        """Return a command's evaluation with the changes that belong to it. Raises the refusal."""
        for each in self._adding:
            evaluation = each.add_to(reader, ts, evaluation)
        return evaluation

    def parts(self, keys: Sequence[LogicalKey]) -> bool:
        """Return whether writes of ``keys`` must be evaluated one by one."""
        return any(each.parts(keys) for each in self._parting)

    @property
    def is_moving(self) -> bool:
        """True while commands move stored values, so that replicas may have them in different places."""
        return any(each.is_moving for each in self._moving)

    def touched(self, keys: Sequence[LogicalKey]) -> Sequence[Touched]:
        """Return the features that a command with these keys touches, and how. Asked for each command: most have no key
        in ``m``."""
        if len(keys) > self._keys_max:
            return ()
        for key in keys:
            if _FIRST <= key < _BEHIND:
                break
        else:
            return ()
        effects = [(each, each.touches(keys)) for each in self._touching]
        return [(each, effect) for each, effect in effects if effect]

    @property
    def behind(self) -> Sequence[Feature]:
        """Return the features with an applied state that they have not followed yet."""
        return [each for each in self._following if each.is_behind]

    def follow(self, in_flight: Sequence[InFlight], committed: int, which: Sequence[Feature] | None = None) -> None:
        """Let features, or ``which`` of them, follow their changes: those of each batch in flight, oldest first; the
        first ``committed`` of these are committed."""
        for each in self._following if which is None else which:
            changes = [[change for owner, change in batch if owner is each] for batch in in_flight]
            each.follow(list(chain(*changes[:committed])), list(chain(*changes[committed:])))

    # --- applying ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a transaction of entries."""
        for each in self.all:
            each.begin()

    def apply(self, items: Sequence[Item], state: AppliedState) -> AppliedState:
        """Take an entry's versions, in the order of their keys. Returns ``state`` with the features' fields. Raises
        DataLoss."""
        if of_meta := _of_meta(items):
            for each in self._applying:
                state = each.apply(of_meta, state)
        return state

    def take_back(self) -> None:
        """Return to the state at :meth:`begin`."""
        for each in self.all:
            each.take_back()

    def settle(self) -> None:
        """Take over the applied entries, which are durable."""
        for each in self.all:
            each.settle()
        self._look()

    def announce(self) -> None:
        """Tell the listener about the settled entries: all parts of the replica know them by now."""
        disruptions = self.disruptions
        if disruptions != self._announced:
            self._announced = disruptions
            self.on_disrupted()

    @property
    def is_unordered(self) -> bool:
        """True if entries may put versions at any timestamps, by the entries applied, or just being applied."""
        return any(each.is_unordered for each in self._unordering)

    @property
    def disruptions(self) -> int:
        """Return how many times the order of versions in time was given up, or held again, since the start."""
        return sum(each.disruptions for each in self.all)

    # --- changes for watches -----------------------------------------------------------------------------------

    def late_from(self, start: bytes, end: bytes) -> Timestamp | None:
        """Return the first timestamp at which versions in ``[start, end)`` are still to be put; None if all are
        there."""
        found = [each.late_from(start, end) for each in self._with(Feature.late_from.__name__)]
        return min([ts for ts in found if ts is not None], default=None)

    def broken(self) -> Sequence[KeyRange]:
        """Return the ranges to which the settled entries bring versions later."""
        return [bounds for each in self.all for bounds in each.broken()]


def _unreadable(feature: Feature, damage: CortadoError) -> None:
    _LOG.error("the state of %s cannot be read: %s", feature.name, damage)


def _of_meta(items: Sequence[Item]) -> Sequence[Item]:
    """Return the versions of keys in ``m``; most entries have none."""
    if not items or items[-1][0] < _FIRST or items[0][0] >= _BEHIND:
        return ()
    begin = bisect_left(items, _FIRST, key=_engine_key)
    return items[begin : bisect_left(items, _BEHIND, begin, key=_engine_key)]


def _nothing() -> None:
    """No callback is set."""
