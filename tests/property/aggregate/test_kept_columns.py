"""Aggregates with kept columns give the same results as without them, after any writes, at any time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.store.aggregate.bind import Aggregate, Kind
from cortado.store.catalog.drop import drop_table, truncate_table, undrop_table
from cortado.store.client.aggregate_text import parse_aggregates
from cortado.store.client.aggregates import Groups
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.expiry import Expiry
from cortado.store.mvcc.kept import KeptTable
from cortado.store.tables import aggregate_slices
from cortado.store.tables.aggregate import AggregatePlan, AggregateScan, plan_aggregate
from cortado.store.tables.aggregating import Beside, aggregate_step, begin_aggregate
from cortado.store.tables.kept_columns import kept_columns
from cortado.store.tables.operations import Put
from cortado.store.tables.scan import Budget, Scan
from support.table_world import DATABASE, EngineStore, TableWorld, index

SLICE_ROWS = 3
LARGE = 1 << 30
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN", "BLUE"]}
FIRST = [
    ("id", "long", None),
    ("kind", ["null", "string"], None),
    ("units", "long", None),
    ("price", PRICE, None),
    ("colour", COLOUR, None),
    ("weight", "double", None),
]
VERSIONS = [FIRST, [*FIRST, ("share", "double", 0.5)], [*FIRST, ("share", "double", 2.0)]]
"""Later ones add a field, and change its default for rows that lack it."""
ASKED = [
    [("count", "")],
    [("count", ""), ("sum", "units")],
    [("min", "kind"), ("avg", "units")],
    [("count", "kind"), ("max", "units")],
    [("sum", "price"), ("max", "price"), ("min", "colour"), ("sum", "weight"), ("min", "weight")],
]


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    """Let slices of any size be kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregate_slices, "KEPT_ROWS_MIN", 1)
        yield


def schema_of(version: int) -> dict[str, Any]:
    fields = [
        {"name": name, "type": type_} | ({} if default is None else {"default": default})
        for name, type_, default in VERSIONS[version]
    ]
    return {"type": "record", "name": "Row", "fields": fields}


@dataclass
class Asked:
    """An aggregate of the table, as of one of the times so far: 0 for the newest, 1 for the one before."""

    aggregates: int
    group_by: list[str]
    filtered: bool
    bounds: tuple[int, int] | None
    back: int
    times: int
    cuts: list[int]
    of_first_schema: bool


@dataclass
class Write:
    rows: list[tuple[int, str | None, int]]
    ttl_ms: int


@dataclass
class Other:
    """One of the events that are not writes of rows."""

    kind: str
    id: int


ASKS = st.builds(
    Asked,
    aggregates=st.integers(0, len(ASKED) - 1),
    group_by=st.sampled_from([[], [], ["kind"], ["units"], ["colour", "price"]]),
    filtered=st.booleans(),
    bounds=st.none() | st.none() | st.tuples(st.integers(0, 20), st.integers(0, 20)),
    back=st.sampled_from([0, 0, 0, 1, 2, 5]),
    times=st.integers(1, 3),
    cuts=st.lists(st.integers(0, 20), max_size=3),
    of_first_schema=st.booleans(),
)
WRITES = st.builds(
    Write,
    rows=st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from([None, "", "a", "bb"]), st.integers(-3, 3)),
        min_size=1,
        max_size=8,
        unique_by=lambda row: row[0],
    ),
    ttl_ms=st.sampled_from([0, 0, 0, 4]),
)
OTHERS = st.builds(
    Other,
    kind=st.sampled_from(["delete", "beside", "schema", "undrop", "truncate", "damage", "time", "shrink", "room"]),
    id=st.integers(0, 20),
)


class Clock:
    """Each look at it takes a millisecond."""

    def __init__(self) -> None:
        self.now_ms = 0.0

    def __call__(self) -> float:
        self.now_ms += 1
        return self.now_ms


class NoThreads:
    """Says that a thread is idle, and lends none: the front reads the parts."""

    def spare(self) -> int:
        return 1

    def lend(self, _most: int, _work: Any) -> NoThreads:
        return self

    def join(self) -> None:
        return


