"""The stored state that a replica reads for itself, and whose it is.

One engine holds the state of all groups of a host, and each group's follows a log of its own. A replica that read
another group's would be no function of its own log. So it reads its own through here::

    META   applied | group id      the applied state, under the id of the group
           log reset | group id    how the log is to be reset to an installed snapshot
    DATA   keys in ``m``           the catalogue and the cluster's state: of the group with that space, and of no other

A group without the space ``m`` has no safepoints, roles, large transactions or restores of its own.
"""

from __future__ import annotations

from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.engine.interface import Engine, Space
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.store import VersionStore
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import GroupRange
from cortado.store.replica.snapshots.marker import applied_key, reset_key


class OwnState:
    """One replica's. On any thread."""

    def __init__(self, engine: Engine, of: GroupRange) -> None:
        self._engine = engine
        self._holds_meta = of.holds_meta
        self.key, self.reset_key = applied_key(of.group_id), reset_key(of.group_id)
        """The keys of the applied state, and of the log's reset."""

    def record(self) -> bytes | None:
        """Return the durable applied state, as it is stored."""
        with self._engine.read() as txn:
            return txn.get(Space.META, self.key)

    def applied(self) -> AppliedState:
        """Return the durable applied state. Raises DataLoss."""
        return AppliedState.decode_stored(self.record())

    def meta(self, versions: VersionStore, read_ts: Timestamp) -> Reader:
        """Return a reader of the replica's own keys in ``m`` at ``read_ts``. If it has none, none is found: no version
        is older than all timestamps."""
        return versions.snapshot(read_ts if self._holds_meta else ZERO)
