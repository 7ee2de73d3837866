"""How fast the transactions of a client that conflict are tried again, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import WriteConflict
from cortado.store.client import AsyncClient, AsyncTransaction, Client, transaction_runs
from cortado.store.client.blocking.drive import run as run_step
from cortado.store.client.blocking.runtime import BlockingRuntime
from cortado.store.client.runtime import Environment
from cortado.store.client.transaction_runs import BUDGET_FIRST, BUDGET_MAX, PAUSE_MAX_S, Pace, pause_s
from support.commits import CONFLICT, answering, run_adds
from support.faces import FACES, open_client
from support.fake_server import FakeServer


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().running() as running:
        yield running


class VirtualTime:
    """Time that passes only while a task sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept_s: list[float] = []
        self.environment = Environment(monotonic_s=lambda: self.now_s, sleep_s=self._sleep, random=lambda: 1.0)

    def _sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds


def test_a_function_runs_again_until_the_time_is_over_however_often_others_were_faster(server: FakeServer) -> None:
    """The pauses grow, and get shorter towards the end: those that wait longest must not be overtaken by new ones."""
    time = VirtualTime()
    server.handlers["Transactions.Commit"] = answering(CONFLICT)
    with Client(server.endpoint, timeout_s=10, environment=time.environment) as client, pytest.raises(WriteConflict):
        run_adds(client)
    assert time.slept_s[:8] == [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, pytest.approx(0.468, abs=0.001)]
    assert time.slept_s[8:] == sorted(time.slept_s[8:], reverse=True)
    assert 9.9 < time.now_s < 10
    assert len(time.slept_s) > BUDGET_FIRST


@pytest.mark.parametrize("face", FACES)
def test_a_client_without_a_budget_tries_on(server: FakeServer, face: str) -> None:
    with open_client(face, server.endpoint, timeout_s=10, environment=Environment(random=lambda: 0.0)) as client:
        for conflicts in (30, 20):
            server.handlers["Transactions.Commit"] = answering(*[CONFLICT] * conflicts, None)
            assert run_adds(client) == list(range(1, conflicts + 2))


def test_a_number_of_attempts_and_the_time_both_end_it(server: FakeServer) -> None:
    time = VirtualTime()
    server.handlers["Transactions.Commit"] = answering(CONFLICT)
    with Client(server.endpoint, timeout_s=1, environment=time.environment) as client:
        with pytest.raises(WriteConflict):
            run_adds(client, attempts=12)
        assert len(server.calls("Transactions.Commit")) == 12
        assert time.now_s < 1
        with pytest.raises(WriteConflict):
            run_adds(client, attempts=1_000)
        assert 24 < len(server.calls("Transactions.Commit")) < 200


def without_budget() -> Pace:
    pace = Pace(BlockingRuntime())
    run = pace.begin()
    for _ in range(int(BUDGET_FIRST)):
        pace.conflict(run)
    pace.end(run, committed=False)
    return pace


def test_conflicts_that_nothing_pays_for_put_all_but_one_in_line_and_each_is_let_in_in_turn() -> None:
    pace = without_budget()
    runs = [pace.begin() for _ in range(8)]
    assert all(run.is_in for run in runs)
    for run in runs:
        pace.conflict(run)
    assert [run.is_in for run in runs] == [False] * 7 + [True]
    for ended, following in pairwise([runs[7], *runs[:7]]):
        later = pace.begin()
        assert not later.is_in, "nobody overtakes those in line"
        pace.end(later, committed=False)
        pace.end(ended, committed=False)
        assert following.is_in
        assert following.let_in is not None
        assert run_step(following.let_in.wait(0))


@given(
    st.lists(st.tuples(st.sampled_from(["begin", "conflict", "commit", "give up"]), st.integers(0, 30)), max_size=200)
)
def test_whatever_happens_there_is_nobody_in_line_while_there_is_room(steps: list[tuple[str, int]]) -> None:
    pace = without_budget()
    runs: list[Any] = []
    for step, place in steps:
        if step == "begin":
            runs.append(pace.begin())
        elif runs and step == "conflict":
            pace.conflict(runs[place % len(runs)])
        elif runs:
            pace.end(runs.pop(place % len(runs)), committed=step == "commit")
        waiting = [run for run in runs if not run.is_in]
        assert not waiting or len(runs) > len(waiting), "one at least is in"
        assert {id(run) for run in waiting} == {id(run) for run in pace._line}
        assert not waiting or pace._in + 1 > pace._room
    for run in runs:
        pace.end(run, committed=True)
    assert pace.begin().is_in


def test_a_task_that_is_cancelled_in_line_keeps_nobody_out(server: FakeServer) -> None:
    async def main() -> None:
        async with AsyncClient(server.endpoint, timeout_s=10) as client:
            pace = client._pace
            outer = [pace.begin(), pace.begin()]
            while outer[0].is_in:
                for run in outer:
                    pace.conflict(run)

            async def nothing(_: AsyncTransaction) -> str:
                return "done"

            first, second = asyncio.create_task(client.run(nothing)), asyncio.create_task(client.run(nothing))
            await asyncio.sleep(0)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            for run in outer:
                pace.end(run, committed=True)
            assert await second == "done"
            assert not pace._line

    asyncio.run(main())


def test_commits_widen_the_room_again() -> None:
    pace = without_budget()
    first, second = pace.begin(), pace.begin()
    for run in (first, second):
        pace.conflict(run)
    pace.end(second, committed=True)
    for _ in range(1_000):
        pace.end(pace.begin(), committed=True)
    assert first.is_in
    assert all(pace.begin().is_in for _ in range(80))


def test_a_run_that_is_not_let_in_tries_all_the_same(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that runs in the function of another would else wait for itself."""
    monkeypatch.setattr(transaction_runs, "IN_LINE_S_MAX", 0.01)
    server.handlers["Transactions.Commit"] = answering(None)
    with Client(server.endpoint, timeout_s=5) as client:
        pace = client._core._pace
        outer = [pace.begin(), pace.begin()]
        while outer[0].is_in:
            for run in outer:
                pace.conflict(run)
        assert run_adds(client) == [1]
        assert pace.begin().is_in is False
        for run in outer:
            pace.end(run, committed=False)


def test_a_budget_has_a_bound_and_pauses_have_one() -> None:
    pace = Pace(BlockingRuntime())
    for _ in range(10_000):
        pace.end(pace.begin(), committed=True)
    runs = [pace.begin() for _ in range(2_000)]
    paid = 0
    while all(run.is_in for run in runs):
        pace.conflict(runs[paid])
        paid += 1
    assert paid - 1 == BUDGET_MAX
    assert pause_s(1, 60.0, 0.5) == 0.0025
    assert pause_s(1_000, 60.0, 1.0) == PAUSE_MAX_S
