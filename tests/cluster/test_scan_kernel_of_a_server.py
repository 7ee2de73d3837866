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
            wait_until(lambda: client.status().scan_path == path, path, timeout_s=60)
            for start in range(0, PAIRS, 1_000):
                client.kv("n").batch([Put(*pair) for pair in expected[start : start + 1_000]])

            def scan(number: int) -> list[tuple[bytes, bytes]]:
                found = client.kv("n").scan(reverse=number % 2 == 1)
                return [(pair.key, pair.value) for pair in found]

            with ThreadPoolExecutor(6) as callers:
                for number, found in enumerate(callers.map(scan, range(6))):
                    assert found == (expected[::-1] if number % 2 else expected)
    finally:
        server.kill()
