"""Offsets of a stream: the place of a stream in its checkpoint.

::

    {"v": 2, "cluster": id, "table": id, "query": id, …, "state_at": ts, "from_key": hex}   the rows at ts from that key
                                                                                            on are to come
    {"v": 2, "cluster": id, "table": id, "query": id, …, "ts": ts}                          the changes after ts are

The state ends with the second form, with the ``ts`` that was ``state_at``. A key is encoded as rows are sorted; the
empty one is the beginning of the stream's range. The ids name the offset's cluster, table and query: another cluster
counts its own time, another table has its own rows, and another query its own place.

``first`` is the place at which the query's first batch begins. Spark writes down where a batch ends, and takes where it
begins from the batch before. For the first one it asks the source, anew each time that it plans, runs or repeats that
batch, and would get another place at another time. So the end of the first batch has it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

from cortado.errors import CortadoError, InvalidArgument
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import decode_parts, encode_parts
from cortado.store.keys.keyspace import show_table_id

_VERSION: Final = 2
_QUERY_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Offset:
    """All changes up to ``ts`` were had; or, with ``from_key``, the state at ``ts`` up to that key."""

    ts: Timestamp
    from_key: bytes | None = None

    @property
    def begins_state(self) -> bool:
        """Nothing of a state was had yet."""
        return self.from_key == b""


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far the query with that id has come. ``first`` is where its first batch begins, in the offset at which that
    ends, and in the one before; None behind."""

    offset: Offset
    query: str
    first: Offset | None = None

    @classmethod
    def begun(cls, first: Offset) -> Progressed:
        """Return a new query, before its first batch."""
        return cls(first, os.urandom(_QUERY_BYTES).hex(), first)

    def to(self, end: Offset) -> Progressed:
        """Behind a batch that begins here."""
        return Progressed(end, self.query, self.first if self.offset == self.first else None)

    def batch_from(self, start: Offset) -> Offset:
        """Return the beginning of the batch that ends here; Spark says that it begins at ``start``."""
        return start if self.first is None else self.first


@dataclass(frozen=True, slots=True)
class Identity:
    """The source of a stream: the cluster, the table that has the name, and the range of it."""

    cluster_id: str
    table: TableDescriptor
    bounds: tuple[Any, Any]

    def written(self, progressed: Progressed) -> dict[str, Any]:
        """Return it as a checkpoint has it."""
        of: dict[str, Any] = {"v": _VERSION, "cluster": self.cluster_id, "table": self.table.table_id}
        first = {} if progressed.first is None else {"first": _place(progressed.first)}
        return {**of, "query": progressed.query, **first, **_place(progressed.offset)}

    def read(self, written: dict[str, Any]) -> Progressed:
        """Raises InvalidArgument for an offset of another cluster, table or format."""
        if written.get("v") != _VERSION:
            problem = f"has offsets of version {written.get('v')}; this build reads version {_VERSION}"
            raise InvalidArgument("checkpoint", problem)
        if written.get("cluster") != self.cluster_id:
            problem = f"is of the cluster {written.get('cluster')}, and this is {self.cluster_id}"
            raise InvalidArgument("checkpoint", problem)
        try:
            offset = _offset(written)
            first = _offset(written["first"]) if "first" in written else None
            query, of = str(written["query"]), int(written["table"])
        except (KeyError, ValueError, TypeError, InvalidArgument):
            raise InvalidArgument("checkpoint", "has an invalid offset", str(written)) from None
        name = self.table.full_name
        if of != self.table.table_id:
            problem = f"is of the table {show_table_id(of)}, and {name} is {show_table_id(self.table.table_id)}"
            raise InvalidArgument("checkpoint", f"{problem}: dropped, truncated or replaced since, or another one")
        return Progressed(offset, query, first)

    def lower(self, offset: Offset) -> Any:
        """From which key on the state is to come. Raises InvalidArgument."""
        if not offset.from_key:
            return self.bounds[0]
        try:
            return decode_parts(offset.from_key, self.table.key)
        except CortadoError:
            raise InvalidArgument(
                "checkpoint", "has a key that does not belong to the table", offset.from_key.hex()
            ) from None

    def at_key(self, ts: Timestamp, key: Any) -> Offset:
        """The state at ``ts`` is had up to ``key``; None is its end."""
        return Offset(ts) if key is None else Offset(ts, encode_parts(key, self.table.key))


def _place(offset: Offset) -> dict[str, str]:
    if offset.from_key is None:
        return {"ts": str(offset.ts)}
    return {"state_at": str(offset.ts), "from_key": offset.from_key.hex()}


def _offset(place: dict[str, Any]) -> Offset:
    """Raises KeyError, ValueError, TypeError, InvalidArgument."""
    is_state = "state_at" in place
    ts = Timestamp.parse(str(place["state_at" if is_state else "ts"]))
    return Offset(ts, bytes.fromhex(str(place["from_key"])) if is_state else None)
