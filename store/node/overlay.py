"""The newest state there is: what the engine holds, with everything still in flight laid over it.

Two updates of one document in one batch must not both be computed from the old row. So each proposal reads through an
:class:`OverlayReader`, which looks into the open batch first, then into those that are appended, newest first, then
into the engine::

    open batch         {key: engine item}     evaluated, not yet in the log
    appended batches   {key: engine item}     in the log, some of them committed already
    engine             everything applied

A layer goes when its batch is applied, since the engine then has the same, or when it was withdrawn. In between both
have it, and the layer, which is never older, wins: so it does not matter at which instant the engine's transaction
becomes visible.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Reader, Version, suffix_from
from cortado.store.mvcc.seen import Seen
from cortado.store.mvcc.versions import PAYLOAD, PUT_KIND, Item, check_deleted


class Layer:
    """The effects of one batch that is not applied yet: the newest version of each key that it wrote."""

    def __init__(self) -> None:
        self.versions: dict[LogicalKey, Item] = {}
        self._sorted: list[LogicalKey] | None = None

    def add(self, keys: Sequence[LogicalKey], items: Sequence[Item]) -> None:
        """Take a command's effects: what it changes, and what the engine will hold of each."""
        self.versions.update(zip(keys, items, strict=True))
        self._sorted = None

    def keys_between(self, start: LogicalKey, end: LogicalKey) -> list[LogicalKey]:
        """The keys in ``[start, end)``, ascending."""
        if self._sorted is None:
            self._sorted = sorted(self.versions)
        return self._sorted[bisect_left(self._sorted, start) : bisect_left(self._sorted, end)]


class OverlayReader:
    """A :class:`~cortado.store.mvcc.reader.Reader` over ``base`` and the ``layers``, the newest layer last."""

    def __init__(
        self, base: Reader, layers: Sequence[Layer], seen: Seen | None = None, *, has_open_layer: bool = True
    ) -> None:
        """``seen`` takes notes of what is found in the layers, as the base does of its own; but for the newest layer
        where that is the open batch's: who reads there sees what its own entry writes."""
        self._base = base
        self._newest_first = [layer for layer in reversed(layers) if layer.versions]
        self._seen = seen
        self._open = layers[-1] if has_open_layer and layers else None

    @property
    def read_ts(self) -> Timestamp:
        return self._base.read_ts

    def get(self, key: LogicalKey) -> Version | None:
        for layer in self._newest_first:
            found = layer.versions.get(key)
            if found is not None:
                self._note(layer, key, found)
                return _version(found)
        return self._base.get(key)

    def _note(self, layer: Layer, key: LogicalKey, found: Item) -> None:
        if self._seen is not None and layer is not self._open:
            self._seen.note(key, suffix_from(found[0]))

    def get_many(self, keys: Sequence[LogicalKey], *, max_bytes: int | None = None) -> list[Version | None]:
        versions = self._base.get_many(keys, max_bytes=max_bytes)
        keys = keys[: len(versions)]
        for layer in reversed(self._newest_first):
            # Far more often than not, nothing of what a bulk chunk asks for is in flight.
            if not layer.versions.keys().isdisjoint(keys):
                for place, key in enumerate(keys):
                    found = layer.versions.get(key)
                    if found is not None:
                        self._note(layer, key, found)
                        versions[place] = _version(found)
        return versions

    def scan(
        self, start: LogicalKey, end: LogicalKey, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[LogicalKey, Version]]:
        in_flight: dict[LogicalKey, Item] = {}
        for layer in reversed(self._newest_first):
            for key in layer.keys_between(start, end):
                in_flight[key] = layer.versions[key]
                self._note(layer, key, layer.versions[key])
        if not in_flight:
            return self._base.scan(start, end, reverse=reverse, limit=limit)
        # Each key in flight may hide one of the base's, so that many more may be needed.
        base_limit = None if limit is None else limit + len(in_flight)
        base = self._base.scan(start, end, reverse=reverse, limit=base_limit)
        return islice(_merge(base, in_flight, reverse), limit)


def _merge(
    base: Iterator[tuple[LogicalKey, Version]],
    in_flight: dict[LogicalKey, Item],
    reverse: bool,
) -> Iterator[tuple[LogicalKey, Version]]:
    """Both in the order of the scan; for a key in both, what is in flight counts."""
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


def _live(key: LogicalKey, found: Item) -> Iterator[tuple[LogicalKey, Version]]:
    version = _version(found)
    if version is not None:
        yield key, version


def _version(found: Item) -> Version | None:
    engine_key, engine_value = found
    if engine_value[0] == PUT_KIND:
        return Version(engine_key, engine_value[PAYLOAD])
    check_deleted(engine_key, engine_value)
    return None
