"""Seen from the kernel: between a put's arrival and its answer, the data file was synced."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.needs import need, need_tool
from support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.process

SYSTEM_CALLS = "trace=fdatasync,fsync,pwrite64,read,recvmsg,recvfrom,write,writev,sendmsg,sendto"
CALL = re.compile(r"^(\d+) +(?:(\w+)\(|<\.\.\. (\w+) resumed>)(.*)$")
RECEIVED = {"read", "recvmsg", "recvfrom"}
SENT = {"write", "writev", "sendmsg", "sendto"}


class Trace:
    """What strace wrote: for each call the lines at which it began and ended, and its text."""

    def __init__(self, text: str) -> None:
        self.calls: list[tuple[str, int, int, str]] = []
        open_calls: dict[str, tuple[str, int, str]] = {}
        for line, content in enumerate(text.splitlines()):
            match = CALL.match(content)
            if match is None:
                continue
            thread, begun, resumed, rest = match.groups()
            if resumed is not None:
                name, start, first = open_calls.pop(thread)
                self.calls.append((name, start, line, first + rest))
            elif rest.endswith("<unfinished ...>"):
                open_calls[thread] = (begun, line, rest)
            else:
                self.calls.append((begun, line, line, rest))

    def arrival(self, text: str) -> int:
        """The line at which the first message with ``text`` had arrived."""
        return min(end for name, _, end, said in self.calls if name in RECEIVED and text in said)

    def answer(self, text: str) -> int:
        """The line at which the first message with ``text`` was on its way out."""
        # The answer is remembered too, so it stands in a page of the data file before it is sent.
        sent = (call for call in self.calls if call[0] in SENT and "data.mdb" not in call[3])
        return min(start for _, start, _, said in sent if text in said)

    def synced_between(self, first: int, last: int) -> bool:
        """Whether data pages were flushed, and after them a meta page was written, within these lines."""
        flushed = [
            end
            for name, start, end, said in self.calls
            if name in ("fdatasync", "fsync") and "data.mdb" in said and " = 0" in said and first < start and end < last
        ]
        return any(
            name == "pwrite64"
            and "data.mdb" in said
            and said.endswith(" = 120")
            and start > min(flushed)
            and end < last
            for name, start, end, said in self.calls
            if flushed
        )


def test_every_acknowledged_put_was_synced_after_it_arrived_and_before_it_was_answered(tmp_path: Path) -> None:
    need_tool("strace")
    trace_file = tmp_path / "trace"
    # The tracer is a child, so that the process started is the server. The meta page goes through a descriptor that
    # was opened to write synchronously.
    tracer = ["strace", "-D", "-f", "-y", "-s", "65536", "-o", str(trace_file), "-e", SYSTEM_CALLS + ",openat"]
    server = ServerProcess(tmp_path / "data", under=tracer)
    try:
        try:
            server.start()
        except AssertionError:
            need("ptrace" not in server.log.lower(), "the privilege to trace processes")
            raise
        with Client(server.endpoint) as client, ThreadPoolExecutor(8) as pool:
            kv = client.kv("traced")
            names = [f"key-{number:03}-of-the-trace" for number in range(40)]
            etags = list(pool.map(lambda name: kv.put(name.encode(), b"v"), names))
        assert server.stop() == 0
    finally:
        server.kill()
    wait_until(lambda: "+++ exited with 0 +++" in trace_file.read_text().splitlines()[-1], "the trace is complete")
    text = trace_file.read_text()
    assert re.search(r'engine/data\.mdb", O_WRONLY\|O_DSYNC', text), "the meta page is written synchronously"
    trace = Trace(text)
    for name, etag in zip(names, etags, strict=True):
        arrival, answer = trace.arrival(name), trace.answer(etag)
        assert arrival < answer
        assert trace.synced_between(arrival, answer), f"{name} was answered before it was synced"
