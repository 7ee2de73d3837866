"""Measure Cortado and JDBC on PostgreSQL through Spark, in turns, print it, and save it: ``make bench-spark``, or

    python -m benchmarks.spark                                 everything, some twenty minutes
    python -m benchmarks.spark --only sum grouped              some loads
    python -m benchmarks.spark --rows 200000 --turns 3         less of it
    python -m benchmarks.spark --systems one jdbc              some systems
    python -m benchmarks.markdown                              the newest result as tables for a page

Needs Java. Where PostgreSQL is missing, Cortado is measured alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import ExitStack, closing
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
from benchmarks.spark.results import ONE, PEER, SYSTEMS, THREE, Measured, Results
from benchmarks.spark.turns import Side, reads_in_turns, writes_in_turns
from examples.nycflights.session import spark_session

WIDTH: Final = 220
"""Of what is printed where there is no terminal."""
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
        failed = _Run(options, spark, scratch, console, results).all(stack, postgres)
    results.settings += [_data(options), f"load after {os.getloadavg()[0]:.1f}"]
    show_settings(results.settings, console)
    for sheet in results.sheets():
        sheet.show(console)
    return show_end(results.save(), failed, console)


def _options() -> argparse.Namespace:
    names = [load.name for load in (*LOADS, MICRO_BATCH)]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description="Through Spark, beside JDBC.")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these loads alone")
    parser.add_argument("--rows", type=int, default=2_000_000, help="that reads find")
    parser.add_argument("--written", type=int, default=500_000, help="rows of an append or an upsert")
    parser.add_argument("--turns", type=int, default=5, help="of each load and system")
    return parser.parse_args()


def _data(options: argparse.Namespace) -> str:
    return (
        f"{options.rows:,} rows of ten columns with an index on one of them, writes of {options.written:,} rows to a "
        f"table with a primary key alone; {PARTITIONS} partitions, Spark local[2]; everything on one machine, over "
        f"loopback, with one disk, writes synced; {options.turns} turns of each system after one that is not counted"
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
        jvm: Any = spark._jvm
        self._jvm: int = jvm.java.lang.ProcessHandle.current().pid()

    def all(self, stack: ExitStack, postgres: Postgres | None) -> list[str]:
        """Returns what failed; the other loads are measured."""
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
        self._results.settings += [side.settings() for side in sides]
        failed = [load.title for load in LOADS if load.name in options.only and not self._measure(load, sides)]
        if MICRO_BATCH.name in options.only and not self._stream(ours):
            failed.append(MICRO_BATCH.title)
        return failed

    def _cortado(self, stack: ExitStack, name: str) -> CortadoSide:
        cluster = stack.enter_context(running_cortado(_made(self._scratch / name), NODES[name], name))
        side = CortadoSide(cluster, self._spark, self._options.rows)
        stack.enter_context(side.client)
        self._console.print(f"[dim]{name}: what reads find ...")
        side.fill(self._rows, self._written[1])
        return side

    def _measure(self, load: Load, sides: Sequence[Side]) -> bool:
        """Whether it worked."""
        self._console.print(f"[dim]{load.title} ...")
        turns = self._options.turns
        try:
            if load.is_read:
                spent = reads_in_turns(load, sides, self._rows, turns, self._jvm)
            else:
                spent = writes_in_turns(load, sides, self._written, turns, self._jvm)
        except Exception:
            traceback.print_exc()
            return False
        self._results.spark.append(Measured(load.name, spent))
        return True

    def _stream(self, sides: Sequence[CortadoSide]) -> bool:
        self._console.print(f"[dim]{MICRO_BATCH.title} ...")
        try:
            spent = {
                side.name: micro_batches(side, self._spark, self._scratch / "stream", self._options.turns, self._jvm)
                for side in sides
            }
        except Exception:
            traceback.print_exc()
            return False
        self._results.spark.append(Measured(MICRO_BATCH.name, spent))
        return True


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    sys.exit(main())
