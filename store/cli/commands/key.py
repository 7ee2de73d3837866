"""``cortado key``: stored keys for people."""

from __future__ import annotations

from typing import Annotated

import typer

from cortado.errors import InvalidArgument
from cortado.store.cli.failures import printable
from cortado.store.cli.session import Session, command
from cortado.store.keys.dump import dump


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="Stored keys.", no_args_is_help=True)
    app.add_typer(group, name="key")

    @command(
        group,
        "dump",
        remote=False,
        examples="""
            cortado key dump 740000000172
        """,
    )
    def dump_key(
        session: Session,
        hexadecimal: Annotated[
            list[str],
            typer.Argument(help="Stored keys in hexadecimal, as logs and errors show them.", metavar="HEX"),
        ],
    ) -> None:
        """Show the parts of stored keys: the space, the table, and each typed part. Talks to no server."""
        for text in hexadecimal:
            try:
                key = bytes.fromhex(text)
            except ValueError:
                raise InvalidArgument("HEX", "must be hexadecimal digits, two a byte", repr(text)) from None
            shown = dump(key)
            if session.as_json:
                session.show.json({"key": text, "dump": shown})
            else:
                session.show.line(printable(shown))
