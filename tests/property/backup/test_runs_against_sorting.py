"""Runs that are sorted and merged against a list that is sorted."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from cortado.store.backup import runs as module
from cortado.store.backup.runs import Run, decode_run, merged_runs, sorted_runs
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key
from cortado.store.mvcc.versions import suffix_of

Version = tuple[bytes, int, bytes]
VERSIONS = st.lists(
    st.tuples(st.binary(max_size=3), st.integers(1, 30), st.binary(max_size=20)),
    unique_by=lambda version: version[:2],
    max_size=60,
)


def run_of(versions: list[Version]) -> Run:
    return Run(
        [kv_key("n", key) for key, _, _ in versions],
        [bytes(Timestamp(0, wall_ms, 0)) for _, wall_ms, _ in versions],
        [b"P" + value for _, _, value in versions],
    )


def in_order(versions: list[Version]) -> list[Version]:
    return sorted(versions, key=lambda version: kv_key("n", version[0]) + suffix_of(Timestamp(0, version[1], 0)))


@given(VERSIONS, st.integers(1, 100), st.lists(st.integers(0, 2), min_size=60, max_size=60))
def test_versions_in_any_order_come_out_in_that_of_an_engine(
    versions: list[Version], cut_bytes: int, places: list[int]
) -> None:
    with patch.object(module, "_CUT_BYTES", cut_bytes):
        one = list(sorted_runs(run_of(versions)))
        piles: list[list[Version]] = [[], [], []]
        for version, place in zip(versions, places, strict=False):
            piles[place].append(version)
        merged = list(merged_runs([sorted_runs(run_of(pile)) for pile in piles]))
    expected = run_of(in_order(versions))
    for found in (one, merged):
        assert [decode_run(run.encode(), "a run") for run in found] == [Run(*map(tuple, run)) for run in found]
        assert [key for run in found for key in run.keys] == expected.keys
        assert [ts for run in found for ts in run.timestamps] == expected.timestamps
        assert [value for run in found for value in run.values] == expected.values
    # As they are committed they are in another order, which a watch alone may have.
    decode_run(run_of(versions[::-1]).encode(), "a run", in_order=False)
