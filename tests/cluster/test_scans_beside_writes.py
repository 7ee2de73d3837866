"""Scans while every row moves: each shows one instant, whole, in whatever pages and in whichever direction."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2
from cortado.store.client import Client, Index, Table
from support.server_process import ServerProcess, running_server, wait_until
from support.wire import Wire, table_name, timestamp_of

pytestmark = pytest.mark.process

ROWS = 120
TOTAL = 1_000 * ROWS
ROW = {
    "type": "record",
    "name": "Account",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "balance", "type": "long"},
        {"name": "owner", "type": "string"},
    ],
}


class Movers:
    """Transfers between two accounts, in one commit each, and owners that change: rows move in both indexes."""

    def __init__(self, client: Client, count: int = 3) -> None:
        self._client = client
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(count)]
        self.moved = 0
        self.problems: list[BaseException] = []

    def __enter__(self) -> Movers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        chance = random.Random(number)
        table = self._client.table("d.accounts")
        try:
            while not self._stop.is_set():
                self._move(chance, table, number)
        except BaseException as problem:
            self.problems.append(problem)

    def _move(self, chance: random.Random, table: Table, number: int) -> None:
        # Each thread has accounts of its own, so that no transfer rests on an old balance.
        one, other = chance.sample(range(number, ROWS, len(self._threads)), 2)
        found = table.get_many([one, other])
        assert found[0] is not None
        assert found[1] is not None
        amount = chance.randint(1, 500)
        with self._client.transaction() as txn:
            own = txn.table("d.accounts")
            own.update(one, {"balance": found[0].value["balance"] - amount})
            own.update(
                other,
                {"balance": found[1].value["balance"] + amount, "owner": f"{chance.randrange(1 << 30):x}-{other}"},
            )
        self.moved += 1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("moving") / "data") as running:
        with Client(running.endpoint) as client:
            client.create_database("d")
            client.schemas.register("d.accounts", ROW)
            indexes = [Index("by_balance", ["balance desc"]), Index("by_owner", ["owner"], unique=True)]
            client.create_table("d.accounts", ["id"], indexes=indexes)
            rows = ({"id": number, "balance": 1_000, "owner": f"o{number}"} for number in range(ROWS))
            assert client.table("d.accounts").put_many(rows).written == ROWS
        yield running


def check_instant(rows: list[dict[str, Any]], index: str, *, reverse: bool) -> None:
    """One instant: every account once, no money made or lost, in the order of the scan."""
    assert sorted(row["id"] for row in rows) == list(range(ROWS))
    assert sum(row["balance"] for row in rows) == TOTAL
    orders: dict[str, Any] = {
        "": lambda row: row["id"],
        "by_balance": lambda row: (-row["balance"], row["id"]),
        "by_owner": lambda row: row["owner"],
    }
    assert rows == sorted(rows, key=orders[index], reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("index", ["", "by_balance", "by_owner"])
def test_pages_of_a_scan_are_one_instant_while_rows_move(server: ServerProcess, index: str, reverse: bool) -> None:
    wire = Wire(server.endpoint)
    with Client(server.endpoint) as client, Movers(client) as movers:
        for page_size in (7, 50):
            rows: list[dict[str, Any]] = []
            instants = set()
            token, pages = b"", 0
            while True:
                moved = movers.moved
                wait_until(lambda moved=moved: movers.moved > moved or bool(movers.problems), "a row moved")
                request = documents_pb2.ScanRequest(
                    table=table_name("d.accounts"),
                    index=index,
                    reverse=reverse,
                    # Every other pass is asked for with a filter that everything passes.
                    filter="id >= 0" if page_size == 50 else "",
                    page_size=page_size,
                    page_token=token,
                    format=common_pb2.DOCUMENT_FORMAT_JSON,
                )
                replies = list(wire.documents.Scan(request, timeout=10))
                page = [json.loads(row) for reply in replies for row in reply.json_rows]
                assert len(page) <= page_size
                instants |= {timestamp_of(reply.header.timestamp) for reply in replies}
                rows += page
                pages += 1
                token = replies[-1].next_page_token
                if not token:
                    break
            assert movers.problems == []
            assert len(instants) == 1
            assert pages >= ROWS // page_size
            check_instant(rows, index, reverse=reverse)


def test_streams_and_reads_in_the_past_agree_while_rows_move(server: ServerProcess) -> None:
    with Client(server.endpoint) as client, Movers(client) as movers:
        table = client.table("d.accounts")
        for round_ in range(8):
            at = client.now()
            by_key = [found.value for found in table.scan(at=at)]
            check_instant(by_key, "", reverse=False)
            for index in ("by_balance", "by_owner"):
                found = [each.value for each in table.scan(index=index, at=at, reverse=bool(round_ % 2))]
                check_instant(found, index, reverse=bool(round_ % 2))
                assert sorted(found, key=lambda row: row["id"]) == by_key
            many = table.get_many(list(range(ROWS)), at=at)
            assert [None if each is None else each.value for each in many] == by_key
            assert client.verify_indexes("d.accounts").problems == ()
        assert movers.problems == []
        assert movers.moved > 0


def test_pages_of_pairs_have_no_gaps_and_no_duplicates_while_pairs_come_and_go(server: ServerProcess) -> None:
    wire = Wire(server.endpoint)
    stop = threading.Event()
    with Client(server.endpoint) as client:
        kv = client.kv("churn")
        stays = [b"%03d" % number for number in range(0, 200, 2)]
        for key in stays:
            kv.put(key, b"stays")

        def churn() -> None:
            # Between any two keys that stay, one comes and goes; all that stay are written again and again.
            for number in range(1_000_000):
                if stop.is_set():
                    return
                place = number * 7 % 200 | 1
                kv.put(b"%03d" % place, b"comes")
                kv.put(b"%03d" % (place - 1), b"stays")
                kv.delete(b"%03d" % place)

        thread = threading.Thread(target=churn)
        thread.start()
        try:
            for reverse in (False, True):
                keys: list[bytes] = []
                token = b""
                while True:
                    request = kv_pb2.KvScanRequest(
                        namespace="churn", page_size=9, page_token=token, reverse=reverse, keys_only=True
                    )
                    replies = list(wire.kv.Scan(request, timeout=10))
                    keys += [pair.key for reply in replies for pair in reply.pairs]
                    token = replies[-1].next_page_token
                    if not token:
                        break
                assert keys == sorted(set(keys), reverse=reverse)
                assert set(stays) <= set(keys)
                assert len(keys) <= len(stays) + 1, "one instant: at most one that comes and goes is there"
        finally:
            stop.set()
            thread.join()
