"""Saved results as the tables of ``docs/performance-journal.md``.

python -m benchmarks.markdown [benchmarks/results/<time>.json ...]     the newest of each kind, if none is named
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.cluster import tables
from benchmarks.http.results import Results as HttpResults
from benchmarks.report import RESULTS, Measurement, Results
from benchmarks.spark.results import Results as SparkResults
from benchmarks.ycsb.results import Results as YcsbResults

_KINDS: Final[tuple[type[Results[Any]], ...]] = (HttpResults, SparkResults, YcsbResults)


def main(paths: list[Path]) -> None:
    """Print the machine and the tables of each result."""
    for path in paths:
        content = json.loads(path.read_text())
        print(", ".join(f"{name} {value}" for name, value in content["machine"].items()))
        if "results" not in content:
            print(_of_systems(path, content))
            continue
        for name, rows in content["results"].items():
            benchmark = import_module(f"benchmarks.bench_{name}")
            print(f"\n### {benchmark.TITLE}\n\n{benchmark.settings()}.\n")
            print("| what | a second | below it | share | aim |\n| --- | ---: | --- | ---: | --- |")
            for row in rows:
                print(_line(Measurement(**row)))
        print()


def _of_systems(path: Path, content: Mapping[str, Any]) -> str:
    """Return the tables of a program of its own, with several systems side by side."""
    if "measured" in content:
        return f"\n## Three nodes, beside etcd\n\n{tables.markdown(tables.Results.load(path))}\n"
    results = next(kind for kind in _KINDS if kind.KIND in content).load(path)
    sheets = (f"### {sheet.title}\n\n{sheet.markdown()}" for sheet in results.sheets())
    return "\n\n".join(["", *(f"{each}." for each in results.settings), *sheets, ""])


def newest() -> list[Path]:
    """Return the newest result of ``make bench`` and of each program of its own, if there is one."""
    folders = (RESULTS, tables.FOLDER, *(kind.folder() for kind in _KINDS))
    found = (max(folder.glob("*.json"), default=None) for folder in folders)
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
