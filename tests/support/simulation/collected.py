"""Collection under faults: a record of a run's versions before they go, the holders of leases, and the verdict.

In some runs old versions are kept for a second or two only. Then the final data is not the whole truth any more: so all
that any replica ever applied is noted (:class:`Record`), and the answers of the run are checked against that. Beside it
holders of leases (:class:`Holder`) read at their times again and again, wherever they like: while a lease is kept
alive, no read at it is refused as too old. Leases that a leader without room has ended are held no more. In the end
exactly these versions must be left:

- of each key the newest version at or below the safepoint, if it is no delete and has not expired there, and all above;
- nothing that was never applied.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from cortado.errors import CortadoError, HoldExpired, SnapshotTooOld
from cortado.raft.log import Entry
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.collection.leases import Lease, acquire, end
from cortado.store.keys.keyspace import STAGED_SPACE, is_of_index, kv_key
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.versions import DELETE_KIND, EXPIRING_KIND, expiry_ts, timestamp_of
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.collection.leases import Leases
from support.simulation.rpc import Lost, Refused

if TYPE_CHECKING:
    from cortado.store.host.host import Host as NodeHost
    from support.simulation.cluster import Cluster

TTL_MS: Final = 3_000
KEEP_MS: Final = 400.0
PATIENCE_MS: Final = 500.0


class Record:
    """Every version that was applied in a run, as it is stored."""

    def __init__(self) -> None:
        self.items: defaultdict[int, dict[bytes, bytes]] = defaultdict(dict)
        """By the group that applied it."""
        self.last_ts: dict[int, Timestamp] = {}
        """By group, the timestamp of the newest entry among them. The node that applies it may not have made it durable
        yet."""
        self.removed = 0
        """By the process that removed most of them."""

    @contextmanager
    def recording(self, ended_for_room: set[bytes]) -> Iterator[None]:
        """Note all that is applied, and in ``ended_for_room`` the leases that a leader ends while its disk or map is
        tight."""
        apply, in_the_way = StateMachine.apply, Leases._in_the_way

        def applied(machine: StateMachine, state: AppliedState, entries: Sequence[Entry]) -> AppliedState:
            try:
                return apply(machine, state, entries)
            finally:
                # A failed commit may or may not be kept; its applied entries are committed.
                of = machine._group_id
                for each in machine.newly_applied:
                    self.items[of].update(each.items)
                    self.items[of].update(each.moved)
                    self.last_ts[of] = max(self.last_ts.get(of, ZERO), each.last_ts)
                self.removed = max(self.removed, machine.removals.removed)

        def ending(leases: Leases) -> Sequence[Lease]:
            chosen = in_the_way(leases)
            # A leader that has room has no reason to end any: such a lease stays held.
            if leases._group.process.engine.room().is_tight:
                ended_for_room.update(each.lease_id for each in chosen)
            return chosen

        with patch.object(StateMachine, "apply", applied), patch.object(Leases, "_in_the_way", ending):
            yield


def check_left(record: Mapping[bytes, bytes], left: Mapping[bytes, bytes], safepoints: Safepoints) -> list[str]:
    """Check that the versions that must be left are left, as they were written. Versions left too much are only late.

    Entries of an index that was dropped are cleared; the entries of other indexes are checked with their table. Staged
    rows are moved, and taken away.
    """
    record = {key: value for key, value in record.items() if not _is_cleared(key)}
    left = {key: value for key, value in left.items() if not _is_cleared(key)}
    problems = [f"{key!r} is stored, and was never applied" for key in left.keys() - record.keys()]
    newest: dict[bytes, bytes] = {}
    for key in sorted(record):
        logical, ts = key[:-TIMESTAMP_BYTES], timestamp_of(key[-TIMESTAMP_BYTES:])
        is_above = ts > safepoints.of(key)
        if not is_above and logical in newest:
            continue
        if not is_above:
            newest[logical] = key
            if is_nothing(key, record[key], safepoints.of(key)):
                continue
        if key not in left:
            problems.append(f"{key!r} at {ts} is gone, and the safepoint is {safepoints.of(key)}")
    for logical, key in newest.items():
        if is_nothing(key, record[key], safepoints.of(key)) and key not in left:
            hidden = [each for each in left if each[:-TIMESTAMP_BYTES] == logical and each > key]
            problems += [f"{each!r} is left, and the delete that hid it is gone" for each in hidden]
    return problems


def _is_cleared(key: bytes) -> bool:
    return is_of_index(key) or key[:1] == STAGED_SPACE


def is_nothing(key: bytes, value: bytes, safepoint: Timestamp) -> bool:
    """Return whether no read at the safepoint or above it sees anything of this version."""
    return value[0] == DELETE_KIND or (value[0] == EXPIRING_KIND and expiry_ts(key, value) <= safepoint)


class Holder:
    """Holds one lease after the other, and reads at its time on any replica."""

    def __init__(self, cluster: Cluster, name: str, source: random.Random, keys: Sequence[bytes]) -> None:
        self._cluster = cluster
        self._random = source
        self._keys = [kv_key("sim", key) for key in keys]
        self.name = name
        self.is_stopped = False

    async def run(self) -> None:
        while not self.is_stopped:
            lease = await self._acquire()
            if lease is not None:
                await self._hold(lease)
            await self._cluster.sleep(self._random.uniform(50, 400))

    async def _acquire(self) -> Lease | None:
        lease_id = self._random.randbytes(16)

        async def begin(node: NodeHost) -> Lease:
            result = await node.meta.keep_house(acquire(lease_id, None, TTL_MS, self.name))
            assert isinstance(result.value, Lease)
            return result.value

        asked_ms = self._cluster.now_ms
        while self._cluster.now_ms < asked_ms + TTL_MS / 2:
            # Again and again under one id: it is acquired once.
            lease = await self._ask(begin)
            if lease is not None:
                self._cluster.counts["leases acquired"] += 1
                return lease
            await self._cluster.sleep(self._random.uniform(5, 100))
        return None

    async def _hold(self, lease: Lease) -> None:
        """Read at its time for as long as it is kept alive. A keep-alive counts from when it was sent."""
        cluster, began_ms = self._cluster, self._cluster.now_ms
        # It was acquired before that was answered: since then, at the earliest, a caller has heard of it.
        held_to_ms, hold_ms = began_ms + 0.3 * TTL_MS, self._random.uniform(500, 8_000)
        while cluster.now_ms < min(held_to_ms, began_ms + hold_ms) and not self.is_stopped:
            sent_ms = cluster.now_ms
            if await self._ask(lambda node: _keep(node, lease.lease_id)):
                held_to_ms = sent_ms + 0.8 * TTL_MS
            await self._read(lease, held_to_ms)
            await cluster.sleep(self._random.uniform(10, KEEP_MS))
        await self._ask(lambda node: node.meta.keep_house(end(lease.lease_id)))

    async def _read(self, lease: Lease, held_to_ms: float) -> None:
        def read(node: NodeHost) -> list[bytes | None]:
            reader = node.meta.reader(lease.ts)
            return [None if (found := reader.get(key)) is None else found.payload for key in self._keys]

        async def resolved(node: NodeHost) -> list[bytes | None]:
            await node.meta.reads.resolve(lease.ts)
            return read(node)

        node_id = self._random.choice(self._cluster.node_ids)
        try:
            await self._cluster.rpc(node_id, resolved, PATIENCE_MS)
            self._cluster.counts["reads at leases"] += 1
        except SnapshotTooOld as refused:
            # A leader with next to nothing left on its disk ends the oldest leases, though they are kept alive.
            if lease.lease_id in self._cluster.ended_for_room:
                self._cluster.counts["reads at leases that ended for want of room"] += 1
            elif self._cluster.now_ms < held_to_ms:
                self._cluster.violation(f"{self.name}: a read at a lease that is held was refused: {refused}")
        except (CortadoError, Lost, Refused):
            return

    async def _ask(self, ask: Any) -> Any:
        """Make one attempt at a node that may lead. Returns None if it was refused or lost."""
        try:
            return await self._cluster.rpc(self._random.choice(self._cluster.node_ids), ask, PATIENCE_MS)
        except HoldExpired:
            self._cluster.counts["leases lost"] += 1
        except (CortadoError, Lost, Refused):
            pass
        return None


async def _keep(node: NodeHost, lease_id: bytes) -> bool:
    await node.meta.leases.keep(lease_id)
    return True
