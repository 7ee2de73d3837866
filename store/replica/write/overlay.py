"""The newest state: the engine's, with all writes in flight laid over it.

Two updates of one document in one batch must not both be computed from the old row. So each proposal reads through an
:class:`OverlayReader`, which looks into the open batch first, then into those that are appended, newest first, then
into the engine::

    open batch         {key: engine item}     evaluated, not yet in the log      ─┐  and of all of them together,
    appended batches   {key: engine item}     in the log, some committed already  ┘  the newest of each key
    engine             everything applied

A layer goes when its batch is withdrawn, or once it is applied, since the engine then has the same. In between both
have it, and the layer, which is never older, wins. So it does not matter at which instant the engine's transaction
becomes visible.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, islice, takewhile

from cortado.errors import ResourceExhausted
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Changes
from cortado.store.mvcc.reader import VALIDATION, Changed, Reader, Version, logical_of, suffix_from
from cortado.store.mvcc.safepoints import NO_SAFEPOINTS, Safepoints
from cortado.store.mvcc.seen import Seen
from cortado.store.mvcc.versions import PAYLOAD, PUT_KIND, Item, suffix_of, timestamp_of, unexpired
from cortado.store.replica.feed.order import engine_key
from cortado.store.replica.feed.recent import RecentChanges
from cortado.store.replica.write.in_flight import InFlight
from cortado.store.replica.write.key_ranges import KeyRanges

# For more keys than these, a check looks for changed keys among them, not for each key's newest version.
_MANY_KEYS = 64
# Each key is searched for, and its value read, which may have a mebibyte: keys beyond a commit's own operations are
# searched for beside the loop.
_SEARCHED_KEYS_MAX = 128


class Layer:
    """The effects of one batch that is not applied yet: the newest version of each key that it wrote."""

    def __init__(self) -> None:
        self.writes: list[tuple[Sequence[LogicalKey], Sequence[Item]]] = []
        """Each command's effects: its keys, and the engine's item of each."""
        self.safepoints = NO_SAFEPOINTS
        """The safepoints that its batch raises."""
        self._newest = InFlight()
        self._taken = 0
        self._sorted: list[LogicalKey] = []

    def add(self, keys: Sequence[LogicalKey], items: Sequence[Item]) -> None:
        """Take the next command's effects."""
        self.writes.append((keys, items))

    @property
    def newest(self) -> InFlight:
        """Return the newest version of each key. Made on demand: most batches are never asked."""
        for keys, items in islice(self.writes, self._taken, None):
            self._newest.wrote(keys, items)
        self._taken = len(self.writes)
        return self._newest

    @property
    def versions(self) -> dict[LogicalKey, Item]:
        """Return all newest versions."""
        return self.newest.versions

    def is_older(self, since: bytes) -> bool:
        """Return whether all its versions (at least one) are at or below that time: each command's are above those
        before it."""
        newest = next((items[-1] for _, items in reversed(self.writes) if items), None)
        return newest is not None and suffix_from(newest[0]) >= since

    def keys_between(self, start: LogicalKey, end: LogicalKey) -> list[LogicalKey]:
        """Return the keys in ``[start, end)``, ascending."""
        if len(self._sorted) < len(self.versions):
            self._sorted = sorted(self.versions)
        return self._sorted[bisect_left(self._sorted, start) : bisect_left(self._sorted, end)]

    def keys_within(self, ranges: KeyRanges) -> Iterator[LogicalKey]:
        """Return the keys in any of the ranges, in no particular order."""
        if len(self.versions) < len(ranges):
            return filter(ranges.cover, self.versions)
        return chain.from_iterable(self.keys_between(LogicalKey(start), LogicalKey(end)) for start, end in ranges)


