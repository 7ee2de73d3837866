"""The reads of a transaction: its own writes over the state that it began at, in every kind of read; and footprints.

A footprint is *sound* if it has this property: when nothing in it has changed, and nothing that the transaction writes,
the same read of the newest state has the same answer. That holds by the interpreter of dictionaries as by the product.
The rules are numbered as in docs/adr/0034-transactions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.operations import get as get_pair
from cortado.store.kv.ranges import KvRange
from cortado.store.kv.scan import KvScanRequest, begin_scan, read_slice
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.transacting import Origin
from cortado.store.tables.read import document_of, get, get_many
from cortado.store.tables.scan import Scan, plan_scan, scan_step
from cortado.store.transactions.commit import Staged, evaluate_commit
from cortado.store.transactions.footprint import Footprint, join_footprints
from cortado.store.transactions.operations import Commit
from cortado.store.transactions.reading import TransactionReads
from support.examples import examples
from support.table_world import DATABASE, WORLDS, TableWorld, budget
from support.transaction_twin import (
    NAMESPACE,
    TABLE,
    Asked,
    Document,
    Interpreter,
    State,
    new_world,
    to_operation,
    with_etags,
)
from support.transactions_asked import KEYS, PAIRS, commits

pytestmark = pytest.mark.slow

ORDERS: Final[Mapping[str, Callable[[Document], Any]]] = {
    "": lambda each: (each["owner"], -each["number"]),
    "count": lambda each: (-each["count"], each["owner"], -each["number"]),
    "code": lambda each: (each["code"] is not None, each["code"] or "", each["owner"], -each["number"]),
}
FILTERS: Final[Mapping[str, Callable[[Document], bool]]] = {
    "": lambda _each: True,
    "count >= 1": lambda each: each["count"] >= 1,
    "code = 'p'": lambda each: each["code"] == "p",
}


@dataclass(frozen=True)
class Read:
    """Any read of a table or of pairs."""

    kind: str
    index: str = ""
    prefix: Any = None
    filter: str = ""
    reverse: bool = False
    limit: int | None = None
    page_rows: int = 100
    page_bytes: int = 1 << 20


reads = st.builds(
    Read,
    st.sampled_from(["get", "get many", "scan", "scan", "scan", "scan", "pair", "pairs", "pairs"]),
    index=st.sampled_from(["", "count", "code"]),
    prefix=st.sampled_from([None, 0, 1]),
    filter=st.sampled_from(list(FILTERS)),
    reverse=st.booleans(),
    limit=st.sampled_from([None, 1, 2]),
    page_rows=st.integers(1, 4),
    page_bytes=st.sampled_from([1, 40, 1 << 20]),
)


def bounds_of(read: Read) -> Sequence[Any] | None:
    """Return the prefix of the index or of the table that is scanned."""
    if read.prefix is None:
        return None
    return [{"": "ab"[read.prefix], "count": read.prefix, "code": "pq"[read.prefix]}[read.index]]


def by_twin(read: Read, state: State) -> Any:
    """Return the answer that a dictionary gives."""
    match read.kind:
        case "get" | "get many":
            keys = KEYS[:1] if read.kind == "get" else KEYS
            return [state.rows.get(key) for key in keys]
        case "pair":
            return state.pairs.get(PAIRS[0])
        case "pairs":
            found = sorted((key, *held) for key, held in state.pairs.items())
            return found[:: -1 if read.reverse else 1][: read.limit]
    bound = bounds_of(read)
    field = {"": "owner", "count": "count", "code": "code"}[read.index]
    rows = [document for document, _ in state.rows.values() if bound is None or document[field] == bound[0]]
    rows = [each for each in rows if FILTERS[read.filter](each)]
    return sorted(rows, key=ORDERS[read.index], reverse=read.reverse)[: read.limit]


def by_product(read: Read, world: TableWorld, ts: Timestamp, began: Began) -> tuple[Any, Footprint]:
    """Return the answer through a transaction's reads, and its footprint, over all pages together."""
    through = TransactionReads(world.store, began.own, began.added)
    reader = through.snapshot(ts)
    view = world.view(TABLE)
    answer: Any
    footprints: list[bytes] = []
    match read.kind:
        case "get":
            row = get(reader, view, KEYS[0])
            answer = [None if row is None else (document_of(view, row), row.ts)]
        case "get many":
            answer = [None if row is None else (document_of(view, row), row.ts) for row in get_many(reader, view, KEYS)]
        case "pair":
            pair = get_pair(reader, NAMESPACE, PAIRS[0])
            answer = None if pair is None else (pair.value, pair.etag)
        case "pairs":
            request = KvScanRequest(NAMESPACE, KvRange(), reverse=read.reverse, limit=read.limit or 0)
            rest = begin_scan(request, ts, 0)
            answer = []
            while rest is not None:
                page = read_slice(through, rest, rows_max=read.page_rows, bytes_max=read.page_bytes)
                answer += [(pair.key, pair.value, pair.etag) for pair in page.pairs]
                footprints.append(through.take_footprint().encode())
                rest = page.rest
        case _:
            scan = Scan(
                DATABASE, TABLE, read.index, prefix=bounds_of(read), reverse=read.reverse,
                filter=read.filter, limit=read.limit,
            )  # fmt: skip
            plan = plan_scan(world.catalog(), scan, ts)
            step = replace(budget(read.page_rows), bytes=read.page_bytes)
            answer, token = [], None
            while True:
                page = scan_step(through, plan, token, step)
                answer += world.documents(plan, page)
                footprints.append(through.take_footprint().encode())
                token = page.next
                if token is None:
                    break
    footprints.append(through.take_footprint().encode())
    return answer, join_footprints(footprints)


