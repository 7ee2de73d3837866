"""``cortado backup``: a cluster's state in a directory."""

from __future__ import annotations

from typing import Annotated

from cortado.store.cli.answers import Answer, Fields, Said
from cortado.store.cli.common_options import AtOption, QuietOption, StreamsOption
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@command(
    "backup create",
    examples="""
        cortado backup create monday/
        cortado backup create tuesday/ --base monday/
        cortado backup create with-history/ --history --streams 4
        cortado backup create s3://backups/monday
    """,
)
def create(
    session: Session,
    directory: Annotated[str, Argument(help="The directory, or a URL; it must be empty.", metavar="DIR")],
    base: Annotated[
        str | None,
        Option("--base", help="Take what changed since the backup in this directory, alone.", metavar="DIR"),
    ] = None,
    history: Annotated[bool, Option("--history", help="Take all versions that can be read.")] = False,
    at: AtOption = None,
    streams: StreamsOption = 2,
    quiet: QuietOption = False,
) -> Answer:
    """Write all rows, pairs, indexes, schemas and tables to a directory, as of one timestamp.

    The same command goes on with a backup that was interrupted. Writes go on meanwhile, and are not in it.

    A URL needs the extra [remote], pip install 'cortado[remote]', and what fsspec needs for it: s3fs for s3://, gcsfs
    for gs://.
    """
    from cortado.store.backup.create import BackupRequest, create_backup
    from cortado.store.cli.progress import showing_progress

    request = BackupRequest(directory, at, history, base, streams)
    with session.client(read_from="any") as client, showing_progress(quiet=quiet) as report:
        manifest = create_backup(client, request, report)
    shape = manifest.shape
    text = f"{count(manifest.versions, 'version')} as of {shape.timestamp} are in {directory}"
    value = {
        "directory": directory,
        "backup": shape.backup_id,
        "cluster": shape.cluster_id,
        "timestamp": shape.timestamp,
        "since": shape.since,
        "versions": manifest.versions,
        "parts": len(manifest.parts),
        "bytes": manifest.bytes,
    }
    return Said(text, value)


@command(
    "backup verify",
    remote=False,
    examples="""
        cortado backup verify monday/
        cortado backup verify tuesday/ -o json
    """,
)
def verify(
    _: Session,
    directory: Annotated[str, Argument(help="The directory of a backup, or its URL.", metavar="DIR")],
    quiet: QuietOption = False,
) -> Answer:
    """Verify every byte of a backup, and of those that it follows. Needs no cluster.

    Exit code 8 if anything is damaged.
    """
    from cortado.store.backup.check import check_backup
    from cortado.store.cli.progress import showing_progress

    with showing_progress(quiet=quiet) as report:
        checked = check_backup(directory, report)
    text = (
        f"{count(checked.backups, 'backup')} with {count(checked.versions, 'version')}: every byte is as it was written"
    )
    return Said(text, {"backups": checked.backups, "versions": checked.versions, "bytes": checked.bytes})


@command(
    "backup show",
    remote=False,
    examples="""
        cortado backup show monday/
        cortado backup show tuesday/ -o json
    """,
)
def show(
    _: Session, directory: Annotated[str, Argument(help="The directory of a backup, or its URL.", metavar="DIR")]
) -> Answer:
    """Show what a backup holds, and which one it follows."""
    from cortado.store.backup.chain import chain_of, readable_from
    from cortado.store.sizes import size_text

    chain = chain_of(directory)
    manifest, shape = chain[-1].manifest, chain[-1].manifest.shape
    follows = None if shape.base is None else shape.base.path
    oldest = str(readable_from(chain))
    return Fields(
        [
            ("backup", shape.backup_id),
            ("cluster", shape.cluster_id),
            ("as of", shape.timestamp),
            ("can be restored from", oldest),
            ("follows", follows or "none"),
            ("versions", manifest.versions),
            ("parts", len(manifest.parts)),
            ("size", size_text(manifest.bytes)),
        ],
        {
            "backup": shape.backup_id,
            "cluster": shape.cluster_id,
            "timestamp": shape.timestamp,
            "restorable_from": oldest,
            "follows": follows,
            "versions": manifest.versions,
            "parts": len(manifest.parts),
            "bytes": manifest.bytes,
        },
    )
