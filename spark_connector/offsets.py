"""Offsets of a stream: what a checkpoint says of how far the stream has come.

::

    {"v": 1, "cluster": id, "table": id, "state_at": ts, "from_key": hex}   the rows at ts from that key on are to come
    {"v": 1, "cluster": id, "table": id, "ts": ts}                          the changes after ts are to come

The state ends with the second form, with the ``ts`` that was ``state_at``. A key is encoded as rows are sorted; the
empty one is the beginning of what the stream reads. The ids say what the offset is of: another cluster counts its own
time, and another table has its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cortado.errors import CortadoError, InvalidArgument, WriteConflict
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import decode_parts, encode_parts

_VERSION: Final = 1


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
class Identity:
    """What a stream reads: the cluster, the table that has the name, and the range of it."""

    cluster_id: str
    table: TableDescriptor
    bounds: tuple[Any, Any]

    def written(self, offset: Offset) -> dict[str, Any]:
        """As a checkpoint has it."""
        of: dict[str, Any] = {"v": _VERSION, "cluster": self.cluster_id, "table": self.table.table_id}
        if offset.from_key is None:
            return {**of, "ts": str(offset.ts)}
        return {**of, "state_at": str(offset.ts), "from_key": offset.from_key.hex()}

    def read(self, written: dict[str, Any]) -> Offset:
        """Raises InvalidArgument for an offset of another cluster or format, WriteConflict where the name has come to
        mean another table since."""
        if written.get("v") != _VERSION:
            problem = f"has offsets of version {written.get('v')}; this build reads version {_VERSION}"
            raise InvalidArgument("checkpoint", problem)
        if written.get("cluster") != self.cluster_id:
            problem = f"is of the cluster {written.get('cluster')}, and this is {self.cluster_id}"
            raise InvalidArgument("checkpoint", problem)
        is_state = "state_at" in written
        try:
            ts = Timestamp.parse(str(written["state_at" if is_state else "ts"]))
            from_key = bytes.fromhex(str(written["from_key"])) if is_state else None
        except (KeyError, ValueError, InvalidArgument):
            raise InvalidArgument("checkpoint", "has an offset that is none", str(written)) from None
        if written.get("table") != self.table.table_id:
            raise WriteConflict(self.table.full_name, str(ts), str(self.table.named_ts), kind="table")
        return Offset(ts, from_key)

    def lower(self, offset: Offset) -> Any:
        """From which key on the state is to come. Raises InvalidArgument."""
        if not offset.from_key:
            return self.bounds[0]
        try:
            return decode_parts(offset.from_key, self.table.key)
        except CortadoError:
            raise InvalidArgument(
                "checkpoint", "has a key that is none of the table's", offset.from_key.hex()
            ) from None

    def at_key(self, ts: Timestamp, key: Any) -> Offset:
        """The state at ``ts`` is had up to ``key``; None is its end."""
        return Offset(ts) if key is None else Offset(ts, encode_parts(key, self.table.key))
