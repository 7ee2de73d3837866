"""The engine's twin in memory, for tests: same Protocol, nothing durable.

A commit makes new lists and dictionaries, so a reader that is still open keeps the state it began with. That copies
everything at each commit: right for tests of a few thousand keys, and for nothing else.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Self

from cortado.errors import Unavailable
from cortado.store.engine.failures import map_full
from cortado.store.engine.interface import (
    LAST_RESERVE_PART,
    Disordered,
    LentMap,
    MapUse,
    Page,
    PointReader,
    RoomLeft,
    Space,
)


@dataclass(frozen=True, slots=True)
class Items:
    """One space's items: ``keys`` sorted, and their values."""

    keys: list[bytes] = field(default_factory=list)
    values: dict[bytes, bytes] = field(default_factory=dict)

    def copy(self) -> Self:
        return type(self)(list(self.keys), dict(self.values))


class MemoryReads:
    """The reading half of a transaction, over spaces in memory that a subclass sets."""

    _spaces: Mapping[Space, Items]

    def get(self, space: Space, key: bytes) -> bytes | None:
        return self._spaces[space].values.get(key)

    def seek(self, space: Space, key: bytes) -> tuple[bytes, bytes] | None:
        items = self._spaces[space]
        place = bisect_left(items.keys, key)
        return (items.keys[place], items.values[items.keys[place]]) if place < len(items.keys) else None

    def seek_many(
        self, space: Space, keys: Iterable[bytes], *, max_bytes: int | None = None
    ) -> list[tuple[bytes, bytes] | None]:
        found: list[tuple[bytes, bytes] | None] = []
        for key in keys:
            item = self.seek(space, key)
            found.append(item)
            if max_bytes is not None and item is not None:
                max_bytes -= len(item[0]) + len(item[1])
                if max_bytes <= 0:
                    break
        return found

    def page(
        self,
        space: Space,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        max_items: int,
        max_bytes: int = 1 << 20,
    ) -> Page:
        items = self._spaces[space]
        inside = items.keys[bisect_left(items.keys, start) : bisect_left(items.keys, end)]
        if reverse:
            inside.reverse()
        keys: list[bytes] = []
        for key in inside:
            if keys and (len(keys) >= max_items or max_bytes <= 0):
                return Page(keys, [items.values[each] for each in keys], False)
            keys.append(key)
            max_bytes -= len(key) + len(items.values[key])
        return Page(keys, [items.values[each] for each in keys], True)

    def firsts(
        self, space: Space, start: bytes, end: bytes, tail: bytes, *, max_items: int, max_bytes: int = 1 << 20
    ) -> Page:
        page = self.page(space, start, end, max_items=len(self._spaces[space].keys) + 1, max_bytes=1 << 62)
        keys: list[bytes] = []
        values: list[bytes] = []
        for key, value in zip(page.keys, page.values, strict=True):
            begins = not keys or key[: -len(tail)] != keys[-1][: -len(tail)]
            if begins or (keys[-1][-len(tail) :] < tail <= key[-len(tail) :]):
                if keys and (len(keys) >= max_items or max_bytes <= 0):
                    return Page(keys, values, False)
                keys.append(key)
                values.append(value)
                max_bytes -= len(key) + len(value)
        return Page(keys, values, True)

    def keys(self, space: Space, start: bytes, end: bytes, *, max_items: int) -> tuple[list[bytes], bool]:
        keys = self._spaces[space].keys
        first, last = bisect_left(keys, start), bisect_left(keys, end)
        return keys[first : min(last, first + max_items)], last - first <= max_items

    def walk(self, space: Space, start: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, Callable[[], bytes]]]:
        items = self._spaces[space]
        place = bisect_left(items.keys, start)
        for key in items.keys[:place][::-1] if reverse else items.keys[place:]:
            yield key, partial(items.values.__getitem__, key)


