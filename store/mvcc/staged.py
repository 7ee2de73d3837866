"""The staged writes of large transactions, and reads of the rows of a committed one before they are in place.

A large transaction stages its writes over minutes, in any number of entries of the log, and one entry makes all of them
visible. Until then they lie in a space of their own (:mod:`cortado.store.keys.keyspace`), as ordinary versioned keys::

    "s" key  @staged     transaction 16 | (attempt 4 | length 4 | kind and payload) ...       little-endian

So scans of rows do not see them, and snapshots, checksums and repairs cover them like any other version. All staged
versions of a key belong to one transaction: that is the *lock* of the key. A task that ran twice has staged under two
attempts, and the newest version holds both; the commit names the attempts that count.

Once it is committed its rows are moved to their keys, at the timestamp of the commit, some thousand by an entry. A read
at that timestamp, or above it, that comes in between takes a row from either place::

    staged, then stored      rows move only from there to here, so a read in this order misses none

No write has come after a row that is still staged, because a write of its key moves the row in the same entry. So a
staged row is newer than any stored version that a read which knows of the commit can see.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from types import MappingProxyType
from typing import Final, NamedTuple

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.decoded import NO_NAMES, KeyNames
from cortado.store.keys.dump import dump
from cortado.store.keys.keyspace import STAGED_SPACE, KeyRange, key_of_staged
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Removal
from cortado.store.mvcc.versions import Item, encode_content, suffix_of

TRANSACTION_ID_BYTES: Final = 16
_HEAD: Final = Struct("<II")
_LENGTH: Final = Struct("<I")
_FIRST_CONTENT: Final = TRANSACTION_ID_BYTES + _HEAD.size


class Staged(NamedTuple):
    """A staged value: its transaction, and each attempt's content for the key, kind and payload together."""

    transaction_id: bytes
    contents: Mapping[int, bytes]

    def encode(self) -> bytes:
        parts = [self.transaction_id]
        for attempt, content in self.contents.items():
            parts += _HEAD.pack(attempt, len(content)), content
        return b"".join(parts)

    def beside(self, attempt: int, content: bytes) -> bytes:
        """Encoded, with what another attempt makes of the key."""
        return self._replace(contents={**self.contents, attempt: content}).encode()

    @classmethod
    def decode(cls, key: LogicalKey, payload: bytes) -> Staged:
        """Raises DataLoss, which names the staged ``key``."""
        contents: dict[int, bytes] = {}
        place = TRANSACTION_ID_BYTES
        while place + _HEAD.size <= len(payload):
            attempt, length = _HEAD.unpack_from(payload, place)
            place += _HEAD.size + length
            contents[attempt] = payload[place - length : place]
        if place != len(payload) or not contents:
            raise DataLoss(dump(key), f"a staged value of {len(payload)} bytes cannot be read")
        return cls(payload[:TRANSACTION_ID_BYTES], contents)


def encode_firsts(transaction_id: bytes, attempt: int, contents: Iterable[bytes]) -> list[bytes]:
    """Encode each as :meth:`Staged.encode` does, for one attempt: nearly all have one."""
    head, pack = transaction_id + attempt.to_bytes(4, "little"), _LENGTH.pack
    return [head + pack(len(content)) + content for content in contents]


class Made(NamedTuple):
    """A commit's value for a key: the suffix of its timestamp, and kind and payload."""

    suffix: bytes
    content: bytes

    def item(self, key: LogicalKey) -> Item:
        """Return the item as it will be stored."""
        return encode_content(key + self.suffix, self.content)


