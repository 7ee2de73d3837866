"""Aggregates whose parts are read on several threads, in pieces of a few rows: the groups are those of a dumb
interpreter, whichever thread reads which part at which moment, wherever replies leave, streams break and reads fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import cycle
from threading import Event, Thread, current_thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import DataLoss
from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.store.aggregate import partial
from cortado.store.aggregate.bind import Aggregate, Kind
from cortado.store.client.aggregate_text import parse_aggregates
from cortado.store.client.aggregates import Groups
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.paging import PageToken
from cortado.store.mvcc.reader import Reader, ScanChunk
from cortado.store.process.scan_threads import ScanThreads
from cortado.store.tables import aggregate, aggregate_slices, aggregating
from cortado.store.tables.aggregate import AggregatePlan, AggregateScan, plan_aggregate
from cortado.store.tables.aggregating import AggregateState, Beside, Lender, Lent, aggregate_step, begin_aggregate
from cortado.store.tables.scan import Budget, Scan
from support.aggregate_twin import aggregate_by_hand, same
from support.dict_reader import DictStore
from support.table_world import DATABASE, TableWorld, index

SLICE_ROWS = 3
GROUPS = 12
"""The bound on groups that are held."""
WAIT_S = 30.0
SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "kind", "type": ["null", "string"]},
        {"name": "units", "type": ["null", "long"]},
        {"name": "share", "type": "double"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}},
    ],
}
ASKED = [
    ("count", ""), ("count", "units"), ("sum", "units"), ("avg", "units"), ("sum", "share"), ("max", "share"),
    ("sum", "price"), ("avg", "price"), ("min", "kind"),
]  # fmt: skip
DOCUMENTS = st.fixed_dictionaries(
    {
        "id": st.integers(0, 40),
        "kind": st.sampled_from([None, "", "a", "b", "long" * 20]),
        "units": st.sampled_from([None, 0, 1, -7, 2**57]),
        # Sums of these are exact in any order.
        "share": st.sampled_from([0.0, 0.5, -2.25, 1024.0]),
        "price": st.sampled_from([Decimal("0.00"), Decimal("-1.25"), Decimal("9" * 28 + ".99")]),
    }
)


@dataclass
class Turn:
    """How one step goes: for how long, how many threads help, when they run, and after how many looks they leave."""

    ms: float
    helpers: int
    moment: str
    looks: int


TURNS = st.builds(
    Turn,
    ms=st.sampled_from([1.0, 5.0, 20.0]),
    helpers=st.integers(0, 3),
    moment=st.sampled_from(["before", "behind", "never", "held"]),
    looks=st.integers(0, 12),
)


@dataclass
class Source:
    """Slices of a store, of which some fail, and in which a thread can be held."""

    store: DictStore
    damaged: LogicalKey | None
    failures: int
    held: dict[str, Event] = field(default_factory=dict)
    began: dict[str, Event] = field(default_factory=dict)

    def wait(self) -> None:
        """Hold this thread, if it is to be held, until the step's own thread waits for it."""
        name = current_thread().name
        if name in self.held:
            self.began[name].set()
            assert self.held[name].wait(WAIT_S)

    def scan_chunk(self, start: LogicalKey, end: LogicalKey, *args: Any, **bounds: Any) -> ScanChunk:
        chunk = self.store.scan_chunk(start, end, *args, **bounds)
        if self.failures and self.damaged in chunk.keys:
            self.failures -= 1
            raise DataLoss("a row", "is damaged")
        return chunk

    def snapshot(self, read_ts: Any) -> Reader:
        return self.store.snapshot(read_ts)


@dataclass
class Scripted:
    """Lends threads as a turn has it."""

    source: Source
    turn: Turn
    work: list[Callable[[], None]] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)

    def spare(self) -> int:
        return self.turn.helpers

    def lend(self, most: int, work: Callable[[Callable[[], bool]], None]) -> Lent:
        for number in range(min(most, self.turn.helpers)):
            looks = iter(range(self.turn.looks))
            self._begin(f"helper-{number}", lambda looks=looks: work(lambda: next(looks, None) is not None))
        return self

    def _begin(self, name: str, run: Callable[[], None]) -> None:
        match self.turn.moment:
            case "before":
                run()
            case "behind":
                self.work.append(run)
            case "held":
                began, self.source.held[name] = Event(), Event()
                self.source.began[name] = began
                thread = Thread(target=lambda: (run(), began.set()), name=name)
                thread.start()
                assert began.wait(WAIT_S)
                self.threads.append(thread)

    def join(self) -> None:
        for event in self.source.held.values():
            event.set()
        for thread in self.threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()
        for run in self.work:
            run()
        self.work, self.threads, self.source.held = [], [], {}


