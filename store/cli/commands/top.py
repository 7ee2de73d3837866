"""``cortado top``: the nodes of a cluster as they are now, again and again."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Final

from cortado.errors import InvalidArgument
from cortado.store.cli.numbers import seconds
from cortado.store.cli.options import Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

INTERVAL_S: Final = 2.0
_INTERVAL_S_MIN: Final = 0.2


@command(
    "top",
    examples="""
        cortado top
        cortado top --interval 5
        cortado top --once
        cortado top -o json
    """,
)
def top(
    session: Session,
    interval: Annotated[
        float,
        Option(
            "--interval",
            metavar="SECONDS",
            parser=seconds("--interval"),
            help="Time between views, over which rates and latencies are measured; at least 0.2.",
            show_default=f"{INTERVAL_S:g}",
        ),
    ] = INTERVAL_S,
    once: Annotated[bool, Option("--once", help="Show one view, measured over one interval, and exit.")] = False,
) -> None:
    """Watch all nodes: roles, rates, latencies, lag, queues, disk, memory, clocks. Ctrl-C stops it.

    Into a pipe or a file, views follow one another; with -o json each is one line.
    """
    from cortado.store.cli.top_views import Watch, show_views

    if interval < _INTERVAL_S_MIN:
        raise InvalidArgument("--interval", f"must be at least {_INTERVAL_S_MIN} seconds", f"{interval:g}")
    with suppress(KeyboardInterrupt), Watch(session) as watch:
        views = watch.views(interval)
        if once:
            views = iter([next(views)])
        show_views(session, views, is_live=not once)
