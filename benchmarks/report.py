"""A benchmark's results, and their display: always beside the limit of the layer below, from the same run."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("lmdb", "grpcio", "numpy", "pyarrow", "fastavro", "protobuf", "pyspark")
_WORDS = ("what", "aim")
"""Headings of columns of words."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """``rate`` a second, of ``unit``; ``below`` is the rate of the layer below in the same run, 0 if there is no layer.

    ``aim`` is the project's aim: a rate, or, below 1, a share of ``below``.
    """

    name: str
    rate: float
    unit: str
    below_name: str = ""
    below: float = 0.0
    aim: float = 0.0

    @property
    def reached(self) -> bool | None:
        if not self.aim:
            return None
        return self.rate >= (self.aim * self.below if self.aim < 1 else self.aim)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table with several systems side by side: measurements on the left, verdicts on aims in their column."""

    title: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    legend: str

    def show(self, console: Console) -> None:
        """Print the table."""
        table = Table(
            title=self.title, title_justify="left", title_style="bold", caption=self.legend, caption_justify="left"
        )
        for heading in self.headings:
            table.add_column(heading, justify="left" if heading in _WORDS else "right")
        for line in self.lines:
            table.add_row(*line)
        console.print(table)

    def markdown(self) -> str:
        """Return the table for a page."""
        rules = ["---" if heading in _WORDS else "---:" for heading in self.headings]
        bold = [[cell.replace("missed", "**missed**") for cell in line] for line in self.lines]
        rows = "\n".join("| " + " | ".join(row) + " |" for row in (self.headings, rules, *bold))
        return f"{rows}\n\n{self.legend}."


def machine() -> dict[str, str]:
    """Return the machine and software of the measurements."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory / (1 << 30):.0f} GiB",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _commit() -> str:
    shown = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return shown.stdout.strip() or "unknown"


_Measured = TypeVar("_Measured")


@dataclass(slots=True)
class Results(ABC, Generic[_Measured]):
    """One run of a benchmark that is a program of its own: its machine, settings, and measurements (dataclasses)."""

    KIND: ClassVar[str]
    """The name of its folder below ``benchmarks/results/``, and of its measurements in a file there."""

    machine: dict[str, str] = field(default_factory=machine)
    settings: list[str] = field(default_factory=list)
    measured: list[_Measured] = field(default_factory=list)

    @classmethod
    def folder(cls) -> Path:
        """Return the folder of saved runs."""
        return RESULTS / cls.KIND

    def save(self, path: Path | None = None) -> Path:
        """Save the run as JSON in the folder, or over ``path``, which holds less of the same run."""
        content = asdict(self)
        content[self.KIND] = content.pop("measured")
        return save_json(content, self.folder(), path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load a run that :meth:`save` wrote."""
        content = json.loads(path.read_text())
        return cls(content["machine"], content["settings"], [cls.read(each) for each in content[cls.KIND]])

    @staticmethod
    @abstractmethod
    def read(content: dict[str, Any]) -> _Measured:
        """Return one measurement from its JSON."""

    @abstractmethod
    def sheets(self) -> list[Sheet]:
        """Return tables for the terminal, and for a page."""


def show(title: str, settings: str, measurements: Sequence[Measurement], console: Console) -> None:
    """Print a table."""
    table = Table(title=f"{title}\n[dim]{settings}", title_justify="left", title_style="bold")
    for heading in ("what", "a second", "below it", "share", "aim"):
        table.add_column(heading, justify="left" if heading in ("what", "below it") else "right")
    for each in measurements:
        below = f"{each.below_name}: {each.below:,.0f}" if each.below else ""
        share = f"{each.rate / each.below:.0%}" if each.below else ""
        aim = "" if not each.aim else f"{each.aim:.0%} of it" if each.aim < 1 else f"{each.aim:,.0f}"
        mark = {None: "", True: " [green]reached", False: " [red]missed"}[each.reached]
        table.add_row(each.name, f"{each.rate:,.0f} {each.unit}", below, share, aim + mark)
    console.print(table)


def save(results: dict[str, list[Measurement]]) -> Path:
    """Save the results as JSON, below ``benchmarks/results/``."""
    rows = {name: [asdict(each) for each in measured] for name, measured in results.items()}
    return save_json({"machine": machine(), "results": rows}, RESULTS)


def save_json(content: object, folder: Path, path: Path | None = None) -> Path:
    """Save a file named after the time to ``folder``, or replace ``path``, which holds less of the same run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path or folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    written = path.with_suffix(".part")
    written.write_text(json.dumps(content, indent=2) + "\n")
    written.replace(path)
    return path


# --- a run of one's own --------------------------------------------------------------------------------------------


def console_of_run(width: int) -> Console:
    """Return a run's console, ``width`` wide if there is no terminal. From here on SIGTERM ends the run as an exit
    does, with its processes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    return Console() if sys.stdout.isatty() else Console(width=width)


def show_machine(console: Console) -> None:
    """Print a run's beginning: the machine."""
    for name, value in machine().items():
        console.print(f"{name} {value}", highlight=False, end="  ")
    console.print(f"load before {os.getloadavg()[0]:.1f}", highlight=False)


def show_settings(settings: Sequence[str], console: Console) -> None:
    """Print how the run measured, a line each."""
    for each in settings:
        console.print(each, highlight=False)


def show_end(saved: Path, failed: Sequence[str], console: Console) -> int:
    """Print a run's end; return its exit code."""
    console.print(f"saved as {saved}", highlight=False, soft_wrap=True)
    if failed:
        console.print(f"[red]failed: {', '.join(failed)}")
    return 1 if failed else 0
