"""Measure three nodes beside etcd's three, print it, and save it: ``make bench-cluster``, or

    python -m benchmarks.cluster                      everything, some seven minutes
    python -m benchmarks.cluster --only put get       some workloads (see WORKLOADS), and no failover
    python -m benchmarks.cluster --system cortado     one system
    python -m benchmarks.cluster --markdown           the tables of docs/performance.md

Data lies in a folder below ``--folder`` (the system's temporary one): it should be on the disk that is to be measured.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import traceback
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.cluster import failover, fast_client
from benchmarks.cluster.cortado_nodes import running_cortado
from benchmarks.cluster.etcd_nodes import find_etcd, running_etcd
from benchmarks.cluster.load import Load, measure
from benchmarks.cluster.members import Cluster
from benchmarks.cluster.tables import Point, Results, markdown, show
from benchmarks.cluster.workloads import STORED, VALUE_BYTES, WORKLOADS, fill, open_store
from benchmarks.report import machine

WIDTH: Final = 180
"""Of what is printed where there is no terminal."""
SHAPES: Final = ((1, 1), (1, 16), (1, 64), (2, 32), (1, 256), (2, 128))
"""Processes and threads of the callers of single puts and gets."""
TASKS: Final = (64, 256)
"""The same as tasks of one loop."""
LOADS: Final = (
    *(
        load
        for workload in ("put", "get")
        for load in (
            *(Load(workload, *shape) for shape in SHAPES),
            *(Load(workload, 1, tasks, tasks=True) for tasks in TASKS),
        )
    ),
    Load("batch100", 1, 16),
    Load("batch100", 2, 8),
    Load("scattered100", 2, 8),
    Load("batch1000", 2, 4),
    Load("batch100", 1, 16, tasks=True),
    Load("range1000", 1, 16),
    Load("range1000", 2, 8),
    Load("range1000", 1, 16, tasks=True),
)
FAST_CALLERS: Final = (1, 16, 64, 256)
AIMS: Final = {"put": 1.0, "get": 1.0, "batch100": 5.0, "scattered100": 5.0, "range1000": 3.0}
"""Multiples of etcd's rate; of single puts and gets from 64 callers on."""
AIM_CALLERS_MIN: Final = 64


def main() -> int:
    options = _options()
    # Ended, too, it ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    results = Results()
    results.settings["data"] = (
        f"values of {VALUE_BYTES} bytes, puts and batches to random keys among a million, gets and ranges of "
        f"{STORED:,} stored ones; three nodes and all clients on one machine, loopback; every write synced to disk by "
        f"a majority before its answer; {options.seconds} s each"
    )
    for name, value in machine().items():
        console.print(f"{name} {value}", highlight=False, end="  ")
    console.print(f"load before {os.getloadavg()[0]:.1f}", highlight=False)
    worked = [_measure_system(system, options, results, console) for system in options.system]
    console.print(results.settings["data"], highlight=False)
    print(markdown(results)) if options.markdown else show(results, console)
    console.print(f"saved as {results.save()}", highlight=False, soft_wrap=True)
    return 0 if all(worked) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description="Three nodes, beside etcd's.")
    parser.add_argument("--system", nargs="+", choices=("etcd", "cortado"), default=["etcd", "cortado"])
    parser.add_argument("--only", nargs="+", choices=tuple(WORKLOADS), default=[], help="these workloads alone")
    parser.add_argument("--seconds", type=int, default=4, help="that each load is counted for")
    parser.add_argument("--failovers", type=int, default=5, help="how often the leader is killed")
    parser.add_argument("--folder", type=Path, default=None, help="where the data lies")
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")
    return parser.parse_args()


def _measure_system(system: str, options: argparse.Namespace, results: Results, console: Console) -> bool:
    """All loads on one system; whether it worked. A missing etcd is said, and no failure."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{system}-", dir=options.folder) as folder:
        try:
            running = _running(system, Path(folder))
            if running is None:
                console.print("[yellow]etcd is not installed (Debian: etcd-server): Cortado is measured alone")
                return True
            with running as cluster:
                results.settings[system] = cluster.settings()
                _measure_cluster(cluster, options, results, console)
        except Exception:
            console.print(f"[red]{system} failed")
            traceback.print_exc()
            return False
    return True


def _running(system: str, folder: Path) -> AbstractContextManager[Cluster] | None:
    if system == "cortado":
        return running_cortado(folder)
    program = find_etcd()
    return None if program is None else running_etcd(program, folder)


def _measure_cluster(cluster: Cluster, options: argparse.Namespace, results: Results, console: Console) -> None:
    leader = cluster.leader()
    assert leader is not None
    store = open_store(cluster.name, [leader.endpoint])
    fill(store)
    store.close()
    for load in LOADS:
        if not options.only or load.workload in options.only:
            workload = WORKLOADS[load.workload]
            console.print(f"[dim]{cluster.name}: {workload.title}, {load.shape} callers ...")
            aim = _aim(load.workload, load.callers)
            outcome = measure(cluster, load, options.seconds)
            results.points.append(Point(cluster.name, workload.title, load.shape, workload.rows, aim, outcome))
    _measure_fast(cluster, options, results, console)
    if not options.only and options.failovers:
        console.print(f"[dim]{cluster.name}: failover ...")
        results.failover_ms[cluster.name] = failover.trials(cluster, options.failovers)


def _measure_fast(cluster: Cluster, options: argparse.Namespace, results: Results, console: Console) -> None:
    program = fast_client.find_h2load()
    if program is None:
        console.print("[yellow]h2load is not installed (Debian: nghttp2-client): no measurement with a client in C")
        return
    for name in ("put", "get"):
        for callers in FAST_CALLERS if not options.only or name in options.only else ():
            title = f"{WORKLOADS[name].title}, unary, client in C"
            console.print(f"[dim]{cluster.name}: {title}, {callers} callers ...")
            outcome = fast_client.measure(program, cluster, name, callers, options.seconds)
            results.points.append(Point(cluster.name, title, str(callers), 1, 0, outcome))


def _aim(workload: str, callers: int) -> float:
    if workload in ("put", "get") and callers < AIM_CALLERS_MIN:
        return 0.0
    return AIMS.get(workload, 0.0)


if __name__ == "__main__":
    sys.exit(main())