@dataclass
class Kept:
    """A table over the real store, which keeps columns, and the times of all writes."""

    world: TableWorld = field(default_factory=lambda: TableWorld(EngineStore()))
    version: int = 0
    times: list[Timestamp] = field(default_factory=list)
    room: int = LARGE

    def __post_init__(self) -> None:
        assert isinstance(self.world.store, EngineStore)
        self.store = self.world.store.store
        self.store.kept.room = lambda: self.room
        for table in ("rows", "beside"):
            self.world.create(table, schema_of(0), ["id"], [index("by_kind", "kind")])
        self.first_schema = self.world.view("rows").newest_id
        self.put("rows", [(each, "a", each) for each in range(8)])

    def put(self, table: str, rows: Sequence[tuple[int, str | None, int]], ttl_ms: int = 0) -> None:
        for number, kind, units in rows:
            document = {"id": number, "kind": kind, "units": units, "weight": units / 2}
            document |= {"price": Decimal(f"{units * 10**20}.25"), "colour": COLOUR["symbols"][units % 3]}
            if self.version and table == "rows":
                document["share"] = 1.5
            encoded = self.world.avro(table, document)
            self.world.run(Put(DATABASE, table, encoded, expiry=Expiry(ttl_ms)))
        self.times.append(self.world.store.now)

    def do(self, other: Other) -> None:
        world = self.world
        match other.kind:
            case "delete":
                world.delete("rows", (other.id,))
            case "beside":
                self.put("beside", [(other.id, "beside", 1)])
            case "schema" if self.version + 1 < len(VERSIONS):
                self.version += 1
                world.register("rows", schema_of(self.version))
            case "undrop":
                world.store.write(lambda reader, ts: drop_table(world.catalog(reader), DATABASE, "rows", commit_ts=ts))
                world.store.write(
                    lambda reader, ts: undrop_table(world.catalog(reader), DATABASE, "rows", commit_ts=ts)
                )
            case "truncate":
                world.store.write(
                    lambda reader, ts: truncate_table(world.catalog(reader), DATABASE, "rows", commit_ts=ts)
                )
            case "damage":
                self.store.kept.forget()
            case "time":
                now = world.store.now
                world.store.now = Timestamp(now.epoch, now.wall_ms + other.id + 1, 0)
            case "shrink":
                self.store.kept.shrink(other.id * 500)
            case "room":
                self.room = LARGE if other.id > 10 else other.id * 1_000
                # As the budget does, when calls take what pieces held.
                self.store.kept.shrink(self.room)
        self.times.append(world.store.now)

    def plan(self, asked: Asked, table: str = "rows") -> AggregatePlan:
        ts = self.times[-1 - min(asked.back, len(self.times) - 1)]
        catalog, options = self.world.catalog(self.store.snapshot(ts)), dict[str, Any]()
        if asked.filtered:
            options["filter"] = "units > 0"
        if asked.bounds is not None:
            options["lower"], options["upper"] = [min(asked.bounds)], [max(asked.bounds)]
        if asked.of_first_schema and table == "rows":
            options["schema_id"] = self.first_schema
        elif len(catalog.newest_schema(f"{DATABASE}.{table}")[1].record.fields) > len(FIRST):
            options["filter"] = "share > 1"
        aggregates = [Aggregate(Kind(kind), path) for kind, path in ASKED[asked.aggregates]]
        scan = AggregateScan(Scan(DATABASE, table, **options), asked.group_by, aggregates)
        return plan_aggregate(catalog, scan, ts)


def result(at: Kept, asked: Asked, kept: KeptTable | None, plan: AggregatePlan) -> list[dict[str, Any]]:
    """Return the groups, read in steps of a few slices."""
    text = ", ".join(f"{kind}({path or '*'})" for kind, path in ASKED[asked.aggregates])
    groups, clock = Groups(parse_aggregates(text, asked.group_by)), Clock()
    row_key = plan.scan.view.row_key
    cuts = sorted(row_key(plan.scan.view.encode_key([each])) for each in set(asked.cuts))

    def divide(within: tuple[LogicalKey, LogicalKey]) -> list[LogicalKey]:
        return [key for key in cuts if within[0] < key < within[1]]

    state = begin_aggregate(plan, None, clock(), kept)
    page = None
    while page is None or page.next is not None:
        page = aggregate_step(at.store, plan, state, Budget(1, 1, 6, clock), Beside(divide, NoThreads()))
        if page is not None:
            groups._add(
                documents_pb2.AggregateResponse(
                    groups=common_pb2.RowBatch(bodies=page.bodies, lengths=page.lengths.astype("<u4").tobytes()),
                    groups_schema=plan.aggregation.groups_schema.text,
                    result_schema=plan.aggregation.result_schema.text,
                )
            )
    return list(groups.rows())


