"""Run the story: ``make run``, or ``python -m examples.nycflights``."""

from __future__ import annotations

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
from examples.nycflights.node import running_node
from examples.nycflights.session import spark_session

AFTERWARDS = """
[bold]Keep a server and try it yourself[/bold]
  .venv/bin/cortado server --data-dir ./cortado-data
and in another terminal
  .venv/bin/cortado status
  .venv/bin/cortado kv put greetings hello world
  .venv/bin/cortado --help
"""


def tell(console: Console) -> None:
    """The whole story, against a node and a folder of its own. Raises Difference where an answer is wrong."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cortado-story-") as scratch_name:
        scratch = Path(scratch_name)
        csv = scratch / "csv"
        csv.mkdir()
        dataset.unpack(csv)
        # The client comes last: processes that are forked beside its threads may die before they begin.
        with (
            running_node(scratch / "data") as endpoint,
            spark_session(scratch / "spark") as spark,
            Client(endpoint) as client,
        ):
            console.print(f"A Cortado node listens on {endpoint}; its data is below {scratch}.")
            stage = chapters.Stage(console, client, spark, endpoint, csv)
            chapters.create_tables(stage)
            chapters.load_tables(stage)
            at = chapters.evolve_schema(stage)
            chapters.answer_with_spark(stage, at)
            chapters.travel_in_time(stage)
    console.print(f"\n[bold green]Everything agrees.[/bold green] {time.monotonic() - started:.0f} seconds.")


class Terminated(BaseException):
    """SIGTERM was sent; like KeyboardInterrupt, nothing on the way out takes it for an error."""


def _stop(*_: object) -> None:
    raise Terminated


def main() -> int:
    # SIGTERM unwinds like Ctrl-C, so that the node and Spark are stopped.
    signal.signal(signal.SIGTERM, _stop)
    console = Console()
    try:
        tell(console)
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
