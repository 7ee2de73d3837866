"""``cortado watch``: its output, its end, and its last message."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cortado.errors import SnapshotTooOld
from cortado.proto.v1 import watch_pb2
from cortado.store.cli.app import run
from cortado.store.client.values import timestamp_to_proto
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.packing import join
from support.fake_server import FakeServer, header, refuse


def reply(resolved: int, *changes: tuple[int, bytes, bytes | None]) -> watch_pb2.WatchKeyValueResponse:
    packed = watch_pb2.KvPackedChanges(
        versions=b"".join(bytes(Timestamp(0, ms, 0)) for ms, _, _ in changes),
        deletes=[place for place, (_, _, value) in enumerate(changes) if value is None],
    )
    packed.keys, packed.key_lengths = join([key for _, key, _ in changes])
    packed.values, packed.value_lengths = join([value or b"" for _, _, value in changes])
    return watch_pb2.WatchKeyValueResponse(
        header=header(), packed=packed, resolved=timestamp_to_proto(Timestamp(0, resolved, 0))
    )


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """Yield a server that sends one put and one delete, and then nothing more."""
    fake, over = FakeServer(), threading.Event()

    def serve(request: watch_pb2.WatchKeyValueRequest, context: Any) -> Iterator[Any]:
        context.add_callback(over.set)
        yield reply(1_000)
        yield reply(2_500, (2_000, b"a\n", b"\xff"), (2_500, b"a\n", None))
        over.wait(60)

    fake.handlers["Watch.KeyValue"] = serve
    with fake.running():
        yield fake
    over.set()


def test_lines_for_people_hold_a_change_each(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "kv", "n", "--until", "0.2500.0", "-e", server.endpoint]) == 0
    shown = capsys.readouterr()
    assert shown.out == (
        "1970-01-01 00:00:02.000Z  put     a\\x0a  \\xff\n"
        "1970-01-01 00:00:02.500Z  delete  a\\x0a\n"
    )  # fmt: skip
    assert shown.err == "complete up to 0.2500.0; continue with --after 0.2500.0\n"


def test_json_lines_hold_an_event_each(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "kv", "n", "--until", "0.2500.0", "-o", "json", "-e", server.endpoint]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"type": "resolved", "timestamp": "0.1000.0"},
        {"type": "put", "timestamp": "0.2000.0", "key": "a\\x0a", "value": "\\xff"},
        {"type": "delete", "timestamp": "0.2500.0", "key": "a\\x0a"},
        {"type": "resolved", "timestamp": "0.2500.0"},
    ]


def test_the_range_and_the_times_are_those_of_the_options(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--start", "a", "--end", "\\x62", "--after", "beginning", "--state", "--previous", "--resolved-ms", "7"]
    assert run(["watch", "kv", "n", *options, "--until", "0.2.0", "-e", server.endpoint]) == 0
    (request,) = server.calls("Watch.KeyValue")
    assert (request.namespace, request.range.start, request.range.end) == ("n", b"a", b"b")
    asked = request.options
    assert (asked.initial_state, asked.with_previous, asked.resolved_interval_ms) == (True, True, 7)
    assert asked.after.timestamp.wall_ms == 0
    assert asked.after.WhichOneof("kind") == "timestamp"


def test_history_that_is_gone_is_said_with_where_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer()
    server.handlers["Watch.KeyValue"] = lambda request, context: refuse(context, SnapshotTooOld("0.1.0", "0.7.0"))
    with server.running():
        assert run(["watch", "kv", "n", "--after", "0.1.0", "-e", server.endpoint]) == 2
    assert "0.7.0" in capsys.readouterr().err


def test_ctrl_c_ends_it_with_where_to_go_on(server: FakeServer) -> None:
    command = [sys.executable, "-m", "cortado.store.cli", "watch", "kv", "n", "-o", "json", "-e", server.endpoint]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert json.loads(lines[-1]) == {"type": "resolved", "timestamp": "0.2500.0"}
    assert (process.returncode, errors) == (130, "complete up to 0.2500.0; continue with --after 0.2500.0\n")
