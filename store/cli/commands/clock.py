"""``cortado clock``: the node's time, and the way out of a wrong one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from cortado.store.cli.answers import Answer, Fields, Said
from cortado.store.cli.asking import YesOption, confirm
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Option
from cortado.store.cli.render import moment
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@command(
    "clock show",
    examples="""
        cortado clock show
        cortado clock show -o json
    """,
)
def show(session: Session) -> Answer:
    """Show the clock's timestamp beside the physical clock."""
    from cortado.store.clock.spans import exact_span_text

    with session.client() as client:
        found = client.clock()
    physical = datetime.fromtimestamp(found.physical_ms / 1000, UTC)
    jumped = [("jumped, not followed", exact_span_text(found.jump_ms))] if found.jump_ms else []
    return Fields(
        [
            ("now", moment(found.now)),
            ("epoch", found.now.epoch),
            ("physical clock", f"{found.physical_ms} ({physical:%Y-%m-%d %H:%M:%S}Z)"),
            ("ahead of it by", exact_span_text(found.ahead_ms)),
            *jumped,
            ("last applied", found.last_applied),
            ("maximum clock offset", f"{found.max_offset_ms} ms"),
        ],
        {
            "now": str(found.now),
            "epoch": found.now.epoch,
            "wall_ms": found.now.wall_ms,
            "logical": found.now.logical,
            "physical_ms": found.physical_ms,
            "ahead_ms": found.ahead_ms,
            "last_applied": str(found.last_applied),
            "max_offset_ms": found.max_offset_ms,
            "jump_ms": found.jump_ms,
        },
    )


@command(
    "clock bump-epoch",
    examples="""
        cortado clock bump-epoch
        cortado clock bump-epoch --yes
    """,
)
def bump_epoch(
    session: Session,
    yes: YesOption = False,
    from_epoch: Annotated[
        int | None,
        Option(
            help="The epoch to leave.",
            show_default="the current one",
            parser=whole("--from-epoch", 0, 65_535),
            metavar="N",
        ),
    ] = None,
) -> Answer:
    """Begin a new epoch, after a wrong clock has got into the timestamps.

    Every later timestamp sorts after every earlier one, and its wall time is the physical clock's again. No data is
    lost. An epoch cannot be undone, and there are 65,535 of them.
    """
    with session.client() as client:
        found = client.clock()
        leaving = found.now.epoch if from_epoch is None else from_epoch
        at = f"{found.now.as_datetime():%Y-%m-%d %H:%M:%S}Z"
        confirm(f"Leave epoch {leaving}, whose clock is at {at}?", yes=yes)
        epoch = client.admin.bump_epoch(leaving)
    return Said(f"epoch {epoch} begins", {"epoch": epoch})
