"""Names that a shell offers: those that a server returns within a moment, else none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

import click

from cortado.errors import CortadoError
from cortado.store.cli.options import given
from cortado.store.cli.terminal import harmless

if TYPE_CHECKING:
    from cortado.store.cli.session import Given
    from cortado.store.client import Client

# The user has pressed a key, and waits.
_TIMEOUT_S: Final = 0.5

_ASK: Final[dict[str, Callable[[Client], Iterable[str]]]] = {
    "tables": lambda client: (table.full_name for table in client.tables()),
    "namespaces": lambda client: client.namespaces(),
    "databases": lambda client: client.databases(),
    "subjects": lambda client: (each.subject for each in client.schemas.subjects()),
}


def complete_tables(ctx: click.Context, incomplete: str) -> list[str]:
    """Tables, as database.table."""
    return _names(ctx, incomplete, "tables")


def complete_namespaces(ctx: click.Context, incomplete: str) -> list[str]:
    """Namespaces that have pairs."""
    return _names(ctx, incomplete, "namespaces")


def complete_databases(ctx: click.Context, incomplete: str) -> list[str]:
    """Databases."""
    return _names(ctx, incomplete, "databases")


def complete_subjects(ctx: click.Context, incomplete: str) -> list[str]:
    """Subjects of schemas."""
    return _names(ctx, incomplete, "subjects")


def _names(ctx: click.Context, incomplete: str, kind: str) -> list[str]:
    from cortado.store.cli.session import Session
    from cortado.store.cli.tree import outer_of

    shared = outer_of(ctx).shared
    try:
        session = replace(Session.resolve(_given(ctx), os.environ), timeout_s=_TIMEOUT_S, shared=shared)
    except CortadoError:
        return []

    def ask() -> list[str]:
        try:
            with session.client() as client:
                return [harmless(name) for name in _ASK[kind](client)]
        except CortadoError:
            return []

    names = ask() if shared is None else shared.names((kind, *session.reach), ask)
    return [name for name in names if name.startswith(incomplete)]


def _given(ctx: click.Context) -> Given:
    """Return the global options that were typed so far, before the command and after it, on top of those around the
    run."""
    from cortado.store.cli.session import Given
    from cortado.store.cli.tree import outer_of

    found, names = outer_of(ctx).given, {each.name for each in fields(Given)}
    for part in (ctx.find_root(), ctx):
        typed = given(part.command.params, part.params)
        found = found.with_options(**{name: value for name, value in typed if name in names})
    return found
