"""Survey a damaged range here, read it at another member, and make it whole in one transaction.

A version is never changed once it is written, and a remembered request neither: so a copy with a right checksum is the
truth, at whichever member. A range that is damaged here is made whole from another member's, in place, while everything
beside it is read and written::

    survey(here)   [ prev | k3 ✗ k5? | next ]     from the last whole item before the damage to the first behind it
    answer(there)  [ k3  k4  k5 ]  index 70       its whole items, the keys of its damaged ones, what it has applied
    mend(here)     [ prev | k3 k4 k5 | next ]     once 70 is applied here too: put what is missing, delete the rest

- *Put* are items with a right checksum, if this replica has applied everything that the other had: they belong here.
- *Deleted* are items with a wrong checksum. If the other has an item of this very key, that takes its place. If it has
  no such item, the key itself may have turned, and its true name is somewhere in the range: it may go only if the other
  has the whole range undamaged, and had applied all that stood here when the damage was looked at. Else it stays, and
  is found. It stays, too, if its key is as it was written: then the other one has lost it.
- *An item out of its place* (bits of a key may make it so) hides others from searches. All walks here go from item to
  item, and begin so far before that no search meets the wrong items.

Each step is safe to be cut off, and to be done again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Final

from cortado.errors import DataLoss, Unavailable
from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.engine.interface import Engine, ReadTransaction, Space, WriteTransaction
from cortado.store.keys.groups import request_id_of
from cortado.store.mvcc.damage import Damage, damaged_keys, item_text
from cortado.store.mvcc.reader import logical_of, suffix_from
from cortado.store.mvcc.verifying import PAGE_ITEMS
from cortado.store.mvcc.versions import Item, encode_version, is_key_right, suffix_of, timestamp_of
from cortado.store.process.range_copies import Answer, Ask
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import FIRST_KEY, GroupRange
from cortado.store.replica.snapshots.marker import marker_key

ITEMS_MAX: Final = 1_000
BYTES_MAX: Final = 1 << 20
"""The bounds of one answer. A range that holds more is asked for in pieces."""
RANGE_BYTES_MAX: Final = 64 << 20
"""The bound of a range that is mended in one transaction."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A range with damage in it, between two whole items, and the ``damaged`` ones as they are stored, when everything
    up to ``index`` was applied. Of the damaged, ``right_keys`` are as they were written, and ``strays`` stand out of
    their place. ``ask.end`` may come before the end of the reported range, if that is long."""

    ask: Ask
    damaged: Mapping[bytes, bytes]
    index: int
    right_keys: Set[bytes] = frozenset()
    strays: Set[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Mended:
    """The counts of one transaction, and the keys of the range that are still damaged."""

    put: int
    deleted: int
    left: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class _Stored:
    """An item as it stands: its place in the walk from the anchor, and whether it is whole and where it belongs."""

    place: int
    key: bytes
    value: bytes
    is_whole: bool
    is_in_place: bool

    @property
    def is_sound(self) -> bool:
        return self.is_whole and self.is_in_place


def survey(
    engine: Engine, of: GroupRange, damage: Damage, resume: bytes = b"", *, has_strays: bool = False
) -> tuple[Survey | None, bytes]:
    """Return the first run of damaged items in the reported range, and where to look on (empty: nothing is left to look
    at).

    The next call is given that as ``resume``: the key of a sound item. Items before it were looked at, and may still be
    damaged; it ``has_strays`` if some of them are out of their place, so that searches pass others by. Raises DataLoss
    if the tree cannot be walked.
    """
    first, end = of.bounds(damage.space)
    looked, size_bytes, passed_by = 0, 0, b""
    found: dict[bytes, bytes] = {}
    right_keys, strays = set[bytes](), set[bytes]()
    with engine.read() as txn:
        start = _whole_before(txn, damage.space, max(resume or damage.start, first), first)
        passed, resume = resume, b""
        for item in _stored(txn, damage.space, start):
            if passed:
                if not item.is_sound or item.key < passed:
                    continue
                passed = b""
            if not item.is_sound:
                found[item.key] = item.value
                if not item.is_in_place:
                    strays.add(item.key)
                elif _is_key_right(damage.space, item):
                    right_keys.add(item.key)
            elif found:
                strays.update(key for key in found if key > item.key)
                end, resume = min(item.key, end), item.key if item.key < damage.end else b""
                break
            elif item.key >= damage.end or looked >= ITEMS_MAX or size_bytes >= BYTES_MAX:
                resume = item.key if item.key < damage.end else b""
                break
            else:
                if txn.get(damage.space, item.key) != item.value:
                    passed_by = passed_by or item.key
                start = item.key + b"\x00"
            looked += 1
            size_bytes += len(item.value)
        index = _applied(txn, of).index
    if passed_by and not found and not has_strays:
        # Items out of their place somewhere near cause it: they are reported where they stand.
        raise DataLoss(item_text(damage.space, passed_by), "a search passes it by")
    return Survey(Ask(damage.space, start, end), found, index, right_keys, strays) if found else None, resume


def standing(engine: Engine, space: Space, items: Sequence[Item]) -> list[Item]:
    """Return the items with keys under which an item is stored here, whole or damaged."""
    with engine.read() as txn:
        return [each for each in items if txn.get(space, each[0]) is not None]


def own_slice(engine: Engine, of: GroupRange, ask: Ask) -> Survey:
    """Return the first piece of a range that fits one answer, damaged or not: for a comparison of everything."""
    with engine.read() as txn:
        items, end = _slice(txn, ask)
        # One that stands at the end may be named behind it: there the answer says nothing of it.
        found = {item.key: item.value for item in items if not item.is_sound and ask.start <= item.key < end}
        return Survey(Ask(ask.space, ask.start, end), found, _applied(txn, of).index)


def answer(engine: Engine, of: GroupRange, ask: Ask) -> Answer:
    """Return this replica's items in a range, or in the first part of it. Raises Unavailable if it has no state."""
    with engine.read() as txn:
        _check_whole(txn, of)
        items, end = _slice(txn, ask)
        state = _applied(txn, of)
    whole = [(item.key, item.value) for item in items if item.is_sound]
    damaged = [item.key for item in items if not item.is_sound]
    right_keys = {
        item.key for item in items if not item.is_whole and item.is_in_place and _is_key_right(ask.space, item)
    }
    return Answer(state.index, state.last_ts, state.request_floor, whole, damaged, end, right_keys)


