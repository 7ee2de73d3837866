"""``cortado scrub``: do the replicas still store the data as it was written, and do they hold the same?"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from cortado.errors import Unavailable
from cortado.store.cli.common_options import DataDirOption
from cortado.store.cli.options import Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.settings.kinds import SIZE

RATE_DEFAULT: Final = 32 << 20


@command(
    "scrub",
    examples="""
        cortado scrub
        cortado scrub --rate 100MiB -o json
        cortado scrub --data-dir /var/lib/cortado
    """,
)
def scrub(
    session: Session,
    rate: Annotated[
        int,
        Option(
            help="Maximum bytes that each replica reads a second: a number, or with KiB, MiB or GiB; 0 for no limit.",
            parser=partial(SIZE.read, "--rate"),
            show_default="32MiB",
            metavar="SIZE",
        ),
    ] = RATE_DEFAULT,
    data_dir: DataDirOption = None,
) -> None:
    """Verify all stored data, and compare the replicas at one timestamp, to find damage that reads may miss.

    Checks every checksum, the order of all keys, the log and the remembered requests on each replica; compares digests
    of all ranges, and names each key that differs; compares indexes with rows. It has a hold meanwhile, and changes
    nothing else. With --data-dir it checks the directory of a stopped node, and compares it with no other. Exit code 8
    if damage is found, 6 if something could not be checked.
    """
    from cortado.store.cli.scrubbing import listed, run_scrub

    answer = run_scrub(session, data_dir, rate or None)
    session.answer(answer)
    if answer.report.skipped:
        raise Unavailable("not everything was checked: " + listed(answer.report.skipped))
