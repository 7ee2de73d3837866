"""``cortado dev status``: the nodes of a cluster on this machine, whether they run or not."""

from __future__ import annotations

from cortado.store.cli.answers import Answer
from cortado.store.cli.common_options import CLUSTER_DIRECTORY, ClusterDirOption
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@command(
    "dev status",
    remote=False,
    examples="""
        cortado dev status
        cortado dev status --dir /tmp/five -o json
    """,
)
def status(_: Session, directory: ClusterDirOption = CLUSTER_DIRECTORY) -> Answer:
    """Show the nodes of a cluster on this machine: their processes, the leader, and the partitions."""
    from cortado.store.cli.dev_nodes import cluster_at

    return cluster_at(directory)
