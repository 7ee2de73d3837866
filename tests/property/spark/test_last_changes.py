"""The rows that ``operation=changes`` applies, against a dictionary: the last change of each key, and nothing else."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument
from pyspark_cortado import applied_changes
from pyspark_cortado.applied_changes import LastChanges, ToldBy

TS = pa.struct([("epoch", pa.int32()), ("wall_ms", pa.int64()), ("logical", pa.int64())])
SCHEMA = pa.schema(
    [
        ("at", pa.struct([("x", pa.float64())])),
        ("name", pa.string()),
        ("_op", pa.string()),
        ("_ts", TS),
        ("n", pa.int64()),
    ]
)
TOLD_BY = ToldBy(2, 3, [(0, ["x"]), (1, [])])

Change = tuple[float | None, str, str, tuple[int, int, int]]

keys = st.tuples(st.sampled_from([None, -0.0, 0.0, 1.5]), st.sampled_from(["a", "b"]))
times = st.tuples(*[st.integers(0, 2)] * 3)
changes = st.lists(
    st.builds(lambda key, op, ts: (*key, op, ts), keys, st.sampled_from(["put", "delete"]), times), max_size=30
)


def _batch(rows: list[Change], first: int) -> pa.RecordBatch:
    documents = [
        {
            "at": {"x": x},
            "name": name,
            "_op": op,
            "_ts": dict(zip(("epoch", "wall_ms", "logical"), ts, strict=True)),
            "n": n,
        }
        for n, (x, name, op, ts) in enumerate(rows, first)
    ]
    return pa.RecordBatch.from_pylist(documents, schema=SCHEMA)


def _numbers(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch.column("n").to_pylist()]


@given(st.lists(changes, max_size=4), st.booleans())
def test_of_each_key_the_last_change_is_applied(parts: list[list[Change]], on_disk: bool) -> None:
    batches, last, count = [], dict[str, tuple[tuple[int, int, int], int, str]](), 0
    for part in parts:
        batches.append(_batch(part, count))
        for x, name, op, ts in part:
            before = last.get(f"{x} {name}")
            if before is None or ts >= before[0]:
                last[f"{x} {name}"] = (ts, count, op)
            count += 1
    limit = 1 if on_disk else 1 << 20
    with (
        patch.object(applied_changes, "_IN_MEMORY_BYTES", limit),
        LastChanges(iter(batches), TOLD_BY) as found,
    ):
        assert _numbers(found.puts()) == sorted(number for _, number, op in last.values() if op == "put")
        deleted = sorted(number for _, number, op in last.values() if op == "delete")
        assert (_numbers(found.deleted()), found.deletes) == (deleted, len(deleted))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((1.0, "a", "reset", (0, 0, 0)), 'column _op: must be "put" or "delete" .got reset'),
        ((1.0, "a", None, (0, 0, 0)), 'column _op: must be "put" or "delete" .got None'),
        ((1.0, "a", "put", (0, None, 0)), "column _ts: must not be null"),
    ],
)
def test_what_is_no_change_is_refused(change: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        LastChanges([_batch([change], 0)], TOLD_BY)
