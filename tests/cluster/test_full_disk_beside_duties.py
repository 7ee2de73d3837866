"""A disk that fills up and empties while the leader collects, builds indexes, clears dropped tables and ends leases.
Acknowledged writes are there, once, and all duties continue when there is room."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from cortado.errors import CortadoError, OutcomeUnknown, ResourceExhausted
from cortado.store.client import Client, Index
from cortado.store.client.kv import Put
from support.server_process import running_server, wait_until
from support.small_disk import mounted_disk

pytestmark = [pytest.mark.long, pytest.mark.process]

DISK_MIB = 260
ROWS = 10_000
ITEM = {"type": "record", "name": "Item", "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": "long"}]}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "disk", DISK_MIB) as disk:
        yield disk


class Work:
    """The duties and writes under way; the acknowledged adds to the counter, and those with an unknown outcome."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._stop = Event()
        self.added = self.unknown = self.written = 0
        self.done: dict[str, int] = {}
        steps = (self._add, self._write, self._build, self._drop, self._lease)
        self._threads = [Thread(target=self._do, args=(step,)) for step in steps]

    def __enter__(self) -> Work:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for each in self._threads:
            each.join()

    def _do(self, step: Callable[[Client, int], None]) -> None:
        number = 0
        with Client(self._endpoint, timeout_s=3) as client:
            while not self._stop.is_set():
                number += 1
                with suppress(CortadoError):
                    step(client, number)
                    self.done[step.__name__] = self.done.get(step.__name__, 0) + 1

    def _add(self, client: Client, _number: int) -> None:
        try:
            client.kv("counters").add(b"c", 1)
            self.added += 1
        except OutcomeUnknown:
            self.unknown += 1

    def _write(self, client: Client, number: int) -> None:
        """The same few keys: all but the newest versions are garbage soon."""
        client.kv("large").put(b"%d" % (number % 50), b"%08d" % number + b"v" * 20_000)
        self.written = number

    def _build(self, client: Client, number: int) -> None:
        client.create_index("d.t", Index(f"i{number}", ["n"]))
        client.drop_index("d.t", f"i{number}")

    def _drop(self, client: Client, number: int) -> None:
        client.kv("gone").batch([Put(b"%d" % key, b"v" * 500) for key in range(200)])
        client.drop_namespace("gone")
        if number % 2:
            client.undrop_namespace("gone")

    def _lease(self, client: Client, _number: int) -> None:
        with client.hold(ttl_s=1):
            pass


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))


def test_all_goes_on_and_nothing_is_lost(disk: Path, tmp_path: Path) -> None:
    # The data alone is on the small disk; log and port file are not.
    (disk / "data").mkdir()
    (tmp_path / "data").symlink_to(disk / "data", target_is_directory=True)
    ballast = disk / "ballast"
    with running_server(tmp_path / "data", "--retention", "1s") as server, Client(server.endpoint) as client:
        client.schemas.register("s", json.dumps(ITEM))
        client.create_database("d")
        client.create_table("d.t", ["id"], subject="s")
        client.table("d.t").put_many({"id": number, "n": number % 7} for number in range(ROWS))
        with Work(server.endpoint) as work:
            for is_killed in (False, True):
                until_all_go_on(work)
                fill(ballast)
                wait_until(lambda: client.status().state != "serving", "it is known to be full")
                if is_killed:
                    server.kill()
                ballast.unlink()
                if is_killed:
                    server.start()
                wait_until(lambda: is_writable(client), "writes are taken again")
            until_all_go_on(work)
        counted = client.kv("counters").get(b"c")
        assert counted is not None
        assert work.added <= int.from_bytes(counted.value) <= work.added + work.unknown
        newest = client.kv("large").get(b"%d" % (work.written % 50))
        assert newest is not None and int(newest.value[:8]) >= work.written
        report = client.verify_indexes("d.t")
        assert (report.rows_checked, report.problems) == (ROWS, ())
        assert "Traceback" not in server.log


STEPS = ("_add", "_write", "_build", "_drop", "_lease")


def until_all_go_on(work: Work) -> None:
    before = dict(work.done)
    wait_until(lambda: all(work.done.get(each, 0) > before.get(each, 0) for each in STEPS), "all go on")


def is_writable(client: Client) -> bool:
    try:
        client.with_timeout(1).kv("probe").put(b"k", b"v")
    except ResourceExhausted:
        return False
    return True