class Began:
    """A transaction that began at a state, and has written something."""

    def __init__(self, world: TableWorld, ts: Timestamp, state: State, asked: list[Asked]) -> None:
        self.interpreter = Interpreter(state, None)
        self.is_refused = self.interpreter.run(asked) is not None
        self.own, self.written, self.added = Mutations(), list[LogicalKey](), list[LogicalKey]()
        if not self.is_refused:
            staged = Staged(Origin(world.store.snapshot(ts)), world.catalog())
            staged.run([to_operation(world, each) for each in asked])
            self.own, self.written, self.added = staged.mutations(), list(staged.written), list(staged.added)

    @property
    def state(self) -> State:
        """As the transaction sees it."""
        return self.interpreter.after


def commit(world: TableWorld, state: State, asked: list[Asked]) -> State:
    """Return the state after the commit; the same if it was refused."""
    interpreter = Interpreter(state, None)
    if interpreter.run(asked) is not None:
        return state
    operations = [to_operation(world, each) for each in asked]
    ts, _ = world.store.write(lambda reader, ts: evaluate_commit(reader, ts, world.catalog(reader), Commit(operations)))
    return interpreter.commit(ts)


@given(
    st.sampled_from(WORLDS),
    st.lists(commits(5), max_size=4),
    st.just([]) | commits(5),
    st.lists(reads, min_size=1, max_size=5),
)
@settings(max_examples=examples(300))
def test_a_read_sees_the_own_writes_over_what_was_there(
    store: type, script: list[list[Asked]], own: list[Asked], asked: list[Read]
) -> None:
    world, state = new_world(store()), State()
    for each in script:
        state = commit(world, state, with_etags(each, state))
    began = Began(world, world.store.now, state, with_etags(own, state))
    ts, later = world.store.now, state
    for each in script:
        later = commit(world, later, with_etags(each, later))
    seen = state if began.is_refused else began.state
    for read in asked:
        assert by_product(read, world, ts, began)[0] == by_twin(read, seen)


@given(
    st.lists(commits(5), max_size=4),
    st.just([]) | commits(4),
    st.lists(commits(2), min_size=1, max_size=2),
    st.lists(reads, min_size=1, max_size=5),
)
@settings(max_examples=examples(500))
def test_where_no_footprint_has_changed_the_read_has_the_same_answer(
    script: list[list[Asked]], own: list[Asked], others: list[list[Asked]], asked: list[Read]
) -> None:
    world, state = new_world(WORLDS[0]()), State()
    for each in script:
        state = commit(world, state, with_etags(each, state))
    start, own = world.store.now, with_etags(own, state)
    before = Began(world, start, state, own)
    if before.is_refused:
        return
    answers = [by_product(read, world, start, before) for read in asked]
    for each in others:
        state = commit(world, state, with_etags(each, state))
    newest = world.store.snapshot()
    after = Began(world, world.store.now, state, own)
    if newest.changed_since(before.written, (), start) is not None or after.is_refused:
        return
    for read, (answer, footprint) in zip(asked, answers, strict=True):
        is_same = answer == by_twin(read, after.state)
        is_unchanged = newest.changed_since(footprint.keys, footprint.ranges, start) is None
        event(f"unchanged: {is_unchanged}, same: {is_same}")
        assert is_same or not is_unchanged