@dataclass(frozen=True, slots=True)
class LargeTransaction:
    """One that has not ended: open, or ended by its commit or abort, and not all in place, or away, yet.

    ``ranges`` hold all keys that it may write, ``names`` those of their tables, for errors. ``commit_ts`` and
    ``attempts`` are set from its commit on.
    """

    transaction_id: bytes
    ranges: tuple[KeyRange, ...]
    is_aborted: bool = False
    commit_ts: Timestamp | None = None
    attempts: frozenset[int] = frozenset()
    names: KeyNames = field(default=NO_NAMES, compare=False, repr=False)

    @property
    def is_open(self) -> bool:
        return self.commit_ts is None and not self.is_aborted

    def may_write(self, key: LogicalKey) -> bool:
        return any(low <= key < high for low, high in self.ranges)

    def is_committed_at(self, ts: Timestamp) -> bool:
        """Return whether a read at ``ts`` sees its writes."""
        return self.commit_ts is not None and self.commit_ts <= ts

    def overlaps(self, start: bytes, end: bytes) -> bool:
        """Return whether it may write a key of ``[start, end)``."""
        return any(low < end and start < high for low, high in self.ranges)

    def counts(self, attempt: int) -> bool:
        """Return whether the writes staged under this attempt are part of the commit."""
        return attempt in self.attempts

    def item_of(self, key: LogicalKey, staged: Staged) -> Item | None:
        """Return its commit's item for ``key``, as it will be stored; None if no attempt that counts has staged it."""
        content = self._chosen(staged)
        if content is None or self.commit_ts is None:
            return None
        return encode_content(key + suffix_of(self.commit_ts), content)

    def content_of(self, staged_key: LogicalKey, payload: bytes) -> bytes | None:
        """Return its commit's content, kind and payload, for the key that this payload is staged for; None if no
        attempt that counts has staged it. Raises DataLoss."""
        if len(payload) >= _FIRST_CONTENT:
            attempt, length = _HEAD.unpack_from(payload, TRANSACTION_ID_BYTES)
            if length + _FIRST_CONTENT == len(payload):
                # Staged by one attempt, as nearly all are.
                return payload[_FIRST_CONTENT:] if self.counts(attempt) else None
        return self._chosen(Staged.decode(staged_key, payload))

    def _chosen(self, staged: Staged) -> bytes | None:
        return next((content for attempt, content in staged.contents.items() if self.counts(attempt)), None)


class Unresolved:
    """The large transactions of a replica that have not ended, as of its applied state. Never changed: another one
    takes its place."""

    __slots__ = ("_ends", "_starts", "all", "committed")

    def __init__(self, transactions: Iterable[LargeTransaction] = ()) -> None:
        self.all: Mapping[bytes, LargeTransaction] = MappingProxyType(
            {each.transaction_id: each for each in transactions}
        )
        ranges = sorted({bounds for each in self.all.values() for bounds in each.ranges})
        # Ranges of whole tables: two are the same, or have no key in common.
        self._starts, self._ends = [start for start, _ in ranges], [end for _, end in ranges]
        self.committed: Sequence[LargeTransaction] = [each for each in self.all.values() if each.commit_ts is not None]

    def __bool__(self) -> bool:
        return bool(self.all)

    def seen_at(self, ts: Timestamp, start: bytes, end: bytes) -> bool:
        """Return whether a read of ``[start, end)`` at ``ts`` may see staged writes of one of them."""
        return any(each.is_committed_at(ts) and each.overlaps(start, end) for each in self.committed)

    def covers(self, key: LogicalKey) -> bool:
        """Return whether one of them may write ``key``."""
        place = bisect_right(self._starts, key)
        return place > 0 and key < self._ends[place - 1]

    def overlaps(self, start: bytes, end: bytes) -> bool:
        """Return whether one of them may write a key from ``start`` to ``end``, that one too."""
        place = bisect_right(self._starts, end)
        return place > 0 and start < self._ends[place - 1]

    def seen_of(self, ts: Timestamp, staged: Iterable[tuple[LogicalKey, bytes]]) -> dict[LogicalKey, Made]:
        """Return the staged values that a read at ``ts`` sees, by the keys that they are for. Raises DataLoss."""
        made: dict[LogicalKey, Made] = {}
        known = {each.transaction_id: (each, suffix_of(each.commit_ts)) for each in self.committed if each.commit_ts}
        for staged_key, payload in staged:
            transaction, suffix = known.get(payload[:TRANSACTION_ID_BYTES], (None, b""))
            if transaction is None or not transaction.is_committed_at(ts):
                continue
            content = transaction.content_of(staged_key, payload)
            if content is not None:
                made[key_of_staged(staged_key)] = Made(suffix, content)
        return made

    def meets(self, keys: Sequence[LogicalKey]) -> bool:
        """Return whether one of them may write a key from the first of these to the last."""
        return bool(self._starts and keys) and self.overlaps(min(keys), max(keys))


def moves_staged(removal: Removal) -> bool:
    """Return whether an entry that removes this takes staged values away: it puts them in place then."""
    place = bisect_left(removal.keys, STAGED_SPACE)
    first = removal.keys[place] if place < len(removal.keys) else b""
    return first[:1] == STAGED_SPACE or any(each.start[:1] == STAGED_SPACE for each in removal.cleared)


NOTHING_UNRESOLVED: Final = Unresolved()
NO_ITEMS: Final[Mapping[LogicalKey, Item]] = MappingProxyType({})
