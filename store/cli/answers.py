"""The answer of a command: one value, shown as a table to a person and as JSON to a script.

A command returns its answer, and :meth:`Session.answer` shows it in the form that the user chose; no command reads
that choice. The three shapes here fit most commands. One with a shape of its own returns a class of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cortado.store.cli.render import Renderer


class Answer(Protocol):
    """The result of a command. ``exit_code`` is not 0 if a check found a problem."""

    @property
    def exit_code(self) -> int: ...

    def as_json(self) -> Iterable[Any]:
        """Return the lines for a script, a JSON value each."""
        ...

    def as_table(self, show: Renderer) -> None:
        """Show it to a person."""
        ...


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, and the same as an object. ``note`` goes to standard error."""

    text: str
    record: Mapping[str, Any]
    note: str = ""
    exit_code: int = 0

    def as_json(self) -> Iterable[Any]:
        return [dict(self.record)]

    def as_table(self, show: Renderer) -> None:
        show.line(self.text)
        if self.note:
            show.note(self.note)


@dataclass(frozen=True, slots=True)
class Rows:
    """A table, and an object for each row. ``head`` stands above it, ``note`` goes to standard error."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    records: Iterable[Any]
    head: str = ""
    note: str = ""
    exit_code: int = 0

    def as_json(self) -> Iterable[Any]:
        return self.records

    def as_table(self, show: Renderer) -> None:
        if self.head:
            show.line(self.head)
        if self.rows or not self.head:
            show.table(self.columns, self.rows)
        if self.note:
            show.note(self.note)


@dataclass(frozen=True, slots=True)
class Fields:
    """One thing: a name and a value a line, and the same as an object."""

    pairs: Sequence[tuple[str, Any]]
    record: Mapping[str, Any]
    exit_code: int = 0

    def as_json(self) -> Iterable[Any]:
        return [dict(self.record)]

    def as_table(self, show: Renderer) -> None:
        show.record(self.pairs)
