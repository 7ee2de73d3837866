"""The bytes of rows and index entries are on disk: ``rows.txt`` pins them, decoded and raw side by side.

A change there is a change of format: raise the data directory's version and say so in
``docs/formats/rows-and-indexes.md``. Then ``PYTHONPATH=tests python tests/golden/tables/test_row_bytes.py >
tests/golden/tables/rows.txt`` writes the file anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from cortado.store.keys.dump import dump
from cortado.store.tables.operations import Delete, Put, Update
from support.orders import address, create_orders, order
from support.table_world import DATABASE, TableWorld

GOLDEN = Path(__file__).with_name("rows.txt")


def lines() -> Iterator[str]:
    world = TableWorld()
    create_orders(world)
    full = order("ann", 1, code="x", amount=2.5, status="paid", address=address("Rome", "00100"), tags=["a"])
    for title, operation in (
        ("put a document, one entry in each index", Put(DATABASE, "orders", world.avro("orders", full))),
        ("update it: one entry moves", Update(DATABASE, "orders", ("ann", 1), {"code": "y"})),
        (
            "put nulls: the entry of the unique index has the primary key",
            Put(DATABASE, "orders", world.avro("orders", order("bob", 7))),
        ),
        ("delete the first", Delete(DATABASE, "orders", ("ann", 1))),
    ):
        yield f"# {title}"
        _, evaluation = world.run(operation)
        mutations = evaluation.mutations
        for key, payload in zip(mutations.keys, mutations.payloads, strict=True):
            yield dump(key)
            yield f"    key     {key.hex(' ')}"
            yield f"    payload {'(delete)' if payload is None else payload.hex(' ') or '(empty)'}"
        yield ""


def test_rows_and_entries_have_these_bytes() -> None:
    assert list(lines()) == GOLDEN.read_text().removesuffix("\n").split("\n")


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()) + "\n")
