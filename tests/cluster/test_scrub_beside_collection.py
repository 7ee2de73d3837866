"""A scrub and an export of three real nodes whose old versions are kept for a second, beside writes: nothing is missed,
and nothing that is right is blamed."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from cortado.store.cli.app import run
from cortado.store.client import Client
from support.cluster import Cluster, running_cluster
from support.server_process import wait_until

pytestmark = pytest.mark.process

KEYS = 500


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("collected"), "--retention", "1s") as made:
        yield made


@contextmanager
def overwriting(cluster: Cluster) -> Iterator[None]:
    """A writer that puts and deletes the same keys again and again."""
    ends = threading.Event()

    def write() -> None:
        with Client(cluster.endpoints) as client:
            pairs, number = client.kv("n"), 0
            while not ends.is_set():
                number += 1
                pairs.put(b"k%03d" % (number % KEYS), b"%d" % number)
                pairs.delete(b"k%03d" % (7 * number % KEYS))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ends.set()
        writer.join()


def cortado(*arguments: str) -> tuple[int, list[Any]]:
    with redirect_stdout(io.StringIO()) as out:
        code = run((*arguments, "-o", "json"))
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def test_scrubs_find_nothing_where_replicas_collect_meanwhile(cluster: Cluster) -> None:
    with overwriting(cluster), Client(cluster.endpoints) as client:
        wait_until(lambda: client.admin.gc.status().removed > 0, "old versions are collected")
        # So slow that the retention is over before the scrub is.
        code, [said] = cortado("scrub", "--rate", "128KiB", "-e", cluster.endpoints)
        assert (code, said["scrub"]["problems"], said["scrub"]["not_checked"]) == (0, 0, {})
        assert said["scrub"]["items"] > KEYS / 4
        assert client.admin.gc.holds() == []


def test_an_export_is_of_one_moment_and_leaves_no_lease(cluster: Cluster, tmp_path: Path) -> None:
    with overwriting(cluster), Client(cluster.endpoints) as client:
        code, [said] = cortado("export", "kv:n", str(tmp_path / "n.jsonl"), "-q", "-e", cluster.endpoints)
        assert code == 0
        assert said["rows"] == len((tmp_path / "n.jsonl").read_text().splitlines())
        assert client.admin.gc.holds() == []
