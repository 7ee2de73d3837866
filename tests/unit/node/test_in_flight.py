"""The entries in flight, held against a twin that looks at every write."""

from __future__ import annotations

from collections import deque

from hypothesis import example, given
from hypothesis import strategies as st

from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.versions import Item
from cortado.store.replica.write.in_flight import InFlight

KEYS = st.integers(0, 4).map(lambda number: LogicalKey(b"%d" % number))
STEPS = st.one_of(
    st.tuples(st.just("write"), st.lists(KEYS, unique=True, max_size=5)),
    st.tuples(st.just("apply"), st.just([])),
    st.tuples(st.just("get"), st.lists(KEYS, min_size=1, max_size=1)),
    st.tuples(st.just("has one of"), st.lists(KEYS, max_size=3)),
)


@given(st.lists(STEPS, max_size=30), st.integers(1, 4))
@example([("write", [LogicalKey(b"1"), LogicalKey(b"3")]), ("write", [LogicalKey(b"3")])], 2)
def test_what_is_found_is_the_newest_that_is_not_applied(
    steps: list[tuple[str, list[LogicalKey]]], run_keys_min: int
) -> None:
    in_flight = InFlight(run_keys_min)
    writes: deque[tuple[list[LogicalKey], list[Item]]] = deque()
    for number, (step, keys) in enumerate(steps):
        newest = {key: item for written, items in writes for key, item in zip(written, items, strict=True)}
        match step:
            case "write":
                items = [(bytes(key), b"%d" % number) for key in keys]
                writes.append((keys, items))
                in_flight.wrote(keys, items)
            case "apply" if writes:
                in_flight.applied(*writes.popleft())
            case "get":
                assert in_flight.get(keys[0]) == newest.get(keys[0])
            case "has one of":
                assert in_flight.has_one_of(keys) == any(key in newest for key in keys)
    newest = {key: item for written, items in writes for key, item in zip(written, items, strict=True)}
    for key in (LogicalKey(b"%d" % number) for number in range(5)):
        assert in_flight.get(key) == newest.get(key)
