"""Clients that go on calling while a cluster is hurt, and record the answers.

Three kinds run side by side, one for each promise::

    Registers   get, put and compare-and-set keys at random     the history is linearizable
    Tokens      append a token to one value, under its etag     acknowledged: it is there, once; refused: it is not
    Inserts     put documents with a unique field               acknowledged: they are there, and no two are alike

Some of each are hasty, so that outcomes stay unknown; the others wait for the cluster to come back, and are retried by
the client under the same request id meanwhile.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from cortado.errors import ConditionFailed, CortadoError, OutcomeUnknown, UniqueViolation
from cortado.store.client import Client, Index
from support.linearizability import Call, unexplained
from support.server_process import wait_until

HASTY_S = 0.4
PATIENT_S = 30.0
PACE_S = 0.004
"""Between two calls of one caller: histories need disturbance, not speed, and have to be searched."""
KEYS = [b"a", b"b", b"c", b"d"]
ROW = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}


class Caller(threading.Thread):
    """One thread. ``done`` counts the writes that were acknowledged; ``unknown`` says why the outcome of the others is
    unknown."""

    def __init__(self, client: Client, number: int, name: str, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.client = client
        self.number = number
        self.name_of_all = name
        self.random = random.Random(number)
        self.done = 0
        self.unknown: list[OutcomeUnknown] = []
        self.problem: BaseException | None = None
        self._stop_event = stop

    def run(self) -> None:
        try:
            while not self._stop_event.wait(PACE_S):
                self.one()
        except BaseException as problem:
            self.problem = problem

    def one(self) -> None:
        raise NotImplementedError


class Registers(Caller):
    """Random calls on a few keys, with their outcomes."""

    def __init__(self, client: Client, number: int, name: str, stop: threading.Event) -> None:
        super().__init__(client, number, name, stop)
        self._kv = client.kv(name)
        self.history: list[tuple[bytes, Call]] = []

    def one(self) -> None:
        key = self.random.choice(KEYS)
        kind = self.random.choice(["get", "get", "put", "cas"])
        value = b"%d-%d" % (self.number, len(self.history))
        expected = None
        start = time.monotonic()
        try:
            if kind == "put":
                self._kv.put(key, value)
                self._note(key, Call("put", start, time.monotonic(), value))
                return
            found = self._kv.get(key)
            held = None if found is None else found.value
            self._note(key, Call("get", start, time.monotonic(), held))
            if kind == "cas" and held is not None:
                expected, start = held, time.monotonic()
                self._kv.put(key, value, if_value=expected)
                self._note(key, Call("cas", start, time.monotonic(), value, expected))
        except ConditionFailed:
            self._note(key, Call("cas", start, time.monotonic(), value, expected, held=False))
        except OutcomeUnknown as unknown:
            self.unknown.append(unknown)
            self.history.append((key, Call("put" if expected is None else "cas", start, inf, value, expected)))
        except CortadoError:
            # Nothing happened, or nothing was read.
            return

    def _note(self, key: bytes, call: Call) -> None:
        self.done += call.kind != "get"
        self.history.append((key, call))


class Tokens(Caller):
    """Appends its tokens to one value, each under the etag that it read."""

    KEY = b"tokens"

    def __init__(self, client: Client, number: int, name: str, stop: threading.Event) -> None:
        super().__init__(client, number, name, stop)
        self._kv = client.kv(f"{name}-tokens")
        self._attempt = 0
        self.acknowledged: set[bytes] = set()
        self.uncertain: set[bytes] = set()

    def one(self) -> None:
        self._attempt += 1
        token = b"%d.%d" % (self.number, self._attempt)
        try:
            found = self._kv.get(self.KEY)
            if found is None:
                self._kv.put(self.KEY, token, if_absent=True)
            else:
                self._kv.put(self.KEY, found.value + b" " + token, if_etag=found.etag)
            self.acknowledged.add(token)
            self.done += 1
        except OutcomeUnknown as unknown:
            self.unknown.append(unknown)
            self.uncertain.add(token)
        except CortadoError:
            return


class Inserts(Caller):
    """Inserts documents with an id and a unique name of its own."""

    def __init__(self, client: Client, number: int, name: str, stop: threading.Event) -> None:
        super().__init__(client, number, name, stop)
        self._table = client.table(f"{name}.rows")
        self._next = number * 1_000_000
        self.acknowledged: set[int] = set()
        self.uncertain: set[int] = set()

    def one(self) -> None:
        row, self._next = self._next, self._next + 1
        try:
            self._table.put({"id": row, "name": f"name-{row}"}, if_absent=True)
            self.acknowledged.add(row)
            self.done += 1
        except OutcomeUnknown as unknown:
            self.unknown.append(unknown)
            self.uncertain.add(row)
        except (ConditionFailed, UniqueViolation) as refused:
            raise AssertionError(f"nobody else inserts {row}") from refused
        except CortadoError:
            return


class Crowd:
    """All of them, on one cluster; ``name`` is a database and the prefix of namespaces, and no other caller uses it."""

    def __init__(self, client: Client, name: str, *, hasty: bool = True) -> None:
        self.name = name
        self._client = client
        self._stop_event = threading.Event()
        client.create_database(name)
        client.schemas.register(f"{name}.rows", ROW)
        client.create_table(f"{name}.rows", ["id"], indexes=[Index("by_name", ["name"], unique=True)])
        kinds: list[type[Caller]] = [Registers] * 4 + [Tokens] * 2 + [Inserts] * 2
        self.callers = [
            kind(client.with_timeout(HASTY_S if hasty and number % 2 else PATIENT_S), number, name, self._stop_event)
            for number, kind in enumerate(kinds)
        ]

    @property
    def done(self) -> int:
        return sum(caller.done for caller in self.callers)

    @property
    def unknown(self) -> list[OutcomeUnknown]:
        return [unknown for caller in self.callers for unknown in caller.unknown]

    def wait_for_progress(self, writes: int = 30, timeout_s: float = 60.0) -> None:
        """Wait until ``writes`` more writes were acknowledged. Raises AssertionError, also if a caller has failed."""
        goal = self.done + writes

        def is_reached() -> bool:
            assert [each.problem for each in self.callers if each.problem is not None] == []
            return self.done >= goal

        wait_until(is_reached, f"{writes} more writes are acknowledged", timeout_s)

    def start(self) -> None:
        for caller in self.callers:
            caller.start()

    def stop(self) -> None:
        self._stop_event.set()
        for caller in self.callers:
            caller.join()

    def check(self) -> None:
        """Check the answers that the callers got. Raises AssertionError."""
        assert [each.problem for each in self.callers if each.problem is not None] == []
        self._check_registers()
        self._check_tokens()
        self._check_inserts()

    def _check_registers(self) -> None:
        history = [entry for each in self.callers if isinstance(each, Registers) for entry in each.history]
        kv = self._client.kv(self.name)
        for key in KEYS:
            start = time.monotonic()
            found = kv.get(key)
            history.append((key, Call("get", start, time.monotonic(), None if found is None else found.value)))
        assert unexplained(history) == []

    def _check_tokens(self) -> None:
        callers = [each for each in self.callers if isinstance(each, Tokens)]
        acknowledged = set[bytes]().union(*(each.acknowledged for each in callers))
        uncertain = set[bytes]().union(*(each.uncertain for each in callers))
        found = self._client.kv(f"{self.name}-tokens").get(Tokens.KEY)
        assert found is not None
        tokens = found.value.split(b" ")
        assert len(tokens) == len(set(tokens)), "a retried request counted twice"
        assert acknowledged <= set(tokens), "an acknowledged token was lost"
        assert set(tokens) <= acknowledged | uncertain, "a refused token is there"

    def _check_inserts(self) -> None:
        callers = [each for each in self.callers if isinstance(each, Inserts)]
        acknowledged = set[int]().union(*(each.acknowledged for each in callers))
        uncertain = set[int]().union(*(each.uncertain for each in callers))
        stored = {found.value["id"] for found in self._client.table(f"{self.name}.rows").scan()}
        assert acknowledged <= stored, "an acknowledged row was lost"
        assert stored <= acknowledged | uncertain, "a refused row is there"
        assert self._client.verify_indexes(f"{self.name}.rows").problems == ()


@contextmanager
def calling(client: Client, name: str, *, hasty: bool = True) -> Iterator[Crowd]:
    """Run callers for the length of a ``with`` block, then check the answers that they got."""
    crowd = Crowd(client, name, hasty=hasty)
    crowd.start()
    try:
        crowd.wait_for_progress()
        yield crowd
        crowd.wait_for_progress()
    finally:
        crowd.stop()
    crowd.check()