def differs(engine: Engine, of: GroupRange, ask: Ask, theirs: Answer) -> bool:
    """Return whether :func:`mend` has work to do: asked first, since that keeps the storage thread from its work."""
    with engine.read() as txn:
        items, _ = _slice(txn, Ask(ask.space, ask.start, theirs.end), bounded=False)
        plan = _plan(_applied(txn, of), ask, theirs, items, surveyed=None, exactly=True)
    return bool(plan.puts or plan.places or plan.left)


def mend(engine: Engine, of: GroupRange, found: Survey, theirs: Answer, *, exactly: bool = False) -> Mended:
    """Mend a range in one transaction, on the storage thread. ``exactly``: items that are whole here and missing there
    go as well, or are replaced if they differ; the operator said which member is right.

    Raises Unavailable if a snapshot is being installed, or if an entry that is applied there is not applied here.
    """
    ask = Ask(found.ask.space, found.ask.start, theirs.end)
    with engine.write() as txn:
        _check_whole(txn, of)
        state = _applied(txn, of)
        needed = max(theirs.index, theirs.needed_index)
        if state.index < needed:
            raise Unavailable(f"this replica has applied {state.index}, the other one {needed}", 1_000)
        items, _ = _slice(txn, ask, bounded=False)
        plan = _plan(state, ask, theirs, items, surveyed=found, exactly=exactly)
        if plan.places:
            txn.delete_places(ask.space, _anchor(txn, ask.space, ask.start), plan.places)
        if plan.puts:
            txn.put_many(ask.space, sorted(plan.puts.items()))
    return Mended(len(plan.puts), len(plan.places), plan.left)


def give_up(txn: WriteTransaction, engine_key: bytes, is_key_right: bool, doubtful: Sequence[Damage]) -> None:
    """Within the transaction of the entry that says so: no replica has the version under ``engine_key`` whole.

    If the key is right, a deletion takes its place, at its timestamp, so that older versions do not come back to life.
    Else it may be the key of another version, or of a remembered request: the damaged items under it go, wherever they
    stand in the ranges that are ``doubtful`` here, and no whole item.
    """
    if is_key_right:
        txn.put(Space.DATA, *encode_version(logical_of(engine_key), None, timestamp_of(suffix_from(engine_key))))
        return
    around = [Damage.at(space, engine_key) for space in (Space.DATA, Space.REQUESTS)]
    for damage in (*around, *doubtful):
        ask = Ask(damage.space, damage.start, damage.end)
        items, _ = _slice(txn, ask, bounded=False)
        places = [item.place for item in items if item.key == engine_key and not item.is_whole]
        txn.delete_places(ask.space, _anchor(txn, ask.space, ask.start), places)


@dataclass(frozen=True, slots=True)
class _Plan:
    puts: Mapping[bytes, bytes]
    places: Sequence[int]
    left: Sequence[bytes]


