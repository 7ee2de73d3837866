"""The Python that Spark's workers run: this one, by a path that Spark can take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples.nycflights.session import python_for_spark


def test_a_path_without_blanks_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/somewhere/bin/python")
    assert python_for_spark(tmp_path) == "/somewhere/bin/python"


def test_a_path_with_blanks_is_replaced_by_one_that_runs_in_the_same_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaced = tmp_path / "my projects" / "environment"
    spaced.parent.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(spaced)], check=True)
    (mark,) = spaced.glob("lib/python*/site-packages")
    (mark / "only_here.py").write_text("")
    monkeypatch.setattr(sys, "executable", str(spaced / "bin" / "python"))
    path = python_for_spark(tmp_path / "scratch")
    assert " " not in path
    subprocess.run([path, "-c", "import only_here"], check=True, cwd="/")
