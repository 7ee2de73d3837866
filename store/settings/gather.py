"""Reduces settings from several places to one value each, and the place that it came from.

Flags win over the environment, that over the file, that over the default; each setting by itself. A name that is no
setting is refused in every place, with the nearest known name: else the intended setting would silently keep its value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.store.settings.kinds import FLAG, PATH, shown
from cortado.store.settings.setting import Setting
from cortado.store.settings.toml_file import TomlFile

DEFAULT: Final = "default"
FLAGS: Final = "flag"
ENVIRONMENT: Final = "environment"
FILE: Final = "file"

LISTED: Final = "cortado config reference lists them"

_NEAR: Final = 0.7
_VERY_NEAR: Final = 0.8


@dataclass(frozen=True, slots=True)
class Found:
    """A setting's value. ``origin`` is flag, environment, file or default; ``place`` a flag, variable or file:line."""

    setting: Setting
    value: Any
    origin: str = DEFAULT
    place: str = ""

    @property
    def source(self) -> str:
        """The place, for people."""
        return self.place or self.origin

    def described(self) -> dict[str, str | None]:
        """Return everything that is known of it, as text."""
        setting = self.setting
        return {
            "name": setting.name,
            "value": setting.text(self.value),
            "default": setting.text(setting.default),
            "unit": setting.unit_text,
            "bound": setting.bound_text,
            "meaning": setting.meaning,
            "origin": self.origin,
            "place": self.place,
        }

    def named(self) -> str:
        """Return the setting as it was written, for a refusal: ``--listen``, or ``listen in /etc/cortado.toml:3``."""
        if self.origin == FILE:
            return f"{self.setting.name} in {self.place}"
        return self.place or self.setting.flag


def gather(
    settings: Sequence[Setting],
    *,
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    prefix: str,
    file: TomlFile | None = None,
    table: tuple[str, ...] = (),
) -> tuple[Found, ...]:
    """Return one for each of ``settings``, in their order.

    ``flags`` has None, or an empty list, for one that was not given. ``prefix`` begins the names of variables; one that
    is empty is not set. ``table`` is the settings' place in the file. Raises InvalidArgument, naming the place.
    """
    found = {each.name: Found(each, each.default) for each in settings}
    if file is not None:
        found |= {each.setting.name: each for each in _of_file(settings, file, table)}
    for setting in settings:
        variable = setting.variable(prefix)
        if environment.get(variable):
            value = setting.read(variable, _of_text(setting, environment[variable]))
            found[setting.name] = Found(setting, value, ENVIRONMENT, variable)
        if flags.get(setting.name) not in (None, []):
            value = setting.read(setting.flag, flags[setting.name])
            found[setting.name] = Found(setting, value, FLAGS, setting.flag)
    return tuple(found.values())


def check_variables(settings: Sequence[Setting], environment: Mapping[str, str], prefix: str, also: str = "") -> None:
    """Raise InvalidArgument for a variable that begins with ``prefix`` and sets nothing."""
    known = {each.variable(prefix) for each in settings} | ({prefix + also} if also else set())
    for variable in sorted(environment):
        # For a service called cortado-server, Kubernetes itself sets such variables.
        is_of_kubernetes = re.fullmatch(re.escape(prefix) + r"(SERVICE_(HOST|PORT).*|PORT(_[0-9]+_.*)?)", variable)
        if variable.startswith(prefix) and variable not in known and not is_of_kubernetes:
            near = nearest(variable.removeprefix(prefix), [each.removeprefix(prefix) for each in known])
            problem = f"is no setting; {f'did you mean {prefix}{near}?' if near else LISTED}"
            raise InvalidArgument(variable, problem, shown(environment[variable]))


def check_near_variables(known: Collection[str], environment: Mapping[str, str], prefix: str) -> None:
    """Raise InvalidArgument for a variable whose name is nearly one of ``known``. Others belong to other programs."""
    for variable in sorted(environment):
        if not variable.startswith(prefix) or variable in known:
            continue
        near = nearest(variable.removeprefix(prefix), [each.removeprefix(prefix) for each in known], _VERY_NEAR)
        if near:
            problem = f"is no setting; did you mean {prefix}{near}?"
            raise InvalidArgument(variable, problem, shown(environment[variable]))


def nearest(wrong: str, known: Collection[str], cutoff: float = _NEAR) -> str:
    """Return the name that was probably meant; empty if none is near."""
    import difflib

    return next(iter(difflib.get_close_matches(wrong, known, 1, cutoff)), "")


def _of_text(setting: Setting, text: str) -> Any:
    if setting.kind is FLAG:
        return {"true": True, "false": False}.get(text, text)
    return text


def _of_file(settings: Sequence[Setting], file: TomlFile, table: tuple[str, ...]) -> list[Found]:
    by_name = {each.name: each for each in settings}
    content: Any = file.content
    for name in table:
        content = content.get(name, {})
    found = []
    for key, value in _named(content, by_name):
        name, place = ".".join(key), file.place(*table, *key)
        setting = by_name.get(name)
        if setting is None:
            near = nearest(name, by_name)
            problem = f"is no setting; {f'did you mean {near}?' if near else LISTED}"
            raise InvalidArgument(f"{name} in {place}", problem, shown(value))
        read = setting.read(f"{name} in {place}", value)
        if setting.kind is PATH:
            read = file.path.parent / read
        found.append(Found(setting, read, FILE, place))
    return found


def _named(content: Any, by_name: Collection[str]) -> list[tuple[tuple[str, ...], Any]]:
    """Keys and values, those of tables with the table's name before."""
    tables = {name.partition(".")[0] for name in by_name if "." in name}
    named: list[tuple[tuple[str, ...], Any]] = []
    for key, value in content.items():
        if key in tables and isinstance(value, dict):
            named += [((key, inner), each) for inner, each in value.items()]
        else:
            named.append(((key,), value))
    return named
