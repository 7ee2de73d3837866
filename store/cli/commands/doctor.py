"""``cortado doctor``: whether all is well, and the data that a report about them needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cortado.store.cli.answers import Answer
from cortado.store.cli.common_options import CLUSTER_DIRECTORY
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

_LINES: Final = 200


@command(
    "doctor",
    strict=False,
    examples="""
        cortado doctor
        cortado doctor --endpoint 127.0.0.1:7621 --data-dir /var/lib/cortado
        cortado doctor --config /etc/cortado.toml --log /var/log/cortado.log --bundle doctor.tar.gz
        cortado doctor --dev cortado-cluster -o json
    """,
)
def doctor(
    session: Session,
    config: Annotated[
        Path | None,
        Option(help="A server's file of settings on this host.", metavar="PATH"),
    ] = None,
    data_dir: Annotated[
        list[Path] | None,
        Option(help="A node's data directory on this host; may be repeated.", metavar="PATH"),
    ] = None,
    log: Annotated[list[Path] | None, Option(help="A log file to examine; may be repeated.", metavar="FILE")] = None,
    lines: Annotated[
        int, Option(help="Number of lines taken of each log.", parser=whole("--lines"), metavar="N")
    ] = _LINES,
    dev: Annotated[
        Path | None,
        Option(
            help="The directory of a cluster that cortado dev up made.",
            metavar="PATH",
            show_default=f"{CLUSTER_DIRECTORY}, if it exists and no endpoint is given",
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        Option(help="Write everything to an archive, to attach to a report.", metavar="FILE.tar.gz"),
    ] = None,
) -> Answer:
    """Check whether all is well: the nodes, this host, a data directory, certificates and logs.

    Begin here if something seems wrong. The last lines name what is not checked, and the commands that check it.

    Nothing is changed, and the server may be running. Keys, values, documents, and the content of key files are left
    out. Exit code 8 if a check failed.
    """
    from cortado.store.cli.diagnosing import diagnose, local_cluster, sources_of

    files = local_cluster(session, dev)
    return diagnose(sources_of(session, files, config, tuple(data_dir or ()), tuple(log or ()), lines), bundle)