@contextmanager
def small() -> Iterator[None]:
    """Make slices, and the bounds on groups, small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregate_slices, "FILTER_SLICE_ROWS_MAX", SLICE_ROWS)
        patch.setattr(aggregate_slices, "SLICE_ROWS_MAX", SLICE_ROWS)
        patch.setattr(aggregating, "REPLY_MS", 60.0)
        patch.setattr(aggregating, "GROUPS_MAX", GROUPS)
        patch.setattr(partial, "GROUPS_MAX", GROUPS)
        patch.setattr(partial, "_APART_MAX", SLICE_ROWS)
        read = aggregating.read_slice

        def read_and_wait(source: Any, *args: Any) -> LogicalKey:
            position = read(source, *args)
            # The part has the groups of the slice, and does not say so yet.
            if isinstance(source, Source):
                source.wait()
            return position

        patch.setattr(aggregating, "read_slice", read_and_wait)
        yield


class Clock:
    """Each look at it takes a millisecond."""

    def __init__(self) -> None:
        self.now_ms = 0.0

    def __call__(self) -> float:
        self.now_ms += 1
        return self.now_ms


def a_world(writes: Sequence[dict[str, Any]]) -> tuple[TableWorld, dict[int, dict[str, Any]]]:
    """Return a table after these writes: a document that equals the stored one deletes it."""
    world = TableWorld()
    world.create("rows", SCHEMA, ["id"], [index("by_kind", "kind")])
    rows: dict[int, dict[str, Any]] = {}
    for document in writes:
        if rows.get(document["id"]) == document:
            world.delete("rows", (document["id"],))
            del rows[document["id"]]
        else:
            world.put("rows", document)
            rows[document["id"]] = document
    return world, rows


def a_plan(world: TableWorld, group_by: Sequence[str], **options: Any) -> AggregatePlan:
    asked = [Aggregate(Kind(kind), path) for kind, path in ASKED]
    scan = AggregateScan(Scan(DATABASE, "rows", **options), group_by, asked)
    return plan_aggregate(world.catalog(), scan, world.store.now)


def cuts_of(plan: AggregatePlan, ids: Sequence[int]) -> aggregating.Divide:
    """Divide at these rows."""
    keys = [key_of(plan, each) for each in sorted(ids)]

    def divide(within: tuple[LogicalKey, LogicalKey]) -> list[LogicalKey]:
        return [key for key in keys if within[0] < key < within[1]]

    return divide


@dataclass
class Stream:
    """The groups that have come, and the token of the last reply."""

    groups: Groups
    token: PageToken | None = None
    is_over: bool = False

    def take(self, plan: AggregatePlan, page: aggregate.AggregatePage) -> None:
        self.groups._add(
            documents_pb2.AggregateResponse(
                groups=common_pb2.RowBatch(bodies=page.bodies, lengths=page.lengths.astype("<u4").tobytes()),
                groups_schema=plan.aggregation.groups_schema.text,
                result_schema=plan.aggregation.result_schema.text,
            )
        )
        self.token, self.is_over = page.next, page.next is None


def a_stream(group_by: Sequence[str]) -> Stream:
    text = ", ".join(f"{kind}({path or '*'})" for kind, path in ASKED)
    return Stream(Groups(parse_aggregates(text, list(group_by))))


def check(stream: Stream, documents: Sequence[dict[str, Any]], group_by: Sequence[str]) -> None:
    theirs = aggregate_by_hand(documents, ASKED, group_by, {"price": 2})
    ours = {
        tuple(row[name] for name in group_by): [row[f"{kind}({path or '*'})"] for kind, path in ASKED]
        for row in stream.groups.rows()
    }
    assert ours.keys() == theirs.keys()
    for key, values in ours.items():
        for (kind, path), mine, dumb in zip(ASKED, values, theirs[key], strict=True):
            assert same(mine, dumb), (kind, path, key, mine, dumb)


def check_held(state: AggregateState, threads: int) -> None:
    """All groups that are held together are within the bound, but for those of the last slice of each thread."""
    held = [part.groups.held[0] for part in (state.front, *state.parts)]
    assert sum(held) <= GROUPS + threads * SLICE_ROWS + SLICE_ROWS, held


@given(
    writes=st.lists(DOCUMENTS, max_size=40),
    group_by=st.sampled_from([[], ["kind"], ["units", "share"], ["id"]]),
    filtered=st.booleans(),
    cuts=st.sets(st.integers(0, 41)),
    damaged=st.none() | st.integers(0, 40),
    failures=st.integers(1, 3),
    breaks=st.sets(st.integers(0, 30)),
    turns=st.lists(TURNS, min_size=1, max_size=8),
)
def test_parts_that_other_threads_read_count_once(
    writes: list[dict[str, Any]],
    group_by: list[str],
    filtered: bool,
    cuts: set[int],
    damaged: int | None,
    failures: int,
    breaks: set[int],
    turns: list[Turn],
) -> None:
    world, rows = a_world(writes)
    chosen = [row for _, row in sorted(rows.items()) if not filtered or row["share"] > 0]
    plan = a_plan(world, group_by, filter="share > 0" if filtered else "")
    key = None if damaged is None else key_of(plan, damaged)
    source, clock = Source(world.store, key, failures), Clock()
    stream, divide = a_stream(group_by), cuts_of(plan, cuts)
    with small():
        state = begin_aggregate(plan, None, clock())
        for number in range(10_000):
            turn = turns[number % len(turns)]
            beside = Beside(divide, Scripted(source, turn))
            try:
                page = aggregate_step(source, plan, state, Budget(1, 1, turn.ms, clock), beside)
            except DataLoss:
                # The front met it: all rows before are in replies, or in the front's groups.
                assert key is not None and state.front.position <= key
                between = list(world.store.live(state.front.position, key, world.store.now))
                assert len(between) < SLICE_ROWS
                state = begin_aggregate(plan, stream.token, clock())
                continue
            check_held(state, 4)
            if page is not None:
                stream.take(plan, page)
                if stream.is_over:
                    break
            if number in breaks:
                # Whatever was read behind the last reply is lost.
                state = begin_aggregate(plan, stream.token, clock())
    assert stream.is_over
    check(stream, chosen, group_by)


@given(st.lists(DOCUMENTS, min_size=8, max_size=40), st.sets(st.integers(0, 41)), st.lists(TURNS, min_size=1))
def test_an_index_is_read_in_parts_too(writes: list[dict[str, Any]], cuts: set[int], turns: list[Turn]) -> None:
    world, rows = a_world(writes)
    plan = a_plan(world, ["kind"], index="by_kind")
    start, end = plan.scan.range
    keys = [key for key, _ in world.store.live(start, end, world.store.now)]
    source, clock, stream = Source(world.store, None, 0), Clock(), a_stream(["kind"])

    def divide(within: tuple[LogicalKey, LogicalKey]) -> list[LogicalKey]:
        return [key for number, key in enumerate(keys) if number in cuts and within[0] < key < within[1]]

    with small():
        state = begin_aggregate(plan, None, clock())
        for number in range(10_000):
            turn = turns[number % len(turns)]
            beside = Beside(divide, Scripted(source, turn))
            page = aggregate_step(source, plan, state, Budget(1, 1, turn.ms, clock), beside)
            if page is not None:
                stream.take(plan, page)
                if stream.is_over:
                    break
    check(stream, list(rows.values()), ["kind"])


@settings(max_examples=25)
@given(st.lists(DOCUMENTS, min_size=20, max_size=40), st.sets(st.integers(0, 41), min_size=3), st.integers(1, 20))
def test_real_threads_read_parts_at_their_own_pace(writes: list[dict[str, Any]], cuts: set[int], step_ms: int) -> None:
    world, rows = a_world(writes)
    plan = a_plan(world, ["kind"])
    threads = ScanThreads(None)
    threads.widen(3)
    stream, clock = a_stream(["kind"]), Clock()
    beside = Beside(cuts_of(plan, cuts), threads)
    with small():
        state = begin_aggregate(plan, None, clock())
        while not stream.is_over:
            page = aggregate_step(world.store, plan, state, Budget(1, 1, step_ms, clock), beside)
            if page is not None:
                stream.take(plan, page)
    threads.stop()
    check(stream, list(rows.values()), ["kind"])


def plain_rows(count: int) -> list[dict[str, Any]]:
    return [{"id": each, "kind": "a", "units": 1, "share": 0.5, "price": Decimal("0.00")} for each in range(count)]


def key_of(plan: AggregatePlan, number: int) -> LogicalKey:
    return plan.scan.view.row_key(plan.scan.view.encode_key([number]))


@pytest.mark.parametrize("failures", [1, 1_000])
def test_an_error_of_a_part_is_the_fronts_if_it_is_still_there_then(failures: int) -> None:
    world, rows = a_world(plain_rows(30))
    plan = a_plan(world, [])
    source, clock, stream = Source(world.store, key_of(plan, 25), failures), Clock(), a_stream([])
    refused: list[LogicalKey] = []
    with small():
        state = begin_aggregate(plan, None, clock())
        while not (stream.is_over or refused):
            beside = Beside(cuts_of(plan, [6, 12, 18, 24]), Scripted(source, Turn(6.0, 2, "before", 1_000)))
            try:
                page = aggregate_step(source, plan, state, Budget(1, 1, 6.0, clock), beside)
            except DataLoss:
                refused.append(state.front.position)
                continue
            if page is not None:
                stream.take(plan, page)
    assert source.failures < failures, "a part has met it"
    if failures == 1:
        check(stream, list(rows.values()), [])
    else:
        assert refused == [key_of(plan, 24)]


def test_a_stream_goes_on_elsewhere_from_any_of_its_replies() -> None:
    world, rows = a_world(plain_rows(40))
    plan, clock = a_plan(world, ["kind"]), Clock()

    def pages(token: PageToken | None, turn: Turn) -> Iterator[aggregate.AggregatePage]:
        state, source = begin_aggregate(plan, token, clock()), Source(world.store, None, 0)
        while True:
            beside = Beside(cuts_of(plan, [8, 16, 24, 32]), Scripted(source, turn))
            page = aggregate_step(source, plan, state, Budget(1, 1, turn.ms, clock), beside)
            if page is not None:
                yield page
                if page.next is None:
                    return

    with small(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregating, "REPLY_MS", 1.0)
        first = list(pages(None, Turn(4.0, 2, "before", 1_000)))
        assert len(first) > 3
        for count in range(1, len(first)):
            stream = a_stream(["kind"])
            for page in first[:count]:
                stream.take(plan, page)
            for page in pages(stream.token, Turn(4.0, 0, "never", 0)):
                stream.take(plan, page)
            check(stream, list(rows.values()), ["kind"])


@pytest.mark.parametrize("moments", [["before"], ["behind"], ["never", "before", "behind"]])
@pytest.mark.parametrize("cuts", [range(4, 40, 4), [5], [35], range(40), [11, 19, 27, 35]])
def test_groups_of_all_parts_together_are_bounded(moments: Sequence[str], cuts: Sequence[int]) -> None:
    world, rows = a_world(plain_rows(40))
    plan, clock, stream = a_plan(world, ["id"]), Clock(), a_stream(["id"])
    source, most = Source(world.store, None, 0), 0
    with small(), pytest.MonkeyPatch.context() as patch:
        read = aggregating.read_slice

        def measured(*args: Any) -> LogicalKey:
            nonlocal most
            most = max(most, sum(part.groups.held[0] for part in (state.front, *state.parts)))
            return read(*args)

        patch.setattr(aggregating, "read_slice", measured)
        state = begin_aggregate(plan, None, clock())
        for moment in cycle(moments):
            if stream.is_over:
                break
            beside = Beside(cuts_of(plan, cuts), Scripted(source, Turn(50.0, 1, moment, 1_000)))
            page = aggregate_step(source, plan, state, Budget(1, 1, 50.0 if state.is_begun else 1.0, clock), beside)
            if page is not None:
                stream.take(plan, page)
    assert GROUPS // 2 < most <= GROUPS
    check(stream, list(rows.values()), ["id"])


class Counting:
    """Threads that nobody has, which count how often somebody asked."""

    def __init__(self, spare: int) -> None:
        self._spare = spare
        self.asked = self.lent = 0

    def spare(self) -> int:
        self.asked += 1
        return self._spare

    def lend(self, most: int, _work: Callable[[Callable[[], bool]], None]) -> Lent:
        self.lent += most
        return self

    def join(self) -> None:
        return


def steps(world: TableWorld, threads: Lender, divided: list[Any], rows_per_step: int) -> None:
    plan, clock = a_plan(world, []), Clock()

    def divide(within: tuple[LogicalKey, LogicalKey]) -> list[LogicalKey]:
        divided.append(within)
        return []

    with small():
        state = begin_aggregate(plan, None, clock())
        page = None
        while page is None or page.next is not None:
            page = (
                aggregate_step(world.store, plan, state, Budget(1, 1, rows_per_step, clock), Beside(divide, threads))
                or page
            )


def test_a_range_that_one_step_reads_is_not_looked_at_for_parts() -> None:
    world, _ = a_world(plain_rows(9))
    divided: list[Any] = []
    steps(world, Counting(1), divided, 1_000)
    assert divided == []
    steps(world, Counting(1), divided, 1)
    assert len(divided) == 1, "it is, once, if the first step left a rest"
    assert divided[0][0] > a_plan(world, []).scan.range[0]


def test_without_an_idle_thread_nothing_is_divided() -> None:
    world, _ = a_world(plain_rows(30))
    divided: list[Any] = []
    busy = Counting(0)
    steps(world, busy, divided, 1)
    assert busy.asked > 1 and divided == [] and busy.lent == 0
