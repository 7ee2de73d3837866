"""The watches of a running server: the health it reports, the nodes it is cut off from, and its parent process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from grpc_health.v1 import health, health_pb2

from cortado.errors import InvalidArgument
from cortado.store.server.watching import EXIT_ORPHANED, end_with_parent, follow_faults, report_health
from support.nodes import run, until


def test_health_follows_readiness_and_each_state_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        servicer, ready, state = health.aio.HealthServicer(), False, "no leader"
        watch = asyncio.ensure_future(report_health(servicer, ["", "a.B"], lambda: ready, lambda: state))

        async def is_serving(name: str) -> bool:
            answer = await servicer.Check(health_pb2.HealthCheckRequest(service=name), None)
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

        await until(lambda: "state: no leader" in caplog.text, "the first state is logged")
        assert not await is_serving("a.B")
        ready, state = True, "serving"
        await until(lambda: "state: serving" in caplog.text, "the next state is logged")
        assert await is_serving("")
        assert await is_serving("a.B")
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch

    run(scenario)
    assert [each.message for each in caplog.records] == ["state: no leader", "state: serving"]


def test_the_nodes_that_a_file_names_are_cut_and_healed_again(tmp_path: Path) -> None:
    file = tmp_path / "faults"

    async def scenario() -> None:
        cuts: list[set[str]] = []

        def cut(node_ids: Collection[str]) -> None:
            cuts.append(set(node_ids))

        watch = asyncio.ensure_future(follow_faults(file, cut))
        file.write_text("n2\nn3\n")
        await until(lambda: cuts[-1:] == [{"n2", "n3"}], "they are cut")
        file.write_text("n3\n")
        await until(lambda: cuts[-1:] == [{"n3"}], "one is healed")
        file.unlink()
        await until(lambda: cuts[-1:] == [set()], "no file, no cuts")
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch

    run(scenario)


def test_a_process_ends_with_the_one_that_holds_its_pipe() -> None:
    code = (
        "import sys, threading\nfrom cortado.store.server.watching import end_with_parent\n"
        "end_with_parent(int(sys.argv[1]))\nprint('watching', flush=True)\nthreading.Event().wait(60)"
    )
    ours, theirs = os.pipe()
    child = subprocess.Popen([sys.executable, "-c", code, str(ours)], pass_fds=(ours,), stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"watching\n"
    assert child.poll() is None
    os.close(theirs)
    assert child.wait(60) == EXIT_ORPHANED
    child.stdout.close()
    os.close(ours)


def test_what_is_no_pipe_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="parent-fd: is no open file"):
        end_with_parent(9_999)
