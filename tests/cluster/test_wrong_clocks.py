"""One host of three has a wrong clock, from its start or all of a sudden: no writes notice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cortado.errors import CortadoError
from cortado.store.client import Client
from cortado.store.clock.timestamp import Timestamp
from support.cluster import Cluster, cortado
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

YEAR_2071_MS = 3_187_296_000_000
BOUND_MS = 1_500
"""The documented bounds: 250 ms on clocks and on reads ahead, a ceiling of 250 ms, and a slow round trip."""

# A host whose wall clock is off by the number in a file, which is read at each look.
_CLOCK = """
import os, time

_real, _path = time.time_ns, os.environ["WRONG_CLOCK"]

def time_ns():
    try:
        with open(_path) as file:
            return _real() + int(file.read() or 0) * 1_000_000
    except FileNotFoundError:
        return _real()

time.time_ns = time_ns
"""


def write_and_look(cluster: Cluster, *, for_s: float) -> list[float]:
    """Put again and again; how far ahead of this host's clock each was acknowledged, in milliseconds."""
    ahead_ms = []
    with Client(cluster.endpoints, timeout_s=30) as client:
        kv = client.kv("c")
        until_s = time.monotonic() + for_s
        while time.monotonic() < until_s:
            put = Timestamp.parse(kv.put(b"k", b"v"))
            ahead_ms.append(put.wall_ms - time.time() * 1000)
    return ahead_ms


@pytest.mark.parametrize("by_ms", [10_000, YEAR_2071_MS], ids=["10 s", "the year 2071"])
def test_a_leader_whose_clock_jumps_carries_nobody_along(tmp_path: Path, by_ms: int) -> None:
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim" / "sitecustomize.py").write_text(_CLOCK)
    wrong = tmp_path / "wrong"
    under = {"n1": ("env", f"PYTHONPATH={tmp_path / 'shim'}", f"WRONG_CLOCK={wrong}")}
    cluster = Cluster(tmp_path, under=under)
    try:
        cluster.form()
        if cluster.leader() != "n1":
            cortado("member", "transfer-leader", "n1", "--endpoint", cluster.endpoints)
        offset_ms = by_ms if by_ms < 1e12 else by_ms - round(time.time() * 1000)
        wrong.write_text(str(offset_ms))
        ahead_ms = write_and_look(cluster, for_s=3)
        assert ahead_ms
        assert max(ahead_ms) < BOUND_MS
        wait_until(lambda: cluster.leader() != "n1", "the node with the wrong clock leads no more")
        assert "the wall clock jumped by" in cluster.nodes["n1"].log
        cluster.nodes["n1"].kill()
        cluster.start("n1")
        assert max(write_and_look(cluster, for_s=1)) < BOUND_MS, "nor does one that starts with it"
        wrong.write_text("0")
        # The others' clocks confirm it.
        wait_until(
            lambda: "is followed" in cluster.nodes["n1"].log.split("may not lead")[-1],
            "a clock that was set right is followed",
        )
        wait_until(lambda: _led_by_n1(cluster), "it may lead again")
        assert max(write_and_look(cluster, for_s=0.5)) < BOUND_MS
    finally:
        cluster.end()


def _led_by_n1(cluster: Cluster) -> bool:
    with Client(cluster.endpoints, timeout_s=10) as client:
        try:
            return client.admin.members.transfer_leader("n1") == "n1"
        except CortadoError:
            return False


def test_a_follower_with_a_wrong_clock_breaks_no_fresh_clients_write_and_moves_no_time(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, under={"n2": ("env", "CORTADO_SERVER_CLOCK_OFFSET_MS=600000")})
    try:
        cluster.form()
        assert cluster.leader() != "n2"
        # A fresh client for each, which knows only the follower.
        for number in range(3):
            with Client(cluster.addresses["n2"], timeout_s=30) as client:
                assert client.clock().now.wall_ms < time.time() * 1000 + BOUND_MS
                client.kv("c").put(b"k%d" % number, b"v")
        cortado("kv", "put", "c", "k", "v", "--endpoint", cluster.addresses["n2"])
        cortado("clock", "bump-epoch", "--yes", "--endpoint", cluster.addresses["n2"])
        began_ms = time.time() * 1000
        with Client(cluster.addresses["n2"], timeout_s=30) as client:
            written = Timestamp.parse(client.kv("c").put(b"after", b"v"))
        assert written.epoch == 1
        assert began_ms - BOUND_MS < written.wall_ms < time.time() * 1000 + BOUND_MS
    finally:
        cluster.end()
