"""One replica of a replicated log: the adapter around PySyncObj, assembled.

A :class:`RaftLog` is a core without I/O, in the manner of etcd's ``raft.Node``: the node gives it proposals, messages
and time, and takes what is to be done as values (:mod:`~cortado.raft.log`). The order is what matters, and the node's
driver keeps it::

    step(sender, body) ...                         what arrived
    append(payload) ...                            at the leader: what was proposed
    tick(now_ms)
    outbox()   ->  messages that may leave at once
    ready()    ->  one synced transaction: writes + committed entries, applied
    synced(ready)
    outbox()   ->  messages that waited for it
    durable_commit_index   callers of entries up to here may be answered

Nothing that depends on a Ready's ``writes`` leaves the node before they are durable: ``outbox`` holds it back. At most
one Ready is outstanding. A log knows nothing of tables, of gRPC, or of what a payload means.

Inside, each room has a file, and this one orders their calls, hands over what is committed, and keeps the log's
window::

    step ─► standing, bounds, terms ─► elections ─┐                          ┌─► outbox (held until durable)
                                       following ─┼─► engine (PySyncObj) ─► journal ─► ready ─► synced
                                       replication┘                          └─► committed entries
    tick ─► timers of all of them

``docs/adr/0008-raft-over-pysyncobj.md`` says what the adapter must never let the engine see, and why.
"""

from __future__ import annotations

import logging
import random as random_module
from collections.abc import Sequence
from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import DataLoss, InvalidArgument, NotLeader, TooLarge
from cortado.invariants import invariant
from cortado.proto.bounds import MessageBounds
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.bootstrap import check_term
from cortado.raft.bounds import problem_of
from cortado.raft.configuration import Configuration, Member
from cortado.raft.core import Core
from cortado.raft.elections import ElectionCounts, Elections
from cortado.raft.engine import CANDIDATE, LEADER, Engine, Sent
from cortado.raft.following import Following
from cortado.raft.journal import Journal
from cortado.raft.log import (
    Doubt,
    Entry,
    Examine,
    Message,
    Payload,
    PeerProgress,
    Ready,
    SnapshotMeta,
    SnapshotOffer,
)
from cortado.raft.membership import Membership
from cortado.raft.outbox import Outbox
from cortado.raft.records import KIND_CONFIGURATION, KIND_DATA, KIND_EXAMINED, Record, decode_stored
from cortado.raft.replication import Replication
from cortado.raft.settings import RaftSettings
from cortado.raft.standing import Standing
from cortado.raft.transfer import Transfer

_LOG: Final = logging.getLogger(__name__)

# What one Ready applies at most: a replica that learns of many committed entries at once applies them in steps.
_COMMITTED_BYTES_MAX = 16 << 20
_COMMITTED_ENTRIES_MAX = 4096
# Of so many senders it is remembered how often they were refused.
_REFUSED_MAX = 64
# A disk hangs where a transaction takes so many times as long as the others', or as the slowest of late where they are
# not asked for the same; or so many election timeouts.
_SLOWER_THAN_USUAL = 3
_HUNG_ELECTIONS = 10
_USUAL_FADES = 0.9
# When nothing is due.
_IDLE_MS = 60_000.0
# What a message may hold: more than fits of the smallest records, and of members.
_BOUNDS = MessageBounds(
    pb.RaftMessage,
    {
        "cortado.internal.AppendEntries.records": 65_536,
        "cortado.internal.Configuration.voters": 1_000,
        "cortado.internal.Configuration.learners": 1_000,
    },
    bytes_max=8 << 20,
    what="message",
)


