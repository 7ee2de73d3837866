"""A pass over all stored items, piece by piece: is each as it was written, and does a search find it?

Each item's checksum covers its key, so an item under a changed key is found at its place. Its true key is not known: a
search for that finds nothing, or the version before. An item's place does not change when its bytes do, so the true key
is one between its neighbours, and the pass reports that range::

    lies there      a@9   a@7   a@4~   b@8        a@4~ was a@8: a bit of its timestamp has turned
    reported              ]a@7 ...... b@8[        compared with another replica, this shows a@8

If it is out of order now, it also sends searches the wrong way: searches for keys between its place and the place of
its changed key, as far as they share its page. So these are reported, too::

    lies there      a@9   z@9~   c@8   d@5        z@9~ was b@9. A search for c@8 that meets z@9~ turns to the left
    reported           ]a@9 ........... d@5]

If the key's own checksum holds, the key is the true one. Then that version alone is reported, and it bounds a range as
a whole one does.

A piece ends with a whole item that is above all before it: from its key a search comes back to it. Items that a search
passes by, since an item out of order sends it the wrong way, are noticed there too: the pass looks up its own place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import ge
from typing import Final

from cortado.store.engine.interface import ABOVE_KEYS, Engine, Page, ReadTransaction, Space
from cortado.store.mvcc.damage import Damage, damaged_keys, item_text
from cortado.store.mvcc.versions import is_key_right

SPACES: Final = (Space.DATA, Space.REQUESTS)
"""The spaces with a checksum in each item, which are read again and again. The log is verified whole at every start,
and its entries are in memory too."""

_TROUBLE_ITEMS_MAX: Final = 1 << 16
PAGE_ITEMS: Final = 256
"""More items than a page of the tree can hold of ours."""


@dataclass(frozen=True, slots=True)
class Piece:
    """``bytes`` of keys and values were read; ``is_last`` if the pass is over."""

    items: int
    bytes: int
    damage: Sequence[Damage]
    is_last: bool


class VerifyingPass:
    """One pass. :meth:`step` on any thread, one at a time; between two steps nothing is held."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._spaces = list(SPACES)
        self._anchor = b""
        """The last key that is whole and in order; empty before the first of a space."""

    def step(self, items_max: int, bytes_max: int) -> Piece:
        """Verify the next items, about ``bytes_max`` of them. Raises DataLoss if the engine's tree is damaged."""
        space, anchor = self._spaces[0], self._anchor
        with self._engine.read() as txn:
            while True:
                page = txn.page(space, anchor + b"\0", ABOVE_KEYS, max_items=items_max, max_bytes=bytes_max)
                is_exhausted = page.exhausted or items_max > _TROUBLE_ITEMS_MAX
                last, runs, named = _look(space, anchor, page, is_exhausted)
                if last != anchor or is_exhausted:
                    break
                # Nothing in it is whole and in order: more of it, to get past the trouble.
                items_max, bytes_max = 2 * items_max, 2 * bytes_max
            found = [*(Damage.at(space, key) for key in named), *(_between(txn, space, run) for run in runs)]
            if last and space is Space.DATA:
                _look_back(txn, last, found)
        self._anchor = b"" if is_exhausted else last
        if is_exhausted:
            del self._spaces[0]
        size_bytes = sum(map(len, page.keys)) + sum(map(len, page.values))
        return Piece(len(page.keys), size_bytes, found, not self._spaces)


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbours with unknown true keys, between two that are whole: ``after`` (empty: none) and ``before``."""

    after: bytes
    keys: Sequence[bytes]
    before: bytes


def _look(space: Space, anchor: bytes, page: Page, is_exhausted: bool) -> tuple[bytes, list[_Run], list[bytes]]:
    """Return the last item that is whole and in order; the damaged runs before it, and at the end also behind it; and
    the keys of items that are damaged under their true keys."""
    keys = page.keys
    wrong = damaged_keys(keys, page.values)
    if not wrong and not any(map(ge, keys, islice(keys, 1, None))) and (not keys or keys[0] > anchor):
        return (keys[-1] if keys else anchor), [], []
    runs: list[_Run] = []
    named: list[bytes] = []
    bad, run = set(wrong), list[bytes]()
    for key, value in zip(keys, page.values, strict=True):
        is_named = key in bad and space is Space.DATA and is_key_right(key, value)
        if key <= anchor or (key in bad and not is_named):
            run.append(key)
            continue
        if run:
            runs.append(_Run(anchor, run, key))
            run = []
        if is_named:
            named.append(key)
        anchor = key
    if run and is_exhausted:
        runs.append(_Run(anchor, run, ABOVE_KEYS))
    return anchor, runs, named


def _between(txn: ReadTransaction, space: Space, run: _Run) -> Damage:
    """Return the range of items that may be missing, and of items that searches miss."""
    start, end = run.after + b"\0" if run.after else b"", run.before
    lowest, highest = min(run.keys), max(run.keys)
    if lowest < start:
        start = min(start, *_near(txn, space, start, lambda key: key > lowest, reverse=True))
    if highest > end:
        end = max(end, *(key + b"\0" for key in _near(txn, space, end, lambda key: key < highest)))
    return Damage(space, start, end, item_text(space, run.keys[0]))


def _near(
    txn: ReadTransaction, space: Space, start: bytes, is_passed: Callable[[bytes], bool], *, reverse: bool = False
) -> list[bytes]:
    """Return keys that may share a page with an item out of order, and that searches miss because of it."""
    return [key for key, _ in islice(txn.walk(space, start, reverse=reverse), PAGE_ITEMS) if is_passed(key)] or [start]


def _look_back(txn: ReadTransaction, last: bytes, found: list[Damage]) -> None:
    """Check that a search for the pass's place finds it, and that its neighbour is the next item. In the view of the
    read: before the next step the item may have been collected."""
    keys, _ = txn.keys(Space.DATA, last + b"\0", ABOVE_KEYS, max_items=1)
    near, _ = txn.keys(Space.DATA, last, ABOVE_KEYS, max_items=2)
    if near[:1] != [last] or near[1:] != keys:
        end = max([last, *keys, *near[1:]]) + b"\0" if keys else ABOVE_KEYS
        found.append(Damage(Space.DATA, last, end, f"{item_text(Space.DATA, last)}: a search passes it by"))
