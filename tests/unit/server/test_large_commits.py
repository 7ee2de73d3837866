"""A commit that names many attempts: they are put together beside the loop, and refused as few are."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cortado.errors import InvalidArgument
from cortado.proto.v1 import large_transactions_pb2 as pb
from cortado.store.host.host import Host
from cortado.store.server import large_transactions_service as service
from cortado.store.staging.records import ATTEMPTS_MAX, find_record
from cortado.store.staging.stage import attempt_of
from support.large_transactions import A, Scene
from support.node_world import World


def scene(scenario: Callable[[Scene], Awaitable[None]]) -> None:
    world = World()

    async def run() -> None:
        (node,) = await world.grow("n1")
        await scenario(await Scene.make(node))

    world.run(run)


def committing(attempts: dict[int, int]) -> pb.CommitLargeTransactionRequest:
    return pb.CommitLargeTransactionRequest(transaction_id=A, tasks=attempts.keys(), attempts=attempts.values())


async def begin(at: Scene) -> None:
    tables = [pb.TransactionTable(database="d", table="t")]
    await at.calls.begin(pb.BeginLargeTransactionRequest(transaction_id=A, tables=tables))


def test_the_loop_puts_together_no_more_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = random.Random(7).sample(range(1 << 20), ATTEMPTS_MAX)
    at_once = on_loop = 0
    is_beside = False

    def counted(task: int, attempt: int) -> int:
        nonlocal at_once, on_loop
        at_once += 1
        on_loop += not is_beside
        return attempt_of(task, attempt)

    def beside(host: Host) -> Callable[[Callable[[], Any]], Awaitable[Any]]:
        scan = host.process.scan_threads.scan

        async def run(step: Callable[[], Any]) -> Any:
            def flagged() -> Any:
                nonlocal is_beside, at_once
                is_beside, at_once = True, 0
                try:
                    return step()
                finally:
                    is_beside = False
                    assert at_once <= service._ATTEMPTS_AT_ONCE

            return await scan(flagged)

        return run

    async def scenario(at: Scene) -> None:
        await begin(at)
        monkeypatch.setattr(service, "attempt_of", counted)
        monkeypatch.setattr(at.node.process.scan_threads, "scan", beside(at.node))
        await at.calls.commit(committing(dict.fromkeys(tasks, 3)))
        await at.node.meta.reads.caught_up()
        record = find_record(at.node.meta.reader(at.node.meta.read_ts()), A)
        assert record is not None
        assert record.attempts in ((), tuple(attempt_of(task, 3) for task in sorted(tasks)))
        assert on_loop == 0

    scene(scenario)


@pytest.mark.parametrize("count", [3, 20_000])
def test_a_task_that_comes_twice_is_refused(count: int) -> None:
    async def scenario(at: Scene) -> None:
        await begin(at)
        twice = pb.CommitLargeTransactionRequest(
            transaction_id=A, tasks=[*range(count), 1], attempts=[*([0] * count), 7]
        )
        with pytest.raises(InvalidArgument, match=f"{count + 1} tasks, of which {count} differ"):
            await at.calls.commit(twice)
        with pytest.raises(InvalidArgument, match="task: must be between 0 and 1048575"):
            await at.calls.commit(committing({**dict.fromkeys(range(count), 0), 1 << 20: 0}))

    scene(scenario)
