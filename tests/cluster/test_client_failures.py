"""The client while a server hangs, crashes and comes back: no write is lost, applied twice, or claimed in error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import DeadlineExceeded, InvalidArgument, OutcomeUnknown, Unavailable
from cortado.proto.v1 import kv_pb2
from cortado.store.client import Client, Table
from cortado.store.client.blocking.drive import run
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = pytest.mark.process

ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]}


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(tmp_path / "data") as running:
        yield running


@pytest.fixture
def own_client(own_server: ServerProcess) -> Iterator[Client]:
    with Client(own_server.endpoint, timeout_s=30) as opened:
        yield opened


@pytest.fixture
def rows(own_client: Client) -> Table:
    own_client.create_database("d")
    own_client.schemas.register("d.rows", ROW)
    own_client.create_table("d.rows", ["id"])
    return own_client.table("d.rows")


def row(number: int) -> dict[str, Any]:
    return {"id": number, "text": "x" * 200}


def test_calls_wait_for_a_server_that_comes_back(own_server: ServerProcess, own_client: Client) -> None:
    kv = own_client.kv("n")
    kv.put(b"k", b"1")
    own_server.kill()
    restarted = threading.Thread(target=own_server.start)
    restarted.start()
    kv.put(b"k", b"2", if_value=b"1")
    restarted.join()
    found = kv.get(b"k")
    assert found is not None
    assert found.value == b"2"


def test_a_server_that_is_gone_is_unavailable_for_reads(own_server: ServerProcess, own_client: Client) -> None:
    kv = own_client.kv("n")
    kv.put(b"k", b"1")
    assert own_server.stop() == 0
    with pytest.raises(Unavailable):
        own_client.with_timeout(0.5).kv("n").get(b"k")


def test_a_hanging_server_makes_reads_late_and_writes_unknown(own_server: ServerProcess, own_client: Client) -> None:
    kv = own_client.kv("n")
    kv.put(b"k", b"1")
    own_server.pause()
    hasty = own_client.with_timeout(0.7).kv("n")
    with pytest.raises(DeadlineExceeded):
        hasty.get(b"k")
    with pytest.raises(OutcomeUnknown) as raised:
        hasty.put(b"k", b"2", if_value=b"1")
    own_server.resume()
    # Whether or not it had happened: the same request again has one effect.
    request = kv_pb2.KvPutRequest(
        namespace="n", key=b"k", value=b"2", request_id=bytes.fromhex(raised.value.request_id)
    )
    request.condition.value = b"1"
    connection = own_client._core._connection
    run(connection.call(connection.stubs.kv.Put, request, timeout_s=10))
    run(connection.call(connection.stubs.kv.Put, request, timeout_s=10))
    found = kv.get(b"k")
    assert found is not None
    assert found.value == b"2"
    request.value = b"3"
    with pytest.raises(InvalidArgument):
        run(connection.call(connection.stubs.kv.Put, request, timeout_s=10))


def test_a_bulk_load_outlives_crashes_and_writes_every_row_once(
    own_server: ServerProcess, own_client: Client, rows: Table
) -> None:
    done = 0
    crashes = [5_000, 12_000]

    def progress(count: int) -> None:
        nonlocal done
        done = count

    def documents() -> Iterator[dict[str, Any]]:
        for number in range(20_000):
            if crashes and number >= crashes[0]:
                crashes.pop(0)
                own_server.kill()
                own_server.start()
            yield row(number)

    result = rows.put_many(documents(), mode="insert", chunk_rows=500, progress=progress)
    assert (result.written, result.refused, done) == (20_000, 0, 20_000)
    assert [document.value["id"] for document in rows.scan()] == list(range(20_000))
    assert own_client.verify_indexes("d.rows").rows_checked == 20_000


def test_a_scan_goes_on_over_a_crash_at_the_same_timestamp(
    own_server: ServerProcess, own_client: Client, rows: Table
) -> None:
    rows.put_many(row(number) for number in range(30_000))
    found = rows.scan()
    seen = [next(found).value["id"] for _ in range(10)]
    rows.update((29_999,), {"text": "changed"})
    own_server.kill()
    own_server.start()
    rest = list(found)
    assert seen + [document.value["id"] for document in rest] == list(range(30_000))
    assert rest[-1].value["text"] == row(0)["text"]


def test_a_scan_that_was_closed_leaves_no_work_behind(own_client: Client, rows: Table) -> None:
    rows.put_many(row(number) for number in range(30_000))
    found = rows.scan()
    next(found)

    def scans() -> int:
        return next(queue.count for queue in own_client.status().queues if queue.name == "scans")

    assert scans() == 1
    found.close()  # type: ignore[attr-defined]
    wait_until(lambda: scans() == 0, "the scan has ended")