def _plan(
    state: AppliedState, ask: Ask, theirs: Answer, items: Sequence[_Stored], *, surveyed: Survey | None, exactly: bool
) -> _Plan:
    given, puts = dict(theirs.items), dict[bytes, bytes]()
    places: list[int] = []
    left: list[bytes] = []
    # An answer that ends before the range may not have the true name of a key that has turned in it.
    is_whole_range = surveyed is None or theirs.end >= surveyed.ask.end
    is_known = not theirs.damaged and is_whole_range and (surveyed is None or theirs.index >= surveyed.index)
    for item in items:
        key = item.key
        if not item.is_whole:
            was_seen = surveyed is None or surveyed.damaged.get(key) == item.value
            has_turned = not item.is_in_place or not _is_key_right(ask.space, item)
            if key in given or (is_known and was_seen and has_turned):
                places.append(item.place)
            else:
                left.append(key)
        elif exactly and not theirs.damaged and key not in given and _is_theirs(ask.space, key, theirs):
            places.append(item.place)
        else:
            if not item.is_in_place:
                places.append(item.place)
                puts[key] = item.value
            if exactly and given.get(key, item.value) != item.value:
                puts[key] = given[key]
            given.pop(key, None)
    puts.update((key, value) for key, value in given.items() if _is_kept(ask.space, key, theirs, state))
    return _Plan(puts, places, left)


def _is_theirs(space: Space, key: bytes, theirs: Answer) -> bool:
    """Return whether the other replica must have the item, if it is one: remembered requests come and go."""
    return space is Space.DATA and key[-TIMESTAMP_BYTES:] >= suffix_of(theirs.last_ts)


def _is_kept(space: Space, key: bytes, theirs: Answer, state: AppliedState) -> bool:
    """Return whether the item was not forgotten here since. Requests are forgotten when the floor rises: one that was
    in flight then is remembered below it until it rises again."""
    has_forgotten = state.request_floor != theirs.request_floor
    return space is Space.DATA or not has_forgotten or request_id_of(key) >= state.request_floor


# --- walking -------------------------------------------------------------------------------------------------------


def _stored(txn: ReadTransaction, space: Space, start: bytes) -> Iterator[_Stored]:
    """Yield the items behind the last one below ``start`` that is in its place, in the order in which they stand.

    Items before ``start`` are judged to be in place by their keys alone, so that few values are read: a damaged one
    that is passed over so belongs to another range.
    """
    last, highest, is_inside = b"", start, False
    pending: list[_Stored] = []
    for place, (key, value_of) in enumerate(txn.walk(space, _anchor(txn, space, start))):
        if not is_inside and last < key < start:
            last = key
            pending.clear()
            continue
        value = value_of()
        item = _Stored(place, key, value, not damaged_keys([key], [value]), key >= highest)
        if not is_inside and not item.is_sound:
            pending.append(item)
            continue
        yield from pending
        pending.clear()
        is_inside = True
        if item.is_sound:
            highest = key + b"\x00"
        yield item
    yield from pending


def _slice(txn: ReadTransaction, ask: Ask, *, bounded: bool = True) -> tuple[list[_Stored], bytes]:
    """Return the items of a range, or of the first part of it where ``bounded``, and where they end."""
    items: list[_Stored] = []
    size_bytes = 0
    for item in _stored(txn, ask.space, ask.start):
        if item.is_sound:
            if item.key >= ask.end:
                break
            if bounded and items and (len(items) >= ITEMS_MAX or size_bytes + len(item.value) > BYTES_MAX):
                return items, item.key
        items.append(item)
        size_bytes += len(item.key) + len(item.value)
    return items, ask.end


def _is_key_right(space: Space, item: _Stored) -> bool:
    """Return whether a damaged item's key is as it was written: requests have no checksum of their ids."""
    return space is Space.DATA and is_key_right(item.key, item.value)


def _whole_before(txn: ReadTransaction, space: Space, start: bytes, first: bytes) -> bytes:
    """Return the beginning of a range around ``start``: right behind the last whole item before it."""
    for key, value_of in txn.walk(space, start, reverse=True):
        if key < first:
            break
        if key < start and not damaged_keys([key], [value_of()]):
            return key + b"\x00"
    return first


def _anchor(txn: ReadTransaction, space: Space, start: bytes) -> bytes:
    """Return the key of an item that stands well before ``start`` and is found by it; if there are few, the key before
    all."""
    # So far before a damaged one, a search compares with none of its page.
    for key, _ in islice(txn.walk(space, start, reverse=True), PAGE_ITEMS, 2 * PAGE_ITEMS):
        found = next(txn.walk(space, key), None)
        if found is not None and found[0] == key:
            return key
    return FIRST_KEY


def _applied(txn: ReadTransaction, of: GroupRange) -> AppliedState:
    return AppliedState.decode_stored(txn.get(Space.META, of.applied[0]))


def _check_whole(txn: ReadTransaction, of: GroupRange) -> None:
    """Raises Unavailable if the data is no state: a snapshot is being installed."""
    if txn.get(Space.META, marker_key(of.group_id)) is not None:
        raise Unavailable("a snapshot is being installed", 1_000)
