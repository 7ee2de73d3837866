"""The options of settings, made from their table, for every command that takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import click

from cortado.store.cli.options import Option, option
from cortado.store.settings.gateway import GATEWAY
from cortado.store.settings.kinds import ADDRESSES, FLAG
from cortado.store.settings.server import CONFIG_VARIABLE, NODE
from cortado.store.settings.setting import Setting

ConfigOption: TypeAlias = Annotated[
    Path | None,
    Option(
        "--config",
        help=f"A TOML file with settings, named as these options are; otherwise the one that {CONFIG_VARIABLE} names.",
        metavar="PATH",
    ),
]


def setting_options(settings: Sequence[Setting]) -> list[click.Parameter]:
    """Return an option for each setting, under the heading of its group."""
    return [_option(each) for each in settings]


def flags_of(settings: Sequence[Setting], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values, by the settings' names."""
    return {each.name: values[each.field] for each in settings if each.field in values}


def _option(setting: Setting) -> click.Parameter:
    is_list = setting.kind is ADDRESSES
    # A flag can switch off a setting that the environment or a file switches on.
    names = f"{setting.flag}/--no-{setting.name}" if setting.kind is FLAG else setting.flag
    declared = Option(
        names,
        help=setting.meaning + (" May be repeated." if is_list else ""),
        metavar=setting.metavar or setting.kind.metavar or None,
        show_default=_default(setting),
        hidden=setting.is_for_tests,
        panel="Options" if setting.group in (NODE, GATEWAY) else setting.group,
    )
    return option(setting.field, bool if setting.kind is FLAG else list[str] if is_list else str, declared)


def _default(setting: Setting) -> str:
    if setting.kind is FLAG:
        return ""
    shown = setting.show(setting.default)
    return "" if shown == "(none)" else shown.strip("()")
