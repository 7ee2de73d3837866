"""Which safepoint counts for a key, and for a range: the highest of any key in it."""

from __future__ import annotations

import pytest

from cortado.errors import SnapshotTooOld
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import meta_key, row_prefix, table_range
from cortado.store.mvcc.safepoints import Safepoints


def at(wall_ms: int) -> Timestamp:
    return Timestamp(0, wall_ms, 0)


SAFEPOINTS = Safepoints(at(5), {2: at(9), 3: at(1)})


def test_a_range_has_the_highest_of_what_lies_in_it() -> None:
    assert SAFEPOINTS.of_range(b"ka", b"kz") == at(5), "pairs have the cluster's, and no table lies among them"
    assert SAFEPOINTS.of_range(*table_range(1)) == at(5)
    assert SAFEPOINTS.of_range(*table_range(2)) == at(9)
    assert SAFEPOINTS.of_range(*table_range(3)) == at(1)
    assert SAFEPOINTS.of_range(table_range(1)[0], table_range(3)[1]) == at(9)
    assert SAFEPOINTS.of_range(b"k", b"z") == at(9)
    key = meta_key("table", "air", "flights")
    assert SAFEPOINTS.of_range(key, key) == at(1), "the catalogue is read as far back as anything"


def test_a_read_is_refused_below_that_of_its_range_alone() -> None:
    SAFEPOINTS.check(at(6), b"ka", b"kz")
    SAFEPOINTS.check(at(1), row_prefix(3), table_range(3)[1])
    for ts, start, end in ((at(4), b"ka", b"kz"), (at(8), *table_range(2)), (at(0), *table_range(3))):
        with pytest.raises(SnapshotTooOld):
            SAFEPOINTS.check(ts, start, end)
