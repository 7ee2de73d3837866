"""Measure Cortado and JDBC on PostgreSQL through Spark, in turns, print it, and save it: ``make bench-spark``, or

    python -m benchmarks.spark                                 everything, at most about 25 minutes
    python -m benchmarks.spark --only sum grouped              some loads
    python -m benchmarks.spark --rows 200000 --turns 3         less of it
    python -m benchmarks.spark --systems one jdbc              some systems
    python -m benchmarks.markdown                              the newest result as tables for a page

Each load is saved once it is measured: a run that is cut off keeps those before. Needs Java. If PostgreSQL is missing,
Cortado is measured alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.cluster.cortado_nodes import running_cortado
from benchmarks.report import console_of_run, show_end, show_machine, show_settings
from benchmarks.spark.cortado_side import CortadoSide
from benchmarks.spark.idle_side import IdleSide
from benchmarks.spark.jdbc_side import JdbcSide
from benchmarks.spark.loads import LOADS, MICRO_BATCH, PARTITIONS, Load, made
from benchmarks.spark.micro_batches import micro_batches
from benchmarks.spark.postgres import NotThere, Postgres, running_postgres
from benchmarks.spark.processes import Spent
from benchmarks.spark.results import ONE, PEER, SYSTEMS, THREE, Measured, Results
from benchmarks.spark.turns import Side, Turns, reads_in_turns, writes_in_turns
from examples.nycflights.session import spark_session

WIDTH: Final = 220
"""Columns of the output if there is no terminal."""
NODES: Final = {ONE: 1, THREE: 3}


def main() -> int:
    options = _options()
    console = console_of_run(WIDTH)
    if not os.environ.get("JAVA_HOME"):
        console.print("[red]Spark needs Java 17 or later, and JAVA_HOME to name it (make bench-spark finds it)")
        return 1
    show_machine(console)
    results = Results()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-spark-")))
        postgres = _postgres(stack, options.systems, results)
        spark = stack.enter_context(spark_session(scratch / "spark", str(postgres.jar) if postgres else ""))
        run = _Run(options, spark, scratch, console, results)
        failed = run.all(stack, postgres)
    results.settings.append(f"load after {os.getloadavg()[0]:.1f}")
    show_settings(results.settings, console)
    for sheet in results.sheets():
        sheet.show(console)
    return show_end(results.save(run.saved), failed, console)


def _options() -> argparse.Namespace:
    names = [load.name for load in (*LOADS, MICRO_BATCH)]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description="Through Spark, beside JDBC.")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these loads alone")
    parser.add_argument("--rows", type=int, default=2_000_000, help="that reads find")
    parser.add_argument("--written", type=int, default=500_000, help="rows of an append or an upsert")
    parser.add_argument("--turns", type=int, default=5, help="of each load and system")
    parser.add_argument("--minutes", type=float, default=25.0, help="for all; then each load has one more turn")
    return parser.parse_args()


def _data(options: argparse.Namespace) -> str:
    return (
        f"{options.rows:,} rows of ten columns with an index on one of them, writes of {options.written:,} rows to a "
        f"table with a primary key alone; {PARTITIONS} partitions, Spark local[2]; everything on one machine, over "
        f"loopback, with one disk, writes synced; up to {options.turns} turns of each system, and one not counted"
    )


def _postgres(stack: ExitStack, systems: Sequence[str], results: Results) -> Postgres | None:
    if PEER not in systems:
        return None
    try:
        return stack.enter_context(running_postgres())
    except NotThere as error:
        results.settings.append(f"PostgreSQL is {error}: Cortado is measured alone")
        return None


class _Run:
    """All loads that were asked for, in one Spark session."""

    def __init__(
        self, options: argparse.Namespace, spark: SparkSession, scratch: Path, console: Console, results: Results
    ) -> None:
        self._options = options
        self._spark = spark
        self._scratch = scratch
        self._console = console
        self._results = results
        self._until_s = time.monotonic() + 60 * options.minutes
        self.saved: Path | None = None
        jvm: Any = spark._jvm
        self._jvm: int = jvm.java.lang.ProcessHandle.current().pid()

    def all(self, stack: ExitStack, postgres: Postgres | None) -> list[str]:
        """Measure all loads; return the failed ones."""
        options = self._options
        self._rows = made(self._spark, options.rows)
        self._written = [made(self._spark, options.written, note) for note in ("note", "changed")]
        ours = [self._cortado(stack, name) for name in NODES if name in options.systems]
        sides: list[Side] = list(ours)
        if postgres is not None:
            jdbc = stack.enter_context(closing(JdbcSide(postgres, self._spark, options.rows)))
            self._console.print(f"[dim]{jdbc.name}: the same ...")
            jdbc.fill(self._rows, self._written[1])
            sides.insert(0, jdbc)
        if "idle" in options.systems:
            sides.append(IdleSide(self._spark, options.rows))
        self._results.settings += [_data(options), *(side.settings() for side in sides)]
        asked = [load for load in (*LOADS, MICRO_BATCH) if load.name in options.only]
        failed = []
        for place, load in enumerate(asked):
            left_s = self._until_s - time.monotonic()
            turns = Turns(options.turns, left_s / (len(asked) - place))
            if not self._measured(load, sides, ours, turns):
                failed.append(load.title)
        return failed

    def _cortado(self, stack: ExitStack, name: str) -> CortadoSide:
        cluster = stack.enter_context(running_cortado(_made(self._scratch / name), NODES[name], name))
        side = CortadoSide(cluster, self._spark, self._options.rows)
        stack.enter_context(side.client)
        self._console.print(f"[dim]{name}: what reads find ...")
        side.fill(self._rows, self._written[1])
        return side

    def _measured(self, load: Load, sides: Sequence[Side], ours: Sequence[CortadoSide], turns: Turns) -> bool:
        """Measure one load; return whether it worked. Then it is saved with those before."""
        self._console.print(f"[dim]{load.title} ...")
        try:
            self._results.measured.append(Measured(load.name, self._spent(load, sides, ours, turns)))
        except Exception:
            traceback.print_exc()
            return False
        self.saved = self._results.save(self.saved)
        return True

    def _spent(
        self, load: Load, sides: Sequence[Side], ours: Sequence[CortadoSide], turns: Turns
    ) -> Mapping[str, Sequence[Spent]]:
        if load is not MICRO_BATCH:
            if load.is_read:
                return reads_in_turns(load, sides, self._rows, turns, self._jvm)
            return writes_in_turns(load, sides, self._written, turns, self._jvm)
        scratch = self._scratch / "stream"
        each = replace(turns, seconds=turns.seconds / max(len(ours), 1))
        return {side.name: micro_batches(side, self._spark, scratch, each, self._jvm) for side in ours}


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    sys.exit(main())
