"""``cortado backup restore``: a backup into an empty cluster."""

from __future__ import annotations

from typing import Annotated

from cortado.errors import InvalidArgument
from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.common_options import AtOption, QuietOption, StreamsOption
from cortado.store.cli.failures import DAMAGE
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@command(
    "backup restore",
    examples="""
        cortado backup restore monday/
        cortado backup restore with-history/ --at 0.1763643600000.2
        cortado backup restore --abandon
    """,
)
def restore(
    session: Session,
    directory: Annotated[
        str | None, Argument(help="The directory of a backup, or its URL, unless --abandon is given.", metavar="DIR")
    ] = None,
    at: AtOption = None,
    streams: StreamsOption = 2,
    abandon: Annotated[
        bool, Option("--abandon", help="Remove the data of an unfinished restore, so that the cluster is empty again.")
    ] = False,
    without_roles: Annotated[
        bool,
        Option(
            "--without-roles",
            help="Restore even if roles were on in the old cluster and are off here: all callers may read the data.",
        ),
    ] = False,
    quiet: QuietOption = False,
) -> Answer:
    """Put a backup, and the backups that it is based on, into an empty cluster.

    The cluster refuses everything else until the restore ends. The same command continues an interrupted restore. All
    restored data is read back and compared with the backup. Exit code 8 if anything is damaged.

    A backup holds no principals, grants and quotas: create them in the new cluster, and enable roles, before the
    restore.
    """
    from cortado.store.backup.restore import RestoreRequest, abandon_restore, restore_backup
    from cortado.store.cli.progress import showing_progress

    if abandon == (directory is not None):
        raise InvalidArgument("DIR", "must be given, or --abandon, and not both")
    with session.client() as client, showing_progress(quiet=quiet) as report:
        if directory is None:
            ended = abandon_restore(client, report)
            text = f"restore {ended} is abandoned, and the cluster is empty" if ended else "no restore was under way"
            return Said(text, {"restore": ended or None, "abandoned": bool(ended)})
        request = RestoreRequest(directory, at, streams, without_roles)
        done = restore_backup(client, request, report)
    how = "had been restored before" if done.was_done else "are restored"
    text = f"{count(done.versions, 'version')} as of {done.timestamp} {how}, and {count(done.tables, 'table')} checked"
    record = {
        "directory": directory,
        "restore": done.restore_id,
        "timestamp": str(done.timestamp),
        "readable_from": str(done.readable_from),
        "versions": done.versions,
        "backups": done.backups,
        "tables": done.tables,
        "problems": list(done.problems),
        "was_done": done.was_done,
    }
    return Said(text, record, "\n".join(done.problems), DAMAGE if done.problems else 0)
