"""Histories of concurrent clients while the server is killed or hangs: every one must have a simple explanation."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path

import pytest

from cortado.errors import ConditionFailed, CortadoError, DeadlineExceeded, OutcomeUnknown, TryAgain
from cortado.store.client import Client, Document
from support.linearizability import Call, is_linearizable
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = pytest.mark.process

TALLY = {
    "type": "record",
    "name": "Tally",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "count", "type": "long"},
        {"name": "tokens", "type": {"type": "array", "items": "string"}},
    ],
}


# --- the checker itself ----------------------------------------------------------------------------------------


def test_the_checker_takes_what_some_order_explains() -> None:
    assert is_linearizable([Call("put", 0, 9, b"1"), Call("get", 1, 2, None), Call("get", 3, 4, b"1")])
    assert is_linearizable([Call("put", 0, inf, b"1"), Call("get", 5, 6, None), Call("get", 7, 8, b"1")])
    assert is_linearizable([Call("put", 0, inf, b"1"), Call("get", 5, 6, None)])
    assert is_linearizable(
        [Call("put", 0, 1, b"1"), Call("cas", 2, 3, b"2", b"1"), Call("cas", 2, 3, b"3", b"1", False)]
    )


@pytest.mark.parametrize(
    "history",
    [
        [Call("put", 0, 1, b"1"), Call("get", 2, 3, None)],
        [Call("put", 0, 9, b"1"), Call("get", 1, 2, b"1"), Call("get", 3, 4, None)],
        [Call("put", 0, 1, b"1"), Call("put", 2, 3, b"2"), Call("get", 4, 5, b"1")],
        [Call("put", 0, 1, b"1"), Call("cas", 2, 3, b"2", b"1"), Call("cas", 2, 3, b"3", b"1")],
        [Call("put", 0, 1, b"1"), Call("cas", 2, 3, b"2", b"1", False)],
        [Call("put", 5, inf, b"1"), Call("get", 1, 2, b"1")],
    ],
    ids=["lost", "flickering", "old", "two winners", "refused for nothing", "before it was written"],
)
def test_the_checker_finds_what_no_order_explains(history: list[Call]) -> None:
    assert not is_linearizable(history)


# --- gets, puts and compare-and-sets ---------------------------------------------------------------------------


class Caller(threading.Thread):
    """Gets, puts and compares-and-sets keys at random until told to stop, and records the results."""

    def __init__(self, client: Client, number: int, keys: list[bytes], stop: threading.Event) -> None:
        super().__init__()
        # Hasty, so that some outcomes stay unknown; a third waits for the server to come back.
        self._kv = client.with_timeout(20 if number % 3 == 0 else 0.3).kv("h")
        self._random = random.Random(number)
        self._name = number
        self._keys = keys
        self._stop_event = stop
        self.history: list[tuple[bytes, Call]] = []
        self.unknown = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stop_event.is_set():
                self._one(self._random.choice(self._keys))
        except BaseException as problem:
            self.problem = problem

    def _one(self, key: bytes) -> None:
        kind = self._random.choice(["get", "get", "put", "cas"])
        value = b"%d-%d" % (self._name, len(self.history))
        expected = None
        start = time.monotonic()
        try:
            if kind == "get":
                found = self._kv.get(key)
                self._note(key, Call("get", start, time.monotonic(), None if found is None else found.value))
            elif kind == "put":
                self._kv.put(key, value)
                self._note(key, Call("put", start, time.monotonic(), value))
            else:
                found = self._kv.get(key)
                self._note(key, Call("get", start, time.monotonic(), None if found is None else found.value))
                if found is None:
                    return
                expected, start = found.value, time.monotonic()
                self._kv.put(key, value, if_value=expected)
                self._note(key, Call("cas", start, time.monotonic(), value, expected))
        except ConditionFailed:
            self._note(key, Call("cas", start, time.monotonic(), value, expected, held=False))
        except OutcomeUnknown:
            self.unknown += 1
            self._note(key, Call("put" if kind == "put" else "cas", start, inf, value, expected))
        except CortadoError as refused:
            # A write did not happen, or its outcome is unknown. A late call is a read, such as the one before a
            # compare-and-set.
            is_write = kind == "put" or expected is not None
            assert isinstance(refused, TryAgain if is_write else TryAgain | DeadlineExceeded), refused

    def _note(self, key: bytes, call: Call) -> None:
        self.history.append((key, call))


def crash(server: ServerProcess, _hurt: Callable[[], bool]) -> None:
    server.kill()
    server.start()


def hang(server: ServerProcess, hurt: Callable[[], bool]) -> None:
    server.pause()
    wait_until(hurt, "some outcome is unknown")
    server.resume()


@pytest.mark.parametrize("disturb", [crash, hang])
def test_what_clients_see_is_linearizable_over_crashes_and_pauses(
    tmp_path: Path, disturb: Callable[[ServerProcess, Callable[[], bool]], None]
) -> None:
    keys = [b"a", b"b", b"c"]
    stop = threading.Event()
    with running_server(tmp_path / "data") as server, Client(server.endpoint, timeout_s=20) as client:
        callers = [Caller(client, number, keys, stop) for number in range(6)]
        for caller in callers:
            caller.start()
        try:
            for round_ in range(1, 4):
                done = round_ * 150

                def enough(done: int = done) -> bool:
                    return sum(len(caller.history) for caller in callers) >= done

                wait_until(enough, f"{done} calls have ended")
                if round_ < 3:
                    before = sum(caller.unknown for caller in callers)

                    def hurt(before: int = before) -> bool:
                        return sum(caller.unknown for caller in callers) > before

                    disturb(server, hurt)
        finally:
            stop.set()
            for caller in callers:
                caller.join()
        assert [caller.problem for caller in callers if caller.problem is not None] == []
        for key in keys:
            calls = [call for caller in callers for of, call in caller.history if of == key]
            end = client.kv("h").get(key)
            calls.append(Call("get", time.monotonic(), time.monotonic(), None if end is None else end.value))
            assert is_linearizable(calls), sorted(calls, key=lambda call: call.start)


# --- read, change, write under the document's etag -------------------------------------------------------------


class Incrementer(threading.Thread):
    """Adds 1 to one document again and again, and a token by which each attempt is recognized."""

    def __init__(self, client: Client, number: int, stop: threading.Event) -> None:
        super().__init__()
        self._table = client.with_timeout(20 if number % 2 else 0.3).table("d.tally")
        self._number = number
        self._stop_event = stop
        self._found: Document | None = None
        self.acknowledged: list[str] = []
        self.unknown: list[str] = []
        self.refused: list[str] = []
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            for attempt in range(1_000_000):
                if self._stop_event.is_set():
                    return
                self._one(f"{self._number}-{attempt}")
        except BaseException as problem:
            self.problem = problem

    def _one(self, token: str) -> None:
        # A caller that can't read tries with the value that it read last, so that a hanging server gets writes, too.
        with suppress(CortadoError):
            self._found = self._table.get(1)
        found = self._found
        if found is None:
            return
        changes = {"count": found.value["count"] + 1, "tokens": [*found.value["tokens"], token]}
        try:
            self._table.update(1, changes, if_etag=found.etag)
            self.acknowledged.append(token)
        except OutcomeUnknown:
            self.unknown.append(token)
        except (TryAgain, ConditionFailed):
            self.refused.append(token)


@pytest.mark.parametrize("disturb", [crash, hang])
def test_every_acknowledged_increment_counts_once_and_an_unknown_one_at_most_once(
    tmp_path: Path, disturb: Callable[[ServerProcess, Callable[[], bool]], None]
) -> None:
    stop = threading.Event()
    with running_server(tmp_path / "data") as server, Client(server.endpoint, timeout_s=20) as client:
        client.create_database("d")
        client.schemas.register("d.tally", TALLY)
        client.create_table("d.tally", ["id"])
        client.table("d.tally").put({"id": 1, "count": 0, "tokens": []})
        threads = [Incrementer(client, number, stop) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            for round_ in range(1, 4):
                done = round_ * 40

                def enough(done: int = done) -> bool:
                    return sum(len(thread.acknowledged) for thread in threads) >= done

                wait_until(enough, f"{done} increments are acknowledged")
                if round_ < 3:
                    before = sum(len(thread.unknown) for thread in threads)

                    def hurt(before: int = before) -> bool:
                        return sum(len(thread.unknown) for thread in threads) > before

                    disturb(server, hurt)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert [thread.problem for thread in threads if thread.problem is not None] == []
        acknowledged = [token for thread in threads for token in thread.acknowledged]
        unknown = {token for thread in threads for token in thread.unknown}
        found = client.table("d.tally").get(1)
        assert found is not None
        tokens = found.value["tokens"]
        assert found.value["count"] == len(tokens) == len(set(tokens))
        assert set(acknowledged) <= set(tokens) <= set(acknowledged) | unknown
