"""The index of changes by time: which stored keys each entry of the log has changed.

Versions are ordered by key. A reader of the changes between two timestamps, in a range far larger than they are, would
look at every version; here it reads the changes, in the order in which they happened::

    group 4 | last_ts 12 | kind 1 | number 4   ->   body | CRC-32C 4, of key and body

    OWN    an entry's own changes, in some pieces    previous 12 | pieces 4 | is_head_due 1 | keys
    HEAD   how many pieces were moved to last_ts     pieces 4
    MOVED  rows of a large transaction that were     keys
           put in place at its commit's timestamp

The index is this replica's alone. It is made of the applied entries, in the same transaction, and nothing rests on it
but speed: it is in no snapshot, in no backup, and not compared. A reader proves that nothing is missing, or else looks
at the versions:

- **C1** *A chain.* OWN items hold the ``last_ts`` of the one before, and the applied state that of the last one. So an
  item that vanished, or that was never here, leaves a gap that is seen.
- **C2** *A head.* Rows that are put into the past stand outside the chain: at the commit's timestamp. The commit's
  entry leaves a HEAD there, and says so in the chain; each entry that moves rows counts its pieces in it.
- **C3** *A checksum*, which covers key and value.
- **C4** *Versions in no order of time break the index*: a restore puts versions at timestamps of their own. Everything
  is removed then, and the chain begins anew behind it.
- **C5** *Cut from below*, in order, at or below the cluster's safepoint alone.

Staged values are not in it: their changes are not seen. Versions that were removed since may be: a reader of the index
looks whether a key is there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby
from struct import Struct, error, pack, unpack_from
from typing import Final, NamedTuple

from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.engine.interface import Space, WriteTransaction
from cortado.store.keys.codec import INVERTED, successor_of_prefix
from cortado.store.keys.groups import GROUP_BYTES
from cortado.store.keys.keyspace import META_SPACE, STAGED_SPACE, TABLE_SPACE
from cortado.store.mvcc.reader import suffix_from
from cortado.store.mvcc.versions import Item, checksum
from cortado.store.replica.feed.order import engine_key
from cortado.store.staging.records import holds_records

OWN: Final = 0
HEAD: Final = 1
MOVED: Final = 2

PIECE_BYTES: Final = 32 << 10
"""Keys of one item: as many as one run of LMDB's pages takes without a search for room."""
_PIECE_KEYS_MAX: Final = 1_000
_CUT_ITEMS: Final = 1_000
"""Items that one transaction cuts, beside twice as many as it writes."""
_CUT_ITEMS_RISEN: Final = 20_000
"""And one in which the safepoints rise: some 20 ms, at most once in a sixtieth of the retention."""

_PLACE: Final = Struct(f">{TIMESTAMP_BYTES}sBI")
_OWN: Final = Struct(f">{TIMESTAMP_BYTES}sIB")
_COUNT: Final = Struct(">I")
_CHECKSUM: Final = Struct("<I")
_KEYS: Final = Struct("<BI")
_EQUAL: Final = 1
"""A flag of keys: they have one length, which stands once."""
_BARE: Final = 2
"""A flag of keys: all have one timestamp, that of their item, and are stored without it."""
_ABOVE_KINDS: Final = b"\xff"


class BrokenIndex(Exception):
    """The index does not prove which changes there were: the versions do. Never leaves a pass."""


class Own(NamedTuple):
    """Piece ``number`` of the changes of the entry that ended at the item's timestamp."""

    previous: bytes
    pieces: int
    is_head_due: bool
    keys: Sequence[bytes]


class IndexItem(NamedTuple):
    """An item of the index; ``content`` is that of its kind: see the module. Timestamps are bytes, which sort as they
    do."""

    ts: bytes
    kind: int
    number: int
    content: Own | int | Sequence[bytes]


def index_range(group_id: int) -> tuple[bytes, bytes]:
    """Return the keys of a group's index."""
    prefix = group_id.to_bytes(GROUP_BYTES)
    return prefix, successor_of_prefix(prefix)


def first_above(group_id: int, ts: Timestamp) -> bytes:
    """Behind every item at or below ``ts``, and before every other."""
    return index_range(group_id)[0] + bytes(ts) + _ABOVE_KINDS


