"""``sql()``: Spark's answer to the same text without pushdown, from less; one timestamp; refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from cortado import Client
from pyspark_cortado import sql
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark

FLIGHT = {
    "id": "long",
    "origin": "string",
    "tail": (["null", "string"], None),
    "month": "int",
    "delay": (["null", "double"], None),
    "hour": {"type": "long", "logicalType": "timestamp-micros"},
}
FLIGHTS: Final = "d.sql_flights"
PLANES: Final = "d.sql_planes"
PLANE = {"tail": "string", "year": (["null", "int"], None), "seats": "int"}


@pytest.fixture(scope="module")
def world(spark: SparkSession, node: str, client: Client) -> Iterator[SparkTables]:
    """Flights and planes, and a view of Spark's, ``airports``."""
    tables = SparkTables(spark, client, node, "sql_")
    hour = datetime(2013, 1, 1, tzinfo=UTC)
    flights = [
        {
            "id": n,
            "origin": ("JFK", "EWR", "LGA")[n % 3],
            "tail": None if n % 5 == 0 else f"N{n % 7}",
            "month": n % 12 + 1,
            "delay": None if n % 4 == 0 else float(n % 30 - 10),
            "hour": hour + timedelta(hours=n),
        }
        for n in range(300)
    ]
    planes = [{"tail": f"N{n}", "year": None if n == 3 else 1990 + n, "seats": n * 10} for n in range(9)]
    assert tables.make(FLIGHT, suffix="flights").put_many(flights).written == 300
    assert tables.make(PLANE, key=["tail"], suffix="planes").put_many(planes).written == 9
    airports = [("JFK", "Kennedy"), ("LGA", "La Guardia")]
    spark.createDataFrame(airports, "code string, name string").createOrReplaceTempView("airports")
    yield tables
    spark.catalog.dropTempView("airports")


def _sorted(frame: DataFrame) -> list[Row]:
    return sorted(frame.collect(), key=repr)


def _run(world: SparkTables, text: str, **options: Any) -> list[Row]:
    return _sorted(sql(world.spark, text.format(f=FLIGHTS, p=PLANES), endpoint=world.endpoint, **options))


@pytest.fixture(scope="module")
def plain(world: SparkTables) -> Iterator[Callable[[str], list[Row]]]:
    """Return Spark's own answer from whole tables."""
    views = {"f": "plain_flights", "p": "plain_planes"}
    for view, table in zip(views.values(), (FLIGHTS, PLANES), strict=True):
        world.read(table).createOrReplaceTempView(view)
    yield lambda text: _sorted(world.spark.sql(text.format(**views)))
    for view in views.values():
        world.spark.catalog.dropTempView(view)


QUERIES = [
    "SELECT f.origin, count(*) AS n, max(p.year) AS y FROM {f} f JOIN {p} p ON f.tail = p.tail AND p.year > 1991 "
    "WHERE f.month <= 6 GROUP BY f.origin",
    "SELECT f.id, p.year FROM {f} f LEFT JOIN {p} p ON f.tail = p.tail AND p.year > 1991 "
    "WHERE f.month = 2 AND p.year IS NULL",
    "SELECT f.id, p.tail FROM {f} f RIGHT JOIN {p} p ON f.tail = p.tail AND f.month = 2 WHERE p.seats >= 20",
    "SELECT f.id, p.tail FROM {f} f FULL JOIN {p} p ON f.tail = p.tail AND f.month = 2 WHERE coalesce(f.month, 2) = 2",
    "SELECT f.id FROM {f} f LEFT ANTI JOIN {p} p ON f.tail = p.tail AND p.year > 1992 WHERE f.origin = 'JFK'",
    "SELECT f.id FROM {f} f LEFT SEMI JOIN {p} p ON f.tail = p.tail AND p.year > 1992 WHERE f.origin LIKE 'J%'",
    "SELECT f.id FROM {f} f WHERE f.month = 1 AND f.tail NOT IN (SELECT tail FROM {p} WHERE year < 1993)",
    "SELECT f.id FROM {f} f WHERE EXISTS (SELECT 1 FROM {p} p WHERE p.tail = f.tail AND p.seats = 20) "
    "AND f.delay < 3.5",
    "SELECT a.id, b.id AS other FROM {f} a JOIN {f} b ON a.id = b.id + 1 WHERE a.month = 3 AND b.month = 2",
    "SELECT id FROM {f} WHERE month = 1 UNION ALL SELECT id FROM {f} WHERE month = 2",
    "WITH late AS (SELECT origin, month FROM {f} WHERE delay > 10), j AS (SELECT * FROM late WHERE origin = 'JFK') "
    "SELECT l.month, count(*) AS n FROM late l JOIN j ON l.month = j.month GROUP BY l.month",
    "SELECT a.name, count(*) AS n FROM {f} f JOIN airports a ON f.origin = a.code WHERE a.name > 'L' AND f.month < 4 "
    "GROUP BY 1",
    "SELECT id, (SELECT max(seats) FROM {p} WHERE year < 1995) AS most FROM {f} WHERE NOT (delay > 0 OR month > 3)",
    "SELECT id, hour FROM {f} WHERE hour >= TIMESTAMP '2013-01-02 00:00:00' "
    "AND hour < TIMESTAMP '2013-01-02T09:00:00Z'",
    "SELECT month, origin FROM {f} WHERE tail IS NULL AND delay IS NOT NULL AND month BETWEEN 2 AND 4",
    "SELECT count(*) AS n FROM {f}",
    "SELECT count(*) AS n FROM {f} WHERE {f}.month = 2",
    "SELECT origin, row_number() OVER (PARTITION BY origin ORDER BY id) AS r FROM {f} WHERE month = 2",
    "SELECT * FROM (SELECT origin, month FROM {f} WHERE month < 3) PIVOT (count(*) FOR month IN (1, 2))",
    "SELECT tail, f.month FROM {f} f JOIN {p} USING (tail) WHERE tail = 'N2' AND month = 2",
    "SELECT id FROM {f} f LATERAL VIEW explode(array(1, 2)) t AS month WHERE f.month = 2",
]


