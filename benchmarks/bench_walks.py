"""Columns of stored rows by the compiled walk and by the columnar codec, and groups by the kernel and by numpy.

A slice as an aggregate reads it, of documents of ten fields: rows a second of CPU, so that a busy machine does not
count as slow code. Beside each stands the code that runs without a kernel, in turns.

    python -m benchmarks.bench_walks
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from io import BytesIO
from typing import Final

import fastavro
import numpy as np
from rich.console import Console

from benchmarks.bench_columnar import DECLARATION, document
from benchmarks.report import Measurement, show
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.parse import parse_document_schema
from cortado.store.aggregate.reduce import group_rows
from cortado.store.mvcc.kernel.seam import compile_ahead, compiled_folder, load
from cortado.store.mvcc.packed import PackedPayloads
from cortado.store.tables.walked import walked_columns

TITLE: Final = "Columns and groups of a slice"
ROWS: Final = 8_000
ROUNDS: Final = 15
REPEATS: Final = 20
WANTED: Final = (("flight",), ("flight", "distance"), ("carrier", "distance"), ("note", "delay"))
GROUPS: Final = (("carrier",), ("note",), ("carrier", "cancelled"))


def run() -> list[Measurement]:
    """Measure everything; takes some ten seconds."""
    load(compiled_folder() or compile_ahead())
    from cortado.store.mvcc.kernel.walking import CompiledColumns

    kernel = CompiledColumns()
    parsed, schema = (
        fastavro.parse_schema(json.loads(json.dumps(DECLARATION))),
        parse_document_schema(json.dumps(DECLARATION)),
    )
    out, ends = BytesIO(), []
    for row in range(ROWS):
        fastavro.schemaless_writer(out, parsed, document(row))
        ends.append(out.tell())
    payloads = PackedPayloads(b"", 0, out.getvalue(), np.array(ends, np.int64), kernel)
    found = []
    for paths in WANTED:
        walked, decoded = _rates(
            lambda paths=paths: walked_columns(payloads, schema, paths),
            lambda paths=paths: decode_rows(schema, payloads.bodies, payloads.lengths(), columns=paths),
        )
        found.append(Measurement(f"columns: {', '.join(paths)}", walked, "rows", "the columnar codec", decoded))
    for paths in GROUPS:
        columns = walked_columns(payloads, schema, paths)
        assert columns is not None
        keys = list(columns.values())
        ours, theirs = _rates(
            lambda keys=keys: group_rows(keys, ROWS, kernel), lambda keys=keys: group_rows(keys, ROWS)
        )
        found.append(Measurement(f"groups: {', '.join(paths)}", ours, "rows", "numpy", theirs))
    return found


def settings() -> str:
    """Return one line for the table's head: data and method."""
    return f"a slice of {ROWS:,} documents of ten fields; CPU time, the best of {ROUNDS} times {REPEATS}, in turns"


def _rates(*calls: Callable[[], object]) -> list[float]:
    """Return rows a second of CPU, of each."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for place, call in enumerate(calls):
            began = time.process_time()
            for _ in range(REPEATS):
                call()
            best[place] = min(best[place], time.process_time() - began)
    return [REPEATS * ROWS / each for each in best]


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console())
