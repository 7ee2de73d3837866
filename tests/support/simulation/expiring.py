"""Pairs that expire within a run's seconds: written, read at any time on any replica, and judged by the recorded
versions.

An :class:`Expirer` puts values that live for some hundred milliseconds, or for ever, and deletes some. It reads the
newest, stale ones, and at the times around the last moment of something, wherever it likes. Each answer must agree with
the versions of the run: for each key, the newest version at or below the time of the read, unless it is a delete, or
has expired by that time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from cortado.store.clock.timestamp import LOGICAL_MAX, TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.kv.operations import KvPut
from cortado.store.mvcc.expiry import NEVER, Expiry
from cortado.store.mvcc.versions import EXPIRING_KIND, expiry_ts, payload_of, timestamp_of
from support.simulation.history import History
from support.simulation.workload import Client, _delete, _put, logical

if TYPE_CHECKING:
    from support.simulation.cluster import Cluster

KEYS: Final = (b"x0", b"x1", b"x2")
TTLS_MS: Final = (20, 100, 400, 1_500)
_MOMENTS_MAX: Final = 50


class Expirer(Client):
    """One caller, as a task on the clients' loop; with a history of its own."""

    def __init__(self, cluster: Cluster, name: str, source: random.Random, namespace: str) -> None:
        super().__init__(cluster, History(), name, source, namespace)
        self._moments: list[Timestamp] = []
        """Around which something that it has written expires."""

    @property
    def history(self) -> History:
        return self._history

    async def once(self) -> None:
        pick = self._random.random()
        if pick < 0.4:
            await self._write()
        elif pick < 0.6:
            await self._linearizable(KEYS)
        elif pick < 0.9:
            await self._read_around()
        else:
            node = self._random.choice(self._cluster.node_ids)
            await self._read("stale", node, KEYS, self._stale(2_000), 2_000)

    async def _write(self) -> None:
        self._number += 1
        key, token = self._random.choice(KEYS), f"{self.name}.{self._number}".encode()
        if self._random.random() < 0.15:
            await self.write("delete", (key,), None, None, _delete(self._namespace, key))
            return
        ttl_ms = self._random.choice((*TTLS_MS, 0))
        expiry = Expiry(ttl_ms) if ttl_ms else NEVER
        put = _put(self._namespace, KvPut(key, token, expiry=expiry), token)
        call = await self.write("put", (key,), token, None, put)
        if ttl_ms and call.ts is not ZERO:
            self._cluster.counts["writes that expire"] += 1
            gone = Timestamp(call.ts.epoch, call.ts.wall_ms + ttl_ms, 0)
            self._moments = [*self._moments[-_MOMENTS_MAX:], Timestamp(gone.epoch, gone.wall_ms - 1, LOGICAL_MAX), gone]

    async def _read_around(self) -> None:
        reads = [each.ts for each in self._history.reads[-_MOMENTS_MAX:]]
        moments = [each for each in self._moments if each <= self._seen] or reads
        if not moments:
            return
        at = self._random.choice(moments if self._random.random() < 0.7 or not reads else reads)
        node = self._random.choice(self._cluster.node_ids)
        await self._read("at", node, KEYS, lambda node: self._replica(node).reads.resolve(at))


def check_expiring(items: Mapping[bytes, bytes], expirers: Sequence[Expirer], namespace: str) -> list[str]:
    """Check the answers of each expirer of a namespace against the versions of the run."""
    versions: dict[bytes, list[bytes]] = {key: [] for key in KEYS}
    of_logical = {logical(namespace, key): key for key in KEYS}
    for engine_key in sorted(items):
        key = of_logical.get(engine_key[:-TIMESTAMP_BYTES])
        if key is not None:
            versions[key].append(engine_key)
    problems = []
    for each in expirers:
        for read in each.history.reads:
            for key, value in read.values.items():
                if key not in versions:
                    continue  # The client has no timestamp of the cluster yet.
                actual = _value_at(items, versions[key], read.ts)
                if actual != value:
                    problems.append(f"a {read.kind} read on {read.node} at {read.ts} saw {key!r}={value!r}, "
                                    f"and by what expires it is {actual!r}: {read}")  # fmt: skip
    return problems


def _value_at(items: Mapping[bytes, bytes], newest_first: Sequence[bytes], ts: Timestamp) -> bytes | None:
    for engine_key in newest_first:
        if timestamp_of(engine_key[-TIMESTAMP_BYTES:]) <= ts:
            value = items[engine_key]
            has_expired = value[0] == EXPIRING_KIND and expiry_ts(engine_key, value) <= ts
            return None if has_expired else payload_of(value)
    return None