class Layers:
    """The layers of all batches that are not applied, oldest first, and the ``newest`` version of each key in them."""

    def __init__(self, layers: Iterable[Layer], newest: InFlight | None = None) -> None:
        self.all = list(layers)
        self.newest = InFlight() if newest is None else newest
        self._first: Sequence[Layer] = ()
        self.safepoints = NO_SAFEPOINTS
        """The newest safepoints that were raised in any of them, applied or not."""
        for layer in self.all:
            self.raised(layer.safepoints)
            for keys, items in layer.writes:
                self.newest.wrote(keys, items)

    def push(self, layer: Layer) -> None:
        """Add the next batch's layer, which is empty."""
        self.all.append(layer)

    def wrote(self, mutations: Changes, items: Sequence[Item]) -> None:
        """Note the writes that the last layer took."""
        self.newest.wrote(mutations.keys, items, mutations.bounds)

    def raised(self, safepoints: Safepoints) -> None:
        """Note the safepoints that the last layer raises; NO_SAFEPOINTS changes nothing."""
        if safepoints is not NO_SAFEPOINTS:
            self.safepoints = safepoints

    def reader(self, applied: Reader, seen: Seen | None, recent: RecentChanges, applied_ts: Timestamp) -> OverlayReader:
        """Return a reader of the newest state: ``applied``, up to ``applied_ts``, and all layers over it."""
        return OverlayReader(
            applied,
            self.all,
            seen,
            newest=self.newest,
            recent=recent,
            safepoints=self.safepoints,
            applied_ts=applied_ts,
        )

    def reader_of_first(self, count: int, applied: Reader) -> OverlayReader:
        """Return a reader of ``applied``, with the first ``count`` layers over it, one at least. All versions at or
        below its time are in these. Readers share the list of them."""
        if len(self._first) != count:
            self._first = self.all[:count]
        return OverlayReader(applied, self._first, newest=self.newest, has_open_layer=False)

    def pop_oldest(self) -> None:
        """Drop the oldest layer: its batch is applied, and the engine has its writes."""
        self._first = ()
        for keys, items in self.all.pop(0).writes:
            self.newest.applied(keys, items)


