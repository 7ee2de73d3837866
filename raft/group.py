"""One replica of a replicated log: the adapter around PySyncObj, assembled.

A :class:`RaftLog` is a core without I/O, in the manner of etcd's ``raft.Node``: the node gives it proposals, messages
and time, and takes the work to be done as values (:mod:`~cortado.raft.log`). The order matters, and the node's driver
keeps it::

    step(sender, body) ...                         messages that arrived
    append(payload) ...                            at the leader: proposals
    tick(now_ms)
    outbox()   ->  messages that may leave at once
    storing.ready()   ->  writes for the log files, synced as a whole
    synced(writes)
    outbox()   ->  messages that waited for them
    durable_commit_index   callers of entries up to here may be answered
    committed() ->  entries to apply to the data, later, in a transaction of its own
    was_applied(entries)

Nothing that depends on writes leaves the node before they are durable: ``outbox`` holds it back. At most one batch of
writes is outstanding, and beside it one batch of entries that are being applied. A log knows nothing of tables, of
gRPC, or of a payload's meaning.

Inside, each room has a file, and this one orders their calls::

    step ─► standing, bounds, terms ─► elections ─┐                          ┌─► outbox (held until durable)
                                       following ─┼─► engine (PySyncObj) ─► journal ─► storing ─► applying
                                       replication┘
    tick ─► timers of all of them

``docs/adr/0008-raft-over-pysyncobj.md`` says what the adapter must never let the engine see, and why.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Sequence

from google.protobuf.message import DecodeError

from cortado.errors import DataLoss, InvalidArgument, TooLarge
from cortado.invariants import invariant
from cortado.proto.bounds import MessageBounds
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.applying import Applying
from cortado.raft.bootstrap import check_term
from cortado.raft.bounds import problem_of
from cortado.raft.configuration import Configuration
from cortado.raft.core import Core
from cortado.raft.disputes import Disputes
from cortado.raft.elections import ElectionCounts, Elections
from cortado.raft.engine import CANDIDATE, LEADER, Engine, Sent
from cortado.raft.following import Following
from cortado.raft.journal import Journal
from cortado.raft.log import Doubt, Entry, Examine, Message, Payload, PeerProgress
from cortado.raft.log_window import LogWindow
from cortado.raft.membership import Membership
from cortado.raft.outbox import Outbox
from cortado.raft.records import KIND_DATA, KIND_EXAMINED, Record, StoredLog, Writes
from cortado.raft.refusals import Refusals
from cortado.raft.registry import IDS_MAX, Roster
from cortado.raft.replication import Replication
from cortado.raft.room import MembersRoom
from cortado.raft.settings import RaftSettings
from cortado.raft.standing import Standing
from cortado.raft.storing import Storing
from cortado.raft.transfer import Transfer

# When nothing is due.
_IDLE_MS = 60_000.0
# Bounds of a message: more of the smallest records, and of members, than fit.
_BOUNDS = MessageBounds(
    pb.RaftMessage,
    {
        "cortado.internal.AppendEntries.records": 65_536,
        "cortado.internal.Configuration.voters": 1_000,
        "cortado.internal.Configuration.learners": 1_000,
        "cortado.internal.Registry.nodes": IDS_MAX,
        "cortado.internal.Registry.removed": IDS_MAX,
    },
    bytes_max=8 << 20,
    what="message",
)


class RaftLog:
    """A group's log. All calls come from one thread, the node's loop. Times are monotonic milliseconds.

    The node also calls: :attr:`members` changes the group's members, :attr:`transfer` hands leadership over,
    :attr:`storing` hands out writes, :attr:`window` drops entries and takes snapshots, :attr:`standing` says which
    nodes are heard, :attr:`room` which members can store, :attr:`applying` hands out committed entries,
    :attr:`refusals` counts refused messages, and :attr:`disputes` lists claims of members against this log.
    """

    def __init__(
        self,
        node_id: str,
        settings: RaftSettings,
        *,
        group_id: int,
        random: random_module.Random,
        stored: StoredLog,
        applied: tuple[int, int],
        now_ms: float,
        joined: Roster | None = None,
    ) -> None:
        """``stored`` is the group's log as the log files have it, ``applied`` the last applied entry's index and term.
        An empty log is a replica that has received nothing yet: it has no configuration, never votes or campaigns, and
        hears the members of ``joined`` alone, which let it in.

        Raises DataLoss if ``stored`` is damaged, or contradicts ``applied``."""
        settings.check()
        if stored.is_empty and applied != (0, 0):
            raise DataLoss(f"the log of group {group_id}", f"it is empty, but entry {applied[0]} is applied")
        journal = Journal(group_id, stored, applied)
        if journal.configuration.is_alone(node_id):
            # No other voter is asked: an entry that is durable here is committed, and may have been acknowledged.
            journal.commit_index = journal.last_index
        check_term(group_id, journal.term)
        is_within = journal.base[0] <= applied[0] <= journal.last_index
        invariant(is_within, "what was applied lies within the log at the start", journal.base, applied, journal.last)
        engine = Engine(
            node_id,
            journal,
            applied_index=applied[0],
            heartbeat_ms=settings.heartbeat_ms,
            fallback_ms=settings.election_ms_max,
            batch_bytes=settings.entry_bytes_max + settings.message_bytes_max + 1024,
            now_ms=now_ms,
        )
        engine.on_send = self._engine_sends
        self._core = Core(node_id, group_id, settings, random, journal, engine, Outbox(journal), now_ms, applied)
        self._core.incarnation = random.getrandbits(32)
        self.doubts = self._core.doubts
        """Doubts of followers about this leader's entries, until they are taken."""
        self.standing = Standing(self._core, joined or Roster())
        self.refusals = Refusals(group_id)
        self.disputes = Disputes(self._core)
        self._replication = Replication(self._core)
        self._following = Following(self._core, self.refusals)
        self._elections = Elections(self._core, is_first_incarnation=stored.is_empty)
        self.storing = Storing(self._core, self._replication)
        self.applying = Applying(self._core)
        self.members = Membership(
            self._core, self._replication, self._append, send_entries=self._send_entries, changed=self._changed
        )
        self.transfer = Transfer(self._core, self._replication)
        self.window = LogWindow(
            self._core, self._replication, self._following, self.storing, self.applying, self._changed
        )
        self.room = MembersRoom(self._core, self._replication)
        self._seen_configuration: Configuration | None = None
        self._was_leading = self._has_unsent = False
        self._changed()

    # --- its state --------------------------------------------------------------------------------------------------

    @property
    def term(self) -> int:
        return self._core.journal.term

    @property
    def is_leader(self) -> bool:
        """Return whether this node leads, has applied an entry of its own term, and no hand-over is under way. Only
        then may commands be evaluated and appended."""
        return self._core.may_append

    @property
    def leader(self) -> str:
        """Return the leader's node id, possibly our own; empty while none is known."""
        core = self._core
        if core.is_leading:
            return core.node_id
        return core.engine.leader if self._elections.is_led else ""

    @property
    def last(self) -> tuple[int, int]:
        """Index and term of the last entry, applied or not."""
        return self._core.journal.last

    @property
    def durable_commit_index(self) -> int:
        """Return the commit index. Every entry up to it is durable on a majority, and is never taken back."""
        return self._core.durable_commit_index

    @property
    def configuration(self) -> Configuration:
        """Return the newest configuration in the log, committed or not."""
        return self._core.journal.configuration

    @property
    def roster(self) -> Roster:
        """Return the newest configuration and registry in the log, committed or not: the same object while both are."""
        return self._core.journal.roster

    @property
    def applied(self) -> tuple[int, int]:
        """Index and term of the last entry that is durable and applied here."""
        return self._core.applied

    @property
    def progress(self) -> Sequence[PeerProgress]:
        """At the leader, one for each other member; empty elsewhere."""
        return self._replication.progress() if self._core.is_leading else ()

    @property
    def election_counts(self) -> ElectionCounts:
        """Since the start of this process."""
        elections = self._elections
        return ElectionCounts(elections.pre_vote_rounds, elections.campaigns, elections.votes_given)

    # --- input ------------------------------------------------------------------------------------------------------

    def append(self, payload: Payload, *, is_examined: bool = False) -> Entry:
        """Append at the leader; the entry follows :attr:`last` directly. Followers ask :attr:`examine` whether they
        may keep one that ``is_examined``.

        Raises NotLeader, and TooLarge over the bound of an entry."""
        self._core.check_may_append()
        return self._append(KIND_EXAMINED if is_examined else KIND_DATA, payload)

    @property
    def examine(self) -> Examine | None:
        """Return how this replica examines entries while it follows."""
        return self._core.examine

    @examine.setter
    def examine(self, examine: Examine | None) -> None:
        self._core.examine = examine

    def take_doubts(self) -> Sequence[Doubt]:
        """Return the followers' doubts about this leader's entries since the last call."""
        taken = tuple(self.doubts)
        self.doubts.clear()
        return taken

    def disown(self, index: int) -> bool:
        """Give leadership up, and the entries from ``index`` on, which were worked out wrongly. Returns False, and does
        nothing, if they are committed or may be: the leader of an earlier term may have counted this replica's
        acknowledgement of its entry at ``index``.

        Entries of this term that are not committed were counted by this leader alone: it forgets them as a crash before
        the sync would have done. It does so on leaving the term, so that no other entry can take the place in the same
        term. It could not yet tell a later leader that it holds them.
        """
        core, journal = self._core, self._core.journal
        if not core.is_leading or index <= core.journal.commit_index or journal.term_at(index) != journal.term:
            return False
        core.engine.set_time(core.now_ms)
        core.engine.step_down(journal.term + 1)
        journal.truncate(index)
        self._changed()
        return True

    def _append(self, kind: int, payload: Payload) -> Entry:
        core = self._core
        record = Record(kind, payload, core.journal.last_index + 1, core.journal.term)
        entry = record.entry
        assert entry is not None
        size, limit = len(record.stored(core.group_id)), core.settings.entry_bytes_max
        if size > limit:
            problem = f"an entry of the log may have at most {limit} bytes"
            raise TooLarge("entry", problem, str(size), size, limit)
        core.engine.set_time(core.now_ms)
        core.engine.append(record)
        self._has_unsent = True
        return entry

    def step(self, sender: str, body: bytes) -> None:
        """Take a message from a peer. Malformed or stale ones change nothing. Raises DataLoss if a majority of other
        voters contradicts a committed entry or this log: the node must stop."""
        try:
            _BOUNDS.check(body)
            message = pb.RaftMessage.FromString(body)
        except (DecodeError, InvalidArgument):
            return
        kind = message.WhichOneof("kind")
        if kind is None or sender == self._core.node_id:
            return
        core = self._core
        if not self.standing.may_speak(sender):
            self.refusals.note(sender, "it is no known member, and no member vouched for it")
            return
        problem = problem_of(message, core.journal.term) or self.disputes.problem_of(sender, message, kind)
        if problem:
            self.refusals.note(sender, problem)
            return
        core.engine.set_time(core.now_ms)
        if kind == "vote_request":
            self._elections.on_request(sender, message)
        elif kind == "inquiry":
            self.disputes.on_inquiry(sender, message.inquiry)
        elif kind == "finding":
            self.disputes.on_finding(sender, message)
        elif self._is_of_our_term(sender, message, kind):
            self._dispatch(sender, message, kind)
        self._changed()

    def _is_of_our_term(self, sender: str, message: pb.RaftMessage, kind: str) -> bool:
        """Enter a higher term; let the leader of a lower one know of ours. Messages of a lower one change nothing."""
        core = self._core
        if message.term > core.journal.term:
            core.engine.step_down(message.term)
            self._changed()
        elif message.term < core.journal.term:
            if kind in ("append", "heartbeat", "snapshot"):
                core.send(sender, pb.RaftMessage(acknowledgement=pb.Acknowledgement(heard=True)))
            return False
        return True

    def _dispatch(self, sender: str, message: pb.RaftMessage, kind: str) -> None:
        if kind == "append":
            self._following.on_append(sender, message)
        elif kind == "heartbeat":
            self._following.on_heartbeat(sender, message)
        elif kind == "snapshot":
            self._following.on_snapshot(sender, message)
        elif kind == "vote_response":
            self._elections.on_response(sender, message.vote_response)
        elif kind == "timeout_now":
            self._on_timeout_now(sender)
        elif self._core.is_leading:
            self._replication.on_acknowledgement(sender, message)

    def _on_timeout_now(self, sender: str) -> None:
        core = self._core
        if sender == core.engine.leader and self._elections.may_campaign:
            self._elections.campaign(is_transfer=True)

    def tick(self, now_ms: float) -> None:
        """Advance the time, and do all that is due."""
        core = self._core
        core.now_ms = max(core.now_ms, now_ms)
        core.engine.set_time(core.now_ms)
        is_disk_hung = self.storing.is_disk_hung()
        self.disputes.tick()
        self._elections.tick(is_disk_hung=is_disk_hung)
        core.engine.tick()
        self._changed()
        if core.is_leading:
            self._lead(is_disk_hung)

    def _lead(self, is_disk_hung: bool) -> None:
        core = self._core
        if is_disk_hung and core.journal.configuration.majority > 1:
            # Nothing of ours becomes durable: another node can do better.
            core.engine.step_down(core.journal.term + 1)
            self._changed()
            return
        if not core.may_lead:
            self.transfer.begin_unasked()
        self._replication.tick()
        if core.transferee:
            self.transfer.tick()

    @property
    def next_tick_ms(self) -> float:
        """Return the time at which the next :meth:`tick` is due, at the latest."""
        core = self._core
        if not core.is_leading:
            if core.heard_of_leader:
                return core.now_ms
            if core.engine.role == CANDIDATE:
                # A winner leads from the last tick on: the engine must not find that long ago.
                return min(self._elections.deadline_ms, core.now_ms + core.settings.heartbeat_ms)
            is_voter = core.journal.configuration.is_voter(core.node_id)
            due_ms = self._elections.deadline_ms if is_voter else core.now_ms + _IDLE_MS
            return min(due_ms, self.disputes.due_ms)
        is_alone = core.journal.configuration.is_alone(core.node_id)
        return core.now_ms + _IDLE_MS if is_alone else self._replication.next_tick_ms

    def _changed(self) -> None:
        """Follow the engine after a call that may have moved it: a leadership began or ended, the configuration
        changed."""
        core = self._core
        configuration = core.journal.configuration
        if configuration is not self._seen_configuration:
            self._seen_configuration = configuration
            others = configuration.others(core.node_id)
            voters = [each for each in others if configuration.is_voter(each)]
            core.engine.set_members(voters, [each for each in others if not configuration.is_voter(each)])
            invariant(not core.is_leading or bool(configuration.voters), "a leader's configuration has voters")
            if core.is_leading and self._was_leading:
                self._replication.set_members()
        if core.is_leading != self._was_leading:
            self._was_leading = core.is_leading
            if core.is_leading:
                self._replication.begin()
                self._following.offer = None
            else:
                self.storing.leadership_ended()
                self._replication.end()
                self.transfer.end()
                self._elections.restart_timer()

    def _engine_sends(self, to: str, message: Sent) -> None:
        kind = message["type"]
        if kind == "append_entries":
            self._replication.send_entries(to, message)
        elif kind == "request_vote":
            self._elections.send_request(to, message)
        elif kind == "response_vote":
            self._elections.send_vote(to, message)
        # next_node_idx: the rooms answer, which know the entries that a message proved.

    # --- output -----------------------------------------------------------------------------------------------------

    def outbox(self) -> Sequence[Message]:
        """Messages that may leave now. Each is handed over once."""
        if self._has_unsent:
            self._send_entries()
        return self._core.outbox.take()

    def _send_entries(self) -> None:
        """Send all entries that were appended since the last call together."""
        if self._has_unsent:
            self._has_unsent = False
            core = self._core
            if core.is_leading:
                core.engine.set_time(core.now_ms)
                core.engine.send_entries()

    def synced(self, writes: Writes) -> None:
        """Record that ``writes`` are durable."""
        core = self._core
        self.storing.synced(writes)
        if core.is_leading:
            core.engine.set_time(core.now_ms)
            if self._replication.became_durable():
                core.engine.tick()
                self._changed()

    def withdraw(self, writes: Writes) -> bool:
        """Take ``writes`` back that the node could not store (there is no room). True: no other member can hold their
        entries, so they and all after them are taken back, and :attr:`last` is again the last durable entry. False:
        they stand; the node must try the same writes again, whole, or stop."""
        is_withdrawn = self.storing.withdraw(writes)
        if is_withdrawn:
            self._changed()
        return is_withdrawn

    # --- linearizable reads -------------------------------------------------------------------------------------------

    def read_round(self) -> int:
        """Join a round of heartbeats that has not begun yet, and return its number. A read that was asked for before
        may be answered from the state at :attr:`durable_commit_index` (or later) as soon as :attr:`confirmed_round` has
        reached it *in the same term*. Raises NotLeader. A lease is looked at by the next tick, which brings the time.
        """
        core, rounds = self._core, self._replication.rounds
        if not core.is_leading or not core.has_applied_own_term:
            raise core.not_leader()
        if core.journal.configuration.majority == 1:
            rounds.confirm_now()
            return rounds.confirmed
        return rounds.join()

    @property
    def has_round_under_way(self) -> bool:
        """Return whether a round of heartbeats awaits its answers; the next one begins when they are here."""
        return self._replication.rounds.is_under_way

    @property
    def confirmed_round(self) -> int:
        """Return the last round that a majority answered: no other node led when it began."""
        return self._replication.rounds.confirmed

    @property
    def fresh_as_of_ms(self) -> float | None:
        """Return a local time: the applied state contains all entries that were committed by then, whatever the network
        did. The leader echoed this time of ours; at a leader, its last confirmed round began then. None if no time is
        known."""
        return self._core.freshness.as_of_ms

    @property
    def fresh_once_applied_ms(self) -> float | None:
        """Return the value that :attr:`fresh_as_of_ms` will have, at least, once all entries that may be applied
        are."""
        return self._core.freshness.once_applied(self._core.appliable_index)

    # --- membership and leadership ------------------------------------------------------------------------------------

    @property
    def may_lead(self) -> bool:
        """Return whether this node may lead. False keeps it from campaigning (its clock is wrong, it is installing a
        snapshot, it stops). A leader then hands over if another voter can take over."""
        return self._core.may_lead

    @may_lead.setter
    def may_lead(self, value: bool) -> None:
        self._core.may_lead = value


assert LEADER == 2
