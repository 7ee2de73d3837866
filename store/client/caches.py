"""What one client remembers of a cluster, shared by all its views. Light: a client of pairs alone loads no schemas."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cortado.schema.model import Schema
    from cortado.store.catalog.descriptors import TableDescriptor
    from cortado.store.client.schemas import SchemaVersion


class SchemaCache:
    """What one client knows of schemas, shared by all its views and threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_id: dict[int, Schema] = {}
        self.versions: dict[tuple[str, int], SchemaVersion] = {}
        """By subject and number."""
        self.with_id: dict[tuple[str, int], SchemaVersion] = {}
        """By subject and schema id."""
        self.newest: dict[str, tuple[float, SchemaVersion]] = {}

    def clear(self) -> None:
        """Another cluster answers now: its ids mean other schemas."""
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
