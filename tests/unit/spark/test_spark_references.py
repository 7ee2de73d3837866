"""The reads of each table in a query of Spark's: columns that it names, conditions that are safe; and its own text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cortado.errors import Unsupported
from cortado.schema.parse import parse_document_schema

_TIME = {"type": "long", "logicalType": "timestamp-micros"}
_PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
_PLACE = {"type": "record", "name": "Place", "fields": [{"name": "City", "type": "string"}]}
FLIGHT = {"k": "long", "s": "string", "i": "int", "x": "double", "f": "float", "t": _TIME, "p": _PRICE, "b": "boolean"}
FLIGHT |= {"d": {"type": "int", "logicalType": "date"}, "u": {"type": "string", "logicalType": "uuid"}, "place": _PLACE}
PLANE = {"tail": "string", "s": "string", "year": "int"}


def _shape(fields: dict[str, Any]) -> Any:
    from pyspark_cortado.references import Shape

    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    schema = parse_document_schema(json.dumps({"type": "record", "name": "R", "fields": listed}))
    return Shape(schema, 1, next(iter(fields)))


def _references(text: str) -> list[Any]:
    from pyspark_cortado.hints import Literals
    from pyspark_cortado.references import Statement

    shapes = {"n.a": _shape(FLIGHT), "n.b": _shape(PLANE)}
    return Statement(text).references(shapes, Literals(text, lambda _: "2013-01-01T05:00:00Z"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("INSERT INTO n.a SELECT * FROM n.a", "INSERT"),
        ("drop table n.a", "DROP"),
        ("explain SELECT * FROM n.a", "EXPLAIN"),
        ("VACUUM n.a", "VACUUM"),
        ("SHOW TABLES", "SHOW"),
    ],
)
def test_what_is_no_query_is_refused_by_what_it_is(text: str, named: str) -> None:
    with pytest.raises(Unsupported, match=rf"^sql\(\) of {named} is not supported: it takes queries"):
        _references(text)


@pytest.mark.parametrize(
    ("condition", "pushed"),
    [
        ("i = 1", "(`i` = 1)"),
        ("-1 >= I", "(`i` <= -1)"),
        ("a.k <> 9223372036854775807", "(`k` != 9223372036854775807)"),
        ("i IN (1, 2) AND NOT i BETWEEN 3 AND 4", "(`i` in (1, 2)) and (not ((`i` >= 3) and (`i` <= 4)))"),
        ("x < 3.5 OR x >= 1", "((`x` < 3.5) or (`x` >= 1))"),
        ("s LIKE 'x%' AND s > \"b\"", "(`s` starts with 'x') and (`s` > 'b')"),
        ("p = 12.50 AND b AND NOT b", "(`p` = 12.50) and `b` and (not `b`)"),
        ("d = DATE '2013-01-31'", "(`d` = date '2013-01-31')"),
        ("t < TIMESTAMP '2013-01-01 00:00:00'", "(`t` < timestamp '2013-01-01T05:00:00Z')"),
        ("place.city = 'N' AND u IS NOT NULL", "(`place`.`City` = 'N') and (not (`u` is null))"),
        # A part that is not safe takes the whole of an OR or NOT with it, and of an AND only itself.
        ("i = 1 AND x = 1.5", "(`i` = 1)"),
        ("i = 1 OR x = 1.5", None),
        ("NOT (i = 1 AND x = 1.5)", None),
        # Literals of other types, with more digits, or rounded.
        ("i = 1.5", None),
        ("i = '1'", None),
        ("i = 2147483648", None),
        ("i = 1L", None),
        ("p = 1.505", None),
        ("x IN (1.5)", None),
        ("x < 0.1234567890123456", None),
        ("x < 1e3", None),
        ("f < 1.5", None),
        ("d = '2013-01-31'", None),
        ("d = CAST('2013-01-31' AS DATE)", None),
        ("d = DATE '2013-01'", None),
        ("d < TIMESTAMP '2013-01-01 00:00:00'", None),
        ("t = TIMESTAMP_NTZ '2013-01-01 00:00:00'", None),
        ("t > DATE '2013-01-01'", None),
        ("u = '123e4567-e89b-12d3-a456-426614174000'", None),
        # Comparisons of more than a field and a literal.
        ("i + 1 = 2", None),
        ("i = k", None),
        ("i <=> 1", None),
        ("i IN (1, NULL)", None),
        ("i IN (SELECT 1)", None),
        ("upper(s) = 'X'", None),
        ("s COLLATE UTF8_LCASE = 'x'", None),
        ("s LIKE '%x'", None),
        ("s LIKE 'a_%'", None),
        ("s LIKE 'x%' ESCAPE '!'", None),
        ("s ILIKE 'x%'", None),
        ("s = 'it''s'", None),
        ("s = 'a' 'b'", None),
        ("s = 'a\\u0062' AND i = 1", None),
        ("i = :one", None),
        ("place IS NULL", None),
        ("year = 1", None),
    ],
)
def test_what_is_pushed_means_the_same_to_the_node(condition: str, pushed: str | None) -> None:
    [reference] = _references(f"SELECT k FROM n.a WHERE {condition}")
    assert reference.filter == pushed


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("SELECT a.k FROM n.a JOIN n.b q ON a.s = q.s AND q.year > 1 WHERE i = 1", ["(`i` = 1)", "(`year` > 1)"]),
        ("SELECT a.k FROM n.a JOIN n.b q ON true WHERE s = 'x'", [None, None]),
        ("SELECT a.k FROM n.a LEFT JOIN n.b q ON q.year > 1 WHERE a.i = 2 AND q.year = 3", ["(`i` = 2)", None]),
        ("SELECT a.k FROM n.a RIGHT JOIN n.b q ON q.year > 1 WHERE a.i = 2 AND q.year = 3", [None, "(`year` = 3)"]),
        ("SELECT a.k FROM n.a FULL JOIN n.b q ON a.i = 1 WHERE a.i = 2 AND q.year = 3", [None, None]),
        ("SELECT a.k FROM n.a LEFT ANTI JOIN n.b q ON q.year = 1 WHERE a.i = 2", ["(`i` = 2)", None]),
        # An alias that is a column's name, too.
        ("SELECT a.k FROM n.a JOIN n.b ON b.year > 1 WHERE i = 1", ["(`i` = 1)", None]),
        ("SELECT a.k FROM n.a JOIN v ON true WHERE i = 2 AND a.k = 1", ["(`k` = 1)"]),
        ("SELECT k FROM n.a TABLESAMPLE (5 ROWS) a WHERE i = 2", [None]),
        ("SELECT k FROM n.a LATERAL VIEW explode(array(1)) AS i WHERE i = 1", [None]),
        ("SELECT * FROM n.a PIVOT (count(*) FOR i IN (1, 2)) WHERE k = 1", [None]),
        ("SELECT 1 FROM (n.a JOIN n.b ON true) WHERE i = 1", [None, None]),
        ("SELECT k FROM n.a WHERE EXISTS (SELECT 1 FROM n.b WHERE a.i = 1 AND year = 2)", [None, "(`year` = 2)"]),
        ("SELECT i, count(*) FROM n.a GROUP BY i HAVING i = 1", [None]),
        ("WITH q AS (SELECT k, i AS j FROM n.a WHERE i = 1) SELECT k FROM q WHERE j = 2 AND i = 3", ["(`i` = 1)"]),
        ("SELECT k FROM n.a |> WHERE i = 1", [None]),
    ],
)  # fmt: skip
def test_conditions_are_pushed_where_no_row_comes_back_as_nulls(text: str, filters: list[str | None]) -> None:
    assert [each.filter for each in _references(text)] == filters


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT count(*) FROM n.a", ("k",)),
        ("SELECT I * 2, `S` FROM n.a", ("s", "i")),
        ("SELECT i FROM n.a ORDER BY x", ("i", "x")),
        ("SELECT * FROM n.a", None),
        ("SELECT count(DISTINCT *) FROM n.a", None),
        ("SELECT a.* FROM n.a", None),
        ("SELECT i FROM n.a NATURAL JOIN n.b", None),
        ("SELECT q FROM n.a AS c(q, r, s)", None),
        ("SELECT identifier('i' || '') FROM n.a", None),
    ],
)
def test_columns_are_all_whose_names_occur(text: str, columns: tuple[str, ...] | None) -> None:
    assert _references(text)[0].columns == columns


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("SELECT k FROM n.a LIMIT 5", 5),
        ("SELECT *, k AS l FROM n.a LIMIT 5", 5),
        ("SELECT max(k) FROM n.a LIMIT 5", None),
        ("SELECT k FROM n.a WHERE i = 1 LIMIT 5", None),
        ("SELECT DISTINCT k FROM n.a LIMIT 5", None),
        ("SELECT k FROM n.a ORDER BY k LIMIT 5", None),
        ("SELECT k FROM n.a LIMIT 5 OFFSET 2", None),
        ("SELECT k FROM n.a, n.b LIMIT 5", None),
        ("SELECT k FROM n.a LATERAL VIEW explode(array()) AS q LIMIT 5", None),
        ("SELECT q.k FROM (SELECT k FROM n.a) q LIMIT 5", None),
        ("SELECT k FROM n.a UNION SELECT k FROM n.a LIMIT 5", None),
    ],
)
def test_a_limit_is_pushed_where_nothing_stands_between(text: str, limit: int | None) -> None:
    assert _references(text)[0].limit == limit


def test_nothing_but_the_names_changes_in_the_text() -> None:
    from pyspark_cortado.references import Statement

    text = (
        "SELECT n.a.k, '{\U0001f600}' /* n.a */ FROM `n`.a, n . b AS c -- é\n"
        "WHERE N.A.i = 1 AND c.year IN (SELECT k FROM n.a x)"
    )
    assert Statement(text).template() == (
        "SELECT `a`.k, '{{\U0001f600}}' /* n.a */ FROM {t0} AS `a`, {t1} AS c -- é\n"
        "WHERE `a`.i = 1 AND c.year IN (SELECT k FROM {t2} x)"
    )


def test_a_long_condition_is_neither_refused_nor_too_deep() -> None:
    many = " OR ".join(f"i = {n}" for n in range(300))
    [reference] = _references(f"SELECT k FROM n.a WHERE ({many}) AND k = 1")
    assert reference.filter.count("`i`") == 300
    beyond = " AND ".join(f"i <> {n}" for n in range(2_000))
    [reference] = _references(f"SELECT k FROM n.a WHERE {beyond}")
    assert 100 < reference.filter.count("`i`") < 2_000
