"""The line for a load that reads a large table as a whole."""

from __future__ import annotations

import pytest

from pyspark_cortado import DefaultSource, advice
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark

ROW = {"id": "long", "name": "string"}


def said(tables: SparkTables, table: str, capsys: pytest.CaptureFixture[str], **options: str) -> str:
    """Return the error output of a load, which asks the source for its schema."""
    DefaultSource({"endpoint": tables.endpoint, "table": table, **options}).schema()
    return capsys.readouterr().err


def test_a_load_of_a_large_table_as_a_whole_says_so(
    tables: SparkTables, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tables.make(ROW)
    table.put_many({"id": n, "name": "x" * 1_000} for n in range(300))
    name = table.full_name
    assert said(tables, name, capsys) == ""
    monkeypatch.setattr(advice, "LARGE_BYTES", 300_000)
    line = said(tables, name, capsys, columns="id")
    assert line.startswith(f"cortado: all of {name}, 0.0 GiB, will be read: ")
    assert line.count("\n") == 1
    for narrower in ({"filter": "id = 1"}, {"limit": "5"}, {"keyStart": "[5]"}, {"aggregate": "count(*)"}):
        assert said(tables, name, capsys, **narrower) == ""
    assert said(tables, name, capsys, startingAt="latest") == ""


def test_a_past_name_of_a_table_needs_no_line(
    tables: SparkTables, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tables.make(ROW)
    at = str(tables.client.now())
    tables.client.drop_table(table.full_name)
    monkeypatch.setattr(advice, "LARGE_BYTES", 0)
    assert said(tables, table.full_name, capsys, at=at) == ""