@pytest.mark.parametrize("text", QUERIES)
def test_the_answer_is_sparks_own(world: SparkTables, plain: Callable[[str], list[Row]], text: str) -> None:
    expected = plain(text)
    assert expected
    assert _run(world, text) == expected


def test_a_column_may_be_named_with_its_database_and_table(world: SparkTables) -> None:
    text = "SELECT {f}.id FROM {f} WHERE {f}.month = 2 AND sql_flights.id < 20"
    assert [row["id"] for row in _run(world, text)] == [1, 13]


def test_all_mentions_are_of_one_timestamp_and_the_next_call_sees_more(world: SparkTables) -> None:
    text = "SELECT count(*) AS n, (SELECT count(*) FROM {f} WHERE month > 0) AS m FROM {f}"
    frame = sql(world.spark, text.format(f=FLIGHTS), endpoint=world.endpoint)
    before = world.client.now()
    table = world.client.table(FLIGHTS)
    gone = table.get(5)
    assert gone is not None
    table.delete(5)
    try:
        assert [row[:] for row in frame.collect()] == [(300, 300)]
        assert [row[:] for row in frame.collect()] == [(300, 300)]
        assert [row[:] for row in _run(world, text)] == [(299, 299)]
        assert [row[:] for row in _run(world, text, at=before)] == [(300, 300)]
    finally:
        table.put(gone.value)


def test_a_frame_can_be_cached_joined_with_itself_and_united(world: SparkTables) -> None:
    frame = sql(world.spark, f"SELECT id, month FROM {FLIGHTS} WHERE month <= 2", endpoint=world.endpoint).cache()
    try:
        assert (frame.count(), frame.where("month = 1").count(), frame.count()) == (50, 25, 50)
        assert frame.union(frame.where("month = 2")).count() == 75
        assert frame.alias("a").join(frame.alias("b"), "id").count() == 50
        assert frame.limit(3).count() == 3
    finally:
        frame.unpersist()


def test_a_limit_is_pushed_where_nothing_else_chooses_rows(world: SparkTables) -> None:
    frame = sql(world.spark, f"SELECT origin FROM {FLIGHTS} LIMIT 3", endpoint=world.endpoint, partitions=3)
    assert (frame.count(), frame.rdd.getNumPartitions()) == (3, 1)
    odd = f"SELECT id FROM {FLIGHTS} WHERE id % 2 = 1 LIMIT 5"
    assert sql(world.spark, odd, endpoint=world.endpoint).count() == 5


def test_the_sessions_endpoint_counts_for_calls_without_one(world: SparkTables) -> None:
    world.spark.conf.set("spark.cortado.endpoint", world.endpoint)
    try:
        assert sql(world.spark, f"SELECT count(*) AS n FROM {FLIGHTS}").first()["n"] == 300
    finally:
        world.spark.conf.unset("spark.cortado.endpoint")


def test_empty_tables_are_read(tables: SparkTables) -> None:
    name = tables.make(FLIGHT).full_name
    assert sql(tables.spark, f"SELECT count(*) AS n FROM {name}", endpoint=tables.endpoint).first()["n"] == 0
    assert sql(tables.spark, f"SELECT * FROM {name} WHERE month = 1", endpoint=tables.endpoint).collect() == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT FROM {f} WHERE (", "InvalidArgument: sql: does not parse: "),
        ("SELECT 1", "sql: must name a table of Cortado, as database.table (got SELECT 1)"),
        ("SELECT 1 FROM {f}; SELECT 2 FROM {f}", "sql: must be one statement (got 2 statements)"),
        ("INSERT INTO {f} SELECT * FROM {f}", "sql() of INSERT is not supported: it takes queries"),
        ("SELECT * FROM {f} TIMESTAMP AS OF '2013-01-01'", "all tables are read at one time: give it as at=..."),
        ("SELECT * FROM {f} TABLESAMPLE (5 ROWS)", "an alias, since TABLESAMPLE follows it"),
        ("SELECT * FROM d.absent", "NotFound: no table d.absent"),
        ("SELECT nmae FROM {f}", "nmae"),
    ],
)
def test_what_is_wrong_is_said_before_the_job(tables: SparkTables, text: str, expected: str) -> None:
    name = tables.make(FLIGHT).full_name
    with pytest.raises(Exception) as refused:
        sql(tables.spark, text.format(f=name), endpoint=tables.endpoint)
    message = f"{type(refused.value).__name__}: {refused.value}"
    assert expected in re.sub(r"\s+", " ", message)


def test_options_of_one_table_are_refused(tables: SparkTables) -> None:
    with pytest.raises(Exception, match=r"option filter: is not an option of sql\(\); there are endpoint, "):
        sql(tables.spark, "SELECT 1 FROM a.b", filter="x = 1")
