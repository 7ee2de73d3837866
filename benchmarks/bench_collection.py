"""Garbage collection's cost to a foreground load, and its effect on the size of the data file.

64 callers of one client overwrite the same pairs again and again, in turns on two servers that begin empty. One keeps
every version (``--retention all``), the other keeps them for a few seconds, so that it collects as fast as it is
written. After some turns each server's data file is compared with the live data, and a scan of everything with that of
a server whose pairs were written once.

    python -m benchmarks.bench_collection

Or measure how long the data file stays level, on one server whose pairs are overwritten without a pause:

    python -m benchmarks.bench_collection --level-s 600
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console

from benchmarks.report import Measurement, show
from cortado.store.client import Client
from cortado.store.client.kv import Put

TITLE: Final = "Collection of old versions"
PAIRS: Final = 20_000
VALUE_BYTES: Final = 500
CALLERS: Final = 64
TURN_S: Final = 10.0
TURNS: Final = 5
RETENTION: Final = "5s"
SCANS: Final = 5
LEVEL_PAIRS: Final = 200_000
LEVEL_EVERY_S: Final = 20.0
SETTLE_S: Final = 8.0
"""More than the retention: all overwritten versions are below the safepoint then."""


def settings() -> str:
    """Return one line for the table's head: data and method."""
    return (
        f"{PAIRS:,} pairs of {VALUE_BYTES} bytes overwritten by {CALLERS} callers, synced; medians of {TURNS} turns of "
        f"{TURN_S:g} s each, on a server that keeps all versions and one that keeps them for {RETENTION}"
    )


def run() -> list[Measurement]:
    """Measure everything; takes about three minutes on two cores."""
    with tempfile.TemporaryDirectory() as directory:
        places = {name: Path(directory) / name for name in ("keeps", "collects", "once")}
        with serving(places["keeps"], "all") as keeps, serving(places["collects"], RETENTION) as collects:
            for each in (keeps, collects):
                _load(each)
            rates: dict[str, list[float]] = {keeps: [], collects: []}
            for _ in range(TURNS):
                for each, measured in rates.items():
                    measured.append(_overwrite(each))
            written = median(rates[keeps])
            collected = median(rates[collects])
            sizes = [_file_bytes(places[name]) for name in ("keeps", "collects")]
            time.sleep(SETTLE_S)
            with Client(collects) as client:
                client.admin.gc.run()
            scanned = _scan(collects)
        with serving(places["once"], "all") as once:
            _load(once)
            scanned_once = _scan(once)
    live_bytes = PAIRS * VALUE_BYTES
    return [
        Measurement("overwrites, old versions collected", collected, "puts", "all kept", written, 0.8),
        Measurement("scan after it", scanned, "rows", "pairs written once", scanned_once, 0.9),
        Measurement("data file, old versions collected", sizes[1] / live_bytes, "times the live data"),
        Measurement("data file, all kept", sizes[0] / live_bytes, "times the live data"),
    ]


@contextmanager
def serving(directory: Path, retention: str) -> Iterator[str]:
    """Yield the address of a server process."""
    port_file = directory.with_suffix(".port")
    command = [sys.executable, "-m", "cortado.store.cli", "server", "--data-dir", str(directory)]
    command += ["--listen", "127.0.0.1:0", "--port-file", str(port_file), "--retention", retention]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not port_file.exists():
            if process.poll() is not None:
                raise RuntimeError("the server did not start")
            time.sleep(0.05)
        yield port_file.read_text().strip()
    finally:
        process.terminate()
        process.wait()


def stay_level(seconds: float, console: Console) -> None:
    """Overwrite pairs for ``seconds``, and show how the data file grows."""
    live_bytes = LEVEL_PAIRS * VALUE_BYTES
    console.print(f"{LEVEL_PAIRS:,} pairs of {VALUE_BYTES} bytes ({live_bytes / 1e6:g} MB), kept for {RETENTION}")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "node"
        with serving(place, RETENTION) as address, Client(address) as client:
            _load(address, LEVEL_PAIRS)
            began_s, done = time.perf_counter(), 0
            while (so_far_s := time.perf_counter() - began_s) < seconds:
                puts = _overwrite(address, LEVEL_PAIRS, turn_s := min(LEVEL_EVERY_S, seconds - so_far_s), done)
                done += int(puts * turn_s)
                part, lag_s = _file_bytes(place) / live_bytes, client.admin.gc.status().lag_s
                console.print(
                    f"{time.perf_counter() - began_s:6.0f} s: {puts:6,.0f} puts/s, the file {part:.2f} times the live "
                    f"data, the safepoint {lag_s:.1f} s back"
                )


def _load(address: str, pairs: int = PAIRS) -> None:
    with Client(address) as client:
        namespace = client.kv("bench")
        for first in range(0, pairs, 500):
            namespace.batch([Put(_key(i), bytes(VALUE_BYTES)) for i in range(first, first + 500)])


def _key(i: int) -> bytes:
    return b"%08d" % i


def _overwrite(address: str, pairs: int = PAIRS, turn_s: float = TURN_S, first: int = 0) -> float:
    """Return the puts a second of many threads of one client; they go on behind the ``first`` ones."""
    done = [0] * CALLERS
    with Client(address) as client:
        namespace = client.kv("bench")
        until_s = time.perf_counter() + turn_s

        def put(caller: int) -> None:
            i = first + caller
            while time.perf_counter() < until_s:
                namespace.put(_key(i * 7_919 % pairs), b"%0*d" % (VALUE_BYTES, i))
                i += CALLERS
                done[caller] += 1

        threads = [threading.Thread(target=put, args=(caller,)) for caller in range(CALLERS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    return sum(done) / turn_s


def _scan(address: str) -> float:
    """Return rows a second, the best of some."""
    best = 0.0
    with Client(address) as client:
        for _ in range(SCANS):
            began_s = time.perf_counter()
            rows = sum(1 for _ in client.kv("bench").scan())
            best = max(best, rows / (time.perf_counter() - began_s))
    return best


def _file_bytes(directory: Path) -> int:
    return max(each.stat().st_size for each in directory.rglob("data.mdb"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--level-s", type=float, default=0.0, help="show for so long how the data file stays level")
    level_s = parser.parse_args().level_s
    if level_s:
        stay_level(level_s, Console())
    else:
        show(TITLE, settings(), run(), Console())
