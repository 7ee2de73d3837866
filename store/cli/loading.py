"""Many rows at once, for ``import``, ``put`` and ``kv put``: each is stored or refused by itself, and all are counted.

A load that ends early keeps the rows that it has stored, so the count is shown in any case.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cortado.store.cli import failures
from cortado.store.cli.common_options import BAD_MAX
from cortado.store.cli.render import Renderer, count
from cortado.store.cli.session import Session

if TYPE_CHECKING:
    from cortado.store.cli.input import JsonInput
    from cortado.store.transfer.load import Loaded
    from cortado.store.transfer.rows import BadRow, Target
    from cortado.store.transfer.stores import Store

SHOWN_MAX: Final = 20
"""Bad rows that are shown; all are counted."""


@dataclass(frozen=True, slots=True)
class LoadedAnswer:
    """The counts of a load. ``bad_rows``: the file of refused rows; ``is_rehearsal``: nothing was stored."""

    target: str
    loaded: Loaded
    bad_rows: str | None = None
    reasons: str = ""
    is_rehearsal: bool = False

    @property
    def kept(self) -> str | None:
        return self.bad_rows if self.loaded.refused else None

    @property
    def exit_code(self) -> int:
        """That of the first bad row."""
        first = self.loaded.first_error
        return failures.OK if first is None else failures.exit_code_of(first)

    def as_json(self) -> Iterable[Any]:
        return [
            {
                "target": self.target,
                "written": 0 if self.is_rehearsal else self.loaded.written,
                "refused": self.loaded.refused,
                "bad_rows": self.kept,
                "timestamp": str(self.loaded.ts) if self.loaded.written and not self.is_rehearsal else None,
            }
        ]

    def as_table(self, show: Renderer) -> None:
        rows = count(self.loaded.written, "pair" if self.target.startswith("kv:") else "row")
        refused = f", {self.loaded.refused:,} refused" if self.loaded.refused else ""
        where = f"; they are in {self.kept}, and why in {self.reasons}" if self.kept else ""
        done = "would be sent to" if self.is_rehearsal else "stored in"
        show.line(f"{rows} {done} {self.target}{refused}{where}")


@dataclass(slots=True)
class Teller:
    """Shows the first bad rows, each on a line of standard error."""

    as_json: bool
    _told: int = field(default=0)

    def __call__(self, bad: BadRow) -> None:
        self._told += 1
        if self._told <= SHOWN_MAX:
            failures.report(bad.error, as_json=self.as_json, file=bad.file, row=bad.place)
        elif self._told == SHOWN_MAX + 1 and not self.as_json:
            sys.stderr.write("... and more\n")


@contextmanager
def counted(session: Session, answer: LoadedAnswer) -> Iterator[None]:
    """Show a load's count at the end, also if an error ends it before. That error is raised then."""
    try:
        yield
    except BaseException:
        if answer.loaded.written or answer.loaded.refused:
            # The error that ended the load says more than its first bad row.
            with suppress(failures.CheckFailed):
                session.answer(answer)
        raise
    session.answer(answer)


def load_lines(session: Session, given: JsonInput, target: Target, store: Store, max_bad: int | None) -> None:
    """Stores the values of an input, a line each, as ``import`` does. Raises what ends a load as a whole."""
    from cortado.store.transfer.formats import Format
    from cortado.store.transfer.load import Input, Load, Task

    load = Load(
        [Task(Input(given.name, Format.JSONL, stream=given.lines), target, store)],
        bad_max=BAD_MAX if max_bad is None else max_bad,
        tell=Teller(session.as_json),
    )
    with counted(session, LoadedAnswer(target.name, load.loaded)):
        load.run()
