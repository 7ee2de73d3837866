"""A leader that freezes while it changes members: the caller that requested the change never gets a refusal."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from cortado.errors import CortadoError, OutcomeUnknown
from cortado.store.client import Client
from support.cluster import Cluster
from support.server_process import wait_until

pytestmark = pytest.mark.process

# From before it has read the request to after it has answered; the leader is frozen at a moment of its own in each.
FROZEN_AFTER_MS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 15.0)


def test_a_removal_that_a_frozen_leader_made_is_told_as_made_or_unknown(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.form()
        told: list[str] = []
        for number, frozen_after_ms in enumerate(FROZEN_AFTER_MS):
            node_id = f"x{number}"
            with Client(cluster.endpoints, timeout_s=30) as client:
                client.admin.members.add(node_id, f"127.0.0.1:{number + 1}")
                leader = cluster.leader()
                outcome: list[str] = []
                asking = threading.Thread(target=_remove, args=(client, node_id, outcome))
                asking.start()
                time.sleep(frozen_after_ms / 1000)  # The fault's moment, not a condition.
                cluster.pause(leader)
                asking.join(60)
                cluster.resume(leader)
            assert outcome[0] in ("removed", "unknown"), outcome
            cluster.wait_converged()
            with Client(cluster.endpoints, timeout_s=30) as client:
                is_there = client.admin.members.list(at_leader=True).member(node_id) is not None
                assert not (is_there and outcome[0] == "removed")
                if is_there:
                    client.admin.members.remove(node_id)
                told += outcome
        assert "removed" in told
    finally:
        cluster.end()


def test_a_change_that_is_made_when_the_leader_goes_on_was_told_as_unknown(tmp_path: Path) -> None:
    """One of two voters is frozen: no other node leads, and the request is read when it continues."""
    cluster = Cluster(tmp_path, count=2)
    try:
        cluster.form()
        leader = cluster.leader()
        with Client(cluster.endpoints, timeout_s=3) as client:
            client.admin.members.list(at_leader=True)
            cluster.pause(leader)
            with pytest.raises(OutcomeUnknown, match="look at the members"):
                client.admin.members.add("n9", "127.0.0.1:9")
            cluster.resume(leader)
        cluster.wait_converged()
        with Client(cluster.endpoints, timeout_s=30) as client:
            wait_until(lambda: bool(client.admin.members.list().leader), "somebody leads")
    finally:
        cluster.end()


def _remove(client: Client, node_id: str, outcome: list[str]) -> None:
    try:
        client.admin.members.remove(node_id)
        outcome.append("removed")
    except OutcomeUnknown:
        outcome.append("unknown")
    except CortadoError as error:
        outcome.append(repr(error))
