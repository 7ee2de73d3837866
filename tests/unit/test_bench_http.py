"""`make bench-http` asks the same by both ways, and prints its measures."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from benchmarks import markdown as pages
from benchmarks import report
from benchmarks.cluster.members import Use
from benchmarks.cluster.turns import Outcome
from benchmarks.http import load
from benchmarks.http.load import HttpConnection, grpc_call, http_call
from benchmarks.http.results import Measured, Results
from benchmarks.http.workloads import NAMESPACE, SCHEMA, TABLE, VALUE_BYTES, WORKLOADS, pair_key, reading
from cortado.store.client import Put
from support.gateways import Gateway, gateway


@pytest.fixture(scope="module")
def served() -> Iterator[Gateway]:
    """Yield a gateway before one sensor with two readings; a run has a hundred of each."""
    with gateway() as running, pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "SENSORS", 1)
        patch.setattr(load, "READINGS", 2)

        async def fill() -> None:
            await running.client.create_database("bench")
            await running.client.schemas.register(TABLE, SCHEMA)
            await running.client.create_table(TABLE, ["sensor", "id"])
            await running.client.table(TABLE).put_json([reading(0, number, 0.5) for number in range(2)])
            await running.client.kv(NAMESPACE).batch([Put(pair_key(n), b"v" * VALUE_BYTES) for n in range(2)])

        running.run(fill())
        yield running


class Through:
    """A connection of the driver that puts its requests to the gateway in this process."""

    def __init__(self, served: Gateway) -> None:
        self._served = served

    async def call(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        method, path, _ = first.split(" ")
        headers = dict(line.split(": ") for line in lines)
        found = await self._served.http.request(method, path, headers=headers, content=body)
        assert found.status_code == 200, found.text
        return found.content


@pytest.mark.parametrize("workload", [each.name for each in WORKLOADS])
def test_a_call_is_right_by_both_ways(served: Gateway, workload: str) -> None:
    connection = cast(HttpConnection, Through(served))
    served.run(http_call(workload, connection, "localhost:7629", random.Random(1))())
    served.run(grpc_call(workload, served.client, random.Random(1))())


@pytest.mark.parametrize("workload", [each.name for each in WORKLOADS])
def test_a_wrong_answer_is_no_result(workload: str) -> None:
    class Wrong:
        async def call(self, _request: bytes) -> bytes:
            return json.dumps({"sensor": "another", "id": 0, "elements": []}).encode()

    with pytest.raises(ValueError, match="a wrong answer"):
        asyncio.run(http_call(workload, cast(HttpConnection, Wrong()), "localhost:7629", random.Random(1))())


def test_an_answer_in_pieces_is_one_and_a_refusal_none() -> None:
    class Transport:
        def write(self, data: bytes) -> None:
            asyncio.get_running_loop().call_soon(self.answer, data)

        def answer(self, data: bytes) -> None:
            status = "200 OK" if data == b"good" else "404 Not Found"
            for each in (f"HTTP/1.1 {status}\r\ncontent-length: 4\r\n", "\r\nbo", "dy"):
                connection.data_received(each.encode())

    connection = HttpConnection()
    connection.connection_made(cast(asyncio.Transport, Transport()))
    assert asyncio.run(connection.call(b"good")) == b"body"
    with pytest.raises(ValueError, match="404 Not Found"):
        asyncio.run(connection.call(b"bad"))


def test_a_saved_result_is_the_same_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    http = Outcome(1_000, 1.25, 9.5, Use(0.5, 100), (Use(0.25, 90),), 0.125, 0)
    grpc = Outcome(2_000, 0.5, 2.5, Use(0.5, 100), (), 0.25, 0)
    shown = Results(settings=["s"], measured=[Measured("pair", 64, {"http": [http], "grpc": [grpc]})])
    saved = shown.save()
    assert Results.load(saved) == shown
    assert shown.save(saved) == saved
    assert shown.has("pair", 64)
    assert not shown.has("pair", 1)
    pages.main([saved])
    page = capsys.readouterr().out
    assert "| 64 | 1,000 | 2,000 | 1.25 | 0.50 | 250 | 500 | 125 | 250 | 125 | 500 |" in page
