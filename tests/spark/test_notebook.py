"""examples/flights.ipynb runs from its folder and draws what pandas finds in the files; its outputs stay in it."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from pyspark.sql import SparkSession

from examples.nycflights.dataset import TABLES, read_with_pandas

pytestmark = [pytest.mark.long, pytest.mark.spark]

NOTEBOOK = Path(__file__).parents[2] / "examples" / "flights.ipynb"


def cells() -> list[dict[str, Any]]:
    """Those with code, in their order."""
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({each["id"] for each in notebook["cells"]}) == len(notebook["cells"])
    return [each for each in notebook["cells"] if each["cell_type"] == "code"]


def kept(kind: str) -> list[str]:
    """Return the results of one kind that the notebook's cells show."""
    outputs = [output for each in cells() for output in each["outputs"]]
    return ["".join(each["data"][kind]) for each in outputs if kind in each["data"]]


def test_the_notebook_ends_in_the_right_plot(spark: SparkSession, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTADO_ENDPOINTS", node)
    monkeypatch.chdir(NOTEBOOK.parent)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if Path(each).resolve() != NOTEBOOK.parents[1]])
    for name in [each for each in sys.modules if each.partition(".")[0] == "examples"]:
        monkeypatch.delitem(sys.modules, name)
    matplotlib.use("Agg")
    names: dict[str, Any] = {}
    for cell in cells():
        exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), names)
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
    assert kept("text/plain")[0] == str(names["by_hour"].round(1))
    [image] = kept("image/png")
    assert base64.b64decode(image).startswith(b"\x89PNG")
