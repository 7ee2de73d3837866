"""Names that a shell offers: what a server says within a moment, and nothing where none answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from cortado.errors import CortadoError
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.cli.session import Given, Session

# Somebody has pressed a key, and waits.
_TIMEOUT_S: Final = 0.5


def complete_tables(incomplete: str) -> list[str]:
    """Tables, as database.table."""
    return _beginning(incomplete, (table.full_name for table in _tables()))


def complete_databases(incomplete: str) -> list[str]:
    """Databases."""
    try:
        with _session().client() as client:
            return _beginning(incomplete, client.databases())
    except CortadoError:
        return []


def _tables() -> Sequence[TableDescriptor]:
    try:
        with _session().client() as client:
            return client.tables()
    except CortadoError:
        return []


def _session() -> Session:
    """The options before the command are not known here: the environment and the context must do."""
    return replace(Session.resolve(Given(), os.environ), timeout_s=_TIMEOUT_S)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]
