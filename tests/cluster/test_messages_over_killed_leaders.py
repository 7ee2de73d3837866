"""Messages of many calls, while leaders are killed and paused: nothing acknowledged is lost, nothing wrong is read."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.cluster import Cluster, running_cluster
from support.linearizability import Call, unexplained
from support.message_callers import ACCOUNTS, BALANCE, NAMESPACE, READ_TOGETHER, MessageCaller, check_together
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

SEED = int(os.environ.get("MESSAGES_SEED", "1"))
CALLERS = 4
DONE_BETWEEN = 1_500
"""The number of writes between two blows."""


def hurt(cluster: Cluster, source: random.Random) -> None:
    leader = cluster.leader()
    match source.choice(("kill", "pause", "kill a follower")):
        case "kill":
            cluster.kill(leader)
            cluster.start(leader)
        case "pause":
            cluster.pause(leader)
            cluster.leader(besides=[leader])
            cluster.resume(leader)
        case _:
            follower = cluster.follower()
            cluster.kill(follower)
            cluster.start(follower)


def test_what_messages_of_many_calls_are_told_stays_true_while_leaders_change(tmp_path: Path) -> None:
    """``MESSAGES_SEED`` draws the calls and the blows, but not their times."""
    source, stop = random.Random(SEED), threading.Event()
    with running_cluster(tmp_path) as cluster, Client(cluster.endpoints, timeout_s=60) as client:
        pairs = client.kv(NAMESPACE)
        for account in ACCOUNTS:
            pairs.put(account, b"%d" % BALANCE)
        endpoints = list(cluster.addresses.values())
        callers = [MessageCaller(endpoints, SEED, number, stop) for number in range(CALLERS)]
        for caller in callers:
            caller.start()

        def done() -> int:
            problems = [caller.problem for caller in callers if caller.problem is not None]
            assert problems == [], f"MESSAGES_SEED={SEED}"
            return sum(len(caller.done) for caller in callers)

        try:
            for round_ in range(1, 6):
                wait_until(lambda enough=round_ * DONE_BETWEEN: done() >= enough, "writes are acknowledged")
                hurt(cluster, source)
        finally:
            stop.set()
            for caller in callers:
                caller.join(120)
        assert not any(caller.is_alive() for caller in callers), f"MESSAGES_SEED={SEED}: something stays unknown"
        done()
        stored = {pair.key: pair.value for pair in pairs.scan()}
        check_together({key: int(stored.get(key, b"0")) for key in READ_TOGETHER})
        acknowledged = {mark for caller in callers for asked in caller.done for mark in asked.marks}
        assert {key for key in stored if key.startswith(b"mark ")} == acknowledged, f"MESSAGES_SEED={SEED}"
        now_s, history = time.monotonic(), [each for caller in callers for each in caller.history]
        history += [(key, Call("get", now_s, now_s, stored.get(key))) for key in {key for key, _ in history}]
        assert unexplained(history) == [], f"MESSAGES_SEED={SEED}"
        cluster.wait_converged()
