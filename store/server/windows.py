"""The ranges of a window of changes as messages, for a table or for pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2, kv_pb2, watch_pb2
from cortado.store.keys.keyspace import primary_key_of, user_key_of
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.ranges import KvRange, logical_range
from cortado.store.server.convert import key_message
from cortado.store.server.document_messages import range_bounds
from cortado.store.tables.scan import scan_range
from cortado.store.tables.view import TableView


class DividedTable:
    """A range of a table. ``bounds`` are stored keys."""

    def __init__(self, view: TableView, within: common_pb2.KeyRange) -> None:
        """Raises InvalidArgument."""
        if within.HasField("prefix"):
            raise InvalidArgument("table.range.prefix", "cannot be divided: give lower and upper")
        self._view = view
        self._within = within
        lower, upper, _ = range_bounds(within, view.table.key)
        self.bounds = scan_range(view.table, None, lower, upper)

    def ranges(self, bounds: Sequence[LogicalKey]) -> dict[str, Any]:
        """Return the range, divided at ``bounds``."""
        view, within = self._view, self._within
        inner = [key_message(view.decode_key(primary_key_of(bound)), view.table.key) for bound in bounds]
        lower = within.start if within.HasField("start") else None
        upper = within.end if within.HasField("end") else None
        ends = pairwise([lower, *inner, upper])
        return {"ranges": [common_pb2.KeyRange(start=each, end=end) for each, end in ends]}


class DividedPairs:
    """A range of a namespace, of one generation of it."""

    def __init__(self, pairs: watch_pb2.WindowOfPairs, generation: int) -> None:
        """Raises InvalidArgument, KeyTooLong."""
        within = pairs.range
        if within.prefix:
            raise InvalidArgument("pairs.range.prefix", "cannot be divided: give start and end")
        self._within = within
        self.bounds = logical_range(pairs.namespace, KvRange(within.start, within.end), generation)

    def ranges(self, bounds: Sequence[LogicalKey]) -> dict[str, Any]:
        """Return the range, divided at ``bounds``."""
        ends = pairwise([self._within.start, *map(user_key_of, bounds), self._within.end])
        return {"pair_ranges": [kv_pb2.KvRange(start=each, end=end) for each, end in ends]}
