"""Backup and restore of a table: one node, durable, one client process; and a follower beside writes.

The limit beside a backup is a scan that drops its rows; beside a restore, which puts all versions and reads them again,
it is the bulk stream. A follower is killed every few seconds while one caller writes. Its loss is the time from the
oldest acknowledged write that is not on the disk to the kill, at worst.

    python -m benchmarks.bench_backup --rows 100000
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

from rich.console import Console

from benchmarks.bench_documents import DECLARATION, DOCUMENT
from benchmarks.bench_grpc import serving
from benchmarks.report import Measurement, show
from cortado.store.backup.chain import last_segment, whole_backup
from cortado.store.backup.check import check_backup
from cortado.store.backup.create import BackupRequest, create_backup
from cortado.store.backup.manifest import MANIFEST
from cortado.store.backup.restore import RestoreRequest, restore_backup
from cortado.store.client import Client
from cortado.store.transfer.directory import LocalDirectory

TITLE: Final = "Backup and restore"
ROWS: Final = 1_000_000
KILLS: Final = 10
TABLE: Final = "bench.rows"
_WRITTEN_BYTES: Final = 100


def run(rows: int = ROWS) -> list[Measurement]:
    """Return rates of each; a million rows take some two minutes on two cores."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving("cortado", str(folder / "old")) as address, Client(address, timeout_s=600) as client:
            client.create_database("bench")
            client.schemas.register(TABLE, DECLARATION)
            client.create_table(TABLE, ["flight"])
            sent = rows / _timed(
                lambda: client.table(TABLE).put_many({**DOCUMENT, "flight": n, "distance": n * 7} for n in range(rows))
            )
            scanned = rows / _timed(lambda: sum(map(len, client.table(TABLE).scan_batches())))
            taken = rows / _timed(lambda: create_backup(client, BackupRequest(folder / "backup")))
            checked = rows / _timed(lambda: check_backup(folder / "backup"))
            alone, followed, lost_ms = _beside_a_follower(client, address, folder / "followed")
        with serving("cortado", str(folder / "new")) as address, Client(address, timeout_s=600) as client:
            restored = rows / _timed(lambda: restore_backup(client, RestoreRequest(folder / "backup")))
    return [
        Measurement("backup", taken, "rows", "scan", scanned, ROWS / 20),
        Measurement("backup verify", checked, "rows"),
        Measurement("restore, with its verify", restored, "rows", "bulk stream", sent),
        Measurement("writes beside a follower, one caller", followed, "pairs", "without it", alone),
        Measurement(f"lost by a follower that is killed, worst of {KILLS}", lost_ms, "ms"),
    ]


def settings() -> str:
    return f"{ROWS:,} rows of {len(DECLARATION['fields'])} fields, key (flight), no index; one round"


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _beside_a_follower(client: Client, address: str, folder: Path) -> tuple[float, float, float]:
    """Return the writes a second without and with a follower, and its loss at worst."""
    draw, lost_ms = random.Random(1), list[float]()
    with _writing(client) as written:
        time.sleep(5)
        alone = len(written) / 5
        for number in range(KILLS):
            with _follower(address, folder) as process:
                while not (folder / MANIFEST).exists():
                    time.sleep(0.1)
                if not number:
                    began, before = time.perf_counter(), len(written)
                time.sleep(5 + 5 * draw.random())
                process.kill()
                killed_ms, place = time.time_ns() / 1e6, LocalDirectory(folder)
                tip = last_segment(place, whole_backup(place)).manifest.shape.at
                # The oldest acknowledged write that is not on the disk.
                missing = [acknowledged_ms for acknowledged_ms, wall_ms in written if wall_ms > tip.wall_ms]
                lost_ms.append(killed_ms - missing[0] if missing else 0.0)
        followed = (len(written) - before) / (time.perf_counter() - began)
    return alone, followed, max(lost_ms)


@contextmanager
def _writing(client: Client) -> Iterator[list[tuple[float, int]]]:
    """Write beside the block, with one caller: note when each write was acknowledged, and its commit's wall time."""
    stop, written, pairs = Event(), list[tuple[float, int]](), client.kv("bench")

    def write() -> None:
        while not stop.is_set():
            etag = pairs.put(b"%d" % (len(written) % 10_000), bytes(_WRITTEN_BYTES))
            written.append((time.time_ns() / 1e6, int(etag.split(".")[1])))

    thread = Thread(target=write)
    thread.start()
    try:
        yield written
    finally:
        stop.set()
        thread.join()


@contextmanager
def _follower(address: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    cortado = [sys.executable, "-m", "cortado.store.cli", "-e", address]
    with subprocess.Popen([*cortado, "backup", "create", str(folder), "--follow", "-q"]) as process:
        yield process


if __name__ == "__main__":
    asked = argparse.ArgumentParser(prog="python -m benchmarks.bench_backup")
    asked.add_argument("--rows", type=int, default=ROWS)
    rows = asked.parse_args().rows
    show(TITLE, settings().replace(f"{ROWS:,}", f"{rows:,}"), run(rows), Console())
