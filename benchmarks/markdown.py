"""Saved results as the tables of ``docs/performance.md``.

python -m benchmarks.markdown [benchmarks/results/<time>.json ...]     the newest of each kind, if none is named
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.cluster import tables
from benchmarks.report import RESULTS, Measurement


def main(paths: list[Path]) -> None:
    """Print the machine and the tables of each result."""
    for path in paths:
        content = json.loads(path.read_text())
        print(", ".join(f"{name} {value}" for name, value in content["machine"].items()))
        if "measured" in content:
            print(f"\n## Three nodes, beside etcd\n\n{tables.markdown(tables.Results.load(path))}\n")
            continue
        for name, rows in content["results"].items():
            benchmark = import_module(f"benchmarks.bench_{name}")
            print(f"\n### {benchmark.TITLE}\n\n{benchmark.settings()}.\n")
            print("| what | a second | below it | share | aim |\n| --- | ---: | --- | ---: | --- |")
            for row in rows:
                print(_line(Measurement(**row)))
        print()


def newest() -> list[Path]:
    """Of ``make bench`` and of ``make bench-cluster``, as far as there is one."""
    found = (max(folder.glob("*.json"), default=None) for folder in (RESULTS, tables.FOLDER))
    return [path for path in found if path is not None]


def _line(row: Measurement) -> str:
    below = f"{row.below_name}: {row.below:,.0f}" if row.below else ""
    share = f"{row.rate / row.below:.0%}" if row.below else ""
    aim = "" if not row.aim else f"{row.aim:.0%} of it" if row.aim < 1 else f"{row.aim:,.0f}"
    if row.reached is not None:
        aim += ", reached" if row.reached else ", **missed**"
    return f"| {row.name} | {row.rate:,.0f} {row.unit} | {below} | {share} | {aim} |"


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]] or newest())
