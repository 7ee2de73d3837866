"""A pass over everything that is stored, piece by piece: is it what was written, and does a search find it?

Each item's checksum covers its key, so an item under a changed key is found where it lies. What it should have been is
not: a search for the true key finds nothing, or the version before. Where items lie does not change when their bytes
do, so the true key is one between its neighbours, and that range is what the pass reports::

    lies there      a@9   a@7   a@4~   b@8        a@4~ was a@8: a bit of its timestamp has turned
    reported              ]a@7 ...... b@8[        compared with another replica, this shows a@8

Where the key's own checksum holds, the key is the true one. Then that version alone is reported, and it bounds a range
as a whole one does.

A piece ends with a whole item that is above all before it: from its key a search comes back to it. What a search passes
by, since an item out of order sends it the wrong way, is noticed there too: the pass looks up where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import ge
from typing import Final

from cortado.store.engine.interface import Engine, Page, ReadTransaction, Space
from cortado.store.mvcc.damage import Damage, damaged_keys, item_text
from cortado.store.mvcc.versions import is_key_right

SPACES: Final = (Space.DATA, Space.REQUESTS)
"""What has a checksum of its own in each item, and is read again and again. The log is verified whole at every start,
and what is in it is in memory too."""

ABOVE_KEYS: Final = b"\xff" * 512
"""Above every key."""
_TROUBLE_ITEMS_MAX: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Piece:
    """``bytes`` of keys and values were read; ``is_last`` where the pass is over."""

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
        """Verify the next items, about ``bytes_max`` of them. Raises DataLoss where the engine's tree is damaged."""
        space, anchor = self._spaces[0], self._anchor
        with self._engine.read() as txn:
            while True:
                page = txn.page(space, anchor + b"\0", ABOVE_KEYS, max_items=items_max, max_bytes=bytes_max)
                is_exhausted = page.exhausted or items_max > _TROUBLE_ITEMS_MAX
                last, found = _look(space, anchor, page, is_exhausted)
                if last != anchor or is_exhausted:
                    break
                # Nothing in it is whole and in order: more of it, to get past the trouble.
                items_max, bytes_max = 2 * items_max, 2 * bytes_max
            if anchor and space is Space.DATA:
                _look_back(txn, anchor, page.keys, found)
        self._anchor = b"" if is_exhausted else last
        if is_exhausted:
            del self._spaces[0]
        size_bytes = sum(map(len, page.keys)) + sum(map(len, page.values))
        return Piece(len(page.keys), size_bytes, found, not self._spaces)


def _look(space: Space, anchor: bytes, page: Page, is_exhausted: bool) -> tuple[bytes, list[Damage]]:
    """The last item that is whole and in order, and what is wrong before it; at the end also what is behind it."""
    keys = page.keys
    wrong = damaged_keys(space, keys, page.values)
    if not wrong and not any(map(ge, keys, islice(keys, 1, None))) and (not keys or keys[0] > anchor):
        return (keys[-1] if keys else anchor), []
    found: list[Damage] = []
    bad, first_bad = set(wrong), b""
    for key, value in zip(keys, page.values, strict=True):
        is_named = key in bad and space is Space.DATA and is_key_right(key, value)
        if key <= anchor or (key in bad and not is_named):
            first_bad = first_bad or key
            continue
        if first_bad:
            found.append(_between(space, anchor, key, first_bad))
            first_bad = b""
        if is_named:
            found.append(Damage.at(space, key))
        anchor = key
    if first_bad and is_exhausted:
        found.append(_between(space, anchor, ABOVE_KEYS, first_bad))
    return anchor, found


def _between(space: Space, anchor: bytes, end: bytes, bad: bytes) -> Damage:
    return Damage(space, anchor + b"\0" if anchor else b"", end, item_text(space, bad))


def _look_back(txn: ReadTransaction, anchor: bytes, keys: Sequence[bytes], found: list[Damage]) -> None:
    """Whether a search for where the pass stands finds it, and its neighbour is the one that was read."""
    near, _ = txn.keys(Space.DATA, anchor, ABOVE_KEYS, max_items=2)
    if near[:1] != [anchor] or near[1:] != list(keys[:1]):
        end = max([anchor, *keys[:1], *near[1:]]) + b"\0" if keys else ABOVE_KEYS
        found.append(Damage(Space.DATA, anchor, end, f"{item_text(Space.DATA, anchor)}: a search passes it by"))
