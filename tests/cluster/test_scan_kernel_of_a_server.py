"""A server scans by its compiled kernel, on several threads, or by Python where it is told to: the same rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cortado.store.client import Client
from cortado.store.client.kv import Put
from support.kernels import row_kernel
from support.server_process import ServerProcess, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.slow]

PAIRS = 20_000
ROWS = 150_000
KINDS = 5
SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "id", "type": "long"}, {"name": "kind", "type": "long"}],
}


def pairs() -> list[tuple[bytes, bytes]]:
    return [(b"%06d" % number, b"value %d" % number * (number % 7)) for number in range(PAIRS)]


@pytest.mark.parametrize("choice", ["auto", "off"])
def test_scans_of_many_callers_give_every_row_by_either_path(tmp_path: Path, choice: str) -> None:
    row_kernel()
    server = ServerProcess(tmp_path / "data", "--scan-kernel", choice)
    expected = pairs()
    try:
        with Client(server.start().endpoint) as client:
            path = "compiled" if choice == "auto" else "python: the setting scan-kernel is off"
            wait_until(lambda: client.status().scan_path == path, path)
            for start in range(0, PAIRS, 1_000):
                client.kv("n").batch([Put(*pair) for pair in expected[start : start + 1_000]])

            def scan(number: int) -> list[tuple[bytes, bytes]]:
                found = client.kv("n").scan(reverse=number % 2 == 1)
                return [(pair.key, pair.value) for pair in found]

            with ThreadPoolExecutor(6) as callers:
                for number, found in enumerate(callers.map(scan, range(6))):
                    assert found == (expected[::-1] if number % 2 else expected)
            check_aggregates(client)
    finally:
        server.kill()


def check_aggregates(client: Client) -> None:
    """Aggregates of so many rows that idle threads read parts of them, one alone and several at once."""
    client.create_database("shop")
    client.schemas.register("shop.rows", SCHEMA)
    client.create_table("shop.rows", ["id"])
    table = client.table("shop.rows")
    table.put_many({"id": number, "kind": number % KINDS} for number in range(ROWS))
    rows_of = [range(kind, ROWS, KINDS) for kind in range(KINDS)]
    expected = [{"kind": kind, "n": len(rows), "ids": sum(rows)} for kind, rows in enumerate(rows_of)]

    def ask(_: int) -> list[dict[str, object]]:
        return table.aggregate("count(*) as n, sum(id) as ids", group_by="kind")

    assert ask(0) == expected
    with ThreadPoolExecutor(4) as callers:
        assert list(callers.map(ask, range(8))) == [expected] * 8
    assert table.count() == ROWS