@contextmanager
def small() -> Iterator[None]:
    """Make slices small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregate_slices, "FILTER_SLICE_ROWS_MAX", SLICE_ROWS)
        yield


def check(at: Kept, asked: Asked) -> None:
    for _ in range(asked.times):
        plan = at.plan(asked)
        found = result(at, asked, kept_columns(at.store, plan.scan), plan)
        assert found == result(at, asked, None, plan)
        assert at.store.kept.bytes <= at.room or not at.room


def check_bytes(at: Kept) -> None:
    """Check that the counted bytes are those of the pieces."""
    kept = at.store.kept
    held = [piece.bytes for table in kept._order for piece in table.pieces.values()]
    assert kept.bytes == sum(held)
    for table in kept._order:
        pieces = [table.pieces[start] for start in table.starts]
        assert len(pieces) == len(table.pieces)
        assert all(one.end <= other.start for one, other in pairwise(pieces))


@given(st.lists(ASKS | ASKS | WRITES | OTHERS, min_size=3, max_size=30))
def test_kept_columns_change_no_result(steps: list[Asked | Write | Other]) -> None:
    at = Kept()
    with small():
        for step in steps:
            match step:
                case Asked():
                    check(at, step)
                case Write():
                    at.put("rows", step.rows, step.ttl_ms)
                case Other():
                    at.do(step)
            check_bytes(at)


PLAIN = Asked(1, [], filtered=False, bounds=None, back=0, times=1, cuts=[], of_first_schema=True)


def hits(at: Kept, asked: Asked = PLAIN) -> tuple[int, int]:
    """Ask, and return how many slices were found, and how many read."""
    kept = at.store.kept
    before = kept.hits, kept.misses
    check(at, asked)
    return kept.hits - before[0], kept.misses - before[1]


def test_the_third_read_since_the_last_write_finds_all_rows() -> None:
    at = Kept()
    with small():
        assert [hits(at) for _ in range(4)] == [(0, 0), (0, 3), (3, 0), (3, 0)]
        by_kind = Asked(0, ["kind"], False, None, 0, 1, [], True)
        assert hits(at, by_kind) == (0, 3), "they lack a column"
        assert hits(at, by_kind) == (3, 0)
        assert hits(at) == (3, 0), "and keep those that they had"
        at.put("rows", [(5, "a", 6)])
        assert [hits(at) for _ in range(3)] == [(0, 0), (0, 3), (3, 0)]


def test_a_write_of_another_table_closes_nothing() -> None:
    at = Kept()
    with small():
        assert [hits(at) for _ in range(3)][-1] == (3, 0)
        at.put("beside", [(1, "a", 1)])
        assert hits(at) == (3, 0)


def test_a_read_of_the_past_finds_nothing_of_later_times() -> None:
    at = Kept()
    at.put("rows", [(3, None, 100)])
    with small():
        assert [hits(at) for _ in range(3)][-1] == (3, 0)
        past = Asked(1, [], False, None, 1, 1, [], True)
        assert [hits(at, past) for _ in range(3)] == [(0, 0)] * 3


def test_rows_of_two_schemas_that_are_counted_and_then_added_up_count_once() -> None:
    at = Kept()
    at.do(Other("schema", 0))
    at.put("rows", [(1, "b", 10)])
    at.do(Other("time", 3))
    with small():
        assert [hits(at) for _ in range(3)][-1] == (3, 0)
        count = Asked(0, [], False, None, 1, 1, [], True)
        # At an earlier time it reads the rows. It does not tell schemas apart.
        assert hits(at, count) == (0, 3)
        assert [hits(at) for _ in range(2)] == [(2, 1), (3, 0)]


def test_a_default_that_a_schema_changes_counts_for_its_readers_alone() -> None:
    at = Kept()
    shares = Asked(0, [], False, None, 0, 1, [], False)
    with small():
        for _ in range(2):
            at.do(Other("schema", 0))
            assert [hits(at, shares) for _ in range(3)] == [(0, 0), (0, 3), (3, 0)]


def test_rows_through_an_index_are_not_kept() -> None:
    at = Kept()
    asked = [Aggregate(Kind.SUM, "units")]
    with small():
        for _ in range(3):
            scan = AggregateScan(Scan(DATABASE, "rows", index="by_kind"), [], asked)
            plan = plan_aggregate(at.world.catalog(), scan, at.times[-1])
            assert kept_columns(at.store, plan.scan) is None


def test_a_part_of_a_range_is_found_up_to_the_bounds_of_pieces() -> None:
    at = Kept()
    with small():
        assert [hits(at) for _ in range(3)][-1] == (3, 0)
        # Slices begin at 0, 3 and 6. Behind 1 the rest of the first one is read.
        assert hits(at, Asked(1, [], False, (1, 7), 0, 1, [], True)) == (1, 2)
        # Parts begin where pieces do.
        assert hits(at, Asked(1, [], False, None, 0, 1, [4, 7], True)) == (3, 0)


def test_a_row_that_expires_is_in_no_piece() -> None:
    at = Kept()
    at.put("rows", [(4, "a", 1)], ttl_ms=10_000)
    with small():
        assert [hits(at) for _ in range(3)] == [(0, 0), (0, 3), (2, 1)]


def test_a_piece_of_a_time_at_which_a_row_had_expired_serves_no_time_before() -> None:
    at = Kept()
    at.put("rows", [(4, "a", 1)], ttl_ms=4)
    for _ in range(2):
        at.do(Other("time", 3))
    with small():
        assert [hits(at) for _ in range(3)][-1] == (3, 0)
        assert hits(at, Asked(1, [], False, None, 2, 1, [], True)) == (0, 3)


def test_without_room_nothing_is_kept_and_a_large_table_keeps_its_first_pieces() -> None:
    at = Kept(room=0)
    with small():
        assert [hits(at) for _ in range(3)] == [(0, 0), (0, 3), (0, 3)]
        at.room = 3_000
        assert [hits(at) for _ in range(3)] == [(0, 3), (2, 1), (2, 1)]
        at.store.kept.shrink(2_000)
        at.room = 2_000
        assert [hits(at) for _ in range(2)] == [(1, 2), (1, 2)]
        check_bytes(at)


def test_the_table_that_was_not_asked_for_for_longest_makes_room() -> None:
    at = Kept()
    at.put("beside", [(each, "a", 1) for each in range(8)])
    with small():
        for _ in range(3):
            hits(at)
        at.room = at.store.kept.bytes
        for _ in range(2):
            plan = at.plan(PLAIN, "beside")
            result(at, PLAIN, kept_columns(at.store, plan.scan), plan)
        check_bytes(at)
        assert hits(at) == (0, 3), "the other table has their place"


def test_groups_of_kept_rows_that_take_too_much_for_one_slice_are_made_of_fewer_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at, by_id = Kept(), Asked(1, ["units"], False, None, 0, 1, [], True)
    read: list[object] = []
    scan_chunk = at.store.scan_chunk
    monkeypatch.setattr(
        at.store, "scan_chunk", lambda *args, **bounds: read.append(args) or scan_chunk(*args, **bounds)
    )
    with small():
        for _ in range(2):
            hits(at, by_id)
        plan = at.plan(by_id)
        read.clear()
        found = result(at, by_id, kept_columns(at.store, plan.scan), plan)
        assert not read
        monkeypatch.setattr(aggregate_slices, "PIECE_BYTES_MAX", 1)
        assert result(at, by_id, kept_columns(at.store, plan.scan), plan) == found
        assert read


def test_aggregates_of_small_ranges_do_not_cut_a_table_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate_slices, "KEPT_ROWS_MIN", 3)
    at = Kept()
    at.put("rows", [(number, "a", 1) for number in range(9)])
    part = Asked(1, [], False, (2, 3), 0, 1, [], True)
    with small():
        assert [hits(at, part)[0] for _ in range(4)] == [0] * 4
        found, read = [hits(at) for _ in range(3)][-1]
        assert (found, read) == (4, 1), "all but the last slice, which is small"
