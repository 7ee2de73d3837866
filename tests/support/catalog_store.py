"""A catalogue in a dictionary: commands evaluated and applied at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from cortado.store.auth.owners import ANYBODY
from cortado.store.catalog.catalog import Catalog, CatalogCache
from cortado.store.catalog.declare import create_table
from cortado.store.catalog.registry import SchemaRegistered, register_schema
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from support.dict_reader import DictStore

P = ParamSpec("P")

FLIGHT = """
{"type": "record", "name": "Flight", "fields": [
  {"name": "time_hour", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "carrier", "type": "string"},
  {"name": "flight", "type": "int"},
  {"name": "tailnum", "type": ["null", "string"], "default": null},
  {"name": "arr_delay", "type": ["null", "int"]},
  {"name": "tags", "type": {"type": "array", "items": "string"}},
  {"name": "either", "type": ["int", "string"]},
  {"name": "origin", "type": ["null", {"type": "record", "name": "Airport", "fields": [
    {"name": "city", "type": "string"}]}]},
  {"name": "chain", "type": ["null", {"type": "record", "name": "Link", "fields": [
    {"name": "value", "type": "int"}, {"name": "next", "type": ["null", "Link"]}]}]}
]}
"""


class CatalogStore:
    """All catalogues of it share one cache, as a node's do. Writes count for ``asker``."""

    def __init__(self) -> None:
        self.store = DictStore()
        self.asker = ANYBODY
        self.cache = CatalogCache()

    def catalog(self, at: Timestamp | None = None) -> Catalog:
        return Catalog(self.store.snapshot(at), self.cache)

    def write(self, command: Callable[Concatenate[Catalog, P], Evaluation], *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run a command that must not be refused, and return its reply."""
        _, evaluation = self.store.write(lambda reader, _: command(self._of(reader), *args, **kwargs))
        return evaluation.reply

    def create_table(self, database: str, name: str, **declared: Any) -> Any:
        """Create a table and return its TableCreated."""
        return self.write_at(create_table, database, name, **declared)

    def write_at(self, command: Callable[..., Evaluation], *args: Any, **kwargs: Any) -> Any:
        """Run as :meth:`write` a command that is told when it is committed."""
        _, evaluation = self.store.write(lambda reader, ts: command(self._of(reader), *args, **kwargs, commit_ts=ts))
        return evaluation.reply

    def _of(self, reader: Reader) -> Catalog:
        return Catalog(reader, self.cache, asker=self.asker)

    def apply(self, change: Callable[[Catalog], Mutations]) -> None:
        """Apply a collector's writes."""
        mutations = change(self.catalog())
        self.store.apply(mutations, self.store.tick())

    def register(self, subject: str, text: str) -> SchemaRegistered:
        reply = self.write(register_schema, subject, text)
        assert isinstance(reply, SchemaRegistered)
        return reply
