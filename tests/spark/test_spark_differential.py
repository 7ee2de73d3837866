"""What is pushed below a query must keep every row that Spark keeps: generated conditions on odd rows, in two ways.

``HYPOTHESIS_EXAMPLES`` makes it larger: rows and conditions grow with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Final

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cortado import Client
from cortado.store.client import Table
from support.examples import EXAMPLES
from support.filter_twin import answer, write
from support.spark_conditions import FIELDS, condition, expression, row
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark

ROWS: Final = 50 * EXAMPLES
CONDITIONS: Final = 20 * EXAMPLES
BATCH: Final = 80
NAME: Final = "d.differential"
ZONES: Final = ("America/New_York", "UTC", "Asia/Kathmandu", "Europe/London")


@pytest.fixture(scope="module")
def table(spark: SparkSession, node: str, client: Client) -> Iterator[Table]:
    """The rows, and all of them in a view of Spark's, ``t``."""
    tables = SparkTables(spark, client, node, "differential")
    made = tables.make(FIELDS)
    random = Random(1)
    assert made.bulk(row(random, number) for number in range(ROWS)).written == ROWS
    frame = tables.read(made, partitions=2).cache()
    frame.createOrReplaceTempView("t")
    yield made
    spark.catalog.dropTempView("t")
    frame.unpersist()


def _kept_by_spark(spark: SparkSession, conditions: list[str]) -> list[set[int] | None]:
    """The rows of each; None for one that Spark refuses."""
    lists = (f"collect_list(CASE WHEN {each} THEN id END) AS c{i}" for i, each in enumerate(conditions))
    try:
        found = spark.sql(f"SELECT {', '.join(lists)} FROM t").first()
    except PySparkException:
        if len(conditions) == 1:
            return [None]
        half = len(conditions) // 2
        return _kept_by_spark(spark, conditions[:half]) + _kept_by_spark(spark, conditions[half:])
    assert found is not None
    return [set(each) for each in found]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_pushed_filter_keeps_every_row_that_spark_keeps(
    spark: SparkSession, client: Client, table: Table, ansi: str
) -> None:
    from pyspark_cortado.references import Shape, Statement
    from pyspark_cortado.statements import literals_of

    random = Random(f"conditions {ansi}")
    schema = client.schemas.by_id(client.schemas.get(table.descriptor.subject).schema_id)
    shapes = {NAME: Shape(schema, 1, "id")}
    before = {name: spark.conf.get(name) for name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    pushed = exact = 0
    try:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        for start in range(0, CONDITIONS // 2, BATCH):
            spark.conf.set("spark.sql.session.timeZone", ZONES[start // BATCH % len(ZONES)])
            conditions = [condition(random, lenient=ansi == "false") for _ in range(BATCH)]
            literals = literals_of(spark, "")
            assert literals is not None
            for text, kept in zip(conditions, _kept_by_spark(spark, conditions), strict=True):
                query = f"SELECT id FROM {NAME} t WHERE {text}"
                [reference] = Statement(query).references(shapes, replace(literals, text=query))
                if reference.filter is None or kept is None:
                    continue
                pushed += 1
                left = {each.value["id"] for each in table.scan(filter=reference.filter, columns=["id"])}
                assert kept <= left, (
                    f"{text}\n  was pushed as {reference.filter}\n  and drops {sorted(kept - left)[:5]}"
                )
                exact += kept == left
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    # Or it would prove nothing.
    assert pushed > CONDITIONS // 10
    assert exact > pushed // 3


def test_the_option_filter_keeps_the_rows_of_which_it_is_true(spark: SparkSession, node: str, table: Table) -> None:
    of_rows, random = Random(1), Random("filters")
    documents = [row(of_rows, number) for number in range(ROWS)]
    reader = spark.read.format("cortado").options(endpoint=node, table=NAME, columns="id", partitions=2)
    for _ in range(EXAMPLES):
        asked = expression(random)
        wanted = {each["id"] for each in documents if answer(asked, each)}
        found = [each["id"] for each in reader.option("filter", write(asked)).load().collect()]
        assert (len(found), set(found)) == (len(wanted), wanted), write(asked)
