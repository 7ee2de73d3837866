"""A filter that is pushed down must keep every row that Spark keeps: generated conditions on odd rows, in two ways.

``HYPOTHESIS_EXAMPLES`` makes it larger: rows and conditions grow with it. ``make test-differential`` sets both: a
million rows and ten thousand conditions. Rows then lie in blocks, each with its part of the conditions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Final

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cortado import Client
from cortado.store.client import Table
from support.examples import EXAMPLES
from support.filter_twin import answer, write
from support.spark_conditions import FIELDS, condition, expression, row
from support.spark_tables import SparkTables

pytestmark = [pytest.mark.long, pytest.mark.spark]

ROWS: Final = int(os.environ.get("DIFFERENTIAL_ROWS", str(50 * EXAMPLES)))
CONDITIONS: Final = int(os.environ.get("DIFFERENTIAL_CONDITIONS", str(20 * EXAMPLES)))
BLOCK_ROWS: Final = 50_000
BLOCKS: Final = -(-ROWS // BLOCK_ROWS)
BATCH: Final = 80
NAME: Final = "d.differential"
ZONES: Final = ("America/New_York", "UTC", "Asia/Kathmandu", "Europe/London")

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
"""Return for each row of a block, in the order of ids, whether a condition is true."""


def _documents(block: int) -> Iterator[dict[str, object]]:
    random = Random(block + 1)
    return (row(random, number) for number in range(min(BLOCK_ROWS, ROWS - block * BLOCK_ROWS)))


@pytest.fixture(scope="module")
def blocks(spark: SparkSession, node: str, client: Client) -> Iterator[Callable[[int], Table]]:
    """Makes a block: its rows in a table, and all of them in a view of Spark's, ``t``."""
    tables = SparkTables(spark, client, node, "differential")
    made: dict[int, tuple[Table, DataFrame]] = {}

    def block(number: int) -> Table:
        if number not in made:
            table = tables.make(FIELDS, suffix=f"_{number}")
            assert table.put_many(_documents(number)).refused == 0
            made[number] = table, tables.read(table, partitions=2).cache()
        table, frame = made[number]
        frame.createOrReplaceTempView("t")
        return table

    yield block
    spark.catalog.dropTempView("t")
    for _, frame in made.values():
        frame.unpersist()


def _true_in_spark(spark: SparkSession, conditions: list[str]) -> list[Mask | None]:
    """Return the rows of each condition; None for one that Spark refuses."""
    columns = (f"coalesce({each}, false) AS c{i}" for i, each in enumerate(conditions))
    try:
        found = spark.sql(f"SELECT id, {', '.join(columns)} FROM t").toArrow()
    except PySparkException:
        if len(conditions) == 1:
            return [None]
        half = len(conditions) // 2
        return _true_in_spark(spark, conditions[:half]) + _true_in_spark(spark, conditions[half:])
    order = np.argsort(found["id"].to_numpy())
    return [found[f"c{i}"].to_numpy()[order] for i in range(len(conditions))]


def _true_at_the_node(table: Table, filter: str, rows: int) -> Mask:
    mask = np.zeros(rows, np.bool_)
    for batch in table.scan_arrow(filter=filter, columns=["id"]):
        mask[batch.column(0).to_numpy()] = True
    return mask


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_pushed_filter_keeps_every_row_that_spark_keeps(
    spark: SparkSession, client: Client, blocks: Callable[[int], Table], ansi: str
) -> None:
    from pyspark_cortado.references import Shape, Statement
    from pyspark_cortado.statements import literals_of

    random = Random(f"conditions {ansi}")
    before = {name: spark.conf.get(name) for name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    pushed = exact = 0
    try:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        for turn, start in enumerate(range(0, CONDITIONS // 2, BATCH)):
            table = blocks(turn % BLOCKS)
            schema = client.schemas.get_by_id(client.schemas.get(table.descriptor.subject).schema_id)
            shapes = {NAME: Shape(schema, 1, "id")}
            spark.conf.set("spark.sql.session.timeZone", ZONES[turn % len(ZONES)])
            number = min(BATCH, CONDITIONS // 2 - start)
            conditions = [condition(random, lenient=ansi == "false") for _ in range(number)]
            literals = literals_of(spark, "")
            assert literals is not None
            for text, kept in zip(conditions, _true_in_spark(spark, conditions), strict=True):
                query = f"SELECT id FROM {NAME} t WHERE {text}"
                [reference] = Statement(query).references(shapes, replace(literals, text=query))
                if reference.filter is None or kept is None:
                    continue
                pushed += 1
                left = _true_at_the_node(table, reference.filter, len(kept))
                lost = np.flatnonzero(kept & ~left)
                assert not len(lost), f"{text}\n  was pushed as {reference.filter}\n  and drops {lost[:5]}"
                exact += np.array_equal(kept, left)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    sys.stdout.write(f"{ROWS} rows, {CONDITIONS // 2} conditions: {pushed} pushed, {exact} of them exact\n")
    # Or it would prove nothing.
    assert pushed > CONDITIONS // 10
    assert exact > pushed // 3


def test_the_option_filter_keeps_the_rows_of_which_it_is_true(
    spark: SparkSession, node: str, blocks: Callable[[int], Table]
) -> None:
    table, random = blocks(0), Random("filters")
    documents = list(_documents(0))
    reader = spark.read.format("cortado").options(endpoint=node, table=table.full_name, columns="id", partitions=2)
    for _ in range(EXAMPLES):
        asked = expression(random)
        wanted = {each["id"] for each in documents if answer(asked, each)}
        found = [each["id"] for each in reader.option("filter", write(asked)).load().collect()]
        assert (len(found), set(found)) == (len(wanted), wanted), write(asked)
