"""Run the story: ``make run``, or ``python -m examples.nycflights``; with ``NODES=3`` or ``--nodes 3`` on a cluster."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from cortado import Client
from cortado.errors import CortadoError
from examples.nycflights import chapters, dataset
from examples.nycflights.checking import Difference
from examples.nycflights.failover import Failovers
from examples.nycflights.node import Nodes, running_nodes
from examples.nycflights.session import spark_session

AFTERWARDS = """
[bold]Keep a cluster with these flights and try it yourself[/bold]
  .venv/bin/cortado dev up --demo
"""


def tell(console: Console, count: int) -> None:
    """Tell the whole story, against ``count`` nodes and a folder of its own. Raises Difference if an answer is
    wrong."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cortado-story-") as scratch_name:
        scratch = Path(scratch_name)
        csv = scratch / "csv"
        csv.mkdir()
        dataset.unpack(csv)
        # The client comes last: processes that are forked beside its threads may die before they begin.
        with (
            running_nodes(_made(scratch / "nodes"), count) as nodes,
            spark_session(scratch / "spark") as spark,
            Client(nodes.endpoints) as client,
        ):
            _introduce(console, nodes, scratch)
            failovers = Failovers(nodes, console) if count > 1 else None
            stage = chapters.Stage(console, client, spark, nodes.endpoints, csv, failovers)
            chapters.create_tables(stage)
            chapters.load_tables(stage)
            at = chapters.evolve_schema(stage)
            chapters.answer_with_spark(stage, at)
            chapters.travel_in_time(stage)
    console.print(f"\n[bold green]Everything agrees.[/bold green] {time.monotonic() - started:.0f} seconds.")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _introduce(console: Console, nodes: Nodes, scratch: Path) -> None:
    if len(nodes.nodes) == 1:
        console.print(f"A Cortado node listens on {nodes.endpoints}; its data is below {scratch}.")
        return
    leadership = nodes.leadership()
    console.print(f"{len(nodes.nodes)} Cortado nodes listen on {nodes.endpoints}; their data is below {scratch}.")
    console.print(f"{leadership.node_id} leads in term {leadership.term}.")


class Terminated(BaseException):
    """SIGTERM was sent; like KeyboardInterrupt, nothing on the way out takes it for an error."""


def _stop(*_: object) -> None:
    raise Terminated


def _node_count() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.nycflights", description="A year of flights, told.")
    parser.add_argument("--nodes", type=int, choices=(1, 3, 5), default=1, help="how many nodes (default 1)")
    return int(parser.parse_args().nodes)


def main() -> int:
    count = _node_count()
    # SIGTERM unwinds like Ctrl-C, so that the node and Spark are stopped.
    signal.signal(signal.SIGTERM, _stop)
    console = Console()
    try:
        tell(console, count)
    except Difference as difference:
        console.print(f"\n[bold red]Wrong answer:[/bold red] {difference}")
        return 1
    except CortadoError as error:
        console.print(f"\n[bold red]Refused:[/bold red] {error}")
        return 1
    except (KeyboardInterrupt, Terminated) as stop:
        console.print("\nStopped.")
        return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)
    console.print(AFTERWARDS, highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