class RaftLog:
    """A group's log. All calls come from one thread, the node's loop. Times are monotonic milliseconds."""

    def __init__(
        self,
        node_id: str,
        settings: RaftSettings,
        *,
        group_id: int,
        random: random_module.Random,
        stored: Sequence[tuple[bytes, bytes]],
        applied: tuple[int, int],
        now_ms: float,
        joined: Configuration | None = None,
    ) -> None:
        """``stored`` are the group's keys and values of the log's space, ``applied`` is the last applied entry's index
        and term. Nothing stored is a replica that has received nothing yet: it has no configuration, never votes or
        campaigns, and hears the members of ``joined`` alone, which let it in.

        Raises DataLoss where ``stored`` is damaged, or contradicts ``applied``."""
        settings.check()
        if not stored and applied != (0, 0):
            raise DataLoss(f"the log of group {group_id}", f"it is empty, but entry {applied[0]} is applied")
        journal = Journal(group_id, decode_stored(group_id, stored), applied)
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
        self._standing = Standing(journal, joined or Configuration())
        self._refused: dict[str, int] = {}
        self._replication = Replication(self._core)
        self._following = Following(self._core)
        self._elections = Elections(self._core, is_first_incarnation=not stored)
        self._transfer = Transfer(self._core, self._replication)
        self._membership = Membership(self._core, self._replication)
        self._members: Configuration | None = None
        self._was_leading = False
        self._handed_index = self._first_to_hand_over() - 1
        self._outstanding: Ready | None = None
        self._outstanding_since_ms = 0.0
        self._others_stored_ms: float | None = None
        self._is_suffix_kept = True
        self._has_unsent = False
        self._changed()

    def _first_to_hand_over(self) -> int:
        """After a restart: what the data contains is not applied again."""
        return self._core.applied[0] + 1

    # --- what it knows ----------------------------------------------------------------------------------------------

    @property
    def term(self) -> int:
        return self._core.journal.term

    @property
    def is_leader(self) -> bool:
        """True where this node leads, has applied an entry of its own term, and no hand-over is under way: only then
        may commands be evaluated and appended."""
        core = self._core
        return core.is_leading and core.has_applied_own_term and not self._transfer.target

    @property
    def leader(self) -> str:
        """The leader's node id, possibly our own; empty while none is known."""
        return self._core.engine.leader if self._elections.is_led else ""

    @property
    def last(self) -> tuple[int, int]:
        """Index and term of the last entry, applied or not."""
        return self._core.journal.last

    @property
    def durable_commit_index(self) -> int:
        """Every entry up to this index is committed and durable on a majority: it will never be taken back."""
        return self._core.durable_commit_index

    @property
    def configuration(self) -> Configuration:
        """The newest one in the log, committed or not."""
        return self._core.configuration

    def configuration_at(self, index: int) -> Configuration:
        """The one in force at entry ``index``, which the log holds or begins after: a snapshot's."""
        return self._core.journal.configuration_at(index)

    def member(self, node_id: str) -> Member | None:
        """A member by any configuration that may be in force: one whose removal is not committed yet, too."""
        return self._standing.member(node_id, self._core.durable_commit_index)

    @property
    def known_members(self) -> tuple[Member, ...]:
        """All that :meth:`member` finds. Before anything was received: who let this replica in."""
        return self._standing.members(self._core.durable_commit_index)

    def believe(self, node_id: str, position: tuple[int, int]) -> None:
        """Hear ``node_id`` although no configuration here has it: members vouched for it, the log of the one that is
        furthest ends at ``position`` (term, index). Until ours is as long."""
        self._standing.believe(node_id, position)

    def is_believed(self, node_id: str) -> bool:
        return self._standing.is_believed(node_id)

    @property
    def base(self) -> tuple[int, int]:
        """Index and term that the log begins after: entries up to there are gone."""
        return self._core.journal.base

    @property
    def applied(self) -> tuple[int, int]:
        """Index and term of the last entry that is durable and applied here."""
        return self._core.applied

    def term_at(self, index: int) -> int | None:
        """The term of an entry that the log holds, or begins after."""
        return self._core.journal.term_at(index)

    @property
    def has_members(self) -> bool:
        """Whether anyone else belongs to the group."""
        return bool(self._core.configuration.others(self._core.node_id))

    @property
    def progress(self) -> Sequence[PeerProgress]:
        """At the leader, one for each other member; empty elsewhere."""
        return self._replication.progress() if self._core.is_leading else ()

    @property
    def window(self) -> tuple[int, int]:
        """How many entries the log holds in memory, and the bytes of those that are stored."""
        journal = self._core.journal
        return journal.last_index - journal.base[0], journal.size_bytes

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
        self._check_leads()
        return self._append(KIND_EXAMINED if is_examined else KIND_DATA, payload)

    @property
    def examine(self) -> Examine | None:
        """How this replica examines entries, where it follows."""
        return self._core.examine

    @examine.setter
    def examine(self, examine: Examine | None) -> None:
        self._core.examine = examine

    def take_doubts(self) -> Sequence[Doubt]:
        """What followers doubted of this leader's entries since the last call."""
        taken, self._core.doubts = self._core.doubts, []
        return taken

    def disown(self, index: int) -> bool:
        """Give leadership up, and the entries from ``index`` on, which were worked out wrongly. False, and nothing is
        done, where they are committed, or may be: where ``index`` is of an earlier term, whose leader may have counted
        what this replica acknowledged.

        What is of this term and not committed was counted by nobody but this leader: to forget it is what a crash
        before the sync would have done. It does so on leaving the term, so that no other entry can take the place in
        the same term, and before it could tell a later leader that it holds them.
        """
        core, journal = self._core, self._core.journal
        if not core.is_leading or index <= core.engine.commit_index or journal.term_at(index) != journal.term:
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
        if self._members is None or not self._members.is_alone(core.node_id):
            size, limit = len(record.stored(core.group_id)), core.settings.entry_bytes_max
            if size > limit:
                problem = f"an entry of the log may have at most {limit} bytes"
                raise TooLarge("entry", problem, str(size), size, limit)
        core.engine.set_time(core.now_ms)
        core.engine.append(record)
        self._has_unsent = True
        return entry

    def step(self, sender: str, body: bytes) -> None:
        """Take a message from a peer. Malformed or stale ones change nothing. Raises DataLoss where a leader
        contradicts what was committed here: the node must stop."""
        try:
            _BOUNDS.check(body)
            message = pb.RaftMessage.FromString(body)
        except (DecodeError, InvalidArgument):
            return
        kind = message.WhichOneof("kind")
        if kind is None or sender == self._core.node_id:
            return
        core = self._core
        if not self._standing.may_speak(sender, core.durable_commit_index):
            self._refuse(sender, "it is no member that we know, and nobody vouched for it")
            return
        problem = problem_of(message, core.journal.term)
        if problem:
            self._refuse(sender, problem)
            return
        core.engine.set_time(core.now_ms)
        if kind == "vote_request":
            self._elections.on_request(sender, message)
        elif self._is_of_our_term(sender, message, kind):
            self._dispatch(sender, message, kind)
        self._changed()

    def _refuse(self, sender: str, problem: str) -> None:
        """Drop a message. A sender's first is said, and then less and less often."""
        if sender not in self._refused and len(self._refused) >= _REFUSED_MAX:
            self._refused.clear()
        times = self._refused[sender] = self._refused.get(sender, 0) + 1
        if times & (times - 1) == 0:
            group_id = self._core.group_id
            _LOG.warning("refused a message of %s to group %d (%d so far): %s", sender, group_id, times, problem)

    def _is_of_our_term(self, sender: str, message: pb.RaftMessage, kind: str) -> bool:
        """Enter a higher term; let the leader of a lower one know of ours. Messages of a lower one change nothing."""
        core = self._core
        if message.term > core.journal.term:
            core.engine.step_down(message.term)
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
        if sender == core.engine.leader and core.may_lead and core.configuration.is_voter(core.node_id):
            self._elections.campaign(is_transfer=True)

    def tick(self, now_ms: float) -> None:
        """Let time pass, and do what is due."""
        core = self._core
        core.now_ms = max(core.now_ms, now_ms)
        core.engine.set_time(core.now_ms)
        self._see_how_others_store()
        is_disk_hung = self._is_disk_hung()
        self._elections.tick(is_disk_hung=is_disk_hung)
        core.engine.tick()
        self._changed()
        if core.is_leading:
            self._lead(is_disk_hung)

    def _lead(self, is_disk_hung: bool) -> None:
        core = self._core
        if is_disk_hung and core.configuration.majority > 1:
            # Nothing that we count as ours becomes durable: another node can do better.
            core.engine.step_down(core.journal.term + 1)
            self._changed()
            return
        if not core.may_lead:
            self._transfer.begin_unasked()
        self._replication.tick()
        self._transfer.tick()

    def _is_disk_hung(self) -> bool:
        """Whether another node could do better than this one. A disk that is slow, and no slower than the others', is
        no reason to give way: the next leader would be deposed as we are, and the one after it."""
        core = self._core
        if self._outstanding is None:
            return False
        waits_ms, election_ms = core.now_ms - self._outstanding_since_ms, core.settings.election_ms_max
        if waits_ms <= election_ms:
            return False
        usual_ms = core.usual_sync_ms
        if core.is_leading and core.journal.storing_to is not None:
            # The others' disks tell: they were sent the same entries.
            usual_ms = waits_ms if self._others_stored_ms is None else self._others_stored_ms
        return waits_ms > min(_SLOWER_THAN_USUAL * usual_ms, _HUNG_ELECTIONS * election_ms)

    def _see_how_others_store(self) -> None:
        """How long a majority without us took for what our disk still works on."""
        core = self._core
        index = core.journal.storing_to
        if not core.is_leading or self._others_stored_ms is not None or index is None:
            return
        if self._replication.is_decided_without_us(index):
            self._others_stored_ms = core.now_ms - self._outstanding_since_ms

    @property
    def next_tick_ms(self) -> float:
        """When the next :meth:`tick` is due, at the latest."""
        core = self._core
        if not core.is_leading:
            if core.heard_of_leader:
                return core.now_ms
            if core.engine.role == CANDIDATE:
                # Who wins leads from the last tick on: the engine must not find that long ago.
                return min(self._elections.deadline_ms, core.now_ms + core.settings.heartbeat_ms)
            return self._elections.deadline_ms if core.configuration.is_voter(core.node_id) else core.now_ms + _IDLE_MS
        return self._replication.next_tick_ms if self.has_members else core.now_ms + _IDLE_MS

    def _changed(self) -> None:
        """After whatever may have moved the engine: a leadership that began or ended, another configuration."""
        core = self._core
        configuration = core.journal.configuration
        if configuration is not self._members:
            self._members = configuration
            others = [each.node_id for each in configuration.others(core.node_id)]
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
                self._count_what_is_durable()
                self._replication.end()
                self._transfer.end()
                self._elections.restart_timer()

    def _count_what_is_durable(self) -> None:
        """A leadership ended. What we counted alone and do not have on our disk was not committed: the next leader may
        put something else in its place. (What is on its way to the disk to be applied there was committed before.)"""
        core = self._core
        commit_index = core.engine.commit_index
        known = max(min(commit_index, core.journal.durable_index), self._handed_index)
        if known < commit_index or core.journal.durable_index < commit_index:
            core.counted_alone_to = commit_index
            core.engine.set_applied(core.applied[0], commit_index=known)

    def _engine_sends(self, to: str, message: Sent) -> None:
        kind = message["type"]
        if kind == "append_entries":
            self._replication.send_entries(to, message)
        elif kind == "request_vote":
            self._elections.send_request(to, message)
        elif kind == "response_vote":
            self._elections.send_vote(to, message)
        # next_node_idx: what a message proved is answered by the rooms, which know.

    # --- output -----------------------------------------------------------------------------------------------------

    def outbox(self) -> Sequence[Message]:
        """Messages that may leave now. Each is handed over once."""
        self._send_entries()
        return self._core.outbox.take()

    def _send_entries(self) -> None:
        """What was appended since the last time goes out together."""
        if self._has_unsent:
            self._has_unsent = False
            core = self._core
            if core.is_leading:
                core.engine.set_time(core.now_ms)
                core.engine.send_entries()

    @property
    def has_writes(self) -> bool:
        """Whether the log itself has something to be made durable: entries, a term, a vote. False where the next
        Ready would only apply what is committed. Not to be asked while a Ready is outstanding."""
        journal = self._core.journal
        return journal.is_dirty or self._keeps_entries() != journal.keeps_entries

    def ready(self) -> Ready:
        """What is to be made durable and applied now; falsy where there is nothing. Each entry is handed over once."""
        if self._outstanding is not None:
            return Ready()
        core, journal = self._core, self._core.journal
        is_within = self._handed_index <= core.engine.commit_index <= journal.last_index
        invariant(is_within, "what is handed over is committed, and that is in the log", self._handed_index)
        committed = self._take_committed()
        keeps_entries = self._keeps_entries()
        if not committed and not journal.is_dirty and keeps_entries == journal.keeps_entries:
            return Ready()
        self._outstanding = Ready(journal.take_writes(keeps_entries), committed)
        self._outstanding_since_ms = core.now_ms
        self._others_stored_ms = None
        return self._outstanding

    def _take_committed(self) -> list[Entry]:
        journal = self._core.journal
        first, last = self._handed_index + 1, self._core.engine.commit_index
        if journal.keeps_entries:
            last = min(last, self._handed_index + _COMMITTED_ENTRIES_MAX)
        taken: list[Entry] = []
        size = 0
        for record in journal.records(first, last) if first <= last else ():
            taken.append(record.taken_entry())
            size += len(record)
            # What is not stored must be applied.
            if size >= _COMMITTED_BYTES_MAX and journal.keeps_entries:
                break
        self._handed_index += len(taken)
        is_next = not taken or (taken[0].index, taken[-1].index) == (first, self._handed_index)
        invariant(is_next, "entries are handed over one after the other", first, self._handed_index)
        return taken

    def _keeps_entries(self) -> bool:
        """Whether entries are stored: not where nobody else asks for them, and all are applied with this Ready."""
        core, journal = self._core, self._core.journal
        if not core.configuration.is_alone(core.node_id):
            return True
        is_all_handed = self._handed_index == journal.last_index
        return not is_all_handed if core.is_leading else journal.keeps_entries or not is_all_handed

    def synced(self, ready: Ready) -> None:
        """The node's word that ``ready`` is durable and its committed entries are applied."""
        core = self._core
        invariant(self._outstanding is ready, "the Ready that became durable is the outstanding one")
        self._outstanding = None
        core.usual_sync_ms = max(core.now_ms - self._outstanding_since_ms, _USUAL_FADES * core.usual_sync_ms)
        core.journal.synced()
        if ready.committed:
            (index, term), last = core.applied, ready.committed[-1]
            is_next = last.index == index + len(ready.committed) and last.term >= term
            invariant(is_next, "what is applied advances by the entries of the Ready", core.applied, last.index)
            core.applied = last.index, last.term
            is_within = core.journal.base[0] <= last.index <= core.journal.durable_index
            invariant(is_within, "what is applied is durable, and above the log's base", core.journal.base, last.index)
            core.freshness.applied(core.applied[0])
        if not core.journal.keeps_entries:
            core.journal.drop_to(core.applied[0])
        if core.is_leading:
            core.engine.set_time(core.now_ms)
            if self._replication.became_durable():
                core.engine.tick()
                self._changed()

    def withdraw(self, ready: Ready) -> bool:
        """The node could not store ``ready`` (there is no room). True: nobody else can hold its entries, so they and
        all after them are taken back, and :attr:`last` is again the last durable entry. False: they stand; the node
        must try the same Ready again, whole, or stop."""
        core = self._core
        invariant(self._outstanding is ready, "the Ready that is withdrawn is the outstanding one")
        # A term or a configuration that others may know of stands. So do entries that are stored: they were committed
        # while there were others, or as soon as there were none.
        if ready.writes or core.journal.keeps_entries:
            return False
        if not core.is_leading or not core.configuration.is_alone(core.node_id):
            return False
        self._outstanding = None
        core.journal.withdrawn(core.applied[0])
        core.engine.set_time(core.now_ms)
        core.engine.set_applied(core.applied[0], commit_index=core.applied[0])
        self._handed_index = core.applied[0]
        self._changed()
        return True

    # --- linearizable reads -------------------------------------------------------------------------------------------

    def read_round(self) -> int:
        """Join a round of heartbeats that has not begun yet, and return its number. A read that was asked for before
        may be answered from the state at :attr:`durable_commit_index` (or later) as soon as :attr:`confirmed_round` has
        reached it *in the same term*. Raises NotLeader.

        With a lease, the next tick confirms it: the tick brings the time, and a lease must not be judged by an old
        one."""
        core, rounds = self._core, self._replication.rounds
        if not core.is_leading or not core.has_applied_own_term:
            raise self._not_leader()
        if core.configuration.majority == 1:
            rounds.confirm_now()
            return rounds.confirmed
        return rounds.join()

    @property
    def confirmed_round(self) -> int:
        """A majority has answered the leader in this round: nobody else led when it began."""
        return self._replication.rounds.confirmed

    @property
    def fresh_as_of_ms(self) -> float | None:
        """What is applied here contains everything that was committed at this local time, whatever the network did (a
        time of ours that the leader echoed). None where nothing is known. At a leader: of its last confirmed round."""
        return self._core.freshness.as_of_ms

    # --- membership, one change at a time; each raises NotLeader, InvalidArgument or Unavailable ---------------------

    def add_learner(self, member: Member) -> Entry | None:
        """Announce a member that has no data directory yet. None where it is announced already, with this address."""
        self._check_leads()
        configuration = self._membership.add_learner(member)
        return None if configuration is None else self._configure(configuration)

    def bind(self, node_id: str, storage_id: str, address: str) -> Entry | None:
        """A member's data directory presents itself: remember ``storage_id`` where none is known, and a new address.
        None where both are known already. Raises InvalidArgument where another data directory is known by this id."""
        self._check_leads()
        configuration = self._membership.bind(node_id, storage_id, address)
        return None if configuration is None else self._configure(configuration)

    def promote(self, node_id: str) -> Entry:
        """Make a learner that has caught up a voter."""
        self._check_leads()
        return self._configure(self._membership.promote(node_id))

    def remove(self, node_id: str) -> Entry:
        """Remove a member other than ourselves."""
        self._check_leads()
        return self._configure(self._membership.remove(node_id))

    def _configure(self, configuration: Configuration) -> Entry:
        # A member that leaves is sent what came before. The change itself it never sees: were it to know of it before
        # that is committed, it would neither campaign nor vote for those who lack it, and a group of two could not go
        # on.
        self._send_entries()
        before, after = ({each.node_id for each in of.voters} for of in (self._core.configuration, configuration))
        invariant(bool(after), "a new configuration has voters")
        invariant(len(before ^ after) <= 1, "voters change one at a time", before, after)
        entry = self._append(KIND_CONFIGURATION, configuration)
        self._changed()
        return entry

    # --- leadership ---------------------------------------------------------------------------------------------------

    def transfer(self, to: str = "") -> str:
        """Begin to hand leadership to the voter ``to`` (empty: the one that is furthest), and return its id. Nothing
        can be appended until it has happened or an election timeout has passed. Raises as the membership calls."""
        self._check_leads()
        return self._transfer.begin(to)

    @property
    def may_lead(self) -> bool:
        """False keeps this node from campaigning (its clock is wrong, it is installing a snapshot, it stops), and a
        leader from staying one where another voter can take over."""
        return self._core.may_lead

    @may_lead.setter
    def may_lead(self, value: bool) -> None:
        self._core.may_lead = value

    def _check_leads(self) -> None:
        if not self.is_leader:
            raise self._not_leader()

    def _not_leader(self) -> NotLeader:
        core = self._core
        if core.is_leading:
            problem = "leadership is being handed over" if self._transfer.target else "the new leader is not ready yet"
            return NotLeader(problem)
        member = core.configuration.member(core.engine.leader)
        address = "" if member is None else member.address
        return NotLeader(f"{core.node_id} does not lead group {core.group_id}", leader=address)

    # --- compaction and snapshots -------------------------------------------------------------------------------------

    def compact(self, index: int) -> None:
        """Entries up to ``index``, which are applied here, may go, but for those kept for followers that are a little
        behind. The deletes come with a later Ready."""
        core, journal = self._core, self._core.journal
        if not journal.keeps_entries:
            return
        index = min(index, core.applied[0], journal.durable_index)
        new_base = journal.base[0]
        lowest = self._replication.lowest_match() if core.is_leading else None
        count, size = journal.last_index - new_base, journal.size_bytes
        while new_base < index:
            is_wanted = not core.is_leading or (lowest is not None and lowest <= new_base)
            if is_wanted and count <= core.settings.retain_entries and size <= core.settings.retain_bytes:
                break
            new_base += 1
            count -= 1
            size -= len(journal.record_at(new_base))
        if new_base > journal.base[0]:
            journal.drop_to(new_base)
            if core.is_leading:
                self._replication.log_moved()

    @property
    def snapshot_needs(self) -> Sequence[str]:
        """At the leader: members whose next entry is gone."""
        return self._replication.snapshot_needs() if self._core.is_leading else ()

    def offer_snapshot(self, to: str, meta: SnapshotMeta) -> None:
        """Tell a member, again and again until it needs it no longer, where to fetch a state."""
        if self._core.is_leading:
            self._replication.offer(to, meta)

    @property
    def snapshot_offer(self) -> SnapshotOffer | None:
        """On a replica that fell behind: what the leader of its term offers now."""
        core, offer = self._core, self._following.offer
        if offer is None or offer.sender != core.engine.leader or offer.meta.index <= core.durable_commit_index:
            return None
        return offer

    def install(self, meta: SnapshotMeta) -> Sequence[tuple[bytes, bytes | None]]:
        """The writes that reset the log to ``meta``, for the last transaction of an installation. Nothing changes in
        memory before :meth:`installed`. No Ready may be outstanding."""
        is_ahead = meta.index > self._core.applied[0]
        invariant(self._outstanding is None, "no Ready is outstanding where a snapshot is installed")
        invariant(is_ahead, "a snapshot that is installed is ahead of what is applied", meta.index, self._core.applied)
        writes, self._is_suffix_kept = self._core.journal.reset_writes(meta.index, meta.term, meta.configuration)
        return writes

    def installed(self, meta: SnapshotMeta) -> None:
        """That transaction is durable: the log begins after ``meta.index``, and goes on from there."""
        core, commit_index = self._core, self._core.engine.commit_index
        core.engine.set_time(core.now_ms)
        if meta.term > core.journal.term:
            # The disk says so already. A lower term, stored later, would contradict the log.
            core.engine.step_down(meta.term)
        core.journal.reset(meta.index, meta.term, meta.configuration, was_kept=self._is_suffix_kept)
        core.applied = meta.index, meta.term
        self._handed_index = meta.index
        core.engine.set_applied(meta.index, commit_index=max(meta.index, min(commit_index, core.journal.last_index)))
        core.freshness.applied(meta.index)
        self._changed()
        self._following.installed()


assert LEADER == 2
