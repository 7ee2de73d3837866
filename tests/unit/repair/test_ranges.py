"""A damaged range is made whole from another replica's: nothing whole is lost by it, and nothing is made up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest

from cortado.errors import DataLoss, Unavailable
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Engine, Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.keys.keyspace import kv_key
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.versions import Item, encode_version, suffix_of
from cortado.store.process.range_copies import Answer, Ask
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import FIRST_KEY, META_GROUP
from cortado.store.replica.repair import ranges
from cortado.store.replica.repair.ranges import Mended, answer, differs, mend, own_slice, survey
from cortado.store.replica.snapshots.marker import Marker, marker_key
from cortado.store.replica.write.request_table.records import Remembered, encode_remembered
from support.damage import turn
from support.engines import open_lmdb
from support.memory_engine import MemoryEngine

OF = META_GROUP
ALL = Ask(Space.DATA, FIRST_KEY, ABOVE_KEYS)


def at(number: int) -> Timestamp:
    return Timestamp(0, 1_000 + number, 0)


def item(number: int, ts: int = 1, payload: bytes = b"") -> Item:
    return encode_version(kv_key("n", b"key%04d" % number), payload or b"the payload of %04d" % number, at(ts))


def key(number: int, ts: int = 1) -> bytes:
    return item(number, ts)[0]


def apply(engine: Engine, index: int, *items: Item, **more: bytes) -> None:
    """Apply as the log does: the items, and the record of this replica's position."""
    with engine.write() as txn:
        txn.put_many(Space.DATA, sorted(items))
        txn.put(Space.META, OF.applied[0], AppliedState(index=index, term=1, last_ts=at(index), **more).encode())  # type: ignore[arg-type]


def contents(engine: Engine, space: Space = Space.DATA) -> dict[bytes, bytes]:
    with engine.read() as txn:
        return {key: value_of() for key, value_of in txn.walk(space, b"\0")}


def rot(engine: Engine, *keys: bytes, space: Space = Space.DATA) -> None:
    with engine.write() as txn:
        for each in keys:
            value = txn.get(space, each)
            assert value is not None
            txn.put(space, each, value[:-10] + bytes([value[-10] ^ 4]) + value[-9:])


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[LmdbEngine, LmdbEngine]]:
    """Yield two replicas that have applied the same 600 versions, and stand at entry 5."""
    here, there = open_lmdb(tmp_path / "here"), open_lmdb(tmp_path / "there")
    for each in (here, there):
        apply(each, 5, *(item(number) for number in range(600)))
    yield here, there
    here.close()
    there.close()


def repaired(here: Engine, there: Engine, damage: Damage, *, exactly: bool = False) -> Mended:
    found, _ = survey(here, OF, damage)
    assert found is not None
    theirs = answer(there, OF, found.ask)
    theirs.check(found.ask)
    return mend(here, OF, found, theirs, exactly=exactly)


@pytest.mark.parametrize("number", [0, 1, 300, 598, 599])
def test_a_damaged_version_is_replaced_by_the_other_replicas(pair: tuple[LmdbEngine, LmdbEngine], number: int) -> None:
    here, there = pair
    rot(here, key(number))
    assert repaired(here, there, Damage.at(Space.DATA, key(number))) == Mended(1, 1, [])
    assert contents(here) == contents(there)
    assert survey(here, OF, Damage.at(Space.DATA, key(number))) == (None, b"")


@pytest.mark.parametrize("number", [0, 1, 77, 300, 598, 599])
@pytest.mark.parametrize("at_byte", [0, 3, 8, -12, -6, -1], ids=str)
@pytest.mark.parametrize("bit", [1, 0x80])
def test_a_version_whose_key_has_turned_gets_its_true_name_back(
    tmp_path: Path, pair: tuple[LmdbEngine, LmdbEngine], number: int, at_byte: int, bit: int
) -> None:
    """Wherever that puts it: in its order or out of it, so that searches miss it, or its neighbours."""
    here, there = pair
    true, value = item(number)
    turned = bytearray(true)
    turned[at_byte] ^= bit
    turn(tmp_path / "here" / "engine" / "data.mdb", true + value, bytes(turned) + value)
    with here.read() as txn:
        stands = [each for each, _ in txn.walk(Space.DATA, key(max(0, number - 100)))]
    assert bytes(turned) in stands or number < 100
    before, behind = key(number - 1) if number else FIRST_KEY, key(number + 1) if number < 599 else ABOVE_KEYS
    repaired(here, there, Damage(Space.DATA, before, behind, "a pass over everything found it"))
    assert contents(here) == contents(there)
    assert list(contents(here)) == sorted(contents(there))


