"""The leader's side: entries and heartbeats to every member, and what their answers prove.

PySyncObj decides which entries each member is sent next, and counts the commit index. This room bounds the entries
under way, splits them into messages, sends lost ones again, and lets an acknowledgement in only as far as our own disk
is: entries leave before the leader's sync, so a majority that counts the leader must wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.core import Core
from cortado.raft.engine import Sent
from cortado.raft.journal import EngineEntry
from cortado.raft.log import Doubt, PeerProgress, Room, SnapshotMeta, VoterRoom
from cortado.raft.progress import Progress
from cortado.raft.reads import Rounds, reached_by


class Replication:
    """All of it belongs to one term of leadership: :meth:`begin` and :meth:`end` clear it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._retransmit_ms = core.settings.retransmit_ms
        self.rounds = Rounds()
        self._members: dict[str, Progress] = {}
        self._offers: dict[str, SnapshotMeta] = {}
        self._began_ms = core.now_ms
        self.heartbeat_due_ms = core.now_ms
        self._committed_ms: float | None = None
        # Commits wait to be told since when, and up to where; then up to where they are told.
        self._noticed_to = self._announced = 0
        self.is_lease_void = False

    # --- a leadership ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a leadership: nothing is known of any member."""
        core = self._core
        self._began_ms = core.now_ms
        self.heartbeat_due_ms = core.now_ms
        self.is_lease_void = False
        self._members.clear()
        self._announced = 0
        self.set_members()

    def end(self) -> None:
        self._members.clear()
        self._offers.clear()
        self._core.doubts.clear()
        self.rounds.leadership_ended()
        self._core.engine.disconnect_all()

    def set_members(self) -> None:
        """The configuration changed, or we just began."""
        core = self._core
        others = set(core.journal.configuration.others(core.node_id))
        for gone in sorted(self._members.keys() - others):
            del self._members[gone]
            self._offers.pop(gone, None)
        for new in sorted(others - self._members.keys()):
            self._members[new] = Progress(new, core.now_ms)
            core.engine.set_next_index(new, core.journal.last_index)
            self._settle(self._members[new])
        core.engine.send_entries()

    # --- out --------------------------------------------------------------------------------------------------------

    def send_entries(self, to: str, message: Sent) -> None:
        """Send as many of PySyncObj's entries as the member's window takes."""
        core = self._core
        progress = self._members.get(to)
        entries: Sequence[EngineEntry] = message.get("entries", ())
        if progress is None or message.get("prevLogIdx") is None:
            core.engine.disconnect(to)
            return
        prev = message["prevLogIdx"], message["prevLogTerm"]
        for records, size_bytes, last in self._chunks(entries):
            self._send_chunk(progress, prev, records, size_bytes, last[0])
            prev = last
            if not progress.has_window(core.settings):
                core.engine.set_next_index(to, prev[0] + 1)
                core.engine.disconnect(to)
                return

    def _chunks(self, entries: Sequence[EngineEntry]) -> Iterator[tuple[list[bytes], int, tuple[int, int]]]:
        """Yield the entries of each message in their stored form, their bytes, and the last one's index and term."""
        group_id, bytes_max = self._core.group_id, self._core.settings.message_bytes_max
        records: list[bytes] = []
        size, last = 0, (0, 0)
        for record, index, term in entries:
            stored = record.stored(group_id)
            if records and size + len(stored) > bytes_max:
                yield records, size, last
                records, size = [], 0
            records.append(stored)
            size += len(stored)
            last = index, term
        if records:
            yield records, size, last

    def _send_chunk(
        self, progress: Progress, prev: tuple[int, int], records: list[bytes], size_bytes: int, last_index: int
    ) -> None:
        core = self._core
        committed = core.durable_commit_index
        message = pb.RaftMessage(
            append=pb.AppendEntries(
                prev_index=prev[0],
                prev_term=prev[1],
                commit_index=committed,
                round=self.rounds.current,
                records=records,
            )
        )
        self._send(progress, message)
        progress.sent(prev[0], last_index, size_bytes, core.now_ms)
        progress.told_commit = max(progress.told_commit, min(committed, last_index))

    def _send(self, progress: Progress, message: pb.RaftMessage) -> None:
        core = self._core
        if progress.fresh_ms and core.has_applied_own_term:
            message.echo_ms = progress.fresh_ms
            message.incarnation = progress.fresh_incarnation
            message.fresh_index = core.durable_commit_index
        # Only our term must be durable, or a crash of the only voter would let two of its incarnations use it.
        core.send(progress.node_id, message, core.journal.vote_sequence)

    def tick(self) -> None:
        """Send heartbeats, unanswered entries, and a new commit index."""
        core, rounds = self._core, self.rounds
        # A sole voter needs no other's word.
        if core.journal.configuration.majority == 1 or (rounds.is_wanted and self._has_lease()):
            rounds.confirm_now()
            self._note_fresh(core.now_ms)
        if not self._members:
            self.heartbeat_due_ms = core.now_ms + core.settings.heartbeat_ms
            return
        if core.now_ms >= self.heartbeat_due_ms or rounds.may_begin:
            self._beat()
        # Not with the heartbeat alone: while reads begin rounds all the time, no heartbeat is ever due.
        self._resend()
        self._announce()

    def _beat(self) -> None:
        core = self._core
        self.heartbeat_due_ms = core.now_ms + core.settings.heartbeat_ms
        number = self.rounds.begin(core.now_ms)
        for progress in self._members.values():
            self._send_heartbeat(progress, number)
            meta = self._offers.get(progress.node_id)
            if meta is not None and progress.needs_snapshot:
                self._send(progress, pb.RaftMessage(snapshot=_notice(meta)))

    def _send_heartbeat(self, progress: Progress, number: int) -> None:
        commit_index = min(self._core.durable_commit_index, progress.match_index)
        self._send(progress, pb.RaftMessage(heartbeat=pb.Heartbeat(commit_index=commit_index, round=number)))
        progress.told_commit = max(progress.told_commit, commit_index)

    def _resend(self) -> None:
        """Send entries again that an answering member has not acknowledged for long: they were lost on the way."""
        core = self._core
        is_any = False
        for progress in self._members.values():
            if not progress.is_overdue(self._retransmit_ms, core.now_ms):
                continue
            if progress.was_heard_within(core.settings.election_ms_min, core.now_ms):
                progress.resent += 1
                self._probe_from(
                    progress, progress.match_index + 1 if progress.match_index else progress.probe_prev + 1
                )
                is_any = True
        if is_any:
            core.engine.send_entries()

    def _announce(self) -> None:
        """Tell members the commit index, unless entries told the one of a moment ago: a notice costs both sides a
        round, and an apply of its own costs a follower a sync."""
        core = self._core
        committed = core.durable_commit_index
        if committed > self._announced and self._committed_ms is None:
            self._committed_ms, self._noticed_to = core.now_ms, committed
        if self._committed_ms is None or core.now_ms < self._committed_ms + core.settings.notice_ms:
            return
        self._committed_ms = None
        if self._is_told(self._noticed_to):
            self._announced = self._noticed_to
            if committed > self._announced:
                self._committed_ms, self._noticed_to = core.now_ms, committed
            return
        self._announced = committed
        for progress in self._members.values():
            if progress.told_commit < min(committed, progress.match_index):
                self._send_heartbeat(progress, 0)

    def _is_told(self, index: int) -> bool:
        """Return whether every member was sent a message that tells that its entries up to ``index`` are committed."""
        return all(each.told_commit >= min(index, each.match_index) for each in self._members.values())

    # --- in -----------------------------------------------------------------------------------------------------------

    def on_acknowledgement(self, sender: str, message: pb.RaftMessage) -> None:
        """A member's answer, of our term."""
        core = self._core
        progress = self._members.get(sender)
        if progress is None or message.echo_ms < progress.began_ms:
            return
        answer = message.acknowledgement
        progress.heard_ms = core.now_ms
        progress.echoed_ms = max(progress.echoed_ms, min(message.echo_ms, core.now_ms))
        self._note_round(progress, answer.round, (message.sent_ms, message.incarnation))
        if answer.HasField("room"):
            progress.room = Room(answer.room.bytes, answer.room.freeing_bytes)
        if answer.doubted_index:
            core.doubts.append(Doubt(answer.doubted_index, answer.doubted_key))
        outcome = answer.WhichOneof("outcome")
        if outcome == "matched_index" and answer.matched_index <= core.journal.last_index:
            self._matched(progress, answer.matched_index)
        else:
            core.engine.acknowledge(sender, 0)
            if outcome == "wanted_index":
                self._rejected(progress, answer.rejected_prev_index, answer.wanted_index)

    def _matched(self, progress: Progress, index: int) -> None:
        core = self._core
        progress.matched(index, core.now_ms)
        self._count(progress)
        if core.engine.next_index(progress.node_id) <= progress.match_index:
            core.engine.set_next_index(progress.node_id, progress.match_index + 1)
        if progress.needs_snapshot and progress.match_index >= core.journal.base[0]:
            progress.needs_snapshot = False
            self._offers.pop(progress.node_id, None)
        self._settle(progress)
        if core.engine.next_index(progress.node_id) <= core.journal.last_index and progress.has_window(core.settings):
            core.engine.send_entries()

    def _count(self, progress: Progress) -> None:
        """Let the engine count an acknowledgement, as far as our own disk is."""
        core = self._core
        progress.counted_index = max(progress.counted_index, min(progress.match_index, core.journal.durable_index))
        core.engine.acknowledge(progress.node_id, progress.counted_index)

    def _rejected(self, progress: Progress, prev_index: int, wanted_index: int) -> None:
        if progress.is_stale_rejection(prev_index):
            return
        self._probe_from(progress, min(wanted_index, prev_index))
        self._core.engine.send_entries()

    def _probe_from(self, progress: Progress, index: int) -> None:
        core = self._core
        progress.probe()
        index = max(progress.match_index + 1, min(index, core.journal.last_index + 1))
        core.engine.set_next_index(progress.node_id, index)
        self._settle(progress)

    def _settle(self, progress: Progress) -> None:
        """Let the engine send to a member, or not."""
        core = self._core
        if core.engine.next_index(progress.node_id) <= core.journal.base[0]:
            progress.needs_snapshot = True
        if progress.has_window(core.settings):
            core.engine.connect(progress.node_id)
        else:
            core.engine.disconnect(progress.node_id)

    def became_durable(self) -> bool:
        """Count acknowledgements that were held back until our own disk caught up. Returns whether there were any."""
        is_any = False
        for progress in self._members.values():
            if progress.counted_index < progress.match_index:
                self._count(progress)
                is_any = True
        return is_any

    def is_decided_without_us(self, index: int) -> bool:
        """Return whether a majority has the entry ``index`` on its disks, ours not counted."""
        return sum(each.match_index >= index for each in self._voters()) >= self._core.journal.configuration.majority

    def log_moved(self) -> None:
        """Entries were dropped: a member may need a snapshot now."""
        for progress in self._members.values():
            self._settle(progress)

    # --- rounds, the lease, freshness ---------------------------------------------------------------------------------

    def _note_round(self, progress: Progress, number: int, member_time: tuple[float, int]) -> None:
        core, rounds = self._core, self.rounds
        if number > progress.round and number <= rounds.current:
            progress.round = number
            values = [rounds.current, *(each.round for each in self._voters())]
            self._note_fresh(rounds.confirm(int(reached_by(core.journal.configuration.majority, values))))
        if progress.fresh_round and rounds.confirmed >= progress.fresh_round:
            progress.fresh_ms, progress.fresh_incarnation = progress.pending_fresh
            progress.fresh_round = 0
        if not progress.fresh_round:
            # Valid once a round that begins after this has been confirmed.
            progress.pending_fresh, progress.fresh_round = member_time, rounds.current + 1

    def _note_fresh(self, led_at_ms: float | None) -> None:
        """Note a time at which no other node led: we know all entries that were committed by then."""
        core = self._core
        if led_at_ms is not None and core.has_applied_own_term:
            core.freshness.note(led_at_ms, core.durable_commit_index, core.applied[0])

    def _voters(self) -> Iterator[Progress]:
        configuration = self._core.journal.configuration
        return (each for each in self._members.values() if configuration.is_voter(each.node_id))

    def _has_lease(self) -> bool:
        core = self._core
        if not core.settings.lease or self.is_lease_void or not core.has_applied_own_term:
            return False
        echoed = [core.now_ms, *(each.echoed_ms for each in self._voters())]
        return core.now_ms < reached_by(core.journal.configuration.majority, echoed) + core.settings.lease_ms

    # --- answers to other rooms ---------------------------------------------------------------------------------------

    def member(self, node_id: str) -> Progress | None:
        return self._members.get(node_id)

    def reachable_voters(self) -> list[Progress]:
        """Other voters that answered within an election's time, the one that is furthest first."""
        core = self._core
        near = [each for each in self._voters() if each.was_heard_within(core.settings.election_ms_min, core.now_ms)]
        return sorted(near, key=lambda each: (-each.match_index, each.node_id))

    def progress(self) -> list[PeerProgress]:
        core = self._core
        listed = []
        for node_id in core.journal.configuration.others(core.node_id):
            each = self._members[node_id]
            since_ms = core.now_ms - (self._began_ms if each.heard_ms is None else each.heard_ms)
            is_voter = core.journal.configuration.is_voter(node_id)
            listed.append(PeerProgress(node_id, is_voter, each.match_index, since_ms, each.needs_snapshot, each.room))
        return listed

    def voters_room(self) -> list[VoterRoom]:
        """Return the room of each reachable voter, less all entries that we hold and it does not."""
        journal, rooms = self._core.journal, list[VoterRoom]()
        for each in self.reachable_voters():
            left = None if each.room is None else each.room.less(journal.bytes_after(each.match_index))
            rooms.append(VoterRoom(each.node_id, left))
        return rooms

    def snapshot_needs(self) -> list[str]:
        """Return the members that answer and have a next entry that is gone."""
        core = self._core
        near_ms = core.settings.election_ms_max
        return [
            each.node_id
            for each in self._members.values()
            if each.needs_snapshot and each.was_heard_within(near_ms, core.now_ms)
        ]

    def lowest_match(self) -> int | None:
        """Return the lowest matched index of the other members; None if there are none."""
        return min((each.match_index for each in self._members.values()), default=None)

    def offer(self, to: str, meta: SnapshotMeta) -> None:
        progress = self._members.get(to)
        if progress is not None and progress.needs_snapshot:
            self._offers[to] = meta
            self._send(progress, pb.RaftMessage(snapshot=_notice(meta)))

    @property
    def next_tick_ms(self) -> float:
        core = self._core
        if self.rounds.may_begin:
            return core.now_ms
        due_ms = self.heartbeat_due_ms
        return due_ms if self._committed_ms is None else min(due_ms, self._committed_ms + core.settings.notice_ms)


def _notice(meta: SnapshotMeta) -> pb.SnapshotNotice:
    return pb.SnapshotNotice(
        snapshot_id=meta.snapshot_id,
        index=meta.index,
        term=meta.term,
        roster=meta.roster.to_message(),
        size_bytes=meta.size_bytes,
    )
