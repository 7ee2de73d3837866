"""What must hold in a group at every moment, whatever fails: checked by :class:`support.raft_world.World`.

Each check reads the replicas' disks and logs from outside, as nobody in a real group can.
"""

from __future__ import annotations

from bisect import bisect_right

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.records import HardState, decode_record, decode_stored, entry_key, hard_key

GROUP = 1


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

    def that(self, holds: bool, what: str) -> None:
        if not holds:
            raise Violation(f"seed {self._world.seed} at {self._world.now_ms:.1f} ms: it does not hold that {what}")

    # --- leaders ----------------------------------------------------------------------------------------------------

    def turned(self, replica) -> None:
        log = replica.log
        if log.leader == replica.node_id and self._led.get(replica.node_id) != log.term:
            self._led[replica.node_id] = log.term
            self._world.counts["leaders"] += 1
            first = self._leaders.setdefault(log.term, replica.node_id)
            self.that(first == replica.node_id, f"term {log.term} has one leader: {first}, {replica.node_id}")
            self._leader_is_complete(log)

    def _leader_is_complete(self, log) -> None:
        base = log.window.base[0]
        for index, (term, _) in self.durable_commit_index.items():
            if index > base:
                held = log.window.term_at(index)
                self.that(held == term, f"leader {log.leader} of term {log.term} holds {index} of {term}: {held}")

    # --- disks ------------------------------------------------------------------------------------------------------

    def stored(self, replica, ready) -> None:
        """Entries of the same place and term are the same everywhere."""
        for key, value in ready.writes:
            if value is not None and key != hard_key(GROUP):
                record = decode_record(GROUP, int.from_bytes(key[5:], "big"), value)
                first = self._bodies.setdefault((record.index, record.term), value)
                self.that(first == value, f"entry {record.index} of term {record.term} is one")

    def applied(self, replica, committed) -> None:
        """All replicas apply the same entries, one after another."""
        for entry in committed:
            body = entry.payload.encode()
            first = self.durable_commit_index.setdefault(entry.index, (entry.term, body))
            self.that(first == (entry.term, body), f"{replica.node_id} applies at {entry.index} what others do")

    def installed(self, replica, meta) -> None:
        committed = self.durable_commit_index.get(meta.index)
        self.that(committed is None or committed[0] == meta.term, f"snapshot {meta} is of what was committed")

    def leaves(self, replica, message) -> None:
        """A promise leaves a replica only when its disk keeps it."""
        body = pb.RaftMessage.FromString(message.body)
        kind = body.WhichOneof("kind")
        if kind == "vote_response" and body.vote_response.is_granted and not body.vote_response.is_pre_vote:
            state = _hard_state(replica.disk)
            kept = state.term > body.term or (state.term == body.term and state.voted_for == message.to)
            self.that(kept, f"{replica.node_id}'s vote for {message.to} in {body.term} is on its disk: {state}")
        elif kind == "vote_request" and not body.vote_request.is_pre_vote:
            state = _hard_state(replica.disk)
            kept = state.term > body.term or (state.term == body.term and state.voted_for == replica.node_id)
            self.that(kept, f"{replica.node_id}'s vote for itself in {body.term} is on its disk: {state}")
        elif kind == "acknowledgement" and body.acknowledgement.WhichOneof("outcome") == "matched_index":
            index = body.acknowledgement.matched_index
            is_held = index <= replica.disk.applied[0] or entry_key(GROUP, index) in replica.disk.log
            self.that(is_held, f"{replica.node_id} has on its disk what it acknowledges: {index}")

    # --- callers ----------------------------------------------------------------------------------------------------

    def acknowledged(self, replica, index, term, value) -> None:
        """What is acknowledged is on a majority's disks: of the voters now, or of those when it was appended, where
        it was committed before they changed."""
        now, then = (
            replica.log.configuration.voters,
            replica.log.window.configuration_at(max(index, replica.log.window.base[0])).voters,
        )
        is_kept = any(self._are_on_disks(voters, index, term) for voters in (now, then))
        self.that(is_kept, f"entry {index} of term {term} is on the disks of a majority of {now} or {then}")
        self._acknowledged[index] = value
        self.acknowledged_to = max(self.acknowledged_to, index)
        self._history.append((self._world.now_ms, self.acknowledged_to))

    def _are_on_disks(self, voters, index, term) -> bool:
        return sum(self._is_on_disk(each.node_id, index, term) for each in voters) > len(voters) // 2

    def _is_on_disk(self, node_id, index, term) -> bool:
        replica = self._world.replicas.get(node_id)
        if replica is None:
            return False
        if index <= replica.disk.applied[0]:
            return self.durable_commit_index.get(index, (term, b""))[0] == term
        stored = replica.disk.log.get(entry_key(GROUP, index))
        return stored is not None and decode_record(GROUP, index, stored).term == term

    def read(self, replica, *, read_index, acknowledged_before) -> None:
        what = f"a linearizable read at {replica.node_id} sees {acknowledged_before}, acknowledged before: {read_index}"
        self.that(read_index >= acknowledged_before, what)

    def freshness(self, replica) -> None:
        """What a replica calls fresh contains all that was acknowledged by then."""
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
        members = [self._world.replicas.get(each.node_id) for each in leader.log.configuration.members]
        members = [each for each in members if each is not None]
        return all(each.disk.applied == leader.log.last for each in members)

    def everything_acknowledged_is_held(self) -> None:
        leader = self._world.leader()
        for member in leader.log.configuration.members:
            replica = self._world.replicas.get(member.node_id)
            if replica is None:
                continue
            for index, value in self._acknowledged.items():
                held = replica.disk.state.get(index)
                self.that(held == value, f"{member.node_id} holds at {index} what was acknowledged")


def _hard_state(disk) -> HardState:
    stored = disk.log.get(hard_key(GROUP))
    return HardState() if stored is None else decode_stored(GROUP, [(hard_key(GROUP), stored)]).hard_state
