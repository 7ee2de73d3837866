"""``cortado cluster``: a cluster on this machine. How it is looked at and hurt is in the modules beside this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Final

from cortado.errors import Unavailable
from cortado.store.cli.commands.cluster_options import DIRECTORY, DirectoryOption
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Option
from cortado.store.cli.session import Session
from cortado.store.cli.terminal import harmless
from cortado.store.cli.tree import command
from cortado.store.local_cluster.files import ClusterFiles, Run
from cortado.store.local_cluster.ports import PORT_DEFAULT
from cortado.store.local_cluster.prepare import NODES_DEFAULT, check_count, connect, prepare
from cortado.store.local_cluster.supervisor import Supervisor, say_on_stdout

_POLL_S: Final = 0.05
_STOPPED_S: Final = 30.0


# --- up and down -----------------------------------------------------------------------------------------------


@command(
    "cluster up",
    remote=False,
    examples="""
        cortado cluster up
        cortado cluster up --nodes 3 --detach
        cortado cluster up --nodes 5 --dir /tmp/five --port 7700 --tls
    """,
)
def up(
    _: Session,
    nodes: Annotated[
        int | None,
        Option(
            help="How many nodes; more than there are adds some.",
            parser=whole("--nodes"),
            show_default=f"as many as there are, at first {NODES_DEFAULT}",
            metavar="N",
        ),
    ] = None,
    directory: DirectoryOption = DIRECTORY,
    port: Annotated[
        int,
        Option(help="The first node's port; the others take the next free ones.", parser=whole("--port"), metavar="N"),
    ] = PORT_DEFAULT,
    tls: Annotated[bool, Option("--tls", help="Encrypt all connections; makes certificates.")] = False,
    config: Annotated[
        Path | None,
        Option(help="Settings for all nodes, a file as cortado server --config takes it.", metavar="PATH"),
    ] = None,
    detach: Annotated[
        bool,
        Option("--detach/--foreground", "-d", help="Return when it is ready, and leave it running."),
    ] = False,
) -> None:
    """Run a cluster on this machine, until Ctrl-C, or detached until cortado cluster down.

    Nodes that die are started again, unless it is their settings or their directory that is wrong. A second time,
    the same cluster goes on from its directory; a node that was removed is left alone.

    Needs the extra [server]: pip install 'cortado[server]'.
    """
    check_count(nodes)
    files = ClusterFiles(directory)
    with files.locked():
        plan = prepare(files, nodes=nodes, port=port, has_tls=tls, config=config)
        say_on_stdout(f"{len(plan.nodes)} nodes in {directory}; their logs are in {directory}/*/server.log")
        if not detach:
            Supervisor(files, plan, lambda now: connect(files, now), say_on_stdout).run()
            return
    _detached(files)


def _detached(files: ClusterFiles) -> None:
    """Start a supervisor of its own, and show what it says until the cluster is ready. Raises Unavailable."""
    with files.supervisor_log.open("wb") as log:
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
    supervisor.returncode = 0  # It goes on without us: nobody is to complain that it was not waited for.


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
            raise Unavailable(f"the cluster is not complete: {run.problem}; cortado cluster down stops it")
        if is_ours and run.is_ready:
            return
        time.sleep(_POLL_S)


@command(
    "cluster down",
    remote=False,
    examples="""
        cortado cluster down
        cortado cluster down --dir /tmp/five
    """,
)
def down(session: Session, directory: DirectoryOption = DIRECTORY) -> None:
    """Stop a cluster on this machine. Its data stays; cortado cluster up goes on with it."""
    files = ClusterFiles(directory)
    files.read_plan()
    run = files.read_run()
    was_up = run.supervisor is not None and run.supervisor.send(signal.SIGTERM)
    _wait_until_gone(run)
    if session.as_json:
        session.show.json({"was_up": was_up})
    else:
        session.show.line("stopped" if was_up else "it was not up")


def _wait_until_gone(run: Run) -> None:
    """The supervisor, and where that had died before them the nodes."""
    nodes = [each.process for each in run.nodes.values() if each.process is not None]
    deadline_s = time.monotonic() + _STOPPED_S
    while run.supervisor is not None and run.supervisor.is_alive():
        if time.monotonic() > deadline_s:
            raise Unavailable(f"the supervisor (process {run.supervisor.pid}) does not end")
        time.sleep(_POLL_S)
    for each in nodes:
        each.send(signal.SIGKILL)
