"""Calls of clients to nodes: a request, a reply, and the error of a broken connection."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from support.simulation.loop import NodeLoop

if TYPE_CHECKING:
    from cortado.store.host.host import Host as NodeHost
    from support.simulation.process import Life

T = TypeVar("T")


class Refused(Exception):
    """No process listens there: the request did not arrive."""


class Lost(Exception):
    """No answer: the connection broke, or the caller's patience ended. It may have happened, and may yet."""


class Calls:
    """Carries calls from the clients' loop to the loop of the life that a node has when they arrive."""

    def __init__(self, world: NodeLoop, source: random.Random, find: Callable[[str], Life | None]) -> None:
        self._world = world
        self._random = source
        self._find = find
        self.cut_off: set[str] = set()
        """Nodes that clients can't reach."""

    async def call(self, node_id: str, make: Callable[[NodeHost], Awaitable[T]], timeout_ms: float) -> T:
        """Run ``make`` on the node. Raises Refused, Lost, or the errors of ``make``."""
        reply: asyncio.Future[Any] = self._world.create_future()
        timer = self._world.call_later(timeout_ms / 1000, _settle, reply, None, Lost("no answer in time"))
        self._world.call_later(self._delay_s(), self._arrive, node_id, make, reply)
        try:
            return await reply  # type: ignore[no-any-return]
        finally:
            timer.cancel()

    def _delay_s(self) -> float:
        return self._random.uniform(0.1, 1.0) / 1000

    def _arrive(self, node_id: str, make: Callable[[NodeHost], Awaitable[Any]], reply: asyncio.Future[Any]) -> None:
        if node_id in self.cut_off:
            return
        life = self._find(node_id)
        if life is None or not life.is_listening:
            _settle(reply, None, Refused(f"{node_id} does not listen"))
            return
        life.callers[reply] = None
        life.loop.call_soon(self._serve, life, node_id, make, reply)

    def _serve(
        self, life: Life, node_id: str, make: Callable[[NodeHost], Awaitable[Any]], reply: asyncio.Future[Any]
    ) -> None:
        async def handler() -> None:
            try:
                result = await make(life.node)
                problem: BaseException | None = None
            except Exception as error:
                result, problem = None, error
            if node_id not in self.cut_off:
                self._world.call_later(self._delay_s(), _settle, reply, result, problem)

        task = life.loop.create_task(handler(), name="call")

        def ended(_reply: object) -> None:
            life.callers.pop(reply, None)
            # Half of those who lose patience hang up, and the server cancels their call; the others are just deaf.
            if not task.done() and self._random.random() < 0.5:
                life.loop.call_soon(task.cancel)

        reply.add_done_callback(ended)

    def broken(self, life: Life) -> None:
        """Break the dead node's connections, soon."""
        for reply in life.callers:
            self._world.call_later(self._delay_s(), _settle, reply, None, Lost("the connection broke"))
        life.callers.clear()


def _settle(reply: asyncio.Future[Any], result: object, problem: BaseException | None) -> None:
    if reply.done():
        return
    if problem is None:
        reply.set_result(result)
    else:
        reply.set_exception(problem)
        reply.exception()
