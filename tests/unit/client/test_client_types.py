"""The errors that a type checker shows to users of the client."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
APPLICATION = Path(__file__).with_name("typed") / "application.py"


@pytest.mark.slow
def test_mypy_strict_knows_every_type_of_both_faces() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", str(APPLICATION)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert checked.returncode == 0, checked.stdout
