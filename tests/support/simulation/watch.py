"""The invariants after every step, looked at from outside: in the logs on the disks, and in each node's own status.

============================  =====================================================================================
election safety               at most one process ever leads in a term
terms and commits             neither the term nor the commit index ever goes back within a life
log matching                  two logs with an entry of the same index and term hold the same entry, after the same
state machine safety          the entry committed at an index is the same everywhere, for ever
leader completeness           a new leader's log holds everything that was committed in earlier terms
equal states                  at equal applied index, data, request table and applied state have equal digests
nothing goes back             a disk's applied index never falls, but to a new disk
entries in flight             a leader has no more appended and not applied than its limits say, in entries and in bytes
============================  =====================================================================================
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeAlias

from cortado.proto.internal import raft_pb2
from cortado.raft.log import LogRecord, RecordKind
from cortado.raft.records import CHECKSUM_BYTES, KIND_CONFIGURATION
from cortado.store.engine.interface import Space
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.snapshots.marker import applied_key, marker_key
from support.simulation.disk import Changes
from support.simulation.loop import NodeLoop

if TYPE_CHECKING:
    from cortado.raft.group import RaftLog
    from cortado.store.replica.replica import Replica
    from support.simulation.cluster import Cluster
    from support.simulation.process import Host, Life

P = ParamSpec("P")
StoredEntry: TypeAlias = tuple[int, int]
"""Term, and a checksum of everything in the entry."""


def term_in_memory(log: RaftLog, index: int) -> int | None:
    """Return the term of an entry in a node's log as it is now, durable or not."""
    return log.window.term_at(index)


class LogOnDisk:
    """The entries that a host's disk holds, by index."""

    def __init__(self) -> None:
        self.entries: dict[int, StoredEntry] = {}
        self.configurations: set[int] = set()
        self.applied = AppliedState()
        self.terms_written: dict[int, str] = {}
        """Which life made a term durable."""
        self.checked_to = 0


