"""Measure calls through the gateway beside the same calls by the client, in turns, print it, and save it:
``make bench-http``, or

    python -m benchmarks.http                                     everything, some two minutes
    python -m benchmarks.http --workloads document --callers 64   some
    python -m benchmarks.http --resume benchmarks/results/http/20261126T060000.json
    python -m benchmarks.markdown                                 the newest result as a table for a page

One node, one gateway, and the callers: a process each. A gateway uses one core. A call's cost is given in processor
time, which other work on the machine changes little; the rates are those of the machine as it was.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.cluster.cortado_nodes import running_cortado
from benchmarks.cluster.drivers import Driver, LoadProcess
from benchmarks.cluster.members import Cluster, Member, free_ports, wait_for
from benchmarks.cluster.turns import in_turns
from benchmarks.http.results import GRPC, HTTP, Measured, Results
from benchmarks.http.workloads import CALLERS, READINGS, SENSORS, VALUE_BYTES, WORKLOADS, Workload
from benchmarks.report import console_of_run, show_end, show_machine, show_settings

WIDTH: Final = 160
"""Columns of the output if there is no terminal."""


class Way:
    """The node, and the gateway if calls go through it: the cluster of :func:`in_turns`."""

    def __init__(self, name: str, node: Member, *before: Member) -> None:
        self.name = name
        self.members = [node, *before]
        self.address = self.members[-1].endpoint

    def leader(self) -> Member:
        return self.members[0]

    def follows(self, member: Member) -> bool:
        return member in self.members

    def settle(self) -> None:
        """Do nothing: it settles by itself."""

    def load_command(self, workload: str, callers: int, endpoints: Sequence[str]) -> list[str]:  # noqa: ARG002
        return _load(self.name, workload, callers, self.address)

    def settings(self) -> str:
        return "one node and one gateway with default settings"


def main() -> int:
    options = _options()
    console = console_of_run(WIDTH)
    show_machine(console)
    results = Results() if options.resume is None else Results.load(options.resume)
    path, failed = options.resume, []
    with tempfile.TemporaryDirectory(prefix="bench-http-", dir=options.folder) as folder, _running(folder) as ways:
        results.settings = [_data(options), ways[0].settings()]
        for workload in (each for each in WORKLOADS if each.name in options.workloads):
            for callers in (each for each in options.callers if not results.has(workload.name, each)):
                console.print(f"[dim]{workload.title}, {callers} callers ...")
                if _measured(workload, callers, ways, options, results):
                    path = results.save(path)
                else:
                    failed.append(f"{workload.title}, {callers} callers")
    results.settings.append(f"load after {os.getloadavg()[0]:.1f}")
    show_settings(results.settings, console)
    for sheet in results.sheets():
        sheet.show(console)
    return show_end(results.save(path), failed, console)


def _options() -> argparse.Namespace:
    names = [workload.name for workload in WORKLOADS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http", description="HTTP beside the Python client.")
    parser.add_argument("--workloads", nargs="+", choices=names, default=names)
    parser.add_argument("--callers", nargs="+", type=int, default=list(CALLERS), help="at once, a connection each")
    parser.add_argument("--rounds", type=int, default=5, help="of each workload, number of callers and way")
    parser.add_argument("--seconds", type=float, default=1.0, help="that a round is counted for")
    parser.add_argument("--folder", type=Path, default=None, help="where the data lies")
    parser.add_argument("--resume", type=Path, default=None, help="a result, of which what is missing is measured")
    return parser.parse_args()


def _data(options: argparse.Namespace) -> str:
    return (
        f"{SENSORS * READINGS:,} documents of 10 fields and pairs of {VALUE_BYTES} bytes; reads linearizable, writes "
        f"synced; callers wait for each answer, and read its JSON; by gRPC they share one AsyncClient, and read its "
        f"documents; node, gateway and callers a process each on one machine, loopback; {options.rounds} rounds of "
        f"{options.seconds:g} s each, in turns"
    )


@contextmanager
def _running(folder: str) -> Iterator[list[Way]]:
    """Yield a node with its data, and a gateway before it."""
    with running_cortado(Path(folder), 1) as cluster:
        (node,) = cluster.members
        subprocess.run(_load("fill", "", 0, node.endpoint), check=True)
        address = f"127.0.0.1:{free_ports(1)[0]}"
        command = [sys.executable, "-m", "cortado.store.cli", "-e", node.endpoint, "gateway", "--listen", address]
        told = Path(folder, "gateway.port")
        gateway = Member("gateway", address, [*command, "--port-file", str(told)], Path(folder, "gateway.log"))
        gateway.start()
        try:
            wait_for(told.exists, "the gateway listens")
            yield [Way(HTTP, node, gateway), Way(GRPC, node)]
        finally:
            gateway.end()


def _load(way: str, workload: str, callers: int, address: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.http.load", way, workload, str(callers), address]


def _measured(
    workload: Workload, callers: int, ways: Sequence[Way], options: argparse.Namespace, results: Results
) -> bool:
    """Measure one; return whether it worked."""

    def opens(way: Cluster, _leader: Member) -> Driver:
        return LoadProcess(way.load_command(workload.name, callers, ()) or [])

    try:
        outcomes = in_turns(ways, opens, options.rounds, options.seconds)
    except Exception:
        traceback.print_exc()
        return False
    results.measured.append(Measured(workload.name, callers, outcomes))
    return True


if __name__ == "__main__":
    sys.exit(main())