class OverlayReader:
    """A :class:`~cortado.store.mvcc.reader.Reader` over ``base`` and the ``layers``, the newest layer last."""

    def __init__(
        self,
        base: Reader,
        layers: Sequence[Layer],
        seen: Seen | None = None,
        *,
        newest: InFlight | None = None,
        recent: RecentChanges | None = None,
        safepoints: Safepoints = NO_SAFEPOINTS,
        has_open_layer: bool = True,
        applied_ts: Timestamp | None = None,
    ) -> None:
        """If ``applied_ts`` is given, all the base's versions above it are in the layers, too.

        ``recent`` holds the base's latest changes: with it no range is searched there. ``safepoints`` are raised in the
        layers: the base may lose versions that only reads below them need at any instant.

        ``seen`` takes notes of versions found in the layers, as the base does of its own. It skips the newest layer if
        that is the open batch's: its reader sees writes of its own entry. ``newest`` is the newest version of each key
        in any of the layers, if known. If no layer is the open batch's, it may cover later layers, too: versions above
        the base's time there are not seen."""
        self._base = base
        self._layers = layers
        self._seen = seen
        self._newest = newest
        self._recent = recent
        self._safepoints = safepoints
        self._applied_ts = applied_ts
        # No reference to itself: such a cycle would keep the layers until a collection, with all their rows.
        self._find = _find_in(layers, newest, None if has_open_layer else suffix_of(base.read_ts))
        self._open = layers[-1] if has_open_layer and layers else None

    def over(self, layer: Layer) -> OverlayReader:
        """Return the state with one more layer, the newest. It takes no notes of what it finds in layers."""
        return OverlayReader(
            self._base,
            [*self._layers, layer],
            recent=self._recent,
            safepoints=self._safepoints,
            applied_ts=self._applied_ts,
        )

    @property
    def read_ts(self) -> Timestamp:
        return self._base.read_ts

    @property
    def as_of(self) -> Timestamp:
        return self._base.as_of

    def get(self, key: LogicalKey) -> Version | None:
        found = self._find(key)
        if found is None:
            return self._base.get(key)
        self._note(key, found)
        return _version(found, self._base)

    def _note(self, key: LogicalKey, found: Item) -> None:
        if self._seen is not None and (self._open is None or self._open.newest.get(key) is not found):
            self._seen.note_above(key, *found)

    def _note_over_base(self, key: LogicalKey, found: Item) -> None:
        """Note as :meth:`_note`, after the base's own note: a layer below the open one may have a newer version."""
        if self._seen is None:
            return
        if self._open is None or self._open.newest.get(key) is not found:
            self._seen.note_above(key, *found)
        elif (before := _search(self._layers[:-1], key)) is not None:
            self._seen.note_above(key, *before)

    def _has_one_of(self, keys: Sequence[LogicalKey]) -> bool:
        if self._newest is not None:
            return self._newest.has_one_of(keys)
        return any(layer.newest.has_one_of(keys) for layer in self._layers)

    def get_many(self, keys: Sequence[LogicalKey], *, max_bytes: int | None = None) -> list[Version | None]:
        versions = self._base.get_many(keys, max_bytes=max_bytes)
        keys = keys[: len(versions)]
        # Mostly, none of a bulk chunk's keys is in flight.
        if self._has_one_of(keys):
            for place, key in enumerate(keys):
                found = self._find(key)
                if found is not None:
                    self._note_over_base(key, found)
                    versions[place] = _version(found, self._base)
            if max_bytes is not None:
                # The base counted its own versions.
                return versions[: _count_up_to(max_bytes, versions)]
        return versions

    def scan(
        self, start: LogicalKey, end: LogicalKey, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[LogicalKey, Version]]:
        in_flight: dict[LogicalKey, Item] = {}
        for layer in self._layers:
            for key in layer.keys_between(start, end):
                in_flight[key] = layer.versions[key]
        for key, found in in_flight.items():
            self._note_over_base(key, found)
        if not in_flight:
            return self._base.scan(start, end, reverse=reverse, limit=limit)
        # Each key in flight may hide one of the base's, so the base may need to read as many more.
        base_limit = None if limit is None else limit + len(in_flight)
        base = self._base.scan(start, end, reverse=reverse, limit=base_limit)
        live = {key: _version(found, self._base) for key, found in in_flight.items()}
        return islice(_merge(base, live, reverse), limit)

    def changed_since(
        self, keys: Sequence[LogicalKey], ranges: Sequence[tuple[LogicalKey, LogicalKey]], ts: Timestamp
    ) -> Changed | None:
        since = suffix_of(ts)
        if ts < self._safepoints.highest:
            for key in keys:
                self._safepoints.check(ts, key, key)
            for start, end in ranges:
                self._safepoints.check(ts, start, end)
        if self._recent is not None and len(keys) > _MANY_KEYS:
            changes = self._recent.all_since(ts)
            if changes is not None:
                return self._changed_among(set(keys), changes, since) or self.changed_since((), ranges, ts)
            if len(keys) > _SEARCHED_KEYS_MAX:
                raise _forgotten(ts)
        stored: list[LogicalKey] = []
        for key in keys:
            found = self._find(key)
            if found is None:
                stored.append(key)
                continue
            self._note(key, found)
            if suffix_from(found[0]) < since:
                return _changed(found)
        if self._applied_ts is not None and ts >= self._applied_ts:
            # A transaction mostly ends before the writes just before it are applied.
            stored = []
        if not ranges:
            return self._base.changed_since(stored, (), ts)
        joined = KeyRanges(ranges)
        for layer in _newer(self._layers, since):
            for key in layer.keys_within(joined):
                if suffix_from(layer.versions[key][0]) < since:
                    return _changed(layer.versions[key])
        if self._recent is None:
            return self._base.changed_since(stored, ranges, ts)
        return self._base.changed_since(stored, (), ts) or _changed_of_late(self._recent, joined, ts, since)

    def _changed_among(self, keys: set[LogicalKey], changes: Sequence[Sequence[Item]], since: bytes) -> Changed | None:
        """Find a change as :meth:`changed_since`, in the list of changes: far less work than a search for each key."""
        for layer in _newer(self._layers, since):
            for key in keys & layer.versions.keys():
                if suffix_from(layer.versions[key][0]) < since:
                    return _changed(layer.versions[key])
        for items in changes:
            engine_keys = [key for key, _ in items]
            if not keys.isdisjoint(map(logical_of, engine_keys)):
                for item in items:
                    if logical_of(item[0]) in keys and suffix_from(item[0]) < since:
                        return _changed(item)
        return None