def test_what_the_other_replica_has_damaged_as_well_stays_damaged_and_is_not_deleted(
    pair: tuple[LmdbEngine, LmdbEngine],
) -> None:
    here, there = pair
    rot(here, key(7), key(8))
    rot(there, key(8))
    before = contents(here)[key(8)]
    mended = repaired(here, there, Damage.at(Space.DATA, key(8)))
    assert mended.left == [key(8)]
    assert contents(here)[key(7)] == item(7)[1], "what is whole there is taken all the same"
    assert contents(here)[key(8)] == before


def test_a_turned_key_is_not_deleted_on_the_word_of_a_replica_that_is_behind(
    tmp_path: Path, pair: tuple[LmdbEngine, LmdbEngine]
) -> None:
    """It may be the only copy of something that the other one has not applied."""
    here, there = pair
    new = item(900, ts=6)
    apply(here, 6, new)
    turned = new[0].replace(b"key0900", b"key0901")
    turn(tmp_path / "here" / "engine" / "data.mdb", new[0] + new[1], turned + new[1])
    mended = repaired(here, there, Damage.at(Space.DATA, turned))
    assert mended == Mended(0, 0, [turned])
    apply(there, 6, new)
    assert repaired(here, there, Damage.at(Space.DATA, turned)) == Mended(1, 1, [])
    assert contents(here) == contents(there)