class Watch:
    """Hears of every durable transaction and every step, and tells the cluster of one group's violations."""

    def __init__(self, cluster: Cluster, group_id: int) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._applied_key, self._marker_key = applied_key(group_id), marker_key(group_id)
        self._counts = cluster.counts
        self._logs: dict[str, LogOnDisk] = {}
        self._leaders: dict[int, Life] = {}
        self._entries: dict[tuple[int, int], tuple[int, int | None]] = {}
        self._decided: dict[int, tuple[StoredEntry, int]] = {}
        self._decided_max = 0
        self._digests: dict[int, tuple[int, str]] = {}
        self._seen: dict[str, tuple[int, str, int]] = {}
        self.term_in_memory = term_in_memory
        cluster.scheduler.after_step = _also(cluster.scheduler.after_step, self.after_step)
        cluster.network.on_body = self._on_message
        cluster.on_host = _also(cluster.on_host, self.attach)
        cluster.on_wipe = _also(cluster.on_wipe, self.wiped)
        cluster.on_lost_entries = _also(cluster.on_lost_entries, self.lost)

    def attach(self, host: Host) -> None:
        """Watch this host's disk."""
        self._logs[host.node_id] = LogOnDisk()
        disk = host.disk
        disk.on_durable = _also(disk.on_durable, lambda changes: self._durable(host, changes))
        disk.log.on_logged = _also(disk.log.on_logged, lambda records: self._logged(host, records))

    def wiped(self, host: Host) -> None:
        """Note a new, empty disk."""
        self._logs[host.node_id] = LogOnDisk()

    def lost(self, host: Host, group_id: int, indexes: Sequence[int]) -> None:
        """Note that the disk no longer has entries that it acknowledged."""
        if group_id != self._group_id:
            return
        log = self._logs[host.node_id]
        for index in indexes:
            log.entries.pop(index, None)
            log.configurations.discard(index)

    # --- disks -------------------------------------------------------------------------------------------------

    def _durable(self, host: Host, changes: Changes) -> None:
        log = self._logs[host.node_id]
        is_applied = False
        for space, key, value in changes:
            if space is Space.META and key == self._applied_key:
                is_applied = value is not None
            elif space is Space.META and key == self._marker_key:
                self._counts["installations begun" if value is not None else "snapshots installed"] += 1
        if is_applied:
            self._applied(host, log)
        self._check_decided(host, log)

    def _logged(self, host: Host, records: Sequence[LogRecord]) -> None:
        log = self._logs[host.node_id]
        for record in records:
            if record.group_id != self._group_id:
                continue
            if record.kind is RecordKind.HARD_STATE:
                term = raft_pb2.HardState.FromString(record.payload[CHECKSUM_BYTES:]).term
                log.terms_written.setdefault(term, f"{host.node_id}#{host.lives}")
                for index in [each for each in log.entries if each <= record.index]:
                    self._entry_changed(host, log, index, None)
                continue
            # An entry replaces the one at its place, and all behind.
            is_entry = record.kind is RecordKind.ENTRY
            for index in [
                each for each in log.entries if each > record.index or (not is_entry and each == record.index)
            ]:
                self._entry_changed(host, log, index, None)
            if is_entry:
                self._entry_changed(host, log, record.index, record.payload)
        self._check_decided(host, log)

    def _entry_changed(self, host: Host, log: LogOnDisk, index: int, value: bytes | None) -> None:
        if value is None:
            gone = log.entries.pop(index, None)
            if gone is not None and index > log.applied.index:
                self._counts["entries truncated"] += 1
                if index in log.configurations:
                    self._counts["member changes rolled back"] += 1
                disowned, place = self._cluster.disowned, (self._group_id, host.node_id, index, gone[0])
                is_excused = place in disowned or self._is_reset(host, index)
                disowned.discard(place)
                if index in self._decided and self._decided[index][0] == gone and not is_excused:
                    self._violation(f"{host.node_id} truncated entry {index}, which is committed")
            log.configurations.discard(index)
            return
        record = raft_pb2.StoredEntry.FromString(value[CHECKSUM_BYTES:])
        entry = (record.term, zlib.crc32(value))
        replaced = log.entries.get(index)
        if replaced is not None and replaced != entry:
            self._counts["entries truncated"] += 1
            if index in log.configurations:
                self._counts["member changes rolled back"] += 1
        log.configurations.discard(index)
        if record.kind == KIND_CONFIGURATION:
            log.configurations.add(index)
        log.entries[index] = entry
        before = log.entries.get(index - 1)
        self._check_matching(host, index, entry, None if before is None else before[0])

    def _is_reset(self, host: Host, index: int) -> bool:
        """Return whether an installed snapshot covers the index: the same transaction says that it is applied."""
        encoded = host.disk.spaces[Space.META].values.get(self._applied_key)
        return encoded is not None and AppliedState.decode(encoded).index >= index

    def _check_matching(self, host: Host, index: int, entry: StoredEntry, before_term: int | None) -> None:
        term, checksum = entry
        known = self._entries.get((index, term))
        if known is None:
            self._entries[index, term] = (checksum, before_term)
            return
        if known[0] != checksum:
            self._violation(f"log matching: entry {index} of term {term} on {host.node_id} is another one elsewhere")
        if known[1] is None:
            self._entries[index, term] = (checksum, before_term)
        elif before_term is not None and before_term != known[1]:
            self._violation(
                f"log matching: entry {index} of term {term} on {host.node_id} follows term {before_term}, "
                f"and term {known[1]} elsewhere"
            )

    def _applied(self, host: Host, log: LogOnDisk) -> None:
        meta = host.disk.spaces[Space.META].values
        if meta.get(self._marker_key):
            return
        state = AppliedState.decode(meta[self._applied_key])
        before, log.applied = log.applied, state
        if state.index < before.index:
            self._violation(f"{host.node_id} went back from applied {before.index} to {state.index}")
        if state.ceiling > before.ceiling and state.index == before.index + 1:
            self._counts["ceiling raises applied"] += 1
        if state.request_floor > before.request_floor:
            self._counts["requests forgotten"] += 1
        digest = host.disk.digests[self._group_id]
        known = self._digests.setdefault(state.index, (digest, host.node_id))
        if known[0] != digest:
            self._violation(f"states differ at entry {state.index}: {host.node_id} and {known[1]}")

    def _check_decided(self, host: Host, log: LogOnDisk) -> None:
        """Check that the entries that this node holds as committed are committed for all."""
        life = host.life
        if life is None or not life.is_listening:
            return
        raft_log = life.node.replicas[self._group_id].log
        committed = raft_log.durable_commit_index
        if log.checked_to >= committed or not log.entries:
            return
        # Below the first entry that is kept everything is applied, and compared as a state.
        for index in range(max(log.checked_to + 1, next(iter(log.entries))), committed + 1):
            entry = log.entries.get(index)
            if entry is not None and index > log.applied.index and self.term_in_memory(raft_log, index) != entry[0]:
                # Truncated already, and the disk does not know it yet.
                return
            if entry is not None:
                self._decide(host, index, entry, raft_log.term)
            elif index > log.applied.index:
                return
            log.checked_to = index

    def _decide(self, host: Host, index: int, entry: StoredEntry, term: int) -> None:
        known = self._decided.get(index)
        if known is None:
            self._decided[index] = (entry, term)
            self._decided_max = max(self._decided_max, index)
        elif known[0] != entry:
            self._violation(f"two entries are committed at {index}: {known[0]} and, on {host.node_id}, {entry}")

    # --- messages ----------------------------------------------------------------------------------------------

    def _on_message(self, _sender: str, _to: str, body: bytes) -> None:
        """Count facts that only messages tell."""
        # A vote's answer is a short message: the many others need not be taken apart.
        if len(body) > 60:
            return
        message = raft_pb2.RaftMessage.FromString(body)
        if message.WhichOneof("kind") == "vote_response" and not message.vote_response.is_granted:
            self._counts["pre-votes refused" if message.vote_response.is_pre_vote else "votes refused"] += 1

    # --- steps -------------------------------------------------------------------------------------------------

    def after_step(self, loop: NodeLoop) -> None:
        """Check after one callback has run on ``loop``."""
        life = loop.life
        if life is None or loop.is_dead or not life.is_listening:
            return
        replica = life.node.replicas[self._group_id]
        self._check_in_flight(life, replica)
        log = replica.log
        now = (log.term, log.leader, log.durable_commit_index)
        before = self._seen.get(loop.name)
        if now == before:
            return
        self._seen[loop.name] = now
        term, leader, committed = now
        if before is not None:
            if term < before[0]:
                self._violation(f"{loop.name} went back from term {before[0]} to {term}")
            if committed < before[2]:
                self._violation(f"{loop.name} took back what was committed: {before[2]} to {committed}")
        if leader == life.node_id and (before is None or before[:2] != (term, leader)):
            self._leads(life, term)
        self._check_decided(life.host, self._logs[life.node_id])

    def _check_in_flight(self, life: Life, replica: Replica) -> None:
        pipeline, limits = replica.driver.pipeline, life.node.process.limits
        entries, entries_max = pipeline.use[1], limits.entries_in_flight_max
        size_bytes, bytes_max = pipeline.appended_bytes, limits.entries_in_flight_bytes_max
        if entries > entries_max or size_bytes > bytes_max:
            self._violation(
                f"{life.loop.name} has {entries} entries and {size_bytes} bytes in flight, "
                f"its limits are {entries_max} and {bytes_max}"
            )
        if pipeline.is_full:
            self._counts["writes that headed the next batch"] += 1
        if not pipeline.may_append:
            self._counts["batches that waited for room in flight"] += 1

    def _leads(self, life: Life, term: int) -> None:
        other = self._leaders.get(term, life)
        self._leaders[term] = life
        # A life that led only itself, and ended before its term was on the disk, has told no other node of it.
        written_by = self._logs[life.node_id].terms_written.get(term, life.loop.name)
        is_forgotten = other.node_id == life.node_id and written_by == life.loop.name
        if other is not life and not is_forgotten:
            self._violation(f"two leaders in term {term}: {other.loop.name} and {life.loop.name}")
            return
        self._counts["elections won"] += 1
        self._cluster.note(f"{life.loop.name} leads term {term}")
        log = self._logs[life.node_id]
        for index in range(max(log.applied.index + 1, 1), self._decided_max + 1):
            committed = self._decided.get(index)
            if committed is not None and committed[1] < term and log.entries.get(index) != committed[0]:
                self._violation(
                    f"leader completeness: {life.loop.name} leads term {term} without entry {index}, "
                    f"which was committed by term {committed[1]}"
                )
                return

    @property
    def terms_led(self) -> int:
        return len(self._leaders)

    def _violation(self, text: str) -> None:
        self._cluster.violation(text if len(self._cluster.groups) == 1 else f"group {self._group_id}: {text}")


def _also(first: Callable[P, None], then: Callable[P, None]) -> Callable[P, None]:
    """Return a function that calls both."""

    def both(*args: P.args, **more: P.kwargs) -> None:
        first(*args, **more)
        then(*args, **more)

    return both
