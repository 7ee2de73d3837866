"""``cortado dev up`` and ``down``: a cluster on this machine, to develop and to try things out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cortado.errors import InvalidArgument
from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.common_options import CLUSTER_DIRECTORY, ClusterDirOption
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.local_cluster.ports import PORT_DEFAULT


@command(
    "dev up",
    in_shell=False,
    remote=False,
    examples="""
        cortado dev up
        cortado dev up --demo
        cortado dev up --nodes 3 --detach
        cortado dev up --nodes 5 --dir /tmp/five --port 7700 --tls
    """,
)
def up(
    session: Session,
    nodes: Annotated[
        int | None,
        Option(
            help="The number of nodes; a larger number than before adds some.",
            parser=whole("--nodes"),
            show_default="as many as there are, at first 3",
            metavar="N",
        ),
    ] = None,
    directory: ClusterDirOption = CLUSTER_DIRECTORY,
    port: Annotated[
        int,
        Option(help="The first node's port; the others take the next free ones.", parser=whole("--port"), metavar="N"),
    ] = PORT_DEFAULT,
    tls: Annotated[bool, Option("--tls", help="Encrypt all connections, with certificates made for that.")] = False,
    config: Annotated[
        Path | None,
        Option(help="Settings for all nodes, a file as cortado server --config takes it.", metavar="PATH"),
    ] = None,
    detach: Annotated[
        bool | None,
        Option("--detach/--foreground", "-d", help="Return when the cluster is ready, and leave it running."),
    ] = None,
    demo: Annotated[
        bool,
        Option("--demo", help="Fill it with a year of flights, show commands to try, and leave it running."),
    ] = False,
) -> None:
    """Run a cluster on this machine, until Ctrl-C, or detached until cortado dev down.

    Nodes that die are restarted, unless their settings or their directory are the cause. Run again, it continues the
    cluster of the directory; a node that was removed stays removed.

    Needs the extra [server], and [demo] for --demo: pip install 'cortadodb[server,demo]'.
    """
    from cortado.store.cli.local_clusters import is_up, start

    if demo:
        from cortado.store.local_cluster.demo import data_folder

        if detach is False:
            raise InvalidArgument("--foreground", "must not be given together with --demo, which leaves it running")
        data_folder()  # Without its data the cluster is not started.
    if demo and is_up(directory):
        session.show.note(f"the cluster in {directory} is up already, and stays as it is")
    else:
        start(directory, nodes=nodes, port=port, has_tls=tls, config=config, is_detached=detach or demo)
    if demo:
        from cortado.store.cli.demo import fill_and_tell

        fill_and_tell(session, directory)


@command(
    "dev down",
    remote=False,
    examples="""
        cortado dev down
        cortado dev down --dir /tmp/five
    """,
)
def down(_: Session, directory: ClusterDirOption = CLUSTER_DIRECTORY) -> Answer:
    """Stop a cluster on this machine. Its data stays; cortado dev up starts it again."""
    from cortado.store.cli.local_clusters import stop

    was_up = stop(directory)
    return Said("stopped" if was_up else "it was not up", {"was_up": was_up})
