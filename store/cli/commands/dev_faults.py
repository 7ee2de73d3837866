"""``cortado dev kill``, ``pause``, ``resume``, ``partition``, ``heal``: ways to hurt a cluster on this machine."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated, Final

from cortado.errors import InvalidArgument, Unavailable
from cortado.store.cli.common_options import CLUSTER_DIRECTORY, ClusterDirOption, ClusterNodeArgument
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.local_cluster.files import ClusterFiles
from cortado.store.local_cluster.processes import ProcessId

_SIGNALS: Final = ("KILL", "TERM", "INT", "HUP", "QUIT", "ABRT", "SEGV")


@command(
    "dev kill",
    remote=False,
    examples="""
        cortado dev kill n2
        cortado dev kill n2 --signal TERM
    """,
)
def kill(
    _: Session,
    node: ClusterNodeArgument,
    directory: ClusterDirOption = CLUSTER_DIRECTORY,
    signal_name: Annotated[
        str, Option("--signal", help=f"{', '.join(_SIGNALS[:-1])} or {_SIGNALS[-1]}.", metavar="NAME")
    ] = "KILL",
) -> None:
    """Kill a node, as a crash would. It is restarted a moment later."""
    name = signal_name.upper().removeprefix("SIG")
    if name not in _SIGNALS:
        raise InvalidArgument("--signal", f"must be one of {', '.join(_SIGNALS)}", repr(signal_name))
    _signal(directory, node, signal.Signals[f"SIG{name}"])


@command("dev pause", remote=False, examples="cortado dev pause n2")
def pause(_: Session, node: ClusterNodeArgument, directory: ClusterDirOption = CLUSTER_DIRECTORY) -> None:
    """Pause a node (SIGSTOP): it keeps its connections open, and answers nothing."""
    _signal(directory, node, signal.SIGSTOP)


@command("dev resume", remote=False, examples="cortado dev resume n2")
def resume(_: Session, node: ClusterNodeArgument, directory: ClusterDirOption = CLUSTER_DIRECTORY) -> None:
    """Resume a paused node (SIGCONT)."""
    _signal(directory, node, signal.SIGCONT)


def _signal(directory: Path, node_id: str, sent: signal.Signals) -> None:
    files = ClusterFiles(directory)
    files.read_plan().node(node_id)
    last = files.read_run().nodes.get(node_id)
    process: ProcessId | None = None if last is None else last.process
    if process is None or not process.send(sent, holding=files.log(node_id)):
        raise Unavailable(f"{node_id} does not run")


@command(
    "dev partition",
    remote=False,
    examples="""
        cortado dev partition n1
        cortado dev partition n1 n2
    """,
)
def partition(
    _: Session,
    nodes: Annotated[list[str], Argument(help="The nodes on one side; repeat.", metavar="NODE")],
    directory: ClusterDirOption = CLUSTER_DIRECTORY,
) -> None:
    """Partition the network: cut these nodes off from the others, until cortado dev heal.

    Clients can still reach every node.
    """
    files = ClusterFiles(directory)
    plan = files.read_plan()
    side = {plan.node(each).node_id for each in nodes}
    others = {each.node_id for each in plan.members} - side
    if not others:
        raise InvalidArgument("NODE", "at least one node must be on the other side")
    for node_id in side:
        files.write_cut(node_id, others)
    for node_id in others:
        files.write_cut(node_id, side)


@command("dev heal", remote=False, examples="cortado dev heal")
def heal(_: Session, directory: ClusterDirOption = CLUSTER_DIRECTORY) -> None:
    """Remove all partitions."""
    files = ClusterFiles(directory)
    for node in files.read_plan().nodes:
        files.write_cut(node.node_id, set())
