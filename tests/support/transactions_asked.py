"""Operations of transactions, at random: few keys and few values, so that they meet often. See
:mod:`support.transaction_twin`."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from cortado.store.mvcc.evaluation import Absent, Present
from support.transaction_twin import Asked

KEYS: Final = [("a", 0), ("a", 1), ("b", 0)]
PAIRS: Final = [b"x", b"y"]

keys = st.sampled_from(KEYS)
pairs = st.sampled_from(PAIRS)
conditions = st.sampled_from([None, None, None, Absent(), Present(), "etag"])
required = st.sampled_from([Absent(), Present(), Present()])
deltas = st.integers(-2, 2)
least = st.sampled_from([None, None, 0])
most = st.sampled_from([None, None, 3])
codes = st.sampled_from([None, "p", "q"])
serials = st.sampled_from([None, 1, 2])
places = st.sampled_from([None, {"city": "Rome"}, {"city": "Oslo"}])
documents = st.builds(
    lambda key, code, serial, count, place: {
        "owner": key[0], "number": key[1], "code": code, "serial": serial, "count": count, "place": place,
    },
    keys, codes, serials, st.integers(0, 2), places,
)  # fmt: skip
changes: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"code": codes}),
    st.fixed_dictionaries({"serial": serials, "count": st.integers(0, 2)}),
    st.fixed_dictionaries({"place": places}),
    st.fixed_dictionaries({"place.city": st.sampled_from(["Rome", "Oslo"])}),
)
values = st.one_of(st.integers(0, 2).map(lambda number: number.to_bytes(8)), st.sampled_from([b"", b"text"]))

puts = st.tuples(st.just("put"), documents, conditions)
updates = st.tuples(st.just("update"), keys, changes, conditions)
deletes = st.tuples(st.just("delete"), keys, conditions)
adds = st.tuples(st.just("add"), keys, st.sampled_from(["count", "serial"]), deltas, least, most)
pair_puts = st.tuples(st.just("pair put"), pairs, values, conditions)
pair_deletes = st.tuples(st.just("pair delete"), pairs, conditions)
pair_adds = st.tuples(st.just("pair add"), pairs, deltas, least, most)

FILLED: Final[list[Asked]] = [
    *(
        ("put", {"owner": owner, "number": number, "code": None, "serial": place, "count": 1, "place": None}, None)
        for place, (owner, number) in enumerate(KEYS)
    ),
    *(("pair put", key, bytes(8), None) for key in PAIRS),
]
"""A commit to begin with: so that there is something to change, and to add to."""

on_rows = st.one_of(
    puts, puts, updates, updates, deletes, adds, adds, adds, st.tuples(st.just("check"), keys, required)
)
on_pairs = st.one_of(
    pair_puts,
    pair_deletes,
    pair_adds,
    st.tuples(st.just("pair check"), pairs, required),
    st.tuples(
        st.just("batch of pairs"),
        st.lists(
            st.one_of(
                st.tuples(st.just("pair put"), pairs, values, st.none()),
                st.tuples(st.just("pair delete"), pairs, st.none()),
            ),
            min_size=1,
            max_size=3,
        ),
    ),
)


def commits(size_max: int = 4) -> st.SearchStrategy[list[Asked]]:
    return st.lists(st.one_of(on_rows, on_rows, on_pairs), min_size=1, max_size=size_max)
