"""``cortado dev logs``: the logs of the nodes of a cluster on this machine."""

from __future__ import annotations

import sys
from typing import Annotated, Final

from cortado.store.cli.common_options import CLUSTER_DIRECTORY, ClusterDirOption
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.local_cluster.files import ClusterFiles
from cortado.store.local_cluster.logs import follow, merged

_LINES: Final = 50


@command(
    "dev logs",
    remote=False,
    examples="""
        cortado dev logs
        cortado dev logs n2 --lines 200
        cortado dev logs -f
    """,
)
def logs(
    session: Session,
    node: Annotated[
        str | None, Argument(help="The node's id, such as n1.", metavar="NODE", show_default="all of them")
    ] = None,
    lines: Annotated[
        int, Option("--lines", "-n", help="Number of lines of each node.", parser=whole("--lines"), metavar="N")
    ] = _LINES,
    follow_on: Annotated[bool, Option("--follow", "-f", help="Show new lines as they come, until Ctrl-C.")] = False,
    directory: ClusterDirOption = CLUSTER_DIRECTORY,
) -> None:
    """Show the last log lines of the nodes of a cluster on this machine, in order of time."""
    files = ClusterFiles(directory)
    plan = files.read_plan()
    names = [each.node_id for each in plan.nodes] if node is None else [plan.node(node).node_id]
    paths = {name: files.log(name) for name in names}
    width = max(map(len, names))

    def show(name: str, line: str) -> None:
        if session.as_json:
            session.show.json({"node": name, "line": line})
        elif node is None:
            session.show.line(f"{name:{width}}  {line}")
        else:
            session.show.line(line)

    # Before the last lines are read, so that nothing that comes meanwhile is left out.
    coming = follow(paths)
    for each in merged(paths, lines):
        show(*each)
    if follow_on:
        sys.stdout.flush()
        for each in coming:
            show(*each)
            sys.stdout.flush()