def decode_item(key: bytes, value: bytes) -> IndexItem:
    """Raises BrokenIndex if it is not as it was written."""
    if len(value) < _CHECKSUM.size or _CHECKSUM.pack(checksum(key + value[: -_CHECKSUM.size])) != value[-4:]:
        raise BrokenIndex("a wrong checksum")
    try:
        ts, kind, number = _PLACE.unpack_from(key, GROUP_BYTES)
        content: Own | int | Sequence[bytes]
        if kind == OWN:
            previous, pieces, is_head_due = _OWN.unpack_from(value)
            keys = _cut(value, _OWN.size, ts)
            content = Own(previous, pieces, bool(is_head_due), keys)
        elif kind == HEAD:
            (content,) = _COUNT.unpack_from(value)
        else:
            content = _cut(value, 0, ts)
    except (error, ValueError) as malformed:
        raise BrokenIndex("an item that cannot be read") from malformed
    return IndexItem(ts, kind, number, content)


class IndexWriter:
    """The additions of one transaction to the index; :meth:`finish` ends it. On the storage thread."""

    def __init__(self, txn: WriteTransaction, group_id: int, changed_ts: Timestamp) -> None:
        """``changed_ts``: the timestamp of the last entry that changed a key."""
        self._txn = txn
        self._prefix, self._end = index_range(group_id)
        self.changed_ts = changed_ts
        self._items: list[Item] = []
        self._added = 0

    def add(self, last_ts: Timestamp, items: Sequence[Item], moved: Sequence[Item], *, is_one: bool) -> None:
        """The next entry: its own ``items`` and those ``moved`` into the past, each in key order. ``is_one``: all of
        its own have the timestamp ``last_ts``."""
        is_head_due = _may_hold_others(items) and holds_records(items)
        items = _without_staged(items)
        if items:
            self._add_own(bytes(last_ts), items, is_one=is_one, is_head_due=is_head_due)
            self.changed_ts = last_ts
        if moved:
            self._flush()
            for suffix, same in groupby(sorted(moved, key=_suffix_and_key), key=_suffix_of_item):
                self._move(suffix.translate(INVERTED), [key for key, _ in same])

    def restart(self, last_ts: Timestamp, items: Sequence[Item]) -> None:
        """Begin anew behind an entry that ends at ``last_ts`` and may have put versions in no order of time: all of the
        index goes (C4)."""
        self._items.clear()
        self._txn.delete_range(Space.CHANGES, self._prefix, self._end)
        if _without_staged(items):
            # As where it is added: the applied state is a function of the log.
            self.changed_ts = last_ts

    def finish(self, safepoint: Timestamp, *, has_risen: bool) -> Timestamp:
        """Write the items, and cut some of those at or below ``safepoint``. Returns the new ``changed_ts``."""
        self._flush()
        if safepoint > ZERO:
            end = self._prefix + bytes(safepoint) + _ABOVE_KINDS
            items_max = 2 * self._added + (_CUT_ITEMS_RISEN if has_risen else _CUT_ITEMS)
            cut = self._txn.delete_range(Space.CHANGES, self._prefix, end, max_items=items_max)
            if has_risen and cut < items_max:
                self._cut_stray(end)
        return self.changed_ts

    def _add_own(self, last_ts: bytes, items: Sequence[Item], *, is_one: bool, is_head_due: bool) -> None:
        previous = bytes(self.changed_ts)
        if len(items) == 1:
            # As below; most entries change one key.
            stored_key = items[0][0]
            flags, wanted = (_EQUAL | _BARE, stored_key[:-TIMESTAMP_BYTES]) if is_one else (_EQUAL, stored_key)
            pieces = [_KEYS.pack(flags, 1) + pack("<H", len(wanted)) + wanted]
        else:
            keys = [key[:-TIMESTAMP_BYTES] for key, _ in items] if is_one else [key for key, _ in items]
            pieces = list(_joined(keys, _BARE if is_one else 0))
        head = _OWN.pack(previous, len(pieces), is_head_due)
        for number, piece in enumerate(pieces):
            self._put(last_ts, OWN, number, head + piece)
        if is_head_due:
            self._put(last_ts, HEAD, 0, _COUNT.pack(0))

    def _move(self, ts: bytes, keys: Sequence[bytes]) -> None:
        """Rows that were put in place at ``ts``, the commit of a large transaction."""
        place = self._prefix + _PLACE.pack(ts, HEAD, 0)
        stored = self._txn.get(Space.CHANGES, place)
        try:
            head = None if stored is None else decode_item(place, stored)
        except BrokenIndex:
            head = None
        if head is None or not isinstance(head.content, int):
            # The index does not reach back to the commit, or is damaged there: no window that has it is read from here.
            return
        pieces = list(_joined([key[:-TIMESTAMP_BYTES] for key in keys], _BARE))
        for number, piece in enumerate(pieces, head.content):
            self._put(ts, MOVED, number, piece)
        self._put(ts, HEAD, 0, _COUNT.pack(head.content + len(pieces)))
        items, self._items = sorted(self._items), []
        self._added += len(items)
        self._txn.put_many(Space.CHANGES, items)

    def _put(self, ts: bytes, kind: int, number: int, body: bytes) -> None:
        key = self._prefix + _PLACE.pack(ts, kind, number)
        self._items.append((key, body + _CHECKSUM.pack(checksum(key + body))))

    def _flush(self) -> None:
        if self._items:
            self._added += len(self._items)
            self._txn.put_many(Space.CHANGES, self._items)
            self._items = []

    def _cut_stray(self, end: bytes) -> None:
        """Cut a first item with a key that has turned upwards: beside it nothing would ever be cut."""
        for key, value in self._txn.walk(Space.CHANGES, self._prefix):
            if key >= end and _is_damaged(key, value()):
                self._txn.delete_places(Space.CHANGES, self._prefix, [0])
            return


