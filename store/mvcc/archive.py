"""Versions for a backup: selects the stored versions that belong into it, slice by slice, in the order of their keys.

A backup is taken at one timestamp, and has one of three shapes::

    key a   @9   @7   @5   @2          a state at 7            @7             a read at 7: no deletes, and
                                                                              nothing that has expired
                                       changes in (3, 7]       @7             the newest change of a key, deletes too
                                       history of (3, 7]       @7 @5          all changes, deletes too
                                       history with its start  @7 @5 @2       and the state at 3 below it

A slice is a page of stored versions, read in a transaction of its own, and may end between two versions of a key. The
next one begins behind the last stored key. So the version before tells whether a version is the newest visible one of
its key, across slices too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortado.errors import InvalidArgument, Unavailable
from cortado.store.clock.timestamp import LARGEST, TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.engine.interface import Engine, Space
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.dump import dump
from cortado.store.keys.keyspace import KV_SPACE, META_SPACE, TABLE_SPACE, KeyRange, meta_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.chunks import kind_of, newest_visible
from cortado.store.mvcc.many_versions import encode_contents
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import DELETE_KIND, EXPIRING_KIND, Item, has_expired, suffix_of

RESTORE_NAME: Final = "restore"
"""The name in the key of a restore under way."""
RESTORED_NAME: Final = "restored"
"""The name in the key of the last restore that has ended."""
OWN_NAMES: Final = ("auth", "gc", "lease", "leases", "quotas", RESTORE_NAME, RESTORED_NAME, "txn", "txns")
"""The first names of keys that concern one cluster alone: no backup has them, and a restore leaves them alone. Jobs do
not belong here: a job's work and its cursor are one state, and so it goes on in the new cluster."""

_start_of: Final[Callable[[KeyRange], bytes]] = itemgetter(0)
_ITEMS_MAX: Final = 4_000
_KEYS_MAX: Final = 10_000
"""Keys a slice, if the values of few of them are read."""
_BYTES_MAX: Final = 1 << 20


def archived_ranges() -> list[KeyRange]:
    """Return the ranges of logical keys that a backup holds, ascending: all but what concerns one cluster alone."""
    start, ranges = LogicalKey(META_SPACE), list[KeyRange]()
    for name_start, name_end in sorted(meta_range(name) for name in OWN_NAMES):
        ranges.append((start, name_start))
        start = name_end
    ranges.append((start, LogicalKey(successor_of_prefix(META_SPACE))))
    of_pairs = LogicalKey(KV_SPACE), LogicalKey(successor_of_prefix(KV_SPACE))
    return [of_pairs, *ranges, (LogicalKey(TABLE_SPACE), LogicalKey(successor_of_prefix(TABLE_SPACE)))]


_ARCHIVED: Final = archived_ranges()


def archived_within(start: bytes, end: bytes) -> list[KeyRange]:
    """Return the parts of logical keys in ``[start, end)`` that a backup holds, ascending."""
    within = [(max(first, LogicalKey(start)), min(last, LogicalKey(end))) for first, last in _ARCHIVED]
    return [each for each in within if each[0] < each[1]]


def is_archived(key: bytes) -> bool:
    """Return whether a backup holds versions of this key, logical or stored."""
    place = bisect_right(_ARCHIVED, key, key=_start_of)
    return place > 0 and key < _ARCHIVED[place - 1][1]


@dataclass(frozen=True, slots=True)
class Window:
    """The selected versions: the state at ``at``, or the changes above ``since``, see above.

    ``since`` None: the state, nothing before it. ``is_history``: all versions, and not the newest alone.
    ``with_start``: the state at ``since``, too. ``is_own``: a restore under way reads its own versions: nothing is
    collected meanwhile, whatever the safepoints are.
    """

    at: Timestamp
    since: Timestamp | None = None
    is_history: bool = False
    with_start: bool = False
    is_own: bool = False

    @property
    def oldest(self) -> Timestamp:
        """Return the oldest time that must be readable, so that nothing is missing: a delete above it is still
        there."""
        if self.is_own:
            return LARGEST
        return self.at if self.since is None else self.since


