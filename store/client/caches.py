"""One client's memory of a cluster, shared by all its views. Light: a client of pairs alone loads no schemas."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from cortado.store.client.authorization import ON_BEHALF

if TYPE_CHECKING:
    from cortado.schema.model import Schema
    from cortado.store.catalog.descriptors import TableDescriptor


CALLERS_MAX: Final = 256
"""Callers, beside the client itself, for which one client keeps a cache."""
TEXTS_MAX: Final = 64 << 20
"""Characters of declarations that one client remembers for those who ask for text."""


class Cache(Protocol):
    """A cache that can be cleared."""

    def clear(self) -> None: ...


C = TypeVar("C", bound=Cache)
V = TypeVar("V")


class PerCaller(Generic[C]):
    """A cache of our own, and one for each caller on whose behalf we call: one caller's answers may be hidden from
    others."""

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._own = make()
        self._lock = threading.Lock()
        self._others: OrderedDict[str, C] = OrderedDict()

    def here(self) -> C:
        """Return the cache of the current caller."""
        caller = ON_BEHALF.get()
        if not caller:
            return self._own
        with self._lock:
            found = self._others.get(caller)
            if found is None:
                found = self._others[caller] = self._make()
                if len(self._others) > CALLERS_MAX:
                    self._others.popitem(last=False)
            else:
                self._others.move_to_end(caller)
            return found

    def clear(self) -> None:
        self._own.clear()
        with self._lock:
            self._others.clear()


class SchemaTexts:
    """The declarations of ids, which name the same for ever. Those that were asked for last stay."""

    def __init__(self, characters_max: int = TEXTS_MAX) -> None:
        self._characters_max = characters_max
        self._lock = threading.Lock()
        self._texts: OrderedDict[int, str] = OrderedDict()
        self._characters = 0

    def get(self, schema_id: int) -> str | None:
        with self._lock:
            text = self._texts.get(schema_id)
            if text is not None:
                self._texts.move_to_end(schema_id)
            return text

    def put(self, schema_id: int, text: str) -> None:
        with self._lock:
            self._characters += len(text) - len(self._texts.pop(schema_id, ""))
            self._texts[schema_id] = text
            while self._characters > self._characters_max:
                self._characters -= len(self._texts.popitem(last=False)[1])

    def clear(self) -> None:
        with self._lock:
            self._texts.clear()
            self._characters = 0


class SchemaCache(Generic[V]):
    """One client's memory of schemas, shared by all its views and threads. ``V`` is a version of a subject."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_id: dict[int, Schema] = {}
        self.texts = SchemaTexts()
        self.versions: dict[tuple[str, int], V] = {}
        """By subject and number."""
        self.with_id: dict[tuple[str, int], V] = {}
        """By subject and schema id."""
        self.newest: dict[str, tuple[float, V]] = {}

    def clear(self) -> None:
        """Clear the cache: another cluster answers now, with other schemas under its ids."""
        self.texts.clear()
        with self.lock:
            self.by_id.clear()
            self.versions.clear()
            self.with_id.clear()
            self.newest.clear()


class TableCache:
    """Descriptors that one client has seen, shared by all its views and threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, TableDescriptor] = {}

    def get(self, full_name: str) -> TableDescriptor | None:
        return self._known.get(full_name)

    def put(self, descriptor: TableDescriptor) -> None:
        with self._lock:
            self._known[descriptor.full_name] = descriptor

    def forget(self, full_name: str) -> None:
        with self._lock:
            self._known.pop(full_name, None)

    def clear(self) -> None:
        with self._lock:
            self._known.clear()
