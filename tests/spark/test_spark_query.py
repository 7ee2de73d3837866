"""The option ``query``: its meaning, and its refusals by clause."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument, Unsupported
from pyspark_cortado.selects import options_of
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM a.b", {}),
        ("select x, `y` from a.b limit 5", {"columns": "x,y", "limit": "5"}),
        ("SELECT x FROM a.b WHERE s = 'limit 5, from'", {"columns": "x", "filter": "s = 'limit 5, from'"}),
        ("SELECT count(*) FROM a.b", {"aggregate": "count(*)"}),
        (
            "SELECT g, h AS k, count(*) AS n, sum(x) as s2 FROM a.b WHERE s starts with 'a' GROUP BY g, h LIMIT 3",
            {
                "aggregate": "count(*) AS n, sum(x) as s2",
                "groupBy": "g, h AS k",
                "filter": "s starts with 'a'",
                "limit": "3",
            },
        ),
    ],
)  # fmt: skip
def test_a_query_stands_for_options(query: str, expected: dict[str, str]) -> None:
    assert options_of(query) == {"table": "a.b", **expected}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT x FROM a.b ORDER BY x", "ORDER in the option query is not supported: use sql()"),
        ("SELECT x FROM a.b JOIN c.d", "JOIN in the option query is not supported: use sql()"),
        ("SELECT DISTINCT x FROM a.b", "DISTINCT in the option query is not supported: use sql()"),
        ("WITH q AS (SELECT 1) SELECT x FROM a.b", "WITH in the option query is not supported: use sql()"),
        ("SELECT g, count(*) FROM a.b GROUP BY g HAVING count(*) > 1", "HAVING in the option query is not supported"),
        ("SELECT x FROM a.b UNION SELECT x FROM a.b", "UNION in the option query is not supported: use sql()"),
        ("SELECT x FROM a.b WHERE x IN (SELECT 1)", "a query within the option query is not supported: use sql()"),
        ("SELECT x FROM a.b, c.d", "FROM with several tables in the option query is not supported: use sql()"),
        ("SELECT x + 1 FROM a.b", "x + 1 in the option query is not supported: name fields and aggregates there"),
        ("DELETE FROM a.b", "option query: expected SELECT, found DELETE, at character 0"),
        ("", "option query: expected SELECT, found the end, at character 0"),
        ("SELECT x", "option query: expected FROM, found the end, at character 8"),
        ("SELECT x FROM b", "option query: expected one table, as database.table, found b, at character 14"),
        ("SELECT x FROM a.b WHERE", "option query: expected something behind WHERE, found nothing, at character 23"),
        ("SELECT x, FROM a.b", "option query: expected a field or an aggregate, found nothing between commas"),
        ("SELECT count(*), g FROM a.b GROUP BY g", "must name the columns that it groups by before the aggregates"),
        ("SELECT g, count(*) FROM a.b GROUP BY h", "must SELECT the columns of GROUP BY (h), in its order, and"),
        ("SELECT g FROM a.b GROUP BY g", "must SELECT an aggregate, such as count(*), since it has GROUP BY"),
    ],
)  # fmt: skip
def test_what_is_more_than_a_read_of_one_table_is_refused_by_clause(query: str, expected: str) -> None:
    with pytest.raises((InvalidArgument, Unsupported)) as refused:
        options_of(query)
    assert expected in str(refused.value)


def test_a_query_is_loaded(tables: SparkTables) -> None:
    table = tables.make({"id": "long", "g": "string", "n": "int"})
    table.put_many({"id": n, "g": "ab"[n % 2], "n": n} for n in range(20))

    def load(query: str, **options: str) -> list[tuple[object, ...]]:
        reader = tables.spark.read.format("cortado").options(endpoint=tables.endpoint, query=query, **options)
        return [row[:] for row in reader.load().collect()]

    name = table.full_name
    assert load(f"SELECT n, id FROM {name} WHERE g = 'a' LIMIT 2") == [(0, 0), (2, 2)]
    assert load(f"SELECT g, count(*) AS c, max(n) FROM {name} GROUP BY g") == [("a", 10, 18), ("b", 10, 19)]
    assert load(f"SELECT count(*) FROM {name}", keyStart="[5]") == [(15,)]
    with pytest.raises(Exception, match="option filter: must not be given beside query, which says it"):
        load(f"SELECT * FROM {name}", filter="n = 1")
    with pytest.raises(Exception, match="InvalidFilter: filter: no field m in "):
        load(f"SELECT * FROM {name} WHERE m = 1")
