"""Seen from the kernel: between a put's arrival and its answer it was synced, on one node or on a majority of three."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.cluster import Cluster
from support.needs import need, need_tool
from support.server_process import ServerProcess, wait_until
from support.system_calls import Trace, majority, tracer

pytestmark = [pytest.mark.long, pytest.mark.process]

NAMES = [f"key-{number:03}-of-the-trace" for number in range(40)]
CALLERS = 8


def put_all(endpoint: str) -> list[str]:
    """Puts all names at once, each twice, as key and value: where a sector ends in the one, the other is whole in a log
    file. Returns their etags."""
    with Client(endpoint, timeout_s=30) as client, ThreadPoolExecutor(CALLERS) as pool:
        kv = client.kv("traced")
        return list(pool.map(lambda name: kv.put(name.encode(), name.encode()), NAMES))


def read_trace(path: Path) -> Trace:
    wait_until(lambda: "+++ exited with 0 +++" in path.read_text().splitlines()[-1], f"{path.name} is complete")
    return Trace(path.read_text())


def test_every_acknowledged_put_was_synced_after_it_arrived_and_before_it_was_answered(tmp_path: Path) -> None:
    need_tool("strace")
    server = ServerProcess(tmp_path / "data", under=tracer(tmp_path / "trace"))
    try:
        try:
            server.start()
        except AssertionError:
            need("ptrace" not in server.log.lower(), "the privilege to trace processes")
            raise
        etags = put_all(server.endpoint)
        assert server.stop() == 0
    finally:
        server.kill()
    trace = read_trace(tmp_path / "trace")
    for name, etag in zip(NAMES, etags, strict=True):
        assert trace.arrival(name) < trace.durable(name), "what is stored is what arrived"
        assert trace.durable(name) < trace.answer(etag), f"{name} was answered before it was synced"


def test_on_three_nodes_every_acknowledged_put_was_synced_by_a_majority_before_it_was_answered(tmp_path: Path) -> None:
    need_tool("strace")
    names = ("n1", "n2", "n3")
    cluster = Cluster(tmp_path, under={name: tracer(tmp_path / f"{name}.trace") for name in names})
    try:
        try:
            cluster.form()
        except AssertionError:
            need("ptrace" not in cluster.logs.lower(), "the privilege to trace processes")
            raise
        if cluster.leader() != "n1":
            with Client(cluster.endpoints, timeout_s=30) as client:
                client.admin.members.transfer_leader("n1")
        etags = put_all(cluster.addresses["n1"])
        assert cluster.leader() == "n1"
        for node in cluster.nodes.values():
            assert node.stop() == 0
    finally:
        cluster.end()
    traces = {name: read_trace(tmp_path / f"{name}.trace") for name in names}
    # The node with the smallest id calls the others: on connections that came to its own port are clients alone.
    to_clients = cluster.addresses["n1"].partition(":")[2] + "->"
    for name, etag in zip(NAMES, etags, strict=True):
        answered = traces["n1"].answer(etag, through=to_clients)
        durable = [trace.durable(name) for trace in traces.values()]
        assert traces["n1"].arrival(name) < min(durable), "what is stored is what arrived"
        assert majority(durable) < answered, f"{name} was answered before a majority had synced it"
