"""The commands of a batch, joined: one entry, which says one thing of each stored key (F1)."""

from __future__ import annotations

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import STAGED_SPACE, TABLE_SPACE
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation, Removal
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.versions import encode_version
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.batch import Batch

ROW, STAGED = LogicalKey(TABLE_SPACE + b"row"), LogicalKey(STAGED_SPACE + b"row")
MOVED = encode_version(ROW, b"as it was committed", Timestamp(0, 5, 0))
GONE = encode_version(STAGED, b"staged", Timestamp(0, 3, 0))[0]


def test_what_two_commands_move_is_moved_once() -> None:
    """A watch would be told of the row twice."""
    batch = Batch(META_GROUP.segment)
    for wall_ms in (8, 9):
        mutations = Mutations()
        mutations.put(ROW, b"at %d" % wall_ms)
        batch.add(Timestamp(0, wall_ms, 0), Evaluation(mutations, None, None, Removal([GONE]), [MOVED]), 0)
    entry = batch.entry(1, 1)
    own = [encode_version(ROW, b"at %d" % wall_ms, Timestamp(0, wall_ms, 0)) for wall_ms in (9, 8)]
    assert list(entry.items) == [*own, MOVED]
    assert entry.removal.keys == [GONE]


def test_what_a_command_removes_and_another_one_puts_is_put() -> None:
    batch = Batch(META_GROUP.segment)
    batch.add(Timestamp(0, 8, 0), Evaluation(Mutations(), None, None, Removal([GONE, MOVED[0]])), 0)
    batch.add(Timestamp(0, 9, 0), Evaluation(Mutations(), None, restored=[MOVED]), 0)
    entry = batch.entry(1, 1)
    assert (list(entry.items), entry.removal.keys) == ([MOVED], [GONE])
