"""Disks that do not keep their writes: bits that rot, writes that are lost, writes that land elsewhere.

Values stand on pages of their own here, as LMDB's large ones do, and damage of a page is damage of its value: the key
is there, and its value has a wrong checksum. (A page of keys that is lost or in another's place makes the next start
refuse the whole file: that is a lost disk, and has a fault of its own.)

================  ===================================================================================================
bit rot           a bit of a value that was stored long ago turns
lost write        a transaction was synced, and one of its values is the former content of its page
misdirected       one of its values stands on another value's page; both are damaged
================  ===================================================================================================

Some member has the item whole: it is not about to leave, and its disk holds the item undamaged. If no member has it,
the error is ``DATA_LOSS``, which has directed tests. A patrol comes by after a while, as a node's own does, and reports
damage that no read has met.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from cortado.store.engine.interface import Space
from cortado.store.mvcc.damage import Damage
from support.simulation.groups import group_of

if TYPE_CHECKING:
    from support.simulation.cluster import Cluster
    from support.simulation.disk import Changes, Disk
    from support.simulation.process import Host

SPACES: Final = (Space.DATA, Space.REQUESTS)
Place = tuple[Space, bytes]


class Lies:
    """The lies of a cluster's disks. ``source`` is used for nothing else."""

    def __init__(self, cluster: Cluster, source: random.Random) -> None:
        self._cluster = cluster
        self._random = source

    def rot(self, host: Host) -> bool:
        """Turn a bit of a stored item. Returns False if there is no item that another member has whole."""
        place = self._choose(host, [(space, key) for space in SPACES for key in host.disk.spaces[space].keys])
        if place is None:
            return False
        value = bytearray(host.disk.spaces[place[0]].values[place[1]])
        value[self._random.randrange(len(value))] ^= 1 << self._random.randrange(8)
        host.disk.damage(*place, bytes(value))
        return True

    def lose_next_write(self, host: Host) -> None:
        """Lose one value of a transaction that is synced from now on: the value before stands in its place."""
        host.disk.on_applied = lambda changes: self._lose(host, changes)

    def misdirect_next_write(self, host: Host) -> None:
        """Write one value of a transaction that is synced from now on in the place of another one."""
        host.disk.on_applied = lambda changes: self._misdirect(host, changes)

    def damaged(self) -> dict[str, list[Place]]:
        """Return the damaged places on every member's disk now."""
        hosts = (self._cluster.hosts[name] for name in self._cluster.members)
        return {host.node_id: list(host.disk.turned) for host in hosts if host.disk.turned}

    def patrol(self) -> None:
        """Tell every running node of all damage on its disk."""
        for node_id, places in self.damaged().items():
            life = self._cluster.find(node_id)
            if life is not None and life.is_listening and not life.is_stopping:
                for space, key in places:
                    replica = life.node.replicas[group_of(self._cluster.groups, space, key)]
                    life.loop.call_soon(replica.integrity.repairs.report, Damage.at(space, key))

    def _lose(self, host: Host, changes: Changes) -> None:
        place = self._choose(host, _put(changes))
        if place is not None:
            host.disk.on_applied = None
            host.disk.damage(*place, self._stale(host.disk, place))
            self._cluster.counts["fault: lost write"] += 1
            self._cluster.note(f"lost write on {host.node_id}")

    def _misdirect(self, host: Host, changes: Changes) -> None:
        place = self._choose(host, _put(changes))
        other = self._choose(host, [(Space.DATA, key) for key in host.disk.spaces[Space.DATA].keys])
        if place is None or other is None or place == other:
            return
        host.disk.on_applied = None
        written = host.disk.spaces[place[0]].values[place[1]]
        host.disk.damage(*place, self._stale(host.disk, place))
        host.disk.damage(*other, written)
        self._cluster.counts["fault: misdirected write"] += 1
        self._cluster.note(f"misdirected write on {host.node_id}")

    def _stale(self, disk: Disk, place: Place) -> bytes:
        """Return the old content of the page: nothing, or a value that went."""
        values = disk.spaces[place[0]].values
        old = self._random.choice(list(values.values()))
        length = len(values[place[1]])
        stale = (old * length)[:length] if self._random.random() < 0.5 else bytes(length)
        return stale if stale != values[place[1]] else bytes(length)

    def _choose(self, host: Host, places: list[Place]) -> Place | None:
        whole = [place for place in places if self._is_safe_elsewhere(host, place)]
        return self._random.choice(whole) if whole else None

    def _is_safe_elsewhere(self, host: Host, place: Place) -> bool:
        if place in host.disk.turned or place[1] not in host.disk.spaces[place[0]].values:
            # It is damaged already, or the same transaction deleted it again.
            return False
        others = (self._cluster.hosts[name] for name in self._cluster.members if name != host.node_id)
        return any(
            place[1] in other.disk.spaces[place[0]].values and place not in other.disk.turned for other in others
        )


def _put(changes: Changes) -> list[Place]:
    return [(space, key) for space, key, value in changes if value is not None and space in SPACES]
