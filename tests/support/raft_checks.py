"""The invariants of a group at every moment, whatever fails: checked by :class:`support.raft_world.World`.

Each check reads the replicas' disks and logs from outside, as no member of a real group can.
"""

from __future__ import annotations

from bisect import bisect_right

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.log import RecordKind
from cortado.raft.records import KIND_CONFIGURATION, decode_record
from support.raft_disks import GROUP


class Violation(AssertionError):
    """Something happened that must never happen."""


class Checks:
    def __init__(self, world) -> None:
        self._world = world
        self._leaders: dict[int, str] = {}
        self._bodies: dict[tuple[int, int], bytes] = {}
        self.durable_commit_index: dict[int, tuple[int, bytes]] = {}
        self.acknowledged_to = 2
        self._acknowledged: dict[int, bytes] = {}
        self._history: list[tuple[float, int]] = [(0.0, 2)]
        self._led: dict[str, int] = {}
        self._configurations: list[tuple[int, object]] = []
        self._handed: dict[str, tuple[int, int]] = {}
        self._rosters: dict[str, object] = {}
        self._bound: dict[str, str] = {}

    def that(self, holds: bool, what: str) -> None:
        if not holds:
            raise Violation(f"seed {self._world.seed} at {self._world.now_ms:.1f} ms: it does not hold that {what}")

    # --- leaders ----------------------------------------------------------------------------------------------------

    def turned(self, replica) -> None:
        log = replica.log
        self._registry_fits(replica.node_id, log)
        if log.leader == replica.node_id and self._led.get(replica.node_id) != log.term:
            self._led[replica.node_id] = log.term
            self._world.counts["leaders"] += 1
            first = self._leaders.setdefault(log.term, replica.node_id)
            self.that(first == replica.node_id, f"term {log.term} has one leader: {first}, {replica.node_id}")
            self._leader_is_complete(log)

    def _registry_fits(self, node_id, log) -> None:
        """Check that every member is in the registry, no used up id is a member's, and a bound one is bound for
        good."""
        roster = log.roster
        if roster is self._rosters.get(node_id):
            return
        self._rosters[node_id] = roster
        known = {each.node_id for each in roster.registry.nodes}
        self.that(known.issuperset(roster.configuration.members), f"{node_id} knows all members: {roster}")
        self.that(known.isdisjoint(roster.registry.removed), f"{node_id} knows nobody who was removed: {roster}")
        self._world.counts["ids used up"] = max(self._world.counts["ids used up"], len(roster.registry.removed))
        for each in log.window.roster_at(max(log.window.base[0], log.durable_commit_index)).registry.nodes:
            if each.storage_id:
                bound = self._bound.setdefault(each.node_id, each.storage_id)
                self.that(bound == each.storage_id, f"{each.node_id} has one data directory: {bound}, {each}")

    def _leader_is_complete(self, log) -> None:
        """Check that a leader holds all committed entries. One that was paused is exempt: it counts its votes when a
        later term has committed something already."""
        if log.term < max(self._leaders):
            return
        base = log.window.base[0]
        for index, (term, _) in self.durable_commit_index.items():
            if index > base:
                held = log.window.term_at(index)
                self.that(held == term, f"leader {log.leader} of term {log.term} holds {index} of {term}: {held}")

    # --- disks ------------------------------------------------------------------------------------------------------

    def stored(self, replica, writes) -> None:
        """Check that entries of the same place and term are the same everywhere."""
        for each in writes:
            if each.kind is RecordKind.ENTRY:
                first = self._bodies.setdefault((each.index, each.term), each.payload)
                self.that(first == each.payload, f"entry {each.index} of term {each.term} is one")
                record = decode_record(GROUP, each.index, each.payload)
                if record.kind == KIND_CONFIGURATION:
                    self._configurations.append((each.index, record.configuration))

    def synced(self, replica) -> None:
        """Check that the log files hold the records that a log takes for durable, as it has them in memory."""
        journal, disk = replica.log._core.journal, replica.disk
        for index in range(max(journal.base[0], disk.log.base[0]), journal.durable_index + 1):
            kept, held = disk.log.term_at(index), journal.term_at(index)
            self.that(kept == held, f"{replica.node_id} keeps {index} of term {held}, which it calls durable: {kept}")
        self.that(disk.log.state.term <= journal.term, f"{replica.node_id}'s term does not fall")
        self.data_follows_the_log(replica)

    def data_follows_the_log(self, replica) -> None:
        """Check that the log files reach the applied index, unless a snapshot came: it says how they will."""
        log, data = replica.disk.log, replica.disk.data
        if data.reset is None:
            is_within = log.base[0] <= data.applied[0] <= log.last[0]
            what = f"what {replica.node_id} applied lies in its log files: {log.base}, {data.applied}, {log.last}"
            self.that(is_within and log.term_at(data.applied[0]) == data.applied[1], what)

    def opened(self, replica):
        """Return the stored log that a start finds. Raises DataLoss."""
        disk = replica.disk
        log_last, is_reset = disk.log.last, disk.data.reset is not None
        stored = disk.opened()
        self._world.counts["snapshots that the log followed at a start"] += is_reset and disk.log.last != log_last
        self.data_follows_the_log(replica)
        return stored

    def handed_over(self, replica, entries) -> None:
        """Check that entries to be applied are in the replica's own log files, and committed: each once in a life, in
        order."""
        log, disk = replica.log, replica.disk
        life, index = self._handed.get(replica.node_id, (0, 0))
        index = max(index, disk.data.applied[0]) if life == replica.life else disk.data.applied[0]
        for entry in entries:
            index += 1
            self.that(entry.index == index, f"{replica.node_id} is given {index} to apply, not {entry.index}")
            kept = disk.log.term_at(index)
            self.that(kept == entry.term, f"{replica.node_id} keeps {index} of {entry.term}, to be applied: {kept}")
            self._is_committed(replica, entry)
        self._handed[replica.node_id] = replica.life, index
        self._world.counts["handed over"] += len(entries)
        self._world.counts["handed over with the log ahead"] += log.last[0] > index

    def _is_committed(self, replica, entry) -> None:
        """Check an entry once, at the first replica that applies it: a majority of the voters then or later has it on
        its disks."""
        index, term = entry.index, entry.term
        if index in self.durable_commit_index:
            return
        later = [configuration for at, configuration in self._configurations if at > index]
        later += [each.log.configuration for each in self._world.replicas.values() if each.log is not None]
        for configuration in (replica.log.window.roster_at(index).configuration, *later):
            if self._are_on_disks(configuration.voters, index, term):
                return
        self.that(False, f"entry {index} of term {term}, which {replica.node_id} is to apply, is committed")

    def applied(self, replica, entries) -> None:
        """Check that all replicas apply the same entries, one after another. (Before they are in the data.)"""
        index = replica.disk.data.applied[0]
        for entry in entries:
            index += 1
            self.that(entry.index == index, f"{replica.node_id} applies {index} next, not {entry.index}")
            body = entry.payload.encode()
            first = self.durable_commit_index.setdefault(entry.index, (entry.term, body))
            self.that(first == (entry.term, body), f"{replica.node_id} applies at {entry.index} what others do")

    def installs(self, replica, meta) -> None:
        log = replica.log
        ahead = meta.index <= log.durable_commit_index
        self._world.counts["snapshots that the log is ahead of"] += ahead
        self._world.counts["snapshots with a suffix"] += log.window.term_at(meta.index) == meta.term
        committed = self.durable_commit_index.get(meta.index)
        self.that(committed is None or committed[0] == meta.term, f"snapshot {meta} is of what was committed")

    def leaves(self, replica, message) -> None:
        """Check that a promise leaves a replica only when its disk keeps it."""
        body = pb.RaftMessage.FromString(message.body)
        kind = body.WhichOneof("kind")
        if kind == "vote_response" and body.vote_response.is_granted and not body.vote_response.is_pre_vote:
            state = replica.disk.log.state
            kept = state.term > body.term or (state.term == body.term and state.voted_for == message.to)
            self.that(kept, f"{replica.node_id}'s vote for {message.to} in {body.term} is on its disk: {state}")
        elif kind == "vote_request" and not body.vote_request.is_pre_vote:
            state = replica.disk.log.state
            kept = state.term > body.term or (state.term == body.term and state.voted_for == replica.node_id)
            self.that(kept, f"{replica.node_id}'s vote for itself in {body.term} is on its disk: {state}")
        elif kind == "acknowledgement" and body.acknowledgement.WhichOneof("outcome") == "matched_index":
            index = body.acknowledgement.matched_index
            is_held = index <= replica.disk.log.last[0]
            self.that(is_held, f"{replica.node_id} has on its disk what it acknowledges: {index}")

    # --- callers ----------------------------------------------------------------------------------------------------

    def acknowledged(self, replica, index, term, value) -> None:
        """Check that an acknowledged entry is on a majority's disks: of the voters now, or of those when it was
        appended, if it was committed before they changed."""
        now, then = (
            replica.log.configuration.voters,
            replica.log.window.roster_at(max(index, replica.log.window.base[0])).configuration.voters,
        )
        is_kept = any(self._are_on_disks(voters, index, term) for voters in (now, then))
        self.that(is_kept, f"entry {index} of term {term} is on the disks of a majority of {now} or {then}")
        self._acknowledged[index] = value
        self.acknowledged_to = max(self.acknowledged_to, index)
        self._history.append((self._world.now_ms, self.acknowledged_to))

    def _are_on_disks(self, voters, index, term) -> bool:
        return sum(self._is_on_disk(each, index, term) for each in voters) > len(voters) // 2

    def _is_on_disk(self, node_id, index, term) -> bool:
        replica = self._world.replicas.get(node_id)
        if replica is None:
            return False
        log, reset = replica.disk.log, replica.disk.data.reset
        if index <= max(log.base[0], 0 if reset is None else reset.base_index):
            return self.durable_commit_index.get(index, (term, b""))[0] == term
        return log.term_at(index) == term

    def read(self, replica, *, read_index, acknowledged_before) -> None:
        what = f"a linearizable read at {replica.node_id} sees {acknowledged_before}, acknowledged before: {read_index}"
        self.that(read_index >= acknowledged_before, what)

    def freshness(self, replica) -> None:
        """Check that a replica's fresh state contains all writes that were acknowledged by then."""
        if replica.log is None or replica.log.fresh_as_of_ms is None:
            return
        at_ms = replica.true_ms(replica.log.fresh_as_of_ms) - 1e-6
        place = bisect_right(self._history, (at_ms, float("inf"))) - 1
        needed = self._history[max(place, 0)][1] if at_ms >= 0 else 0
        self._world.counts["freshness"] += 1
        has = replica.log.applied[0]
        self.that(has >= needed, f"{replica.node_id} is as fresh as it says: {has}, {needed} at {at_ms:.1f}")

    # --- in calm ----------------------------------------------------------------------------------------------------

    def has_converged(self) -> bool:
        leader = self._world.leader()
        if leader is None:
            return False
        members = [self._world.replicas.get(each) for each in leader.log.configuration.members]
        members = [each for each in members if each is not None]
        return all(each.disk.data.applied == leader.log.last for each in members)

    def everything_acknowledged_is_held(self) -> None:
        leader = self._world.leader()
        for node_id in leader.log.configuration.members:
            replica = self._world.replicas.get(node_id)
            if replica is None:
                continue
            for index, value in self._acknowledged.items():
                held = replica.disk.data.state.get(index)
                self.that(held == value, f"{node_id} holds at {index} what was acknowledged")
