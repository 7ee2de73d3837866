"""A cluster on this machine, started and stopped: in the foreground, or with a supervisor that stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from cortado.errors import Unavailable
from cortado.store.cli.terminal import harmless
from cortado.store.files.regular_files import create_anew
from cortado.store.local_cluster.files import ClusterFiles, Run
from cortado.store.local_cluster.prepare import check_count, connect, prepare
from cortado.store.local_cluster.supervisor import Supervisor, say_on_stdout

_POLL_S: Final = 0.05
_STOPPED_S: Final = 30.0


def start(
    directory: Path, *, nodes: int | None, port: int, has_tls: bool, config: Path | None, is_detached: bool
) -> None:
    """Run the cluster until Ctrl-C, or detached. Raises InvalidArgument, Unavailable."""
    check_count(nodes)
    files = ClusterFiles(directory)
    with files.locked():
        plan = prepare(files, nodes=nodes, port=port, has_tls=has_tls, config=config)
        say_on_stdout(f"{len(plan.nodes)} nodes in {directory}; their logs are in {directory}/*/server.log")
        if not is_detached:
            Supervisor(files, plan, lambda now: connect(files, now), say_on_stdout).run()
            return
    _detached(files)


def is_up(directory: Path) -> bool:
    """Return whether its supervisor runs. Raises InvalidArgument, DataDirectoryError."""
    return ClusterFiles(directory).running() is not None


def stop(directory: Path) -> bool:
    """Stop the cluster; return whether it was up. Raises NotFound, Unavailable."""
    files = ClusterFiles(directory)
    files.read_plan()
    run = files.read_run()
    was_up = run.supervisor is not None and run.supervisor.send(signal.SIGTERM, holding=files.lock)
    _wait_until_gone(files, run)
    return was_up


def _detached(files: ClusterFiles) -> None:
    """Start a detached supervisor, and show its output until the cluster is ready. Raises Unavailable."""
    with os.fdopen(create_anew(files.supervisor_log), "wb") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "cortado.store.local_cluster", str(files.directory.absolute())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0"},
        )
    try:
        _show_until_ready(files, supervisor)
    except KeyboardInterrupt:
        supervisor.terminate()
        supervisor.wait()
        raise
    supervisor.returncode = 0  # It goes on without us: Python must not complain that it was not waited for.


def _show_until_ready(files: ClusterFiles, supervisor: subprocess.Popen[bytes]) -> None:
    shown = 0
    while True:
        run = files.read_run()
        is_over = supervisor.poll() is not None
        is_ours = run.supervisor is not None and run.supervisor.pid == supervisor.pid
        with files.supervisor_log.open("rb") as log:
            log.seek(shown)
            said = log.read()
        shown += len(said)
        sys.stdout.write(harmless(said.decode(errors="replace")))
        sys.stdout.flush()
        if is_over:
            why = files.read_run().problem
            if why:
                raise Unavailable(why)
            raise Unavailable(f"the supervisor ended with {supervisor.returncode}; see {files.supervisor_log}")
        if is_ours and run.problem:
            raise Unavailable(f"the cluster is not complete: {run.problem}; cortado dev down stops it")
        if is_ours and run.is_ready:
            return
        time.sleep(_POLL_S)


def _wait_until_gone(files: ClusterFiles, run: Run) -> None:
    """Wait for the supervisor to end, and for the nodes if it had died before them."""
    deadline_s = time.monotonic() + _STOPPED_S
    while run.supervisor is not None and run.supervisor.is_alive():
        if time.monotonic() > deadline_s:
            raise Unavailable(f"the supervisor (process {run.supervisor.pid}) does not end")
        time.sleep(_POLL_S)
    for name, node in run.nodes.items():
        if node.process is not None:
            node.process.send(signal.SIGKILL, holding=files.log(name))
