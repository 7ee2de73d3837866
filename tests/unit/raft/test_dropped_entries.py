"""Entries that the log has dropped are not held in memory: an entry may have megabytes."""

from __future__ import annotations

import gc
import weakref

from cortado.raft.journal import Journal
from cortado.raft.records import KIND_DATA, HardState, Record, decode_stored
from cortado.raft.registry import Roster
from support.raft_hand import GROUP, members


class Large:
    """A payload that shows whether it is still held."""

    def encode(self) -> bytes:
        return b"x"


def test_an_entry_that_is_dropped_goes_at_once() -> None:
    start = HardState(5, "", 2, 1, Roster.of(members(3)))
    journal = Journal(GROUP, decode_stored(GROUP, start.log_record(GROUP), ()), (2, 1))
    payloads = []
    for index in range(3, 40):
        payload = Large()
        payloads.append(weakref.ref(payload))
        journal.add(Record(KIND_DATA, payload, index, 5), index, 5)
        del payload
    for index in range(5, 36, 5):
        journal.drop_to(index)
        gc.collect()
        assert [each() is None for each in payloads] == [place <= index for place in range(3, 40)]
        assert (journal.base, journal.last, journal.term_at(index), journal.term_at(index - 1)) == (
            (index, 5),
            (39, 5),
            5,
            None,
        )
