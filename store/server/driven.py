"""Coroutines that are driven at once until they first wait, and go on as tasks only then.

Caveat: until it first waits, such a coroutine has no task of its own. It must not look at ``asyncio.current_task()``
before that, which ``asyncio.timeout`` and ``TaskGroup`` do.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


@coroutine
def resumed(begun: Coroutine[Any, Any, T], first: Any) -> Generator[Any, Any, T]:
    """Go on with ``begun``, which waits for ``first`` already, as the task that awaits this."""
    awaited = first
    try:
        while True:
            try:
                sent = yield awaited
            except GeneratorExit:
                begun.close()
                raise
            except BaseException as thrown:
                awaited = begun.throw(thrown)
            else:
                awaited = begun.send(sent)
    except StopIteration as done:
        reply: T = done.value
        return reply


async def rest_of(begun: Coroutine[Any, Any, T], first: Any) -> T:
    """Go on as :func:`resumed` does, as a coroutine for a task: from Python 3.12 on, a task refuses a generator."""
    return await resumed(begun, first)
