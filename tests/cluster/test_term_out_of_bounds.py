"""A directory whose term was taken out of bounds: the server says which command brings it back, and that one does."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cortado.store.client import Client
from cortado.store.replica.group_range import META_GROUP
from cortado.store.server.stores import Stores
from support.cluster import Cluster

pytestmark = [pytest.mark.long, pytest.mark.process]

UINT64_MAX = (1 << 64) - 1


def poison(data_dir: Path) -> None:
    """As a build without bounds stored it, when one heartbeat said so."""
    stores = Stores.open(data_dir, new_identity=lambda: pytest.fail("it is made"))
    try:
        state = replace(stores.log().hard_state, term=UINT64_MAX)
        stores.log_files.append([state.log_record(META_GROUP.group_id)])
    finally:
        stores.close()


def recover(data_dir: Path, *options: str) -> str:
    line = [sys.executable, "-m", "cortado.store.cli", "recover", "--reset-term", "--data-dir", str(data_dir), *options]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    return ended.stdout + ended.stderr


def test_all_nodes_are_brought_back_from_a_term_out_of_bounds_and_nothing_is_lost(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.form()
        with Client(cluster.endpoints, timeout_s=30) as client:
            for number in range(20):
                client.kv("n").put(b"%d" % number, b"v")
        for node in cluster.nodes.values():
            node.stop()
            poison(node.data_dir)
        for node in cluster.nodes.values():
            with pytest.raises(AssertionError, match="the server ended with"):
                node.start()
            assert f"term {UINT64_MAX} is above" in node.log
            assert "cortado recover --reset-term" in node.log
            assert "Traceback" not in node.log
            assert "nothing was changed" in recover(node.data_dir, "--dry-run")
            assert "start its server as before" in recover(node.data_dir, "--yes")
            assert "is in bounds" in recover(node.data_dir, "--yes")
        for node in cluster.nodes.values():
            node.launch()
        for node in cluster.nodes.values():
            node.await_ready()
        with Client(cluster.endpoints, timeout_s=30) as client:
            client.kv("n").put(b"after", b"v")
            assert len(list(client.kv("n").scan())) == 21
        cluster.wait_converged()
    finally:
        cluster.end()
