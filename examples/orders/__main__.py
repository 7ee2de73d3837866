"""Run the story: ``make example-stream``, or ``python -m examples.orders``; ``--hours`` says how many are sold."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from cortado import Client
from cortado.errors import CortadoError
from examples.nycflights.checking import Difference
from examples.nycflights.node import running_nodes
from examples.orders.checking import check_at_one_time
from examples.orders.tables import BEGAN, HOUR, ORDERS, ORDERS_AN_HOUR, create_tables, orders_of

HOURS_DEFAULT: Final = 96
HOURS_MIN: Final = 8
PATIENCE_S: Final = 240.0


class Driver:
    """The process of :mod:`examples.orders.driver`, and all that it starts."""

    def __init__(self, endpoint: str, folder: Path, number: int) -> None:
        scratch = folder / f"driver-{number}"
        scratch.mkdir()
        self._log = folder / f"driver-{number}.log"
        command = [sys.executable, "-m", "examples.orders.driver", endpoint, str(folder / "checkpoint"), str(scratch)]
        # It lives for seconds: the second compiler would cost more than it gains.
        environment = {**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
        with self._log.open("wb") as log:
            # A group of its own: Java goes with it.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def check_running(self) -> None:
        if self._process.poll() is not None:
            raise SystemExit(f"The driver has ended:\n{self._log.read_text(errors='replace')[-3000:]}")

    def kill(self) -> None:
        """Kill with SIGKILL, Java as well: no process has time to say goodbye."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextmanager
def running_driver(endpoint: str, folder: Path, number: int) -> Iterator[Driver]:
    driver = Driver(endpoint, folder, number)
    try:
        yield driver
    finally:
        driver.kill()


class Writer:
    """Puts the orders of hour after hour into the table, in a thread, up to the hour that it may."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._goal = 0
        self.hours = 0
        self._wake = threading.Condition()
        self._failure: BaseException | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def check_running(self) -> None:
        """Raise the writer's error, if it failed."""
        if self._failure is not None:
            raise self._failure

    def sell_until(self, hours: int) -> None:
        """Go on up to that hour."""
        with self._wake:
            self._goal = hours
            self._wake.notify()

    def _run(self) -> None:
        try:
            with Client(self._endpoint) as client:
                while True:
                    with self._wake:
                        self._wake.wait_for(lambda: self.hours < self._goal)
                    result = client.table(ORDERS).put_many(orders_of(self.hours), mode="insert")
                    if result.written != ORDERS_AN_HOUR:
                        raise Difference(f"{result.written} of {ORDERS_AN_HOUR} orders were written")
                    self.hours += 1
        except BaseException as error:
            self._failure = error


def tell(console: Console, hours: int) -> None:
    """Tell the whole story. Raises Difference if the sums do not agree."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cortado-orders-") as scratch_name:
        folder = Path(scratch_name)
        (folder / "nodes").mkdir()
        with running_nodes(folder / "nodes", 1) as nodes, Client(nodes.endpoints) as client:
            create_tables(client)
            console.print(f"A Cortado node listens on {nodes.endpoints}; its data is below {folder}.", soft_wrap=True)
            writer = Writer(nodes.endpoints)

            def show(what: str, done: int) -> None:
                after = f"{time.monotonic() - started:4.0f} s"
                agree = f"{done} of {writer.hours} hours are summed up, and every sum agrees"
                console.print(f"{after}  {what}: {agree}", highlight=False, soft_wrap=True)

            def wait(driver: Driver, enough: Callable[[int], bool]) -> int:
                return _wait(client, (driver, writer), enough)

            # The last hour that is sold closes the one before it, and stays open itself.
            middle = hours // 2
            with running_driver(nodes.endpoints, folder, 1) as driver:
                writer.sell_until(middle)
                show("the driver is at work", wait(driver, lambda done: done >= 1))
                writer.sell_until(hours - 1)
                show("just before it is killed", wait(driver, lambda done: done >= middle))
            show("the driver is dead (SIGKILL)", check_at_one_time(client))
            with running_driver(nodes.endpoints, folder, 2) as driver:
                writer.sell_until(hours)
                show("another one began from its checkpoint", wait(driver, lambda done: done == hours - 1))
            show("when that is dead, too", check_at_one_time(client))
    console.print(f"{(hours - 1) * ORDERS_AN_HOUR:,} orders up to {BEGAN + (hours - 1) * HOUR:%d %B %H:%M}", end="")
    console.print(", each counted once; each time both tables were asked at one timestamp", highlight=False)
    console.print(f"\n[bold green]Everything agrees.[/bold green] {time.monotonic() - started:.0f} seconds.")


def _wait(client: Client, workers: tuple[Driver, Writer], enough: Callable[[int], bool]) -> int:
    """Wait until ``enough`` hours are summed up; return their number. All sums agree each time that they are asked."""
    deadline = time.monotonic() + PATIENCE_S
    while not enough(done := check_at_one_time(client)):
        for worker in workers:
            worker.check_running()
        if time.monotonic() > deadline:
            raise Difference(f"the pipeline has summed up {done} hours, and no more for {PATIENCE_S:.0f} seconds")
        time.sleep(0.2)
    return done


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.orders", description="Orders that stream, told.")
    parser.add_argument("--hours", type=int, default=HOURS_DEFAULT, help=f"that are sold (default {HOURS_DEFAULT})")
    hours = int(parser.parse_args().hours)
    if hours < HOURS_MIN:
        parser.error(f"--hours: must be at least {HOURS_MIN}, to have a middle (got {hours})")
    # SIGTERM unwinds like Ctrl-C, so that the node and Spark are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console()
    try:
        tell(console, hours)
    except Difference as difference:
        console.print(f"\n[bold red]Wrong answer:[/bold red] {difference}")
        return 1
    except CortadoError as error:
        console.print(f"\n[bold red]Refused:[/bold red] {error}")
        return 1
    except KeyboardInterrupt:
        console.print("\nStopped.")
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
