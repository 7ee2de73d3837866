"""Calls that were begun in place, and go on in a task."""

from __future__ import annotations

import asyncio
import inspect

from cortado.store.server.driven import rest_of


def test_the_rest_of_a_call_is_a_coroutine_that_a_task_takes_on_every_python() -> None:
    async def main() -> None:
        waited: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def call() -> str:
            return await waited

        begun = call()
        rest = rest_of(begun, begun.send(None))
        assert inspect.iscoroutine(rest), "a generator is one on Python 3.11 alone"
        task = asyncio.create_task(rest)
        waited.set_result("answered")
        assert await task == "answered"

    asyncio.run(main())
