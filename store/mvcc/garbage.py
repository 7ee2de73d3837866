"""Finds versions that no read can see any more: a pure function of a run of stored items.

::

    safepoint 5:    a@9   a@7   a@4   a@2   b@8   c@5 deleted   c@3   d@1
                                      gone        gone with ... gone

Of each key the newest version at or below the safepoint stays, since reads at the safepoint find it; older ones go
(G1). If that version is a delete, it reads like an absent key, so it goes as well; but never before the older ones,
which it hides (G4). So a delete goes as a range: itself, and all older versions that a replica has, known here or not.
A put that has expired at the safepoint is as good as a delete (G7): no read from there on sees it.

Garbage stays garbage, whatever is written later, and an expired version stays expired. So garbage may be removed at any
later time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.mvcc.chunks import kind_of, versions_of
from cortado.store.mvcc.evaluation import Cleared
from cortado.store.mvcc.reader import logical_of, suffix_from
from cortado.store.mvcc.versions import DELETE_KIND, EXPIRING_KIND, expiry_ts, suffix_of, timestamp_of

VERSIONS_MAX: Final = 1 << 30
"""Of one key: more than there can be."""

_Flags: TypeAlias = NDArray[np.bool_]
_BEHIND_VERSIONS: Final = b"\xff" * TIMESTAMP_BYTES + b"\0"


@dataclass(frozen=True, slots=True)
class Garbage:
    """The versions that may go: their ``keys``, ascending, and for each delete, and each put that has expired, the
    range of itself and of the versions that it hides.

    ``next_ts`` is the lowest safepoint at which more of the same items may be garbage, once these are gone; None if
    none will be.
    """

    keys: Sequence[bytes]
    deleted: Sequence[Cleared]
    next_ts: Timestamp | None

    @property
    def count(self) -> int:
        """Return how many stored items, at least."""
        return len(self.keys) + len(self.deleted)


def find_garbage(
    engine_keys: list[bytes], engine_values: list[bytes], safepoint: Timestamp, *, behind: bytes, is_cut: bool
) -> Garbage:
    """Find the garbage in a run of stored items, in their order, with all versions of each of its keys.

    But the run may begin within the versions of a key, ``behind`` the one that counts (else empty): then all of that
    key go. And it ``is_cut`` if its last key may have more versions: then a delete or an expired put of that key stays.
    """
    if not engine_keys:
        return Garbage((), (), None)
    is_visible, follows = versions_of(engine_keys, suffix_of(safepoint))
    continues = np.concatenate(([False], follows))
    is_old = np.concatenate(([False], follows & is_visible[:-1]))
    is_newest = is_visible & ~is_old
    if logical_of(engine_keys[0]) == behind:
        is_old |= is_newest & (np.cumsum(~continues) == 1)
        is_newest &= ~is_old
    kinds = np.frombuffer(bytes(map(kind_of, engine_values)), np.uint8)
    is_delete = kinds == DELETE_KIND
    expiring = np.flatnonzero(~is_old & (kinds == EXPIRING_KIND)).tolist()
    expiries = {place: expiry_ts(engine_keys[place], engine_values[place]) for place in expiring}
    is_gone = is_delete.copy()
    is_gone[[place for place, expiry in expiries.items() if expiry <= safepoint]] = True
    is_hiding = is_newest & is_gone
    next_ts = _next(list(map(suffix_from, engine_keys)), is_visible, continues, is_delete)
    later = [max(expiry, timestamp_of(suffix_from(engine_keys[place]))) for place, expiry in expiries.items()]
    next_ts = min([ts for ts in (next_ts, *later) if ts is not None and ts > safepoint], default=None)
    if is_cut:
        last_first = int(np.flatnonzero(~continues)[-1])
        if is_hiding[last_first:].any():
            is_hiding[last_first:] = False
            # Once the versions that it hides are gone.
            next_ts = safepoint.next()
    hiding = np.flatnonzero(is_hiding).tolist()
    deleted = [Cleared(engine_keys[i], logical_of(engine_keys[i]) + _BEHIND_VERSIONS, VERSIONS_MAX) for i in hiding]
    if hiding:
        # The versions that a delete hides go with it.
        run_of = np.cumsum(~continues)
        is_old &= ~np.isin(run_of, run_of[hiding])
    return Garbage(list(compress(engine_keys, is_old.tolist())), deleted, next_ts)


def _next(suffixes: list[bytes], is_visible: _Flags, continues: _Flags, is_delete: _Flags) -> Timestamp | None:
    """Return the timestamp at which a version would be garbage next, expiries aside: the safepoint then reaches a
    version above it that has an older one, or is a delete."""
    has_older = np.zeros(len(suffixes), np.bool_)
    has_older[:-1] = continues[1:]
    coming = list(compress(suffixes, (~is_visible & (has_older | is_delete)).tolist()))
    # Inverted: the oldest has the greatest bytes.
    return timestamp_of(max(coming)) if coming else None
