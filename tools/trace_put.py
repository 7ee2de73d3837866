"""Traces one put through three nodes in memory: how many files, functions and calls of ours it runs.

    PYTHONPATH=tests .venv/bin/python tools/trace_put.py [--calls N] [--list files|functions|crossings]

The put is one ``KeyValue.Put`` on a client's stream, at the leader of three voters. It is traced from message to
reply, and the followers with it. Time is virtual; disks and network are in memory. So the tracer sees each call of a
Python function in ``store/``, ``raft/``, ``schema/`` and ``src/``, and no socket, thread or LMDB transaction. A resumed
coroutine counts as a call. A crossing is a call whose file is not that of the call before it.

``tests/unit/node/test_traced_put.py`` bounds the numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from cortado.proto.v1 import calls_pb2, kv_pb2
from cortado.store.host.host import Host
from cortado.store.observe.requests import Requests
from cortado.store.server.calls_service import CallsService
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.runs.methods import run_methods
from support.node_world import World

ROOT: Final = Path(__file__).resolve().parents[1]
PRODUCT: Final = ("store", "raft", "schema", "src")
METHOD: Final = "cortado.v1.KeyValue/Put"
PUTS_BEFORE: Final = 5
"""They fill caches first."""


@dataclass(slots=True)
class Trace:
    """The calls of Python functions of the product, counted by their code."""

    functions: Counter[CodeType] = field(default_factory=Counter)
    crossings: Counter[tuple[str, str]] = field(default_factory=Counter)
    _files: dict[CodeType, str | None] = field(default_factory=dict)
    _last: str | None = None

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count a call. For ``sys.setprofile``."""
        if event != "call":
            return
        code = frame.f_code
        if code not in self._files:
            self._files[code] = _product_file(code)
        file = self._files[code]
        if file is None:
            return
        self.functions[code] += 1
        if self._last is not None and file != self._last:
            self.crossings[self._last, file] += 1
        self._last = file

    def calls_by_file(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for code, calls in self.functions.items():
            found[str(self._files[code])] += calls
        return found

    def calls_by_function(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for code, calls in self.functions.items():
            found[f"{self._files[code]}:{code.co_firstlineno} {code.co_qualname}"] += calls
        return found

    def crossings_by_pair(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for pair, count in self.crossings.items():
            found[" <-> ".join(sorted(pair))] += count
        return found


def _product_file(code: CodeType) -> str | None:
    """Return the file's path from the root; None for generated files, and files outside of the product."""
    path = Path(code.co_filename)
    if not path.is_absolute() or "_pb2" in path.name:
        return None
    path = path.resolve()
    if not path.is_relative_to(ROOT):
        return None
    found = path.relative_to(ROOT)
    return str(found) if found.parts[0] in PRODUCT else None


class Stream:
    """One client's stream of calls to a node."""

    def __init__(self, host: Host) -> None:
        requests = Requests()
        service = CallsService(
            [(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], KeyValueService(host))],
            requests=requests,
            runs=run_methods(host, requests),
        )
        self._sent: asyncio.Queue[calls_pb2.CallBatch] = asyncio.Queue()
        self._replies = service.exchange(self._messages())
        self._first_id = bytes(host.process.clock.now())
        self._count = 0

    async def _messages(self) -> AsyncGenerator[calls_pb2.CallBatch, None]:
        while True:
            yield await self._sent.get()

    async def put(self, calls: int) -> None:
        """Send ``calls`` puts in one message, and wait for all replies. Raises AssertionError if one is an error."""
        batch = calls_pb2.CallBatch()
        for _ in range(calls):
            self._count += 1
            request = kv_pb2.KvPutRequest(
                namespace="carts",
                key=b"key %d" % self._count,
                value=b"value",
                request_id=self._first_id + self._count.to_bytes(8),
            )
            batch.calls.add(id=self._count, method=METHOD, request=request.SerializeToString())
        self._sent.put_nowait(batch)
        answered = 0
        while answered < calls:
            for reply in calls_pb2.ReplyBatch.FromString(await anext(self._replies)).replies:
                assert not reply.status, reply.status
                answered += 1

    async def close(self) -> None:
        await self._replies.aclose()


def trace_put(calls: int = 1) -> Trace:
    """Trace ``calls`` puts that one message brings."""
    world = World()
    trace = Trace()

    async def scenario() -> None:
        await world.grow("n1", "n2", "n3")
        stream = Stream(world.leader())
        for _ in range(PUTS_BEFORE):
            await stream.put(calls)
        await world.settled()
        sys.setprofile(trace)
        try:
            await stream.put(calls)
        finally:
            sys.setprofile(None)
        await stream.close()
        for place in world.places.values():
            await place.stop()

    world.run(scenario)
    return trace


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Trace one put through three nodes in memory.")
    parser.add_argument("--calls", type=int, default=1, help="how many puts the message brings (default: 1)")
    parser.add_argument("--list", choices=["files", "functions", "crossings"], help="what to count, most first")
    options = parser.parse_args(arguments)
    trace = trace_put(options.calls)
    lists: dict[str, Any] = {
        "files": trace.calls_by_file,
        "functions": trace.calls_by_function,
        "crossings": trace.crossings_by_pair,
    }
    if options.list:
        for name, count in lists[options.list]().most_common():
            sys.stdout.write(f"{count:6d}  {name}\n")
    sys.stdout.write(
        f"{len(trace.calls_by_file())} files, {len(trace.functions)} functions, {trace.functions.total():,} calls, "
        f"{trace.crossings.total():,} changes of file\n"
    )


if __name__ == "__main__":
    main()
