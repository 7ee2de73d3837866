"""After any damage to the data file: it is refused, or each value read is right or known to be lost. Never a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.damage import DAMAGES, build

pytestmark = pytest.mark.process

TESTS = Path(__file__).parents[2]
PROBES_OF_EACH = int(os.environ.get("DAMAGE_PROBES", "14"))


def test_no_damage_to_the_data_file_crashes_a_node_or_makes_a_read_wrong(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    build(whole)
    probes = PROBES_OF_EACH * len(DAMAGES)
    run = subprocess.run(
        [sys.executable, "-m", "support.damage", str(whole), "0", str(probes)],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = run.stdout.splitlines()
    assert run.returncode == 0, f"at seed and damage {lines[-1]!r}: {run.stderr[-2_000:]}"
    assert len(lines) == probes
    outcomes = {line.split(" ")[2] for line in lines}
    assert outcomes == {"right", "lost", "refused"}, "the damage is too mild, or too hard, to say anything"
