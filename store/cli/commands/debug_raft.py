"""``cortado debug raft``: the replicated log of one node, as it is stored."""

from __future__ import annotations

from typing import Annotated, Final

from cortado.store.cli.common_options import DataDirOption
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

SHOWN_ENTRIES: Final = 20
_CHANGES_SHOWN: Final = 5
_CHANGES_MAX: Final = 1_000


@command(
    "debug raft",
    examples="""
        cortado debug raft
        cortado debug raft --start 41 --limit 3 -e 127.0.0.1:7622
        cortado debug raft --data-dir /var/lib/cortado -o json
    """,
)
def log(
    session: Session,
    first: Annotated[
        int | None,
        Option("--start", help="Index of the first entry.", parser=whole("--start", 1), metavar="INDEX"),
    ] = None,
    end: Annotated[
        int | None, Option("--end", help="Index to stop before.", parser=whole("--end", 1), metavar="INDEX")
    ] = None,
    limit: Annotated[
        int | None,
        Option(
            help="Maximum number of entries.",
            show_default=f"the last {SHOWN_ENTRIES}; with --start or --end, all",
            parser=whole("--limit", 1),
            metavar="N",
        ),
    ] = None,
    changes: Annotated[
        int | None,
        Option(
            help=f"Number of changes shown of each entry, up to {_CHANGES_MAX}.",
            show_default=f"{_CHANGES_SHOWN} as a table, {_CHANGES_MAX} with -o json",
            parser=whole("--changes", 1, _CHANGES_MAX),
            metavar="N",
        ),
    ] = None,
    log_group: Annotated[
        int, Option("--group", help="The group's id.", parser=whole("--group", 1, 2**32 - 1), metavar="N")
    ] = 1,
    data_dir: DataDirOption = None,
) -> None:
    """Show the stored log of one node: term and vote, and the entries with their commands and keys.

    It is the log of the node at --endpoint, whichever node leads: its durable entries, from memory. With --data-dir the
    log files of a stopped node are read. Exit code 8 if an entry or a log file is damaged.
    """
    from cortado.proto.v1 import inspect_pb2 as pb
    from cortado.store.cli.inspecting import inspected
    from cortado.store.cli.log_answer import LogAnswer, entries_of

    shown = changes or (_CHANGES_MAX if session.as_json else _CHANGES_SHOWN)
    with inspected(session, data_dir) as node:
        state = node.read_log(pb.ReadLogRequest(group_id=log_group, page_size=1, changes_max=1)).state
        if first is None and end is None:
            limit = limit or SHOWN_ENTRIES
            first = max(state.first_index, state.last_index + 1 - limit)
        request = pb.ReadLogRequest(group_id=log_group, from_index=first or 0, to_index=end or 0, changes_max=shown)
        session.answer(LogAnswer(node.name, state, entries_of(node, request, limit)))
