"""``cortado cluster``: a cluster on this machine, and ways to hurt it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cortado.errors import CortadoError, InvalidArgument, Unavailable
from cortado.store.cli.parse import whole
from cortado.store.cli.session import Session, command
from cortado.store.client import Client, Status
from cortado.store.local_cluster.files import ClusterFiles, NodePlan, Plan, Run
from cortado.store.local_cluster.ports import PORT_DEFAULT
from cortado.store.local_cluster.prepare import NODES_DEFAULT, client_tls, connect, prepare
from cortado.store.local_cluster.processes import ProcessId
from cortado.store.local_cluster.supervisor import Supervisor, say_on_stdout

_DIRECTORY: Final = Path("cortado-cluster")
_POLL_S: Final = 0.05
_STOPPED_S: Final = 30.0
_STATUS_TIMEOUT_S: Final = 1.0
_SIGNALS: Final = ("KILL", "TERM", "INT", "HUP", "QUIT", "ABRT", "SEGV")

_Dir = Annotated[
    Path, typer.Option("--dir", help="The cluster's directory.", metavar="PATH", show_default=str(_DIRECTORY))
]
_Node = Annotated[str, typer.Argument(help="The node's id, such as n1.", metavar="NODE", show_default=False)]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="A cluster on this machine, to develop and to try things out.", no_args_is_help=True)
    app.add_typer(group, name="cluster")
    _add_up(group)
    _add_down(group)
    _add_status(group)
    _add_signals(group)
    _add_partition(group)


# --- up and down -----------------------------------------------------------------------------------------------


def _add_up(group: typer.Typer) -> None:
    @command(
        group,
        "up",
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
            typer.Option(
                help="How many nodes; more than there are adds some.",
                parser=whole("--nodes"),
                show_default=f"as many as there are, at first {NODES_DEFAULT}",
                metavar="N",
            ),
        ] = None,
        directory: _Dir = _DIRECTORY,
        port: Annotated[
            int,
            typer.Option(
                help="The first node's port; the others take the next free ones.", parser=whole("--port"), metavar="N"
            ),
        ] = PORT_DEFAULT,
        tls: Annotated[bool, typer.Option("--tls", help="Encrypt all connections; makes certificates.")] = False,
        config: Annotated[
            Path | None,
            typer.Option(help="Settings for all nodes, a file as cortado server --config takes it.", metavar="PATH"),
        ] = None,
        detach: Annotated[
            bool,
            typer.Option("--detach/--foreground", "-d", help="Return when it is ready, and leave it running."),
        ] = False,
    ) -> None:
        """Run a cluster on this machine, until Ctrl-C, or detached until cortado cluster down.

        Nodes that die are started again. A second time, the same cluster goes on from its directory.

        Needs the extra \\[server]: pip install 'cortado\\[server]'.
        """
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
        sys.stdout.write(said.decode(errors="replace"))
        sys.stdout.flush()
        if is_over:
            raise Unavailable(f"the supervisor ended with {supervisor.returncode}; see {files.supervisor_log}")
        if is_ours and run.problem:
            raise Unavailable(f"the cluster is not complete: {run.problem}; cortado cluster down stops it")
        if is_ours and run.is_ready:
            return
        time.sleep(_POLL_S)


def _add_down(group: typer.Typer) -> None:
    @command(
        group,
        "down",
        remote=False,
        examples="""
            cortado cluster down
            cortado cluster down --dir /tmp/five
        """,
    )
    def down(session: Session, directory: _Dir = _DIRECTORY) -> None:
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


# --- what it does ----------------------------------------------------------------------------------------------


def _add_status(group: typer.Typer) -> None:
    @command(
        group,
        "status",
        remote=False,
        examples="""
            cortado cluster status
            cortado cluster status --dir /tmp/five -o json
        """,
    )
    def status(session: Session, directory: _Dir = _DIRECTORY) -> None:
        """Show the nodes of a cluster on this machine: which run, who leads, who is cut off from whom."""
        files = ClusterFiles(directory)
        plan, run = files.read_plan(), files.read_run()
        is_up = run.supervisor is not None and run.supervisor.is_alive()
        with ThreadPoolExecutor(len(plan.nodes)) as pool:
            nodes = list(pool.map(lambda node: _describe(files, plan, run, node), plan.nodes))
        if session.as_json:
            session.show.json(
                {
                    "dir": str(directory.absolute()),
                    "up": is_up,
                    "ready": is_up and run.is_ready,
                    "problem": run.problem,
                    "supervisor_pid": run.supervisor.pid if is_up and run.supervisor is not None else None,
                    "endpoints": plan.endpoints,
                    "nodes": nodes,
                }
            )
            return
        session.show.line(f"endpoints: {plan.endpoints}")
        columns = ("node", "address", "process", "state", "role", "term", "applied", "starts", "cut off from")
        session.show.table(columns, [_row(each) for each in nodes])
        if not is_up:
            session.show.note("it is not up; cortado cluster up goes on with it")
        elif run.problem:
            session.show.note(f"it is not complete: {run.problem}")


def _describe(files: ClusterFiles, plan: Plan, run: Run, node: NodePlan) -> dict[str, Any]:
    last = run.nodes.get(node.node_id)
    process = None if last is None else last.process
    found = None
    state = "down" if node.is_announced or node.is_voter else "not made yet"
    if process is not None and process.is_alive():
        state = "paused" if process.is_paused() else "starting"
        found = None if state == "paused" else _ask(files, plan, node)
        state = state if found is None else found.state
    return {
        "node_id": node.node_id,
        "address": node.address,
        "pid": None if process is None or state == "down" else process.pid,
        "state": state,
        "role": None if found is None else found.role,
        "leader": None if found is None else found.leader,
        "term": None if found is None else found.term,
        "applied_index": None if found is None else found.applied_index,
        "last_index": None if found is None else found.last_index,
        "starts": 0 if last is None else last.starts,
        "last_exit": None if last is None else last.last_exit,
        "cut_off_from": sorted(files.read_cut(node.node_id)),
        "data_dir": str(files.data(node.node_id).absolute()),
        "log": str(files.log(node.node_id).absolute()),
    }


def _ask(files: ClusterFiles, plan: Plan, node: NodePlan) -> Status | None:
    try:
        with Client(node.address, timeout_s=_STATUS_TIMEOUT_S, tls=client_tls(files, plan)) as client:
            return client.status()
    except CortadoError:
        return None


def _row(node: dict[str, Any]) -> list[Any]:
    shown = [node[each] for each in ("node_id", "address", "pid", "state", "role", "term", "applied_index", "starts")]
    return ["-" if each is None else each for each in shown] + [" ".join(node["cut_off_from"]) or "-"]


# --- hurting it ------------------------------------------------------------------------------------------------


def _add_signals(group: typer.Typer) -> None:
    @command(
        group,
        "kill",
        remote=False,
        examples="""
            cortado cluster kill n2
            cortado cluster kill n2 --signal TERM
        """,
    )
    def kill(
        _: Session,
        node: _Node,
        directory: _Dir = _DIRECTORY,
        signal_name: Annotated[
            str, typer.Option("--signal", help=f"{', '.join(_SIGNALS[:-1])} or {_SIGNALS[-1]}.", metavar="NAME")
        ] = "KILL",
    ) -> None:
        """Kill a node, as a crash would. It is started again a moment later."""
        name = signal_name.upper().removeprefix("SIG")
        if name not in _SIGNALS:
            raise InvalidArgument("--signal", f"must be one of {', '.join(_SIGNALS)}", repr(signal_name))
        _signal(directory, node, signal.Signals[f"SIG{name}"])

    @command(group, "pause", remote=False, examples="cortado cluster pause n2")
    def pause(_: Session, node: _Node, directory: _Dir = _DIRECTORY) -> None:
        """Freeze a node (SIGSTOP): it keeps its connections, and answers nobody."""
        _signal(directory, node, signal.SIGSTOP)

    @command(group, "resume", remote=False, examples="cortado cluster resume n2")
    def resume(_: Session, node: _Node, directory: _Dir = _DIRECTORY) -> None:
        """Let a node that was paused go on."""
        _signal(directory, node, signal.SIGCONT)


def _signal(directory: Path, node_id: str, sent: signal.Signals) -> None:
    files = ClusterFiles(directory)
    files.read_plan().node(node_id)
    last = files.read_run().nodes.get(node_id)
    process: ProcessId | None = None if last is None else last.process
    if process is None or not process.send(sent):
        raise Unavailable(f"{node_id} does not run")


def _add_partition(group: typer.Typer) -> None:
    @command(
        group,
        "partition",
        remote=False,
        examples="""
            cortado cluster partition n1
            cortado cluster partition n1 n2
        """,
    )
    def partition(
        _: Session,
        nodes: Annotated[
            list[str], typer.Argument(help="The nodes of one side; repeat.", metavar="NODE", show_default=False)
        ],
        directory: _Dir = _DIRECTORY,
    ) -> None:
        """Cut the connections between these nodes and the others, until cortado cluster heal.

        Clients still reach every node.
        """
        files = ClusterFiles(directory)
        plan = files.read_plan()
        side = {plan.node(each).node_id for each in nodes}
        others = {each.node_id for each in plan.nodes} - side
        if not others:
            raise InvalidArgument("NODE", "at least one node must be on the other side")
        for node_id in side:
            files.write_cut(node_id, others)
        for node_id in others:
            files.write_cut(node_id, side)

    @command(group, "heal", remote=False, examples="cortado cluster heal")
    def heal(_: Session, directory: _Dir = _DIRECTORY) -> None:
        """Undo cortado cluster partition."""
        files = ClusterFiles(directory)
        for node in files.read_plan().nodes:
            files.write_cut(node.node_id, set())
