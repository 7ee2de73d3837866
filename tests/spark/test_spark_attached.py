"""``attach_database()``: views that read anew in each query, and keep one time within it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from pyspark_cortado import attach_database
from support.spark_tables import SparkTables, record

pytestmark = pytest.mark.spark

ROW = {"id": "long", "s": (["null", "string"], None), "r": record({"n": (["null", "int"], None)}, "Inner")}
DATABASE = "attached"


@pytest.fixture
def attached(tables: SparkTables) -> Iterator[SparkTables]:
    """A database with tables ``ones`` and ``twos``, attached."""
    tables.client.create_database(DATABASE)
    for name in ("ones", "twos"):
        tables.client.schemas.register(f"{DATABASE}.{name}", record(ROW))
        tables.client.create_table(f"{DATABASE}.{name}", ["id"])
    made = tables.client.table(f"{DATABASE}.ones")
    assert made.put_many({"id": n, "s": f"s{n}", "r": {"n": n}} for n in range(10)).written == 10
    assert attach_database(tables.spark, DATABASE, endpoint=tables.endpoint, partitions=2) == ["ones", "twos"]
    yield tables
    for name in ("ones", "twos"):
        tables.spark.catalog.dropTempView(name)
    tables.client.drop_database(DATABASE, cascade=True)


def _count(tables: SparkTables, text: str = "SELECT count(*) FROM ones") -> Any:
    return tables.spark.sql(text).first()[0]


def test_each_query_reads_anew_and_a_frame_keeps_its_time(attached: SparkTables) -> None:
    table = attached.client.table(f"{DATABASE}.ones")
    assert _count(attached) == 10
    frame = attached.spark.table("ones")
    assert frame.count() == 10
    cached = attached.spark.sql("SELECT * FROM ones WHERE id < 5").cache()
    assert cached.count() == 5
    table.delete(3)
    assert (frame.count(), cached.count(), _count(attached)) == (10, 5, 9)
    assert attached.spark.table("ones").count() == 9
    cached.unpersist()


def test_one_query_that_names_a_view_often_is_right(attached: SparkTables) -> None:
    assert _count(attached, "SELECT count(*) FROM ones a JOIN ones b ON a.id = b.id") == 10
    assert _count(attached, "SELECT count(*) FROM ones a CROSS JOIN ones b WHERE a.id = 3") == 10
    union = "SELECT count(*) FROM (SELECT id FROM ones WHERE id = 3 UNION ALL SELECT id FROM ones)"
    assert _count(attached, union) == 11
    assert _count(attached, "SELECT count(*) FROM ones LEFT ANTI JOIN twos USING (id)") == 10
    assert _count(attached, "SELECT max(r.n) FROM ones") == 9


def test_what_cannot_be_attached_is_refused_and_nothing_is_made(attached: SparkTables) -> None:
    spark = attached.spark
    before = [each.name for each in spark.catalog.listDatabases()]

    def refusal(*names: str, **options: Any) -> str:
        with pytest.raises(Exception) as refused:
            attach_database(spark, *names, **{"endpoint": attached.endpoint, **options})
        return re.sub(r"\s+", " ", f"{type(refused.value).__name__}: {refused.value}")

    assert refusal("absent") == "NotFound: no database absent"
    assert "option filter: is not an option of attach_database(); there are endpoint," in refusal(DATABASE, filter="x")
    assert "Unavailable: cannot reach 127.0.0.1:1" in refusal(DATABASE, endpoint="127.0.0.1:1", timeoutSeconds=1)
    assert [each.name for each in spark.catalog.listDatabases()] == before
