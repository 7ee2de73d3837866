"""examples/flights.ipynb runs, cell by cell, and what it draws is what pandas finds in the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from pyspark.sql import SparkSession

from examples.nycflights.dataset import TABLES, read_with_pandas

pytestmark = [pytest.mark.long, pytest.mark.spark]

NOTEBOOK = Path(__file__).parents[2] / "examples" / "flights.ipynb"


def cells() -> list[str]:
    """The code, in its order."""
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({each["id"] for each in notebook["cells"]}) == len(notebook["cells"])
    code = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    assert [each["outputs"] for each in code] == [[]] * len(code), "a notebook is kept without what it shows"
    return ["".join(each["source"]) for each in code]


def test_the_notebook_ends_in_the_right_plot(spark: SparkSession, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTADO_ENDPOINTS", node)
    matplotlib.use("Agg")
    names: dict[str, Any] = {}
    for cell in cells():
        exec(compile(cell, NOTEBOOK.name, "exec"), names)
    flights = read_with_pandas(next(each for each in TABLES if each.name == "flights"))
    chosen = flights[(flights["month"] == 1) & (flights["hour"] >= 6)]
    expected = chosen.groupby(["hour", "origin"])["dep_delay"].mean().unstack()
    lines = {line.get_label(): line for line in names["axes"].get_lines()}
    assert set(lines) == {"EWR", "JFK", "LGA"}
    for origin, line in lines.items():
        assert list(line.get_xdata()) == list(expected.index)
        drawn = np.ma.filled(np.ma.asarray(line.get_ydata(), float), np.nan)
        np.testing.assert_allclose(drawn, expected[origin].to_numpy(), rtol=1e-9, equal_nan=True)
    names["axes"].figure.canvas.draw()
