"""Documents that were read before their write is evaluated, as far as that does not depend on stored rows.

To check a document takes up to a microsecond for each value in it, so a request of megabytes takes seconds. A write is
evaluated on the node's loop, where nothing may take long; this can be done beside it, in slices. A prepared document
names its table and the newest schema; if either has changed since, the document is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cortado.errors import CortadoError
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.tables.operations import DocumentInput
from cortado.store.tables.view import TableView

ReadInput = Callable[[TableView, DocumentInput], tuple[bytes, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """``(payload, document as the newest version reads it)``, or its error."""

    table: TableDescriptor
    newest_id: int
    read: tuple[bytes, dict[str, Any]] | CortadoError

    def fits(self, view: TableView) -> bool:
        return self.newest_id == view.newest_id and self.table == view.table

    def result(self) -> tuple[bytes, dict[str, Any]]:
        """Return the document's result, or raise its error."""
        if isinstance(self.read, CortadoError):
            raise self.read
        return self.read


def prepare_each(
    catalog: Catalog, documents: Sequence[tuple[str, str, DocumentInput]], read: ReadInput
) -> Iterator[PreparedDocument | None]:
    """Yield each document (of a database and table) in turn; None if there is no such table, which the evaluation
    refuses later.

    Ends after a document that is refused, since then all are.
    """
    views: dict[tuple[str, str], TableView | None] = {}
    for database, name, document in documents:
        if (database, name) not in views:
            views[database, name] = _find_view(catalog, database, name)
        view = views[database, name]
        if view is None:
            yield None
            continue
        try:
            found: tuple[bytes, dict[str, Any]] | CortadoError = read(view, document)
        except CortadoError as refused:
            found = refused
        yield PreparedDocument(view.table, view.newest_id, found)
        if isinstance(found, CortadoError):
            return


def _find_view(catalog: Catalog, database: str, name: str) -> TableView | None:
    try:
        return TableView(catalog, database, name)
    except CortadoError:
        return None
