"""Measure three nodes in turns with etcd's three, print it, and save it: ``make bench-cluster``, or

    python -m benchmarks.cluster                         everything, some seven minutes
    python -m benchmarks.cluster --only put unary_put    some workloads, and no failover
    python -m benchmarks.cluster --system cortado        one system
    python -m benchmarks.markdown                        the newest result as tables for a page

Data lies in folders below ``--folder`` (the system's temporary one), so both systems sync to one disk: it should be the
one that is to be measured.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.cluster import etcd_program, failover
from benchmarks.cluster.cortado_nodes import running_cortado
from benchmarks.cluster.drivers import Driver, LoadProcess
from benchmarks.cluster.etcd_nodes import find_etcd, running_etcd
from benchmarks.cluster.h2load import H2load, find_h2load
from benchmarks.cluster.members import Cluster, Member
from benchmarks.cluster.tables import Measured, Results, show
from benchmarks.cluster.turns import in_turns
from benchmarks.cluster.workloads import BY_H2LOAD, KEYS, LOADS, STORED, TRANSACTIONS, VALUE_BYTES, Load
from benchmarks.report import console_of_run, show_end, show_machine, show_settings

WIDTH: Final = 180
"""Columns of the output if there is no terminal."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The installed programs: paths, None for a missing one; ``missing`` says it as text."""

    etcd: str | None
    etcd_load: str | None
    h2load: str | None
    missing: tuple[str, ...]


def main() -> int:
    options = _options()
    console = console_of_run(WIDTH)
    show_machine(console)
    programs = _programs(options.system)
    for each in programs.missing:
        console.print(f"[yellow]{each}", highlight=False)
    results = Results()
    with _running(options, programs) as clusters:
        results.settings = [_data(options), *(cluster.settings() for cluster in clusters), *programs.missing]
        failed = _measure(clusters, options, programs, results, console)
    show_settings(results.settings, console)
    show(results, console)
    return show_end(results.save(), failed, console)


def _options() -> argparse.Namespace:
    workloads = tuple(dict.fromkeys(load.workload for load in (*LOADS, *TRANSACTIONS)))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description="Three nodes, beside etcd's.")
    parser.add_argument("--system", nargs="+", choices=("cortado", "etcd"), default=["cortado", "etcd"])
    parser.add_argument("--only", nargs="+", choices=workloads, default=[], help="these workloads alone")
    parser.add_argument("--rounds", type=int, default=5, help="of each load and system")
    parser.add_argument("--seconds", type=float, default=2.0, help="that a round is counted for")
    parser.add_argument("--failovers", type=int, default=5, help="how often each leader is killed")
    parser.add_argument("--folder", type=Path, default=None, help="where the data lies")
    return parser.parse_args()


def _data(options: argparse.Namespace) -> str:
    return (
        f"Values of {VALUE_BYTES} bytes, puts and batches to random keys among {KEYS:,}, gets and ranges of {STORED:,} "
        f"stored ones; three nodes of each system and all clients on one machine, loopback, one disk; every write "
        f"synced by a majority before its answer; {options.rounds} rounds of {options.seconds:g} s each, in turns"
    )


def _programs(systems: Sequence[str]) -> Programs:
    missing = []
    etcd = find_etcd() if "etcd" in systems else None
    etcd_load = None
    if "etcd" in systems and etcd is None:
        missing.append("etcd is not installed (Debian: etcd-server): Cortado is measured alone")
    if etcd is not None:
        try:
            etcd_load = etcd_program.build()
        except etcd_program.NotBuilt as error:
            missing.append(f"no program with etcd's Go client ({error}): etcd is asked by h2load alone")
    h2load = find_h2load()
    if h2load is None:
        missing.append("h2load is not installed (Debian: nghttp2-client): no calls as other languages send them")
    return Programs(etcd, etcd_load, h2load, tuple(missing))


@contextmanager
def _running(options: argparse.Namespace, programs: Programs) -> Iterator[list[Cluster]]:
    """Yield the clusters that were asked for and are installed, all at once."""
    with ExitStack() as stack:
        clusters: list[Cluster] = []
        for system in options.system:
            folder = tempfile.TemporaryDirectory(prefix=f"bench-{system}-", dir=options.folder)
            path = Path(stack.enter_context(folder))
            if system == "cortado":
                clusters.append(stack.enter_context(running_cortado(path)))
            elif programs.etcd is not None:
                clusters.append(stack.enter_context(running_etcd(programs.etcd, programs.etcd_load, path)))
        yield clusters


def _measure(
    clusters: Sequence[Cluster],
    options: argparse.Namespace,
    programs: Programs,
    results: Results,
    console: Console,
) -> list[str]:
    """Measure all loads; return the failed ones."""
    failed = []
    asked = [cluster for cluster in clusters if cluster.name != "etcd" or programs.etcd_load is not None]
    for cluster in asked:
        console.print(f"[dim]{cluster.name}: what gets and ranges find ...")
        leader = cluster.leader()
        assert leader is not None
        subprocess.run(_command(cluster, leader, "fill", 1), check=True)
    for load in (*LOADS, *TRANSACTIONS):
        if load.workload not in (options.only or {each.workload for each in LOADS}):
            continue
        by_h2load = load.workload.startswith(BY_H2LOAD)
        if by_h2load and programs.h2load is None:
            continue
        console.print(f"[dim]{load.title}, {load.callers} callers ...")
        opens = _Opens(load, programs.h2load if by_h2load else None)
        try:
            outcomes = in_turns(clusters if by_h2load else asked, opens, options.rounds, options.seconds)
        except Exception:
            traceback.print_exc()
            failed.append(f"{load.title}, {load.callers} callers")
        else:
            results.measured.append(Measured(load, outcomes))
    if not options.only and options.failovers:
        console.print("[dim]failover ...")
        try:
            results.failover_ms = failover.trials(asked, options.failovers)
        except Exception:
            traceback.print_exc()
            failed.append("failover")
    return failed


@dataclass(frozen=True, slots=True)
class _Opens:
    """Makes the callers of one load, for either system."""

    load: Load
    h2load: str | None

    def __call__(self, cluster: Cluster, leader: Member) -> Driver:
        if self.h2load is not None:
            return H2load(self.h2load, cluster.name, self.load.workload, self.load.callers, leader.endpoint)
        return LoadProcess(_command(cluster, leader, self.load.workload, self.load.callers))


def _command(cluster: Cluster, leader: Member, workload: str, callers: int) -> list[str]:
    """Return the command that asks the leader, for both systems: a follower would hand calls on."""
    command = cluster.load_command(workload, callers, [leader.endpoint])
    assert command is not None
    return command


if __name__ == "__main__":
    sys.exit(main())