def _joined(keys: Sequence[bytes], flags: int) -> Iterator[bytes]:
    """Keys end to end, in pieces of about PIECE_BYTES."""
    lengths = list(map(len, keys))
    per_piece = min(max(PIECE_BYTES // max(lengths), 1), _PIECE_KEYS_MAX)
    for begin in range(0, len(keys), per_piece):
        of_piece = lengths[begin : begin + per_piece]
        joined = b"".join(keys[begin : begin + per_piece])
        if min(of_piece) == max(of_piece):
            yield _KEYS.pack(flags | _EQUAL, len(of_piece)) + pack("<H", of_piece[0]) + joined
        else:
            yield _KEYS.pack(flags, len(of_piece)) + pack(f"<{len(of_piece)}H", *of_piece) + joined


def _cut(value: bytes, place: int, ts: bytes) -> Sequence[bytes]:
    flags, count = _KEYS.unpack_from(value, place)
    place += _KEYS.size
    lengths: Sequence[int]
    if flags & _EQUAL:
        lengths = unpack_from("<H", value, place) * count
        place += 2
    else:
        lengths = unpack_from(f"<{count}H", value, place)
        place += 2 * count
    if place + sum(lengths) != len(value) - _CHECKSUM.size:
        raise ValueError("lengths that do not come out even")
    keys = unpack_from("%ds" * count % tuple(lengths), value, place)
    if flags & _BARE:
        suffix = ts.translate(INVERTED)
        return [key + suffix for key in keys]
    return keys


def _may_hold_others(items: Sequence[Item]) -> bool:
    """Return whether something may be among them that is neither a pair, which stand below all else, nor of a table,
    which stand above."""
    return bool(items) and items[0][0] < TABLE_SPACE and items[-1][0] >= META_SPACE


def _without_staged(items: Sequence[Item]) -> Sequence[Item]:
    if not _may_hold_others(items):
        return items
    begin = bisect_left(items, STAGED_SPACE, key=engine_key)
    end = bisect_left(items, TABLE_SPACE, begin, key=engine_key)
    return items if begin == end else [*items[:begin], *items[end:]]


def _is_damaged(key: bytes, value: bytes) -> bool:
    try:
        decode_item(key, value)
    except BrokenIndex:
        return True
    return False


def _suffix_of_item(item: Item) -> bytes:
    return suffix_from(item[0])


def _suffix_and_key(item: Item) -> tuple[bytes, bytes]:
    return suffix_from(item[0]), item[0]
