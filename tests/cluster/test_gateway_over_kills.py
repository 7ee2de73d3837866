"""A gateway before three nodes that are killed, paused and cut off: what its callers were told over HTTP stays true.

Callers write under an ``Idempotency-Key`` each, again and again until they know the outcome. They read their writes,
list a table as lines, and follow the changes, with ``Last-Event-ID`` after each end of a connection.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from cortado.store.client import Client
from support.cluster import Cluster
from support.gateway_process import GatewayProcess, gateway_process
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = [pytest.mark.process, pytest.mark.long]

WRITERS: Final = 4
ROWS: Final = 2_000
RESOLVED_MAX: Final = 5
"""Then a watcher hangs up, and comes again."""
RETRIED: Final = (429, 503, 504)
ITEM: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "id", "type": "string"}, {"name": "by", "type": "int", "default": 0}],
}


class Load:
    """Callers of a gateway, until the block ends. ``wrong`` must be empty then."""

    def __init__(self, url: str, database: str) -> None:
        self._url = url
        self._database = database
        self._stop = threading.Event()
        self.statuses: Counter[str] = Counter()
        self.acknowledged: list[str] = []
        self.lists = 0
        self.resumed = 0
        self.changes: dict[str, list[str]] = {}
        self.wrong: list[str] = []
        self._threads = [threading.Thread(target=self._guarded, args=(self._write, i)) for i in range(WRITERS)]
        self._threads += [threading.Thread(target=self._guarded, args=(each,)) for each in (self._list, self._watch)]

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._stop.set()
        for each in self._threads:
            each.join(90)
            assert not each.is_alive(), "a caller hangs"

    def wait_for_writes(self, count: int = 20) -> None:
        goal = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= goal or bool(self.wrong), f"{count} more writes")
        assert not self.wrong, self.wrong[:3]

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            with httpx.Client(base_url=self._url, timeout=60) as http:
                work(http, *arguments)
        except Exception as error:
            self.wrong.append(f"{work.__name__}: {error!r}")

    def _write(self, http: httpx.Client, by: int) -> None:
        """Each write adds a document and one to a counter, both or none, until it is acknowledged."""
        done = 0
        while not self._stop.is_set():
            name = f"w{by}-{done:05}"
            operations = [
                {"put": {"table": "items", "document": {"id": name, "by": by}}},
                {"add": {"namespace": self._database, "key": f"count{by}", "delta": 1}},
            ]
            answer = self._ask_until_told(http, operations, f"{self._database}-{name}", hurried=done % 3 == 0)
            if answer.status_code != 200:
                self.wrong.append(f"write {name}: {answer.text}")
                return
            done += 1
            if answer.json()["sums"] != [done]:
                self.wrong.append(f"write {name} was done {answer.json()['sums']} times after {done}")
            self.acknowledged.append(name)
            self._read(http, by, done, name)

    def _ask_until_told(self, http: httpx.Client, operations: Any, key: str, *, hurried: bool) -> httpx.Response:
        """Return the first answer that tells the outcome. A hurried caller does not wait for the first answer."""
        while True:
            waits_s = 0.001 if hurried else 60.0
            hurried = False
            try:
                answer = http.post(
                    f"/v1/db/{self._database}:batch",
                    json={"operations": operations},
                    headers={"Idempotency-Key": key},
                    timeout=httpx.Timeout(60, read=waits_s),
                )
            except httpx.ReadTimeout:
                self.statuses["write abandoned"] += 1
                continue
            self._count("write", answer)
            if answer.status_code not in RETRIED:
                return answer

    def _read(self, http: httpx.Client, by: int, done: int, name: str) -> None:
        """Acknowledged writes are read, as long as reads succeed."""
        counted = http.get(f"/v1/kv/{self._database}/count{by}")
        self._count("read", counted)
        if counted.status_code == 200 and int.from_bytes(counted.content, "big") != done:
            self.wrong.append(f"read {counted.content!r} of {done}")
        found = http.get(f"/v1/db/{self._database}/items/{name}")
        self._count("read", found)
        if found.status_code not in (200, 503, 504):
            self.wrong.append(f"read of {name}: {found.text}")
        status = http.post("/cortado.v1.Cluster/Status", json={})
        self._count("read", status)

    def _list(self, http: httpx.Client) -> None:
        """Lines that end as they should are all there are; others say so, or break off."""
        while not self._stop.is_set():
            try:
                answer = http.get(f"/v1/db/{self._database}/rows", headers={"Accept": "application/x-ndjson"})
            except httpx.RemoteProtocolError:
                self.statuses["list cut"] += 1
                continue
            self._count("read", answer)
            if answer.status_code == 200:
                lines = answer.text.splitlines()
                if len(lines) != ROWS or "problem" in json.loads(lines[-1]):
                    self.wrong.append(f"a list of {len(lines)} lines that ended well")
                self.lists += 1

    def _watch(self, http: httpx.Client) -> None:
        last = ""
        # Writes after all other callers have stopped are seen, too.
        while not self._stop.is_set() or not self._has_seen_all():
            headers = {"Last-Event-ID": last} if last else {}
            after = "" if last else "?after=beginning"
            try:
                with http.stream("GET", f"/v1/db/{self._database}/items:watch{after}", headers=headers) as answer:
                    if answer.status_code != 200:
                        answer.read()
                        self._count("read", answer)
                        continue
                    self.resumed += bool(last)
                    last = self._follow(answer, last)
            except httpx.TransportError:
                self.statuses["watch cut"] += 1

    def _follow(self, answer: httpx.Response, last: str) -> str:
        """The id of the last event that had one."""
        event: dict[str, str] = {}
        resolved = 0
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
                continue
            told = json.loads(event["data"])
            if event["event"] == "resolved":
                last = event["id"]
                resolved += 1
                if resolved == RESOLVED_MAX or (self._stop.is_set() and self._has_seen_all()):
                    return last
            elif event["event"] == "problem":
                self.statuses[f"watch {told['reason']}"] += 1
            else:
                if last and _order(told["timestamp"]) <= _order(last):
                    self.wrong.append(f"a change of {told['timestamp']} behind {last}")
                self.changes.setdefault(told["key"][0], []).append(told["timestamp"])
            event = {}
        return last

    def _has_seen_all(self) -> bool:
        return set(self.acknowledged) <= set(self.changes)

    def _count(self, kind: str, answer: httpx.Response) -> None:
        self.statuses[f"{kind} {answer.status_code}"] += 1
        if answer.status_code < 400:
            return
        told = answer.json()
        if answer.status_code >= 500 and answer.status_code not in (503, 504):
            self.wrong.append(f"{kind}: {answer.text}")
        if ("outcome" in told) != (told["reason"] == "OUTCOME_UNKNOWN") or (kind == "read" and "outcome" in told):
            self.wrong.append(f"{kind}: {answer.text}")


def _order(timestamp: str) -> tuple[int, ...]:
    return tuple(int(each) for each in timestamp.split("."))


@contextmanager
def under_load(cluster: Cluster, gateway: GatewayProcess, database: str) -> Iterator[Load]:
    with Client(cluster.endpoints, timeout_s=30) as client:
        client.create_database(database)
        for table in ("items", "rows"):
            client.schemas.register(f"{database}.{table}", ITEM)
            client.create_table(f"{database}.{table}", key=["id"])
        client.table(f"{database}.rows").put_many([{"id": f"{i:06}", "by": i} for i in range(ROWS)])
    load = Load(gateway.url, database)
    load.start()
    try:
        yield load
    finally:
        load.stop()


def kill_leaders(cluster: Cluster, load: Load) -> None:
    for _ in range(2):
        leader = cluster.leader()
        cluster.kill(leader)
        cluster.leader(besides=[leader])
        load.wait_for_writes()
        cluster.start(leader)


def pause_the_leader(cluster: Cluster, load: Load) -> None:
    leader = cluster.leader()
    cluster.pause(leader)
    cluster.leader(besides=[leader])
    load.wait_for_writes()
    cluster.resume(leader)
    load.wait_for_writes()


def kill_all(cluster: Cluster, load: Load) -> None:
    cluster.kill(*cluster.nodes)
    cluster.start()
    load.wait_for_writes()


@pytest.mark.parametrize("hurt", [kill_leaders, pause_the_leader, kill_all], ids=lambda hurt: hurt.__name__)
def test_what_callers_over_http_were_told_stays_true(
    three_nodes: Cluster, tmp_path: Path, hurt: Callable[[Cluster, Load], None]
) -> None:
    database = hurt.__name__.replace("_", "-")
    # With the time that a client takes by itself, callers would not notice anything.
    with gateway_process(three_nodes.endpoints, tmp_path, "--timeout", "0.3") as gateway:
        with under_load(three_nodes, gateway, database) as load:
            load.wait_for_writes()
            hurt(three_nodes, load)
            three_nodes.mend()
            wait_until(lambda: bool(load.wrong or (load.lists and load.resumed)), "a list, and a watch again")
        assert not load.wrong, load.wrong[:5]
        assert load.lists and load.resumed, load.statuses
        assert "Traceback" not in gateway.log.read_text()
    with Client(three_nodes.endpoints, timeout_s=30) as client:
        stored = {row.value["id"] for row in client.table(f"{database}.items").scan()}
        counted = sum(int.from_bytes(pair.value, "big") for pair in client.kv(database).scan())
    assert set(load.acknowledged) <= stored
    assert len(stored) == counted, "each write was done once, both of its halves"
    assert set(load.changes) <= stored
    assert all(len(set(times)) == 1 for times in load.changes.values()), "a write has one timestamp, whoever saw it"


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[tuple[ServerProcess, GatewayProcess]]:
    with running_server(tmp_path / "data") as server, gateway_process(server.endpoint, tmp_path) as gateway:
        yield server, gateway


def test_an_unanswered_write_is_unknown_and_an_unanswered_read_is_late(
    alone: tuple[ServerProcess, GatewayProcess],
) -> None:
    server, gateway = alone
    head = {"Connect-Timeout-Ms": "700"}
    with httpx.Client(base_url=gateway.url, timeout=30) as http:

        def ask(method: str, body: Any) -> dict[str, Any]:
            answer = http.post(f"/cortado.v1.{method}", json=body, headers=head)
            told: dict[str, Any] = answer.json()
            return {**told, "status": answer.status_code}

        pair = {"namespace": "ns", "key": "YQ=="}
        assert ask("KeyValue/Put", {**pair, "value": "YQ=="})["status"] == 200
        server.pause()
        try:
            for method, body in (
                ("KeyValue/Get", pair),
                ("Cluster/Status", {}),
                ("Tables/ListDatabases", {}),
                ("Schemas/ListSubjects", {}),
            ):
                told = ask(method, body)
                assert (told["status"], told["reason"]) == (504, "DEADLINE_EXCEEDED"), told
                assert "outcome" not in told
            for method, body in (("KeyValue/Put", {**pair, "value": "Yg=="}), ("Cluster/TransferLeader", {})):
                told = ask(method, body)
                assert (told["status"], told["reason"], told["outcome"]) == (504, "OUTCOME_UNKNOWN", "unknown"), told
        finally:
            server.resume()
