"""The rest of a piece is packed if much went at once, or once the piece has come to rest and much went since."""

from __future__ import annotations

from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Removal
from cortado.store.mvcc.garbage import Garbage
from cortado.store.replica.collection.findings import DENSE, PACKED_VERSIONS, Findings
from cortado.store.replica.collection.slices import Place, Slice

SOME = Timestamp(0, 5, 0)


def seen(gone: int, versions: int, next_ts: Timestamp | None = None, *, was_left: bool = False) -> Slice:
    keys = [b"k%06d" % number for number in range(gone)]
    return Slice(Garbage(keys, (), next_ts), versions, Place(b"x"), was_left)


def taken(findings: Findings) -> Removal:
    removal = findings.take()
    assert removal is not None
    return removal


def test_nothing_is_removed_where_nothing_is_found() -> None:
    findings = Findings(1.0)
    findings.add(seen(0, 100))
    assert not findings.is_enough(1)
    assert findings.take() is None
    assert findings.loose == 1.0


def test_much_at_once_is_packed_whatever_comes() -> None:
    findings = Findings(0.0)
    findings.add(seen(100, DENSE * 100 - 1, SOME))
    assert taken(findings).is_dense
    assert findings.loose == 0.0


def test_little_makes_a_piece_looser_until_the_last_of_it_packs() -> None:
    loose = 0.0
    for _ in range(3):
        findings = Findings(loose)
        findings.add(seen(20, 1_000, SOME))
        assert not taken(findings).is_dense
        assert findings.loose == loose + 0.02
        loose = findings.loose
    findings = Findings(loose)
    findings.add(seen(3, 1_000))
    assert taken(findings).is_dense
    assert findings.loose == 0.0


def test_a_piece_that_is_not_loose_is_not_packed_for_the_last_of_it() -> None:
    findings = Findings(0.04)
    findings.add(seen(20, 1_000))
    assert not taken(findings).is_dense
    assert findings.loose == 0.04 + 0.02


def test_what_was_left_for_damage_is_not_at_rest() -> None:
    findings = Findings(1.0)
    findings.add(seen(1, 1_000, was_left=True))
    assert not taken(findings).is_dense


def test_each_run_of_a_piece_is_judged_by_itself_and_one_that_was_not_packed_keeps_the_piece_loose() -> None:
    findings = Findings(0.05)
    findings.add(seen(10, 500, SOME))
    assert not taken(findings).is_dense
    findings.add(seen(10, 500))
    assert taken(findings).is_dense
    assert findings.loose == 0.05 + 0.02


def test_an_entry_packs_no_more_than_it_may() -> None:
    findings = Findings(1.0)
    slices = 0
    while not findings.is_enough(1_000):
        findings.add(seen(1, 2_000))
        slices += 1
    assert slices == PACKED_VERSIONS // 2_000
    sparse = Findings(0.0)
    for _ in range(2 * slices):
        sparse.add(seen(1, 2_000))
        assert not sparse.is_enough(1_000)
