"""``cortado backup``: a cluster's state in a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cortado.store.cli.answers import Answer, Fields, Said
from cortado.store.cli.common_options import AtOption, QuietOption, StreamsOption
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.backup.create import BackupRequest
    from cortado.store.client import Client
    from cortado.store.transfer.progress import Report


@command(
    "backup create",
    examples="""
        cortado backup create monday/
        cortado backup create tuesday/ --base monday/
        cortado backup create with-history/ --history --streams 4
        cortado backup create s3://backups/monday
        cortado backup create this-week/ --follow
    """,
)
def create(
    session: Session,
    directory: Annotated[str, Argument(help="The directory, or a URL; it must be empty.", metavar="DIR")],
    base: Annotated[
        str | None,
        Option("--base", help="Take only the changes since the backup in this directory.", metavar="DIR"),
    ] = None,
    history: Annotated[bool, Option("--history", help="Take all versions that can be read.")] = False,
    follow: Annotated[
        bool,
        Option(
            "--follow",
            help="Then add each commit as it happens, until Ctrl-C or SIGTERM; at most the last 5 s can be lost.",
        ),
    ] = False,
    at: AtOption = None,
    streams: StreamsOption = 2,
    quiet: QuietOption = False,
) -> Answer:
    """Write all rows, pairs, indexes, schemas and tables to a directory, as of one timestamp.

    The same command continues an interrupted backup. Writes continue meanwhile, and are not in the backup. With
    --follow they are added to it in segments, and restore --at restores any time up to the last segment.

    A URL needs the extra [remote], pip install 'cortadodb[remote]', and fsspec's package for it: s3fs for s3://, gcsfs
    for gs://.
    """
    from cortado.store.backup.create import BackupRequest, create_backup
    from cortado.store.cli.progress import showing_progress

    request = BackupRequest(directory, at, history, base, streams)
    with session.client(read_from="any") as client, showing_progress(quiet=quiet) as report:
        if follow:
            return _follow(client, request, report)
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


def _follow(client: Client, request: BackupRequest, report: Report) -> Answer:
    from cortado.store.backup.follow import FollowRequest, follow_backup
    from cortado.store.cli.stopping import stopped_by_signals

    done = follow_backup(client, FollowRequest(request), stopped_by_signals, report)
    text = f"{request.directory} holds everything up to {done.timestamp}, {count(done.segments, 'segment')}"
    value = {
        "directory": str(request.directory),
        "timestamp": str(done.timestamp),
        "segments": done.segments,
        "versions": done.versions,
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
    """Verify every byte of a backup, and of the backups that it is based on. Needs no cluster.

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
    """Show the contents of a backup, the backup that it is based on, and the time that its segments reach."""
    from cortado.store.backup.chain import Backup, behind, last_segment, readable_from, whole_backup
    from cortado.store.settings.sizes import size_text
    from cortado.store.transfer.directory import directory_at

    place = directory_at(directory)
    manifest = whole_backup(place)
    shape, last = manifest.shape, last_segment(place, manifest)
    followed_to = last.manifest.shape.timestamp if last.segment else None
    follows = None if shape.base is None else shape.base.path
    oldest = str(readable_from(behind(Backup(place, manifest), {})))
    return Fields(
        [
            ("backup", shape.backup_id),
            ("cluster", shape.cluster_id),
            ("as of", shape.timestamp),
            ("followed up to", followed_to or "not followed"),
            ("segments", last.segment),
            ("can be restored from", oldest),
            ("follows", follows or "none"),
            ("roles", "on" if last.manifest.shape.roles_enabled else "off"),
            ("versions", manifest.versions),
            ("parts", len(manifest.parts)),
            ("size", size_text(manifest.bytes)),
        ],
        {
            "backup": shape.backup_id,
            "cluster": shape.cluster_id,
            "timestamp": shape.timestamp,
            "followed_to": followed_to,
            "segments": last.segment,
            "restorable_from": oldest,
            "follows": follows,
            "roles_enabled": last.manifest.shape.roles_enabled,
            "versions": manifest.versions,
            "parts": len(manifest.parts),
            "bytes": manifest.bytes,
        },
    )
