"""Large transactions whose leaders are killed, and whose stagers: all of it at one timestamp at every node, or nothing.

Three processes stage a part each; one of them dies and is run again with other rows. Leaders are killed at random
points of staging, commit and resolution, and once all nodes after the commit. A concurrent scan sees all of it or
nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cortado.errors import CortadoError, NotFound, OutcomeUnknown, TransactionAborted, TryAgain
from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.store.client import Client, Index, Table
from cortado.store.client.values import timestamp_to_proto
from cortado.store.clock.timestamp import Timestamp
from support.cluster import Cluster
from support.server_process import wait_until
from support.staging_process import CHUNK_ROWS, TTL_S, staged_row
from support.wire import Wire, patient, table_name

pytestmark = [pytest.mark.long, pytest.mark.process]

TESTS = Path(__file__).parents[1]
TASKS, TASK_ROWS = 3, 6_600
ROWS = TASKS * TASK_ROWS
STAGED_S, ENDED_S = 180.0, 60.0
SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "id", "type": "long"}, {"name": "v", "type": "long"}, {"name": "name", "type": "string"}],
}


class Stager:
    """A task, or an attempt of one, in a process of its own."""

    def __init__(self, cluster: Cluster, table: Table, transaction_id: str, task: int, attempt: int = 0) -> None:
        bounds = (task * TASK_ROWS, (task + 1) * TASK_ROWS)
        words = (cluster.endpoints, table.full_name, transaction_id, task, attempt, *bounds)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.staging_process", *map(str, words)],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.done = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.done = int(line)

    def wait_for(self, rows: int) -> None:
        """Until so many are staged, or it has ended."""
        wait_until(lambda: self.done >= rows or self._process.poll() is not None, f"{rows} rows are staged", STAGED_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def finish(self) -> None:
        self._reader.join(STAGED_S)
        _, problem = self._process.communicate(timeout=STAGED_S)
        assert self._process.returncode == 0, problem
        assert self.done == TASK_ROWS


@pytest.fixture
def table(three_nodes: Cluster, request: pytest.FixtureRequest) -> Iterator[Table]:
    """Every seventh row is there before, with v = 0."""
    name = f"large-{request.node.callspec.params['seed']}"
    with Client(three_nodes.endpoints, timeout_s=60) as client:
        client.create_database(name)
        client.schemas.register(f"{name}.rows", SCHEMA)
        client.create_table(f"{name}.rows", ["id"], indexes=[Index("by_name", ["name"], unique=True)])
        table = client.table(f"{name}.rows")
        table.put_many(staged_row(number, -1) for number in range(0, ROWS, 7))
        yield table


def before() -> dict[int, int]:
    return dict.fromkeys(range(0, ROWS, 7), 0)


@contextmanager
def looked_at(cluster: Cluster, table: Table, *allowed: dict[int, int]) -> Iterator[None]:
    """A concurrent reader scans the newest rows again and again, and sees these states, in their order."""
    over = threading.Event()
    wrong: list[str] = []
    looks = [0]

    def look() -> None:
        left = list(allowed)
        with Client(cluster.endpoints, timeout_s=60) as client:
            own = client.table(table.full_name)
            while not over.is_set() and not wrong:
                try:
                    with closing(own.scan()) as scan:
                        seen = {document.value["id"]: document.value["v"] for document in scan}
                except CortadoError as error:
                    if not isinstance(error, TryAgain):
                        wrong.append(repr(error))
                    continue
                looks[0] += 1
                while left and seen != left[0]:
                    left.pop(0)
                if not left:
                    wrong.append(f"{len(seen)} rows, of which {sum(map(bool, seen.values()))} are staged ones")

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join(120)
    assert not wrong
    assert looks[0]


def kill_the_leader(cluster: Cluster) -> None:
    """And start it again once another one leads."""
    killed = cluster.leader()
    cluster.kill(killed)
    cluster.leader(besides=[killed])
    cluster.start(killed)


def staged_by_three(cluster: Cluster, table: Table, transaction_id: str, random: Random) -> dict[int, int]:
    """All rows are staged, over kills; the attempts that count."""
    stagers = [Stager(cluster, table, transaction_id, task) for task in range(TASKS)]
    lost = random.randrange(TASKS)
    stagers[lost].wait_for(random.randrange(CHUNK_ROWS, TASK_ROWS // 2))
    stagers[lost].kill()
    attempts = dict.fromkeys(range(TASKS), 0) | {lost: 1}
    stagers[lost] = Stager(cluster, table, transaction_id, lost, attempt=1)
    for _ in range(2):
        stagers[random.randrange(TASKS)].wait_for(random.randrange(TASK_ROWS))
        kill_the_leader(cluster)
    for stager in stagers:
        stager.finish()
    return attempts


def rows_at(cluster: Cluster, name: str, table: Table, at: Timestamp) -> dict[int, int]:
    """As this node has them."""
    request = documents_pb2.ScanRequest(
        table=table_name(table.full_name),
        at=common_pb2.ReadAt(timestamp=timestamp_to_proto(at)),
        format=common_pb2.DOCUMENT_FORMAT_JSON,
    )
    wire = Wire(cluster.addresses[name])
    with closing(wire.channel):
        replies = patient(lambda: list(wire.documents.Scan(request, timeout=60)))
    found = [json.loads(row) for reply in replies for row in reply.json_rows]
    assert [each["id"] for each in found] == sorted(each["id"] for each in found)
    return {each["id"]: each["v"] for each in found}


def until_known(commit: Any) -> Timestamp:
    """A commit may be repeated until its outcome is known."""
    while True:
        try:
            found: Timestamp = commit()
        except (OutcomeUnknown, TryAgain):
            continue
        return found


@pytest.mark.parametrize(("seed", "power_fails"), [(1, False), (2, True)])
def test_a_large_transaction_over_killed_leaders_is_there_once_at_one_timestamp_at_every_node(
    three_nodes: Cluster, table: Table, seed: int, power_fails: bool
) -> None:
    random = Random(seed)
    with Client(three_nodes.endpoints, timeout_s=60) as client:
        parts = client.large_transactions
        begun = parts.begin([table.full_name], label="over kills", ttl_s=TTL_S)
        with looked_at(three_nodes, table, before()):
            counting = staged_by_three(three_nodes, table, begun.transaction_id, random)
        after = {number: counting[number // TASK_ROWS] + 1 for number in range(ROWS)}
        with looked_at(three_nodes, table, before(), after):
            hasty = client.with_timeout(2).large_transactions
            killer = threading.Timer(random.random() * 0.05, kill_the_leader, [three_nodes])
            killer.start()
            at = until_known(lambda: hasty.commit(begun.transaction_id, counting))
            killer.join()
            # Hardly any of it is in place by now.
            if power_fails:
                three_nodes.kill(*three_nodes.nodes)
                three_nodes.start()
            else:
                kill_the_leader(three_nodes)
            three_nodes.wait_converged()
            assert until_known(lambda: hasty.commit(begun.transaction_id, counting)) == at
            for name in three_nodes.nodes:
                assert rows_at(three_nodes, name, table, at) == after, name
            wait_until(lambda: parts.get(begun.transaction_id).is_resolved, "all is in place", ENDED_S)
        three_nodes.wait_converged()
        for name in three_nodes.nodes:
            assert rows_at(three_nodes, name, table, at) == after, name
            assert rows_at(three_nodes, name, table, at.previous()) == before(), name
        assert {document.ts for document in table.scan()} == {at}
        report = client.verify_indexes(table.full_name)
        assert (report.rows_checked, report.entries_checked, report.problems) == (ROWS, ROWS, ())


@pytest.mark.parametrize("seed", [3])
def test_one_that_is_given_up_over_killed_leaders_leaves_nothing(three_nodes: Cluster, table: Table, seed: int) -> None:
    random = Random(seed)
    with Client(three_nodes.endpoints, timeout_s=60) as client, looked_at(three_nodes, table, before()):
        parts = client.large_transactions
        begun = parts.begin([table.full_name], ttl_s=TTL_S)
        stagers = [Stager(three_nodes, table, begun.transaction_id, task) for task in range(TASKS)]
        stagers[0].wait_for(random.randrange(CHUNK_ROWS, TASK_ROWS))
        kill_the_leader(three_nodes)
        stagers[1].wait_for(random.randrange(CHUNK_ROWS, TASK_ROWS))
        parts.abort(begun.transaction_id)
        for stager in stagers:
            stager.kill()
        kill_the_leader(three_nodes)
        with pytest.raises(TransactionAborted):
            parts.commit(begun.transaction_id, dict.fromkeys(range(TASKS), 0))
        wait_until(lambda: parts.get(begun.transaction_id).is_resolved, "all is away", ENDED_S)
        three_nodes.wait_converged()
        now = client.now()
        for name in three_nodes.nodes:
            assert rows_at(three_nodes, name, table, now) == before(), name
        # Nothing is locked.
        hasty = client.with_timeout(10).table(table.full_name)
        assert hasty.put_many(staged_row(number, -1) for number in range(0, ROWS, 7)).written == len(before())
        with pytest.raises(NotFound):
            parts.get("ab" * 16)
