"""Which processes keep their clients from one task to the next, and which do not."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from cortado.store.client import Tls
from pyspark_cortado import clients
from pyspark_cortado.clients import KEPT_MAX, open_client
from pyspark_cortado.options import Connection

TABLE = Connection("127.0.0.1:7621", "shop.items", 30.0, None)


class FakeClient:
    """Remembers how it was made, and that it was closed."""

    made: list[FakeClient]

    def __init__(self, endpoint: str, **options: Any) -> None:
        self.endpoint = endpoint
        self.options = options
        self.is_closed = False
        self.made.append(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def without_cache(self) -> tuple[FakeClient]:
        return (self,)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FakeClient]:
    """Return all clients, in a process that has none yet."""
    FakeClient.made = []
    monkeypatch.setattr(clients, "Client", FakeClient)
    monkeypatch.setattr(clients, "_KEPT", clients._Kept())
    monkeypatch.delenv("SPARK_REUSE_WORKER", raising=False)
    return FakeClient.made


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the calls of the garbage collector."""
    told: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: told.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: told.append("freeze"))
    return told


@pytest.fixture
def worker(made: list[FakeClient], frozen: list[str], monkeypatch: pytest.MonkeyPatch) -> list[FakeClient]:
    """Return all clients, in a process that Spark uses again."""
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    return made


def test_the_drivers_process_closes_its_clients_and_leaves_its_collector_alone(
    made: list[FakeClient], frozen: list[str]
) -> None:
    for _ in range(2):
        with open_client(TABLE):
            assert not made[-1].is_closed
    assert [each.is_closed for each in made] == [True, True]
    assert not frozen


def test_the_tasks_of_one_worker_share_a_client_and_each_describes_tables_anew(worker: list[FakeClient]) -> None:
    for _ in range(3):
        with open_client(TABLE) as client:
            assert client == (worker[0],)
    assert len(worker) == 1
    assert not worker[0].is_closed


def test_a_workers_first_task_freezes_what_is_there_for_good(worker: list[FakeClient], frozen: list[str]) -> None:
    for _ in range(2):
        with open_client(TABLE):
            pass
    assert frozen == ["collect", "freeze"]


def test_two_at_once_have_a_client_each_of_which_one_is_kept(worker: list[FakeClient]) -> None:
    with open_client(TABLE) as outer, open_client(TABLE) as inner:
        assert outer != inner
    assert [each.is_closed for each in worker] == [False, True]


def test_what_connects_in_another_way_is_another_client(worker: list[FakeClient], tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("first")
    encrypted = replace(TABLE, tls=Tls(ca))
    others = {"timeout_s": 5.0}, {"endpoint": "127.0.0.1:7622"}, {"token": "of somebody else"}
    for connection in (TABLE, encrypted, *(replace(TABLE, **each) for each in others)):
        with open_client(connection):
            pass
    with open_client(TABLE, read_from="any"):
        pass
    assert len(worker) == 6
    with open_client(encrypted):
        pass
    assert len(worker) == 6
    ca.write_text("renewed")
    with open_client(encrypted):
        pass
    assert len(worker) == 7


def test_the_table_does_not_matter(worker: list[FakeClient]) -> None:
    for name in ("shop.items", "shop.orders"):
        with open_client(replace(TABLE, table=name)):
            pass
    assert len(worker) == 1


def test_those_that_were_used_longest_ago_are_closed(worker: list[FakeClient]) -> None:
    for port in range(KEPT_MAX + 2):
        with open_client(TABLE, endpoint=f"127.0.0.1:{7000 + port}"):
            pass
    assert [each.is_closed for each in worker] == [True] * 2 + [False] * KEPT_MAX


def test_a_client_whose_task_failed_is_not_kept(worker: list[FakeClient]) -> None:
    with suppress(ZeroDivisionError), open_client(TABLE):
        raise ZeroDivisionError
    assert worker[0].is_closed


def test_nor_is_one_whose_reader_had_enough(worker: list[FakeClient]) -> None:
    def rows() -> Iterator[int]:
        with open_client(TABLE):
            yield 1
            yield 2

    reading = rows()
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert worker[0].is_closed