@dataclass(frozen=True, slots=True)
class Slice:
    """Stored versions, in order; ``resume`` is the last stored key that was looked at, None at the end."""

    keys: list[bytes]
    values: list[bytes]
    resume: bytes | None


def read_slice(
    engine: Engine, store: VersionStore, start: bytes, end: LogicalKey, window: Window, *, after: bytes = b""
) -> Slice:
    """Return the next versions of ``[start, end)`` that belong to ``window``, or those behind the stored key ``after``.

    Raises SnapshotTooOld, DataLoss (damage that was met, or may hide a version), Unavailable.
    """
    if store.unresolved.seen_at(window.at, start, end):
        problem = "a large transaction that was committed before is being put in place"
        raise Unavailable(problem, retry_delay_ms=200)
    doubted = store.suspect
    begin = after + b"\0" if after else start
    with store.tree_reported(), engine.read() as txn:
        if window.since is None or window.since == ZERO or window.with_start:
            looked, values, is_end = txn.page(Space.DATA, begin, end, max_items=_ITEMS_MAX, max_bytes=_BYTES_MAX)
            found = Slice(looked, values, None if is_end else looked[-1])
        else:
            looked, is_end = txn.keys(Space.DATA, begin, end, max_items=_KEYS_MAX)
            changed = list(compress(looked, _changed(looked, window, after).tolist())) if looked else []
            items = txn.seek_many(Space.DATA, changed, max_bytes=_BYTES_MAX)
            resume = changed[len(items) - 1] if len(items) < len(changed) else None if is_end else looked[-1]
            found = Slice(changed[: len(items)], [item[1] for item in items if item is not None], resume)
    store.check_readable(window.oldest, begin, end)
    if doubted or store.suspect:
        store.check_trusted(begin, end if found.resume is None else found.resume, doubted)
    store.check_intact(found.keys, found.values)
    if not found.keys or found.keys is not looked:
        return found
    chosen = _of_state(found, window, after).tolist()
    return Slice(list(compress(found.keys, chosen)), list(compress(found.values, chosen)), found.resume)


def stored_items(engine_keys: Sequence[bytes], contents: Sequence[bytes]) -> list[Item]:
    """Versions as an engine holds them; ``contents`` are kinds and payloads. Raises InvalidArgument for a key that no
    backup has."""
    strange = next((key for key in engine_keys if not is_archived(key)), None)
    if strange is not None:
        raise InvalidArgument("run", f"must have keys that a backup holds, not {dump(strange)}")
    return encode_contents(engine_keys, contents)


def _of_state(found: Slice, window: Window, after: bytes) -> NDArray[np.bool_]:
    """Return whether each version belongs to the state that a window has, or begins with; or changed above it."""
    state_at = window.at if window.since is None else window.since
    kinds = np.frombuffer(bytes(map(kind_of, found.values)), np.uint8)
    of_state: NDArray[np.bool_] = _newest(found.keys, state_at, after) & (kinds != DELETE_KIND)
    as_of = suffix_of(state_at)
    for place in np.flatnonzero(of_state & (kinds == EXPIRING_KIND)).tolist():
        of_state[place] = not has_expired(found.keys[place], found.values[place], as_of)
    if window.since is not None:
        of_state |= _changed(found.keys, window, after)
    return of_state


def _changed(keys: list[bytes], window: Window, after: bytes) -> NDArray[np.bool_]:
    """Return whether each version is one of the changes above ``since``. For most, only the key is read."""
    since, at = suffix_of(window.since or ZERO), suffix_of(window.at)
    suffixes = [key[-TIMESTAMP_BYTES:] for key in keys]
    changed = np.fromiter((at <= suffix < since for suffix in suffixes), np.bool_, len(keys))
    return changed if window.is_history else changed & _newest(keys, window.at, after)


def _newest(keys: list[bytes], ts: Timestamp, after: bytes) -> NDArray[np.bool_]:
    """Return whether each is its key's newest version at or below ``ts``; ``after`` is the stored key before the
    first."""
    if not after:
        return newest_visible(keys, suffix_of(ts))
    return newest_visible([after, *keys], suffix_of(ts))[1:]
