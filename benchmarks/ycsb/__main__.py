"""Measure YCSB's workloads on one node and on three, in turns, print it, and save it: ``make bench-ycsb``, or

    python -m benchmarks.ycsb                                       everything, some five minutes
    python -m benchmarks.ycsb --workloads a c --nodes one           some
    python -m benchmarks.ycsb --records 1000000 --callers 128
    python -m benchmarks.markdown                                   the newest result as a table for a page

Each workload begins with the records that the one before it has left, A to F, in YCSB's order.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.cluster.cortado_nodes import CortadoCluster, running_cortado
from benchmarks.cluster.drivers import Driver, LoadProcess
from benchmarks.cluster.members import Cluster, Member
from benchmarks.cluster.turns import in_turns
from benchmarks.report import console_of_run, show_end, show_machine, show_settings
from benchmarks.ycsb.results import Measured, Results
from benchmarks.ycsb.workloads import FIELD_BYTES, FIELDS, WORKLOADS, Workload

WIDTH: Final = 160
"""Columns of the output if there is no terminal."""
NODES: Final = {"one": 1, "three": 3}


def main() -> int:
    options = _options()
    console = console_of_run(WIDTH)
    show_machine(console)
    results = Results()
    asked = [workload for workload in WORKLOADS if workload.name in options.workloads]
    with ExitStack() as stack:
        clusters = [_filled(stack, name, options, console) for name in options.nodes]
        failed = [each.title for each in asked if not _measured(each, clusters, options, results, console)]
    results.settings = [_data(options), f"load after {os.getloadavg()[0]:.1f}"]
    show_settings(results.settings, console)
    for sheet in results.sheets():
        sheet.show(console)
    return show_end(results.save(), failed, console)


def _options() -> argparse.Namespace:
    names = [workload.name for workload in WORKLOADS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ycsb", description="YCSB by the Python client.")
    parser.add_argument("--nodes", nargs="+", choices=list(NODES), default=list(NODES))
    parser.add_argument("--workloads", nargs="+", choices=names, default=names)
    parser.add_argument("--records", type=int, default=100_000, help="that there are at first")
    parser.add_argument("--callers", type=int, default=64, help="at once, tasks of one client")
    parser.add_argument("--rounds", type=int, default=5, help="of each workload and number of nodes")
    parser.add_argument("--seconds", type=float, default=3.0, help="that a round is counted for")
    parser.add_argument("--folder", type=Path, default=None, help="where the data lies")
    return parser.parse_args()


def _data(options: argparse.Namespace) -> str:
    return (
        f"{options.records:,} records of {len(FIELDS)} fields of {FIELD_BYTES} bytes, {options.callers} callers of one "
        f"AsyncClient; reads linearizable, writes synced by a majority; nodes and client on one machine, loopback, one "
        f"disk; {options.rounds} rounds of {options.seconds:g} s each, in turns"
    )


def _filled(stack: ExitStack, name: str, options: argparse.Namespace, console: Console) -> CortadoCluster:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"bench-ycsb-{name}-", dir=options.folder)))
    cluster = stack.enter_context(running_cortado(folder, NODES[name], name))
    console.print(f"[dim]{name}: {options.records:,} records ...")
    subprocess.run(_command("fill", cluster.endpoints, options), check=True)
    return cluster


def _command(what: str, endpoints: str, options: argparse.Namespace) -> list[str]:
    asked = [what, str(options.records), str(options.callers), endpoints]
    return [sys.executable, "-m", "benchmarks.ycsb.load", *asked]


def _measured(
    workload: Workload, clusters: list[CortadoCluster], options: argparse.Namespace, results: Results, console: Console
) -> bool:
    """Measure one; return whether it worked."""
    console.print(f"[dim]{workload.title} ...")

    def opens(_cluster: Cluster, leader: Member) -> Driver:
        return LoadProcess(_command(workload.name, leader.endpoint, options))

    try:
        outcomes = in_turns(clusters, opens, options.rounds, options.seconds)
    except Exception:
        traceback.print_exc()
        return False
    results.measured.append(Measured(workload.name, outcomes))
    return True


if __name__ == "__main__":
    sys.exit(main())