class MemoryEngine:
    """See :class:`~cortado.store.engine.interface.Engine`. ``limit_bytes`` bounds all keys and values together."""

    def __init__(self, *, limit_bytes: int = 1 << 30) -> None:
        self.limit_bytes = limit_bytes
        self.reserve_bytes = 0
        self._spaces: Mapping[Space, Items] = {space: Items() for space in Space}
        self._writer = threading.Lock()
        self._is_open = True

    @property
    def disordered(self) -> Sequence[Disordered]:
        return ()

    @property
    def mapped(self) -> LentMap | str:
        return "it is in memory"

    def read(self) -> MemoryReadTransaction:
        return MemoryReadTransaction(self)

    def point_reader(self, space: Space) -> PointReader:
        def seek(key: bytes) -> tuple[bytes, bytes] | None:
            with self.read() as transaction:
                return transaction.seek(space, key)

        return seek

    def write(self) -> MemoryWriteTransaction:
        return MemoryWriteTransaction(self)

    def admit(self, size_bytes: int, *, behind_bytes: int = 0, frees: bool = False) -> None:
        reserve_bytes = self.reserve_bytes // LAST_RESERVE_PART if frees else self.reserve_bytes
        if self.use().used_bytes + size_bytes + behind_bytes > self.limit_bytes - reserve_bytes:
            raise map_full(self.limit_bytes)

    def room(self) -> RoomLeft:
        return RoomLeft(self.limit_bytes - self.use().used_bytes, self.reserve_bytes)

    def use(self) -> MapUse:
        self._check_open()
        return MapUse(_size_bytes(self._spaces), self.limit_bytes)

    def disk_free_bytes(self) -> int:
        return self.limit_bytes

    def close(self) -> None:
        self._is_open = False

    def _check_open(self) -> None:
        if not self._is_open:
            raise Unavailable("the data directory is closed")


class MemoryReadTransaction(MemoryReads):
    """A scope over one state."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._spaces = {}

    def __enter__(self) -> Self:
        self._engine._check_open()
        self._spaces = self._engine._spaces
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._spaces = {}


class MemoryWriteTransaction(MemoryReadTransaction):
    """The one writer: works on copies, which take the place of the state on a clean exit."""

    def __enter__(self) -> Self:
        super().__enter__()
        self._engine._writer.acquire()
        current = self._engine._spaces
        self._spaces = {space: items.copy() for space, items in current.items()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                if _size_bytes(self._spaces) > self._engine.limit_bytes:
                    raise map_full(self._engine.limit_bytes)
                self._engine._spaces = self._spaces
        finally:
            self._engine._writer.release()

    def put(self, space: Space, key: bytes, value: bytes) -> None:
        self.put_many(space, [(key, value)])

    def put_many(self, space: Space, items: Iterable[tuple[bytes, bytes]]) -> None:
        into = self._spaces[space]
        before = len(into.keys)
        for key, value in items:
            if key not in into.values:
                into.keys.append(key)
            into.values[key] = value
        if len(into.keys) > before:
            into.keys.sort()

    def delete(self, space: Space, key: bytes) -> bool:
        items = self._spaces[space]
        if items.values.pop(key, None) is None:
            return False
        del items.keys[bisect_left(items.keys, key)]
        return True

    def delete_range(self, space: Space, start: bytes, end: bytes, *, max_items: int | None = None) -> int:
        items = self._spaces[space]
        first, last = bisect_left(items.keys, start), bisect_left(items.keys, end)
        if max_items is not None:
            last = min(last, first + max_items)
        gone = items.keys[first : max(first, last)]
        for key in gone:
            del items.values[key]
        del items.keys[first : first + len(gone)]
        return len(gone)

    def delete_places(self, space: Space, start: bytes, places: Iterable[int]) -> None:
        items = self._spaces[space]
        first = bisect_left(items.keys, start)
        for key in [items.keys[first + place] for place in places]:
            self.delete(space, key)


def _size_bytes(state: Mapping[Space, Items]) -> int:
    return sum(len(key) + len(value) for items in state.values() for key, value in items.values.items())
