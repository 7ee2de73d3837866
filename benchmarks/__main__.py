"""Run every benchmark, or the named ones: print the results and the machine, and save both as JSON.

    python -m benchmarks                 all of them, some ten minutes
    python -m benchmarks engine grpc     some

Each is a module ``bench_<name>`` with a ``TITLE``, ``settings() -> str`` (one line: data, durability, method) and
``run() -> list[Measurement]``, and can be run by itself. One that fails is named at the end, and the others go on.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from importlib import import_module
from typing import Final, Protocol, cast

from rich.console import Console
from rich.table import Table

from benchmarks.report import Measurement, machine, save, show

WIDTH: Final = 140
"""Columns of the output if there is no terminal."""

NAMES: Final = (
    "engine",
    "scans",
    "documents",
    "columnar",
    "walks",
    "aggregates",
    "grpc",
    "peers",
    "node",
    "ingest",
    "client",
    "pages",
    "tables",
    "transfer",
    "backup",
    "collection",
    "indexes",
    "large_transactions",
    "registry",
    "quotas",
    "roles",
)


class Benchmark(Protocol):
    """The interface of each benchmark module."""

    TITLE: str

    @staticmethod
    def settings() -> str: ...

    @staticmethod
    def run() -> list[Measurement]: ...


def main() -> int:
    """Run the benchmarks that the command line names. Returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, beside what lies below.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of: {', '.join(NAMES)}; all if none is given")
    names = parser.parse_args().names or NAMES
    if unknown := set(names).difference(NAMES):
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}: there are {', '.join(NAMES)}")
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    _show_machine(console)
    results: dict[str, list[Measurement]] = {}
    failed = [name for name in names if not _measure(name, results, console)]
    if results:
        console.print(f"saved as {save(results)}", highlight=False, soft_wrap=True)
    if failed:
        console.print(f"[red]failed: {', '.join(failed)}")
    return 1 if failed else 0


def _show_machine(console: Console) -> None:
    table = Table(title="Machine", title_justify="left", title_style="bold", show_header=False)
    for name, value in machine().items():
        table.add_row(name, value)
    # Other work makes everything here slower: a load that is not near 0 belongs to the numbers.
    table.add_row("load before", " ".join(f"{load:.1f}" for load in os.getloadavg()))
    console.print(table)


def _measure(name: str, results: dict[str, list[Measurement]], console: Console) -> bool:
    """Run one benchmark and show it; return whether it worked."""
    console.print(f"[dim]{name} ...")
    began = time.perf_counter()
    try:
        benchmark = cast(Benchmark, import_module(f"benchmarks.bench_{name}"))
        results[name] = benchmark.run()
    except Exception:
        console.print(f"[red]{name} failed")
        traceback.print_exc()
        return False
    settings = f"{benchmark.settings()}; took {time.perf_counter() - began:.0f} s"
    show(benchmark.TITLE, settings, results[name], console)
    return True


if __name__ == "__main__":
    sys.exit(main())
