"""A feature: a part of a replica's state that is kept in memory, and follows the log.

Its keys lie in the space ``m`` and are versioned like all others, so every member has them, through changes of leaders,
restarts and snapshots. The feature hears of them at these places::

    open, or a snapshot installed ──► load                                    loop
    items put in place by a repair ─► mended                                  loop
    a command evaluated ────────────► touches(keys) ──► Effect, follow        loop; its batch is not applied yet
    a transaction of entries ───────► begin ──► apply, apply, ... ──► settle  storage thread; then the loop, durable
                                                   `─────────────► take_back  no room: the same entries come again

``follow`` comes whenever one of its changes in flight is taken, committed or given up, or its applied state differs.

Writes know no feature by name. :mod:`cortado.store.node.features.registration` lists them; the order of the list is
the order of every call. A hook that a feature does not need costs nothing: only overridden hooks are called, and none
is for a write without a key in ``m``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from itertools import chain
from operator import itemgetter
from typing import ClassVar, Final, TypeAlias

from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.keyspace import META_SPACE
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Changes
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.versions import Item
from cortado.store.node.applied_state import AppliedState

_engine_key: Final[Callable[[Item], bytes]] = itemgetter(0)
_FIRST: Final = META_SPACE
_BEHIND: Final = successor_of_prefix(META_SPACE)


class Effect(IntEnum):
    """The effect of a command on a feature, and so on its batch. The strongest one counts."""

    NONE = 0
    FOLLOWED = 1
    """The feature follows the change while it is in flight."""


class Feature:
    """One of a replica's. Override the hooks that it needs."""

    keys_max: ClassVar[int] = 0
    """A command that touches it has no more keys than these."""

    @property
    def is_behind(self) -> bool:
        """True if its applied state differs from the one that it followed last."""
        return False

    def load(self, newest: Reader, state: AppliedState) -> None:
        """Load the stored state. Nothing is applied meanwhile. Raises DataLoss, and changes nothing then."""

    def mended(self, newest: Reader, state: AppliedState) -> None:
        """Load again: stored items were put in place, or given up, below the log's back. Entries may be applied
        meanwhile, on their thread."""

    def touches(self, keys: Sequence[LogicalKey]) -> Effect:
        """Return the effect of a command that writes ``keys``, one in ``m`` at least."""
        raise NotImplementedError

    def follow(self, committed: Sequence[Changes], uncommitted: Sequence[Changes]) -> None:
        """Follow its applied state and the changes in flight that touch it, oldest first."""

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

    def _with(self, hook: str) -> Sequence[Feature]:
        """Return the features that override a hook."""
        return [each for each in self.all if getattr(type(each), hook) is not getattr(Feature, hook)]

    # --- stored state ------------------------------------------------------------------------------------------

    def load(self, newest: Reader, state: AppliedState) -> None:
        """Load all of them. Raises DataLoss of the first that cannot; those before it are loaded."""
        for each in self.all:
            each.load(newest, state)

    def mended(self, newest: Reader, state: AppliedState) -> None:
        """Load again what damage may have hidden."""
        for each in self.all:
            each.mended(newest, state)

    # --- in flight ---------------------------------------------------------------------------------------------

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


def _of_meta(items: Sequence[Item]) -> Sequence[Item]:
    """Return the versions of keys in ``m``; most entries have none."""
    if not items or items[-1][0] < _FIRST or items[0][0] >= _BEHIND:
        return ()
    begin = bisect_left(items, _FIRST, key=_engine_key)
    return items[begin : bisect_left(items, _BEHIND, begin, key=_engine_key)]
