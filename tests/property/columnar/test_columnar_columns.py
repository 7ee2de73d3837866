"""Columns taken by index, put together and spread out equal lists of their values."""

from __future__ import annotations

import json
import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.schema.columnar.column import Column
from cortado.schema.columnar.columns import concat, expand, squeeze, take
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.documents import encode_document
from cortado.schema.parse import parse_schema
from support.avro_random import SchemaMaker, ValueMaker


def columns_of(rng: random.Random, rows: int) -> list[Column]:
    schema = parse_schema(json.dumps(SchemaMaker(rng).document()))
    bodies = [encode_document(schema, ValueMaker(rng).value(schema.record)) for _ in range(rows)]
    return list(decode_rows(schema, b"".join(bodies), list(map(len, bodies))).columns.values())


def values(column: Column) -> list[str]:
    # By their text, since a NaN is not equal to itself.
    return [repr(value) for value in column.to_pylist()]


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 20]))
@settings(max_examples=120)
def test_columns_are_handled_as_lists_are(seed: int, rows: int) -> None:
    rng = random.Random(seed)
    for column in columns_of(rng, rows):
        plain = values(column)
        index = np.array([rng.randrange(rows) for _ in range(rng.randint(0, 30))], np.int64)
        picked = take(column, index)
        assert values(picked) == [plain[place] for place in index]
        assert values(concat([picked, column, picked])) == values(picked) + plain + values(picked)
        present = np.array([rng.random() < 0.6 for _ in range(40)])
        few = take(column, np.array([rng.randrange(rows) for _ in range(int(present.sum()))], np.int64))
        spread = expand(few, present)
        following = iter(values(few))
        assert values(spread) == [next(following) if one else "None" for one in present]
        if spread.validity is not None:
            assert values(squeeze(spread)) == [values(spread)[row] for row in np.flatnonzero(spread.validity)]
        again = np.array([rng.randrange(40) for _ in range(10)], np.int64)
        assert values(take(spread, again)) == [values(spread)[place] for place in again]