def test_a_turned_key_is_not_deleted_on_an_answer_that_ends_before_its_range_does(
    tmp_path: Path, pair: tuple[LmdbEngine, LmdbEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may end before the next answer brings its true name, and then nothing shows that it is missing."""
    monkeypatch.setattr(ranges, "ITEMS_MAX", 10)
    here, there = pair
    rot(here, *(key(number) for number in range(100, 130) if number != 115))
    true, value = item(115)
    turned = true.replace(b"key0115", b"key01!5")
    turn(tmp_path / "here" / "engine" / "data.mdb", true + value, turned + value)
    found, _ = survey(here, OF, Damage.at(Space.DATA, turned))
    assert found is not None
    pieces = [answer(there, OF, found.ask)]
    assert pieces[0].end == key(110)
    mended = mend(here, OF, found, pieces[0])
    assert turned in mended.left
    assert turned in contents(here)
    while pieces[-1].end < found.ask.end:
        pieces.append(answer(there, OF, Ask(Space.DATA, pieces[-1].end, found.ask.end)))
    assert mend(here, OF, found, reduce(Answer.joined, pieces)).left == []
    assert contents(here) == contents(there)


def test_answers_that_are_joined_are_as_old_as_the_oldest_and_need_the_newest(
    pair: tuple[LmdbEngine, LmdbEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "ITEMS_MAX", 10)
    here, there = pair
    rot(here, *(key(number) for number in range(100, 115)))
    found, _ = survey(here, OF, Damage.at(Space.DATA, key(100)))
    assert found is not None
    first = answer(there, OF, found.ask)
    apply(there, 7)
    joined = first.joined(answer(there, OF, Ask(Space.DATA, first.end, found.ask.end)))
    assert (joined.index, joined.needed_index, joined.last_ts) == (5, 7, at(5))
    with pytest.raises(Unavailable, match="has applied 5, the other one 7"):
        mend(here, OF, found, joined)
    apply(here, 7)
    assert mend(here, OF, found, joined).left == []


def test_damage_since_the_survey_is_not_deleted_on_an_answer_from_before_it(
    tmp_path: Path, pair: tuple[LmdbEngine, LmdbEngine]
) -> None:
    here, there = pair
    rot(here, key(7))
    found, _ = survey(here, OF, Damage.at(Space.DATA, key(7)))
    assert found is not None
    theirs = answer(there, OF, found.ask)
    new = item(7, ts=6)
    for each in (here, there):
        apply(each, 6, new)
    turned = new[0][:-1] + bytes([new[0][-1] ^ 1])
    turn(tmp_path / "here" / "engine" / "data.mdb", new[0] + new[1], turned + new[1])
    mended = mend(here, OF, found, theirs)
    assert mended.left == [turned]
    assert contents(here)[turned] == new[1]


def test_nothing_is_taken_from_ahead_of_what_is_applied_here(pair: tuple[LmdbEngine, LmdbEngine]) -> None:
    here, there = pair
    rot(here, key(7))
    apply(there, 6, item(7, ts=6))
    with pytest.raises(Unavailable, match="applied 5, the other one 6"):
        repaired(here, there, Damage.at(Space.DATA, key(7)))


def test_nothing_is_repaired_from_or_in_half_a_state(pair: tuple[LmdbEngine, LmdbEngine]) -> None:
    here, there = pair
    rot(here, key(7))
    found, _ = survey(here, OF, Damage.at(Space.DATA, key(7)))
    assert found is not None
    theirs = answer(there, OF, found.ask)
    for each in (here, there):
        with each.write() as txn:
            txn.put(Space.META, marker_key(1), Marker("s", 9, 1).encode())
    with pytest.raises(Unavailable, match="a snapshot is being installed"):
        answer(there, OF, found.ask)
    with pytest.raises(Unavailable, match="a snapshot is being installed"):
        mend(here, OF, found, theirs)


def test_several_runs_of_damage_are_found_one_after_the_other(pair: tuple[LmdbEngine, LmdbEngine]) -> None:
    here, there = pair
    for number in (10, 11, 40, 41, 500):
        rot(here, key(number))
    resume, runs = b"", list[list[bytes]]()
    while True:
        found, resume = survey(here, OF, Damage(Space.DATA, FIRST_KEY, ABOVE_KEYS, "all"), resume)
        if found is not None:
            runs.append(list(found.damaged))
            mend(here, OF, found, answer(there, OF, found.ask))
        if not resume:
            break
    assert runs == [[key(10), key(11)], [key(40), key(41)], [key(500)]]
    assert contents(here) == contents(there)


@pytest.mark.parametrize("number", [0, 5, 6, 7])
def test_runs_of_damage_that_stay_are_each_looked_at_once(pair: tuple[LmdbEngine, LmdbEngine], number: int) -> None:
    here, _there = pair
    runs = [{key(7)}, {key(9), key(10)}, {key(300)}, {key(599)}]
    rot(here, *set.union(*runs))
    found: list[set[bytes]] = []
    resume, is_looked_at = b"", False
    while not is_looked_at:
        looked, resume = survey(here, OF, Damage(Space.DATA, key(number), ABOVE_KEYS, "all"), resume)
        if looked is not None:
            found.append(set(looked.damaged))
        assert len(found) <= len(runs)
        is_looked_at = not resume
    assert found == runs


def test_an_answer_that_is_none_is_refused() -> None:
    ask = Ask(Space.DATA, key(5), key(9))
    good = [item(5), item(7)]
    Answer(5, at(5), bytes(20), good, [], key(9)).check(ask)
    wrong_value = [(key(5), item(5)[1][:-1] + b"?")]
    for items, end in (
        (good[::-1], key(9)),
        ([*good, item(9)], key(9)),
        ([item(4)], key(9)),
        (good, key(10)),
        (good, key(5)),
        (wrong_value, key(9)),
    ):
        with pytest.raises(DataLoss):
            Answer(5, at(5), bytes(20), items, [], end).check(ask)


# --- everything ----------------------------------------------------------------------------------------------------


def compared(here: Engine, there: Engine, space: Space = Space.DATA) -> int:
    """Make everything the same, piece by piece, and return how many pieces differed."""
    (start, end), pieces = OF.bounds(space), 0
    while start < end:
        own = own_slice(here, OF, Ask(space, start, end))
        theirs = answer(there, OF, own.ask)
        theirs.check(own.ask)
        if differs(here, OF, own.ask, theirs):
            assert not mend(here, OF, own, theirs, exactly=True).left
            pieces += 1
        start = theirs.end
    return pieces


def test_a_comparison_of_everything_changes_nothing_where_all_is_equal(pair: tuple[LmdbEngine, LmdbEngine]) -> None:
    here, there = pair
    before = contents(here)
    assert compared(here, there) == 0
    assert contents(here) == before


def test_a_comparison_finds_what_no_checksum_tells(pair: tuple[LmdbEngine, LmdbEngine]) -> None:
    """Missing items, extra items, changed items: and it keeps items that the other has not applied yet."""
    here, there = pair
    with here.write() as txn:
        txn.delete(Space.DATA, key(3))
        txn.put(Space.DATA, *item(700))
        txn.put(Space.DATA, *item(50, payload=b"another"))
    apply(here, 6, item(5, ts=6))
    large = [item(number, payload=bytes(300_000)) for number in range(800, 812)]
    with there.write() as txn:
        txn.put_many(Space.DATA, large)
    assert compared(here, there) > 1
    assert contents(here) == contents(there) | {key(5, ts=6): item(5, ts=6)[1]}


def test_a_remembered_request_is_repaired_and_one_that_is_forgotten_is_not_brought_back() -> None:
    here, there = MemoryEngine(), MemoryEngine()
    ids = [bytes(at(number)) + bytes(8) for number in range(9)]
    for each in (here, there):
        apply(each, 5)
        with each.write() as txn:
            for request_id in ids:
                key = OF.segment + request_id
                txn.put(Space.REQUESTS, key, encode_remembered(key, Remembered(b"h" * 16, at(1), b"the reply")))
    keys = list(contents(here, Space.REQUESTS))
    rot(here, keys[4], space=Space.REQUESTS)
    repaired(here, there, Damage.at(Space.REQUESTS, keys[4]))
    assert contents(here, Space.REQUESTS) == contents(there, Space.REQUESTS)
    rot(here, keys[4], space=Space.REQUESTS)
    found, _ = survey(here, OF, Damage.at(Space.REQUESTS, keys[4]))
    assert found is not None
    theirs = answer(there, OF, found.ask)
    apply(here, 6, request_floor=ids[6])
    with here.write() as txn:
        txn.delete_range(Space.REQUESTS, keys[0], keys[6])
    assert mend(here, OF, found, theirs) == Mended(0, 0, [])
    assert list(contents(here, Space.REQUESTS)) == keys[6:]


@pytest.fixture
def tables() -> tuple[MemoryEngine, MemoryEngine, list[Item]]:
    """Return two replicas that remember requests above their floor, and two below it: those were in flight when it
    rose."""
    here, there = MemoryEngine(), MemoryEngine()
    ids = [bytes(at(number)) + bytes(8) for number in range(9)]
    remembered = Remembered(b"h" * 16, at(1), b"the reply")
    records = [(OF.segment + each, encode_remembered(OF.segment + each, remembered)) for each in ids]
    for each in (here, there):
        apply(each, 5, request_floor=ids[6])
        with each.write() as txn:
            txn.put_many(Space.REQUESTS, [*records[2:4], *records[6:]])
    return here, there, records


def test_a_request_that_was_in_flight_when_the_floor_rose_above_it_is_repaired(
    tables: tuple[MemoryEngine, MemoryEngine, list[Item]],
) -> None:
    """It is remembered until the next floor, on every replica, and counted."""
    here, there, records = tables
    key = records[2][0]
    rot(here, key, space=Space.REQUESTS)
    assert repaired(here, there, Damage.at(Space.REQUESTS, key)) == Mended(1, 1, [])
    assert contents(here, Space.REQUESTS) == contents(there, Space.REQUESTS)


def test_a_request_below_the_floor_whose_key_has_turned_is_repaired_while_entries_are_applied(
    tables: tuple[MemoryEngine, MemoryEngine, list[Item]],
) -> None:
    here, there, records = tables
    (key, record), turned = records[3], records[3][0][:-1] + b"\x01"
    with here.write() as txn:
        txn.delete(Space.REQUESTS, key)
        txn.put(Space.REQUESTS, turned, record)
    found, _ = survey(here, OF, Damage.at(Space.REQUESTS, turned))
    assert found is not None
    theirs = answer(there, OF, found.ask)
    apply(here, 6, request_floor=records[6][0][4:])
    mend(here, OF, found, theirs)
    assert contents(here, Space.REQUESTS) == contents(there, Space.REQUESTS)


def test_a_request_below_the_floor_that_the_next_floor_forgot_is_not_brought_back(
    tables: tuple[MemoryEngine, MemoryEngine, list[Item]],
) -> None:
    here, there, records = tables
    rot(here, records[3][0], space=Space.REQUESTS)
    found, _ = survey(here, OF, Damage.at(Space.REQUESTS, records[3][0]))
    assert found is not None
    theirs = answer(there, OF, found.ask)
    apply(here, 6, request_floor=records[7][0][4:])
    with here.write() as txn:
        txn.delete_range(Space.REQUESTS, FIRST_KEY, records[7][0])
    assert mend(here, OF, found, theirs) == Mended(0, 0, [])
    assert list(contents(here, Space.REQUESTS)) == [key for key, _ in records[7:]]


def test_the_suffix_of_a_version_is_its_timestamp() -> None:
    """The comparison of everything goes by it."""
    assert key(1, ts=4).endswith(suffix_of(at(4)))
