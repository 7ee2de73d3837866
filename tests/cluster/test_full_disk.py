"""A server whose disk is full: writes are refused, reads go on, writes come back with the room, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.errors import OutcomeUnknown, ResourceExhausted
from cortado.store.client import Client
from support.server_process import ServerProcess, wait_until
from support.small_disk import mounted_disk

pytestmark = pytest.mark.process

DISK_MIB = 96
VALUE = b"v" * 20_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "disk", DISK_MIB) as disk:
        yield disk


def fill(client: Client, name: str, stored: dict[bytes, bytes], most: int = 1_000_000) -> ResourceExhausted | None:
    """Put what is acknowledged into ``stored``, until writes are refused."""
    kv = client.with_timeout(1).kv("full")
    for number in range(most):
        key, value = f"{name}-{number:06}".encode(), b"%06d" % number + VALUE
        try:
            kv.put(key, value)
        except ResourceExhausted as full:
            assert kv.get(key) is None, "what was refused is not there"
            return full
        except OutcomeUnknown:  # A disk that is slow, and not full.
            client.kv("full").put(key, value)
        stored[key] = value
    return None


def everything(client: Client) -> dict[bytes, bytes]:
    return {pair.key: pair.value for pair in client.kv("full").scan()}


def take_all(path: Path) -> None:
    """Fill the rest of the disk to the last byte."""
    with path.open("wb", buffering=0) as ballast:
        for size in (1 << 20, 4096):
            try:
                while True:
                    ballast.write(b"b" * size)
            except OSError:
                continue


def test_a_full_disk_refuses_writes_and_loses_nothing_over_a_kill(small_disk: Path, tmp_path: Path) -> None:
    stored: dict[bytes, bytes] = {}
    ballast, more_ballast = small_disk / "ballast", small_disk / "more"
    ballast.write_bytes(b"b" * (16 << 20))
    # The data alone is on the small disk; log and port file are not.
    (small_disk / "data").mkdir()
    (tmp_path / "data").symlink_to(small_disk / "data", target_is_directory=True)
    server = ServerProcess(tmp_path / "data")
    try:
        with Client(server.start().endpoint, timeout_s=10) as client:
            # Above the reserve: refused before anything is tried.
            assert fill(client, "admitted", stored, 10) is None
            full = fill(client, "above", stored)
            assert full is not None
            assert "disk" in str(full)
            assert everything(client) == stored

            # Without a byte left, behind the server's back.
            take_all(more_ballast)
            assert fill(client, "without", stored) is not None
            assert everything(client) == stored
            assert client.status().state != "serving"

            # A crash, and a start on the full disk: reads go on.
            server.kill()
            server.start()
            assert everything(client) == stored
            assert fill(client, "reopened", stored) is not None

            ballast.unlink()
            more_ballast.unlink()
            wait_until(lambda: fill(client, "again", stored, 1) is None, "writes are taken again", 60)
            assert client.status().state == "serving"
        server.kill()
        with Client(server.start().endpoint, timeout_s=10) as client:
            assert everything(client) == stored
        assert "Traceback" not in server.log
    finally:
        server.kill()
