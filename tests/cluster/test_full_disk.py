"""A server whose disk is full: writes are refused, reads go on, writes come back with the room, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cortado.errors import OutcomeUnknown, ResourceExhausted
from cortado.store.client import Client, Index
from support.server_process import ServerProcess, wait_until
from support.small_disk import mounted_disk

pytestmark = pytest.mark.process

DISK_MIB = 160
VALUE = b"v" * 20_000
FIELDS = ", ".join(
    f'{{"name": "{name}", "type": "{kind}"}}' for name, kind in [("id", "long"), ("s", "string"), ("t", "string")]
)
SCHEMA = f'{{"type": "record", "name": "R", "fields": [{FIELDS}]}}'


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "disk", DISK_MIB) as disk:
        yield disk


def fill(client: Client, name: str, stored: dict[bytes, bytes], most: int = 1_000_000) -> ResourceExhausted | None:
    """Put acknowledged writes into ``stored``, until writes are refused."""
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


ROOM = "r" * 6_000
"""Of a row: tables of a thousand free more than the log may take meanwhile."""


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
    ballast.write_bytes(b"b" * (80 << 20))
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
            wait_until(lambda: fill(client, "again", stored, 1) is None, "writes are taken again")
            assert client.status().state == "serving"
        server.kill()
        with Client(server.start().endpoint, timeout_s=10) as client:
            assert everything(client) == stored
        assert "Traceback" not in server.log
    finally:
        server.kill()


def staged(client: Client, full_name: str, row: dict[str, object]) -> str:
    """A large transaction that is open, with this row; returns its id."""
    transaction_id = client.large_transactions.begin([full_name], ttl_s=600).transaction_id
    with client.large_transactions.staging(transaction_id) as staging:
        staging.table(full_name).put_many([row])
    return transaction_id


def deleted_together(client: Client) -> None:
    with client.transaction() as transaction:
        transaction.table("shop.d").delete(3)
        transaction.kv("ranged").delete(b"099")


def test_what_frees_room_passes_on_a_full_disk_and_writes_come_back(small_disk: Path, tmp_path: Path) -> None:
    stored: dict[bytes, bytes] = {}
    (small_disk / "data").mkdir()
    (tmp_path / "data").symlink_to(small_disk / "data", target_is_directory=True)
    server = ServerProcess(tmp_path / "data", "--retention", "1h")
    again = ServerProcess(tmp_path / "data", "--retention", "1s")
    try:
        with Client(server.start().endpoint, timeout_s=10) as client:
            for database in ("shop", "other"):
                client.create_database(database)
            for name in ("shop.a", "shop.b", "shop.c", "shop.d", "other.a"):
                client.schemas.register(name, SCHEMA)
                client.create_table(name, key=["id"])
                client.table(name).put_many({"id": number, "s": f"{number:0300}", "t": ROOM} for number in range(1_000))
            client.create_index("shop.c", Index("by_s", ["s"]))
            for name in ("ranged", "dropped"):
                for number in range(100):
                    client.kv(name).put(b"%03d" % number, bytes(1_000))
            # The build waits for the row that is locked.
            transaction_id = staged(client, "shop.d", {"id": 5_000, "s": "", "t": ""})
            client.create_index("shop.d", Index("by_s", ["s"]), wait=False)
            (build,) = [job.job_id for job in client.admin.jobs.list() if not job.has_ended]

            frees: list[Callable[[], object]] = [
                lambda: client.admin.quotas.set("namespace:full", stored_bytes=1 << 40),
                lambda: client.kv("ranged").delete_range(prefix=b"00"),
                lambda: client.kv("ranged").delete(b"098"),
                lambda: client.table("shop.d").delete(1),
                lambda: client.table("shop.d").delete_many([2]),
                lambda: deleted_together(client),
                lambda: client.drop_namespace("dropped"),
                lambda: client.drop_index("shop.c", "by_s"),
                lambda: client.alter_table("shop.c", retention_ms=1_800_000),
                lambda: client.drop_table("shop.a"),
                lambda: client.truncate_table("shop.b"),
                lambda: client.drop_database("other", cascade=True),
                lambda: client.admin.jobs.cancel(build),
                lambda: client.large_transactions.abort(transaction_id),
            ]
            for number, free in enumerate(frees):
                assert fill(client, f"before-{number:02}", stored) is not None
                free()
        server.kill()
        with Client(again.start().endpoint, timeout_s=10) as client:
            wait_until(lambda: fill(client, "again", stored, 1) is None, "writes are taken again")
            assert everything(client) == stored
            assert [table.full_name for table in client.tables()] == ["shop.b", "shop.c", "shop.d"]
    finally:
        server.kill()
        again.kill()
