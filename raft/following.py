"""The follower's side: take the new entries of a leader's message, and acknowledge the entries that are held.

PySyncObj deletes all entries behind the place that a message follows, whether they conflict or not. A late message
would so take back acknowledged entries. Here a message is compared with the log first::

    held:      .. 5 6 7 8            message: behind 5: 6 7 8 9
    delivered:                                behind 8: 9
    answered:  we hold durably what you hold up to 9

An entry that names the versions it was worked out from is examined before it is kept
(:data:`~cortado.raft.log.Examine`). If they differ from ours, the entry is dropped with all behind it, as if it had not
come. If the leader must be the wrong one, it is told. Until the damage is mended the entry comes again and again.

Nothing at or below the commit index is ever truncated: a message that asks for it has been refused before it comes here
(:mod:`~cortado.raft.disputes`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from cortado.errors import DataLoss
from cortado.invariants import invariant
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.core import Core
from cortado.raft.log import Doubt, SnapshotMeta, SnapshotOffer
from cortado.raft.records import KIND_EXAMINED, Record, decode_record
from cortado.raft.refusals import Refusals
from cortado.raft.registry import Roster

_LOG: Final = logging.getLogger(__name__)


class Following:
    """Takes messages of our own term's leader; the caller has dealt with terms."""

    def __init__(self, core: Core, refusals: Refusals) -> None:
        self._core = core
        self._refusals = refusals
        self.offer: SnapshotOffer | None = None
        # The sender and the ``prev_index`` of the last damaged message, and the number of such messages in a row.
        self._damaged_at: tuple[tuple[str, int], int] = ("", 0), 0

    def _hear(self, sender: str, message: pb.RaftMessage) -> bool:
        """Return whether the message is from the term's one leader; notes that it lives."""
        core = self._core
        if core.led_term == message.term or core.engine.leader not in ("", sender):
            self._refusals.note(sender, f"it says that it leads term {message.term}, which we or another lead")
            return False
        core.heard_of_leader = True
        # A time of an earlier incarnation means nothing now: the host's clock may have begun again.
        if message.fresh_index and message.incarnation == core.incarnation and message.echo_ms <= core.now_ms:
            core.freshness.note(message.echo_ms, message.fresh_index, core.applied[0])
        return True

    # --- entries ------------------------------------------------------------------------------------------------------

    def on_append(self, sender: str, message: pb.RaftMessage) -> None:
        if not self._hear(sender, message):
            return
        core, append = self._core, message.append
        try:
            records = [
                decode_record(core.group_id, append.prev_index + 1 + place, stored)
                for place, stored in enumerate(append.records)
            ]
        except DataLoss as error:
            self._damaged(sender, append.prev_index, error)
            return
        if not _is_in_order([append.prev_term, *(each.term for each in records), message.term]):
            self._refusals.note(sender, "the terms of its entries fall, or exceed its own")
            return
        last = append.prev_index + len(records)
        base = core.journal.base
        prev = append.prev_index, append.prev_term
        if last < base[0]:
            # Entries up to the log's base are committed, and so is every entry that a leader sends from before it.
            self._accept(sender, message, last)
            return
        if prev[0] < base[0]:
            records = records[base[0] - prev[0] :]
            prev = base
        if core.journal.term_at(prev[0]) != prev[1]:
            self._reject(sender, message)
            return
        doubt = self._examine(records, message)
        if doubt is not None:
            last = doubt.index - 1
            records = records[: last - prev[0]]
        self._take(sender, prev, records, min(append.commit_index, last))
        self._accept(sender, message, last, doubt)

    def _damaged(self, sender: str, prev_index: int, error: DataLoss) -> None:
        """Log a damaged message, which will be sent again. If it was stored damaged it stays so, and is logged less and
        less often."""
        place, times = self._damaged_at
        times = times + 1 if place == (sender, prev_index) else 1
        self._damaged_at = (sender, prev_index), times
        if times & (times - 1) == 0:
            problem = "damaged on its way" if times == 1 else f"damaged, {times} times now: {sender} may hold it so"
            _LOG.warning("dropped a message of %s that was %s: %s", sender, problem, error)

    def _examine(self, records: Sequence[Record], message: pb.RaftMessage) -> Doubt | None:
        """Return the doubt about the first new entry that may not be kept. Committed entries are not examined, nor
        entries of an earlier term than the leader's: their own leader may have committed them."""
        core, journal, commit_index = self._core, self._core.journal, message.append.commit_index
        if core.examine is None:
            return None
        for place, record in enumerate(records):
            index = record.index
            if record.kind != KIND_EXAMINED or record.term != message.term or index <= commit_index:
                continue
            if journal.term_at(index) == record.term:
                continue
            first = records[0].index
            before = journal.records(core.applied[0] + 1, first - 1) if first > core.applied[0] + 1 else []
            before += [each for each in records[:place] if each.index > core.applied[0]]
            doubt = core.examine([each.held_entry for each in before], record.held_entry)
            if doubt is not None:
                return doubt
        return None

    def _take(self, sender: str, prev: tuple[int, int], records: Sequence[Record], commit_index: int) -> None:
        """Give the engine the records behind ``prev`` that are not held already. ``prev`` is held."""
        core = self._core
        held = 0
        while held < len(records) and core.journal.term_at(records[held].index) == records[held].term:
            held += 1
        if held == len(records):
            self._touch(sender, commit_index)
            return
        first_new = records[held].index
        is_new = first_new > core.journal.commit_index
        invariant(is_new, "what was committed is not truncated", sender, first_new, core.journal.commit_index)
        if held:
            prev = records[held - 1].index, records[held - 1].term
        core.engine.receive_entries(sender, prev, records[held:], commit_index)

    def _touch(self, sender: str, commit_index: int) -> None:
        """Tell the engine the leader and the commit index alone. Behind our own last entry nothing can be deleted."""
        core = self._core
        if core.engine.leader != sender or commit_index > core.journal.commit_index:
            core.engine.receive_entries(sender, core.journal.last, (), commit_index)

    # --- answers ------------------------------------------------------------------------------------------------------

    def _accept(self, sender: str, message: pb.RaftMessage, matched_index: int, doubt: Doubt | None = None) -> None:
        answer = pb.Acknowledgement(matched_index=matched_index, round=message.append.round)
        if doubt is not None and doubt.stored_key:
            answer.doubted_index, answer.doubted_key = doubt.index, doubt.stored_key
        core = self._core
        core.acknowledge(message, sender, answer, core.journal.sequence_of(matched_index))

    def _reject(self, sender: str, message: pb.RaftMessage) -> None:
        core, append = self._core, message.append
        self._touch(sender, 0)
        answer = pb.Acknowledgement(
            wanted_index=core.journal.commit_index + 1, rejected_prev_index=append.prev_index, round=append.round
        )
        core.acknowledge(message, sender, answer, core.journal.vote_sequence)

    def on_heartbeat(self, sender: str, message: pb.RaftMessage) -> None:
        if not self._hear(sender, message):
            return
        core, heartbeat = self._core, message.heartbeat
        self._touch(sender, heartbeat.commit_index)
        if heartbeat.round:
            answer = pb.Acknowledgement(heard=True, round=heartbeat.round)
            core.acknowledge(message, sender, answer, core.journal.vote_sequence)

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def on_snapshot(self, sender: str, message: pb.RaftMessage) -> None:
        """Keep a snapshot's offer. If we hold its entry already, acknowledge that instead."""
        if not self._hear(sender, message):
            return
        core, notice = self._core, message.snapshot
        if notice.index <= core.journal.commit_index or core.journal.term_at(notice.index) == notice.term:
            self._touch(sender, notice.index)
            self.offer = None
            self._accept(sender, message, notice.index)
            return
        self._touch(sender, 0)
        roster = Roster.from_message(notice.roster)
        meta = SnapshotMeta(notice.snapshot_id, notice.index, notice.term, roster, notice.size_bytes)
        self.offer = SnapshotOffer(sender, meta)

    def installed(self) -> None:
        """Forget the offer, since we hold its state. The leader repeats it with each heartbeat, and hears so then."""
        self.offer = None


def _is_in_order(terms: list[int]) -> bool:
    return terms == sorted(terms)