def _newer(layers: Sequence[Layer], since: bytes) -> Iterator[Layer]:
    """Return the layers with a version above that time, newest first."""
    return takewhile(lambda layer: not layer.is_older(since), reversed(layers))


def _changed_of_late(recent: RecentChanges, ranges: KeyRanges, ts: Timestamp, since: bytes) -> Changed | None:
    changes = recent.all_since(ts)
    if changes is None:
        raise _forgotten(ts)
    for items in changes:
        for item in _items_within(items, ranges):
            if suffix_from(item[0]) < since:
                return _changed(item)
    return None


def _items_within(items: Sequence[Item], ranges: KeyRanges) -> Iterator[Item]:
    """Yield the items within the ranges, going through the fewer of the two: of a thousand ranges and thousands of
    entries, most entries have a few items."""
    if len(items) < len(ranges):
        yield from (item for item in items if ranges.cover(item[0]))
        return
    for start, end in ranges:
        begin = bisect_left(items, start, key=engine_key)
        yield from items[begin : bisect_left(items, end, begin, key=engine_key)]


def _forgotten(ts: Timestamp) -> ResourceExhausted:
    problem = f"what changed since {ts} is not in memory any more, and must be searched"
    return ResourceExhausted(problem, resource=VALIDATION)


def _merge(
    base: Iterator[tuple[LogicalKey, Version]],
    in_flight: dict[LogicalKey, Version | None],
    reverse: bool,
) -> Iterator[tuple[LogicalKey, Version]]:
    """Merge both in the order of the scan. A key's version in flight wins; None there means absent."""
    waiting = sorted(in_flight, reverse=not reverse)  # the next key is the last
    for key, version in base:
        while waiting and (waiting[-1] > key if reverse else waiting[-1] < key):
            yield from _live(waiting[-1], in_flight[waiting.pop()])
        if waiting and waiting[-1] == key:
            yield from _live(key, in_flight[waiting.pop()])
        else:
            yield key, version
    while waiting:
        yield from _live(waiting[-1], in_flight[waiting.pop()])


def _live(key: LogicalKey, version: Version | None) -> Iterator[tuple[LogicalKey, Version]]:
    if version is not None:
        yield key, version


def _changed(item: Item) -> Changed:
    return Changed(logical_of(item[0]), timestamp_of(suffix_from(item[0])))


def _version(found: Item, base: Reader) -> Version | None:
    engine_key, engine_value = found
    if engine_value[0] == PUT_KIND:
        return Version(engine_key, engine_value[PAYLOAD])
    return unexpired(engine_key, engine_value, suffix_of(base.as_of))


def _count_up_to(max_bytes: int, versions: Sequence[Version | None]) -> int:
    """Return the number of the first versions, up to the one with whose payload they reach that many bytes."""
    sizes = accumulate([0 if each is None else len(each.payload) for each in versions])
    return next((count for count, size_bytes in enumerate(sizes, 1) if size_bytes >= max_bytes), len(versions))


def _find_in(
    layers: Sequence[Layer], newest: InFlight | None, since: bytes | None
) -> Callable[[LogicalKey], Item | None]:
    """Return a function that finds a key's visible item in flight. If ``since`` is given, ``newest`` may hold items
    above that time."""
    if newest is None:
        return partial(_search, layers)
    return newest.get if since is None else partial(_search_below, newest, layers, since)


def _search_below(newest: InFlight, layers: Sequence[Layer], since: bytes, key: LogicalKey) -> Item | None:
    """Find a key's item: in one look, unless the key was written again since."""
    found = newest.get(key)
    return _search(layers, key) if found is not None and suffix_from(found[0]) < since else found


def _search(layers: Sequence[Layer], key: LogicalKey) -> Item | None:
    for layer in reversed(layers):
        found = layer.newest.get(key)
        if found is not None:
            return found
    return None
