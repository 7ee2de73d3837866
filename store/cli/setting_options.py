"""The options of a server's settings, made from their one table, for every command that takes them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

import typer

from cortado.store.settings.kinds import ADDRESSES, FLAG
from cortado.store.settings.server import CONFIG_VARIABLE, NODE, SETTINGS
from cortado.store.settings.setting import Setting

CONFIG_OPTION: Final[Any] = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help=f"A TOML file with settings, named as these options are; otherwise the one that {CONFIG_VARIABLE} names.",
        metavar="PATH",
        show_default=False,
    ),
]


def takes_settings(function: Callable[..., None]) -> Callable[..., None]:
    """``function(session, flags, ...)`` as a command with an option for each setting.

    ``flags`` is given what was given, by the settings' names. The options of its own come before those of the settings.
    """
    hints = get_type_hints(function, include_extras=True)
    own = [
        each.replace(annotation=hints[each.name])
        for each in inspect.signature(function).parameters.values()
        if each.name != "flags"
    ]
    options = [_parameter(each) for each in SETTINGS]

    @functools.wraps(function)
    def run(session: Any, **given: Any) -> None:
        flags = {each.name: given.pop(each.field) for each in SETTINGS}
        # Of an option that may be repeated, none is an empty list.
        function(session, flags={name: value for name, value in flags.items() if value not in (None, [])}, **given)

    del run.__wrapped__
    signature = inspect.Signature([*own, *options])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    return run


def _parameter(setting: Setting) -> inspect.Parameter:
    panel = None if setting.group == NODE else setting.group
    kind: Any = str | None
    names = setting.flag
    if setting.kind is FLAG:
        # What the environment or a file switches on, a flag can switch off.
        kind, names = bool | None, f"{setting.flag}/--no-{setting.name}"
    elif setting.kind is ADDRESSES:
        kind = list[str] | None
    option = typer.Option(
        names,
        help=setting.meaning + (" May be repeated." if setting.kind is ADDRESSES else ""),
        metavar=setting.metavar or setting.kind.metavar or None,
        show_default=_default(setting),
        hidden=setting.is_for_tests,
        rich_help_panel=panel,
    )
    return inspect.Parameter(
        setting.field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
    )


def _default(setting: Setting) -> Any:
    if setting.kind is FLAG:
        return False
    shown = setting.show(setting.default)
    return False if shown == "(none)" else shown.strip("()")
