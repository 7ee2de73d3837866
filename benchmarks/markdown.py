"""A saved result as the tables of ``docs/performance.md``.

python -m benchmarks.markdown [benchmarks/results/<time>.json]     the newest, if none is named
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.report import RESULTS, Measurement


def main(path: Path) -> None:
    """Print the machine and a table for each benchmark."""
    content = json.loads(path.read_text())
    print(", ".join(f"{name} {value}" for name, value in content["machine"].items()))
    for name, rows in content["results"].items():
        benchmark = import_module(f"benchmarks.bench_{name}")
        print(f"\n### {benchmark.TITLE}\n\n{benchmark.settings()}.\n")
        print("| what | a second | below it | share | aim |\n| --- | ---: | --- | ---: | --- |")
        for row in rows:
            print(_line(Measurement(**row)))


def _line(row: Measurement) -> str:
    below = f"{row.below_name}: {row.below:,.0f}" if row.below else ""
    share = f"{row.rate / row.below:.0%}" if row.below else ""
    aim = "" if not row.aim else f"{row.aim:.0%} of it" if row.aim < 1 else f"{row.aim:,.0f}"
    if row.reached is not None:
        aim += ", reached" if row.reached else ", **missed**"
    return f"| {row.name} | {row.rate:,.0f} {row.unit} | {below} | {share} | {aim} |"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else max(RESULTS.glob("*.json")))
