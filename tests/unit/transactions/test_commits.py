"""The refusal of a commit, and its operation: a conflict with state that the transaction could have seen is final; one
with a later change may well succeed when the transaction is begun again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cortado.errors import (
    CortadoError,
    InvalidArgument,
    NotFound,
    OutOfBounds,
    TimestampInFuture,
    TooLarge,
    UniqueViolation,
    WriteConflict,
)
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.expiry import Expiry
from cortado.store.tables.operations import Update
from cortado.store.transactions.commit import evaluate_commit
from cortado.store.transactions.limits import LARGEST, TransactionLimits
from cortado.store.transactions.operations import Commit, Committed, Operation
from support.dict_reader import DictStore
from support.table_world import DATABASE, TableWorld
from support.transaction_twin import TABLE, Asked, new_world, to_operation

A, B = ("a", 0), ("b", 0)


@pytest.fixture
def world() -> TableWorld:
    return new_world(DictStore())


def put(key: tuple[str, int], **fields: object) -> Asked:
    document = {"owner": key[0], "number": key[1], "code": None, "serial": None, "count": 0, "place": None, **fields}
    return "put", document, None


def commit(
    world: TableWorld, *asked: Asked, start: Timestamp | None = None, limits: TransactionLimits = LARGEST
) -> Committed:
    return run(world, [to_operation(world, each) for each in asked], start, limits)


def run(
    world: TableWorld,
    operations: Sequence[Operation],
    start: Timestamp | None = None,
    limits: TransactionLimits = LARGEST,
) -> Committed:
    asked = Commit(operations, start, limits=limits)
    _, done = world.store.write(lambda reader, ts: evaluate_commit(reader, ts, world.catalog(reader), asked))
    assert isinstance(done.reply, Committed)
    return done.reply


def refusal(
    world: TableWorld, *asked: Asked, start: Timestamp | None = None, limits: TransactionLimits = LARGEST
) -> CortadoError:
    with pytest.raises(CortadoError) as refused:
        commit(world, *asked, start=start, limits=limits)
    return refused.value


REFUSED = {
    "an update of what is gone": (put(A), ("delete", A, None), ("update", A, {"count": 1}, None), NotFound),
    "a path that leads nowhere": (
        put(A, place={"city": "Rome"}),
        ("update", A, {"place": None}, None),
        ("update", A, {"place.city": "Oslo"}, None),
        InvalidArgument,
    ),
    "an add to nothing": (
        put(A, serial=1),
        ("update", A, {"serial": None}, None),
        ("add", A, "serial", 1, None, None),
        InvalidArgument,
    ),
    "an add beyond its bounds": (put(A), put(A, count=3), ("add", A, "count", 1, None, 3), OutOfBounds),
    "an add to what is no counter": (
        ("pair put", b"x", bytes(8), None),
        ("pair put", b"x", b"text", None),
        ("pair add", b"x", 1, None, None),
        InvalidArgument,
    ),
}


@pytest.mark.parametrize(("before", "after", "asked", "error"), REFUSED.values(), ids=REFUSED)
def test_what_it_could_have_seen_is_final_and_what_it_could_not_is_a_conflict(
    world: TableWorld, before: Asked, after: Asked, asked: Asked, error: type[CortadoError]
) -> None:
    began = commit(world, before).ts
    changed = commit(world, after).ts
    other = ("pair put", b"other", b"", None)
    found = refusal(world, other, asked, start=began)
    assert isinstance(found, WriteConflict)
    assert (found.row, found.start_ts, found.conflict_ts) == (1, str(began), str(changed))
    final = refusal(world, other, asked, start=changed)
    assert type(final) is error
    assert type(refusal(world, other, asked)) is error
    assert getattr(final, "row", 1) == 1


def test_a_unique_value_that_another_took_before_it_began_is_final_and_after_it_a_conflict(world: TableWorld) -> None:
    began = world.store.now
    taken = commit(world, put(A, code="p")).ts
    assert isinstance(refusal(world, put(B, code="p"), start=began), WriteConflict)
    assert isinstance(refusal(world, put(B, code="p"), start=taken), UniqueViolation)


def test_a_unique_value_that_an_add_comes_to_by_what_it_could_not_see_is_a_conflict(world: TableWorld) -> None:
    began = commit(world, put(A, serial=1), put(B, serial=3)).ts
    commit(world, ("add", A, "serial", 1, None, None))
    add = ("add", A, "serial", 1, None, None)
    assert isinstance(refusal(world, add, start=began), WriteConflict)
    assert isinstance(refusal(world, add, put(B, serial=3), start=began), WriteConflict)
    assert isinstance(refusal(world, add, start=world.store.now), UniqueViolation)


def test_a_conflict_names_the_operation_that_writes_the_key(world: TableWorld) -> None:
    began = world.store.now
    commit(world, put(B))
    found = refusal(world, ("pair put", b"x", b"", None), put(A), put(B), start=began)
    assert isinstance(found, WriteConflict)
    assert (found.kind, found.row, found.key) == ("write", 2, f'{DATABASE}.{TABLE}("b", 0)')
    commit(world, ("pair put", b"y", b"", None))
    batch = "batch of pairs", [("pair put", b"x", b"1", None), ("pair put", b"y", b"1", None)]
    found = refusal(world, put(A), batch, start=began)
    assert isinstance(found, WriteConflict)
    assert found.row == 2


def test_a_conflict_is_found_also_where_nothing_is_left_to_write(world: TableWorld) -> None:
    began = commit(world, put(A)).ts
    commit(world, ("delete", A, None))
    assert isinstance(refusal(world, ("delete", A, None), start=began), WriteConflict)
    assert commit(world, ("delete", A, None), start=world.store.now).sums == ()


def test_an_update_of_the_expiry_alone_is_a_write_like_any_other(world: TableWorld) -> None:
    began = commit(world, put(A)).ts
    touch = Update(DATABASE, TABLE, A, {}, expiry=Expiry(1_000))
    touched = run(world, [touch], began).ts
    with pytest.raises(WriteConflict):
        run(world, [touch], began)
    assert isinstance(refusal(world, put(A, count=2), start=began), WriteConflict)
    commit(world, put(A, count=2), start=touched)
    with pytest.raises(InvalidArgument, match=r"operations\[0\]\.changes: must name at least one field"):
        run(world, [Update(DATABASE, TABLE, A, {})])


def test_a_start_that_nobody_can_have_read_at_is_refused(world: TableWorld) -> None:
    ahead = world.store.now.next()
    assert isinstance(refusal(world, put(A), start=ahead), TimestampInFuture)
    commit(world, put(A), start=world.store.now)


def test_a_commit_has_bounds(world: TableWorld) -> None:
    assert isinstance(refusal(world), InvalidArgument)
    few = TransactionLimits(operations_max=3)
    two = "batch of pairs", [("pair put", b"x", b"1", None), ("pair put", b"y", b"1", None)]
    commit(world, two, put(A), limits=few)
    too_many = refusal(world, two, two, limits=few)
    assert isinstance(too_many, TooLarge)
    assert (too_many.length, too_many.limit) == (4, 3)
    small = TransactionLimits(bytes_max=10)
    commit(world, ("pair put", b"x", b"123456789", None), limits=small)
    too_large = refusal(world, ("pair put", b"x", b"12345", None), ("pair put", b"y", b"12345", None), limits=small)
    assert isinstance(too_large, TooLarge)
    assert (too_large.field, too_large.limit) == ("operations", 10)
