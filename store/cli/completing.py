"""Names that a shell offers: what a server says within a moment, and nothing where none answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cortado.errors import CortadoError
from cortado.store.cli.terminal import harmless

if TYPE_CHECKING:
    from cortado.store.client import Client

# Somebody has pressed a key, and waits.
_TIMEOUT_S: Final = 0.5


def complete_tables(incomplete: str) -> list[str]:
    """Tables, as database.table."""
    return _names(incomplete, lambda client: [table.full_name for table in client.tables()])


def complete_namespaces(incomplete: str) -> list[str]:
    """Namespaces that have pairs."""
    return _names(incomplete, lambda client: client.namespaces())


def complete_databases(incomplete: str) -> list[str]:
    """Databases."""
    return _names(incomplete, lambda client: client.databases())


def _names(incomplete: str, ask: Callable[[Client], Iterable[str]]) -> list[str]:
    """The options before the command are not known here: the environment and the context must do."""
    from cortado.store.cli.session import Given, Session

    try:
        session = replace(Session.resolve(Given(), os.environ), timeout_s=_TIMEOUT_S)
        with session.client() as client:
            return [harmless(name) for name in ask(client) if name.startswith(incomplete)]
    except CortadoError:
        return []
