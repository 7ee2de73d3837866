"""Which removals a repair must know of before it takes a member's copy."""

from __future__ import annotations

from cortado.store.mvcc.evaluation import Cleared, Removal
from cortado.store.replica.collection import removals
from cortado.store.replica.collection.removals import Removals


def test_a_range_is_touched_by_keys_and_cleared_ranges_in_it_and_by_no_others() -> None:
    known = Removals(0)
    known.add(5, Removal([b"c1", b"c9"], [Cleared(b"m", b"p", 10)]))
    assert known.may_touch(4, b"c5", b"d")
    assert known.may_touch(4, b"c9", b"c9\0")
    assert known.may_touch(4, b"o", b"z")
    assert not known.may_touch(4, b"d", b"m")
    assert not known.may_touch(4, b"p", b"z")
    assert not known.may_touch(5, b"a", b"z"), "a copy of that very entry is without them"


def test_what_a_start_or_many_others_have_forgotten_may_have_touched_everything() -> None:
    known = Removals(7)
    assert known.may_touch(6, b"a", b"b")
    assert not known.may_touch(7, b"a", b"b")
    for index in range(8, 8 + removals._KEPT_MAX + 1):
        known.add(index, Removal([b"x"]))
    assert known.may_touch(7, b"a", b"b")
    assert not known.may_touch(8, b"a", b"b")


def test_another_state_is_not_known_and_the_count_goes_on() -> None:
    """It is a counter of the process: one that falls reads as a restart."""
    known = Removals(0)
    known.add(3, Removal([b"a", b"b"], []))
    known.forget(7)
    assert known.removed == 2
    assert known.may_touch(6, b"x", b"y")
    assert not known.may_touch(7, b"a", b"b")
