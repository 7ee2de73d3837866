"""The rows that ``scan`` reads, and how it shows aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from cortado.errors import InvalidArgument, NotFound
from cortado.store.cli.failures import OK
from cortado.store.cli.render import Renderer, count

if TYPE_CHECKING:
    from cortado.store.catalog.descriptors import TableDescriptor
    from cortado.store.client.aggregates import Groups
    from cortado.store.client.values import KeyLike
    from cortado.store.keys.types import KeyPart


class ChosenRows(TypedDict):
    """The arguments that choose rows, as a table's reads take them."""

    start: KeyLike
    end: KeyLike
    prefix: KeyLike
    index: str | None
    filter: str | None


def chosen_rows(
    table: TableDescriptor,
    prefix: Sequence[str] | None,
    bounds: tuple[str | None, str | None],
    index: str | None,
    filter: str | None,
) -> ChosenRows:
    """Return the rows of PART, --start and --end, --index, --filter. Raises InvalidArgument, NotFound for the index."""
    from cortado.store.transfer.key_text import parse_bound, parse_key

    lower, upper = bounds
    if prefix and (lower is not None or upper is not None):
        raise InvalidArgument("PART", f"must not be given together with {'--start' if lower is not None else '--end'}")
    parts = _parts(table, index)
    nullable = 0 if index is None else len(parts)
    return {
        "start": parse_bound(lower, parts, "--start", nullable=nullable),
        "end": parse_bound(upper, parts, "--end", nullable=nullable),
        "prefix": parse_key(prefix, parts, prefix=True, nullable=nullable) if prefix else None,
        "index": index,
        "filter": filter,
    }


def _parts(table: TableDescriptor, index: str | None) -> tuple[KeyPart, ...]:
    if index is None:
        return table.key
    found = table.index(index)
    if found is None:
        raise NotFound("index", f"{index} of table {table.full_name}")
    return found.parts


@dataclass(frozen=True, slots=True)
class Aggregates:
    """The first ``limit`` groups; in a table ``shown_max`` at most."""

    groups: Groups
    limit: int | None
    shown_max: int | None
    exit_code: int = OK

    def as_json(self) -> Iterable[Any]:
        return self.groups.json_rows()[: self.limit]

    def as_table(self, show: Renderer) -> None:
        found = self.groups.json_rows()[: self.limit]
        shown = found[: self.shown_max]
        show.table(self.groups.query.names, [list(row.values()) for row in shown])
        if self.groups.query.group_by:
            more = ", and there are more (--limit)" if len(found) > len(shown) else ""
            show.note(count(len(shown), "group") + more)
