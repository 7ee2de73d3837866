"""One put on three nodes in memory runs no more of the product than it did."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Final

import pytest

FILES_MAX: Final = 94
FUNCTIONS_MAX: Final = 500
CALLS_MAX: Final = 1_306
CROSSINGS_MAX: Final = 944
"""These numbers only go down. ``tools/trace_put.py --list`` shows where the calls are."""
SLACK: Final = 0.05

ROOT: Final = Path(__file__).parents[3]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="a comprehension is a call on Python 3.11 alone")
def test_a_put_runs_no_more_of_the_product_than_it_did() -> None:
    trace = runpy.run_path(str(ROOT / "tools" / "trace_put.py"))["trace_put"]()
    found = {
        "files": len(trace.calls_by_file()),
        "functions": len(trace.functions),
        "calls": trace.functions.total(),
        "crossings": trace.crossings.total(),
    }
    bounds = {"files": FILES_MAX, "functions": FUNCTIONS_MAX, "calls": CALLS_MAX, "crossings": CROSSINGS_MAX}
    assert {name: count for name, count in found.items() if count > bounds[name]} == {}, bounds
    slack = {name: count for name, count in found.items() if count < bounds[name] * (1 - SLACK)}
    assert slack == {}, "well done: lower the bounds to these"
    told = (
        f"runs {FUNCTIONS_MAX} functions in {FILES_MAX} files, by {CALLS_MAX:,} calls with {CROSSINGS_MAX:,} changes of"
    )
    assert told in (ROOT / "docs" / "architecture.md").read_text(), "the page says the bounds"
