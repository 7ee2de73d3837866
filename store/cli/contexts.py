"""Contexts: names for clusters and how to reach them, in one file of the user's.

::

    current = "prod"                                   # the one that is used unless one is named

    [contexts.prod]
    endpoints = ["db1:7621", "db2:7621", "db3:7621"]
    tls-ca = "ca.crt"                                  # relative to this file

The file names the servers to trust with data, so one that others may write is refused. It holds names of key files and
never a key. A command that changes it changes the lines that it must, and leaves the rest, comments too, as it is.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument, NotFound
from cortado.store.cli.directories import user_directory
from cortado.store.files.regular_files import is_of_another_user, others_may_write
from cortado.store.settings.client import CLIENT_SETTINGS, CONFIG_VARIABLE, CONTEXT_VARIABLE
from cortado.store.settings.gather import Found, gather, nearest
from cortado.store.settings.kinds import shown
from cortado.store.settings.toml_file import Key, TomlFile, parse_toml, read_toml

NONE: Final = "none"
NAME_LENGTH_MAX: Final = 64
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_TOP: Final = ("current", "contexts")
_KEYS: Final = tuple(each.name for each in CLIENT_SETTINGS)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen context: its name (empty for none), and the place that named it."""

    name: str = ""
    place: str = "default"


@dataclass(frozen=True, slots=True)
class Contexts:
    """The contexts in the file; none without a file."""

    file: TomlFile

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def names(self) -> list[str]:
        return list(self.file.content.get("contexts", {}))

    @property
    def current(self) -> str:
        return str(self.file.content.get("current", ""))

    def found(self, name: str) -> list[Found]:
        """Return the settings that a context holds, with their lines. Raises NotFound, InvalidArgument."""
        self.check_name(name)
        everything = gather(
            CLIENT_SETTINGS, flags={}, environment={}, prefix="", file=self.file, table=("contexts", name)
        )
        return [each for each in everything if each.origin != "default"]

    def check_name(self, name: str) -> None:
        """Raise NotFound if there is no such context."""
        if name not in self.names:
            known = f"; there are {', '.join(sorted(self.names))}" if self.names else ""
            raise NotFound("context", f"{name} in {self.path}{known}")


def contexts_path(environment: Mapping[str, str]) -> Path | None:
    """Return the path of the file, which need not exist. None for a user without a home directory."""
    if environment.get(CONFIG_VARIABLE):
        return Path(environment[CONFIG_VARIABLE])
    directory = user_directory(environment, "XDG_CONFIG_HOME", ".config")
    return None if directory is None else directory / "config.toml"


def read_contexts(environment: Mapping[str, str], *, may_be_missing: bool = False) -> Contexts | None:
    """Return the file's contexts, its shape checked; None if the default file does not exist.

    Raises InvalidArgument for a file that is named and missing (unless it ``may_be_missing``), unreadable, writable
    by others, or not of this form.
    """
    path = contexts_path(environment)
    if path is None:
        return None
    named = CONFIG_VARIABLE if environment.get(CONFIG_VARIABLE) else "contexts"
    if not path.exists() and (named != CONFIG_VARIABLE or may_be_missing):
        return None
    file = read_toml(path, named)
    _check_permissions(path)
    _check_shape(file)
    return Contexts(file)


def choose(contexts: Contexts | None, flag: str | None, environment: Mapping[str, str]) -> Chosen:
    """Return the context to use. Raises NotFound if the named context does not exist."""
    chosen = Chosen()
    if flag is not None:
        chosen = Chosen(flag, "--context")
    elif environment.get(CONTEXT_VARIABLE):
        chosen = Chosen(environment[CONTEXT_VARIABLE], CONTEXT_VARIABLE)
    elif contexts is not None and contexts.current:
        chosen = Chosen(contexts.current, contexts.file.place("current"))
    if chosen.name in ("", NONE):
        return Chosen("", chosen.place)
    if contexts is None:
        path = contexts_path(environment)
        raise NotFound("context", f"{chosen.name}: there is no file {path}; cortado context set makes one")
    contexts.check_name(chosen.name)
    return chosen


def _check_permissions(path: Path) -> None:
    status = path.stat()
    if is_of_another_user(status):
        raise InvalidArgument(
            str(path), "belongs to another user, who could redirect every command: use a file of yours"
        )
    if others_may_write(status):
        mode = stat.S_IMODE(status.st_mode)
        problem = f"may be written by others than its owner, who could redirect every command: chmod go-w {path}"
        raise InvalidArgument(str(path), problem, f"mode {mode:03o}")


def _check_shape(file: TomlFile) -> None:
    content = file.content
    for name, value in content.items():
        if name not in _TOP:
            near = nearest(name, _TOP)
            problem = (
                f"is nothing that this file has; {f'did you mean {near}?' if near else 'it has current, contexts'}"
            )
            raise InvalidArgument(f"{name} in {file.place(name)}", problem, shown(value))
    tables = content.get("contexts", {})
    if not isinstance(tables, dict):
        raise InvalidArgument(f"contexts in {file.place('contexts')}", "must be a table for each", shown(tables))
    for name, table in tables.items():
        place = f"contexts.{name} in {file.place('contexts', name)}"
        if not isinstance(table, dict):
            raise InvalidArgument(place, "must be a table of settings", shown(table))
        check_new_name(place, name)
    current = content.get("current", "")
    if not isinstance(current, str):
        raise InvalidArgument(f"current in {file.place('current')}", "must be the name of a context", shown(current))
    if current and current not in tables:
        problem = f"is no context; there are {', '.join(sorted(tables)) or 'none'}"
        raise InvalidArgument(f"current in {file.place('current')}", problem, shown(current))


def check_new_name(field: str, name: str) -> str:
    """Return ``name`` if a context may be called so. Raises InvalidArgument naming ``field``."""
    if not _NAME.fullmatch(name) or len(name) > NAME_LENGTH_MAX or name == NONE:
        problem = f"must be at most {NAME_LENGTH_MAX} letters, digits, '_' and '-', and not {NONE!r}"
        raise InvalidArgument(field, problem, shown(name))
    return name


# --- changing the file -----------------------------------------------------------------------------------------


def empty(path: Path) -> Contexts:
    """Return a file that is to be written."""
    return Contexts(parse_toml(path, "", "contexts"))


def with_current(contexts: Contexts, name: str) -> Contexts:
    """Return the contexts with ``name`` as the default one; empty for no default."""
    return Contexts(_with(contexts.file, ("current",), name or None))


def with_context(contexts: Contexts, name: str, changes: Mapping[str, Any]) -> Contexts:
    """Return the file with these settings in the context, in the form of TOML. A setting that is None is removed."""
    file = contexts.file
    if name not in contexts.names:
        head = file.text if file.text.endswith("\n") or not file.text else f"{file.text}\n"
        file = parse_toml(file.path, f"{head}{chr(10) if head else ''}[contexts.{name}]\n", "contexts")
    for key in _KEYS:
        if key in changes:
            file = _with(file, ("contexts", name, key), changes[key])
    return Contexts(file)


def without_context(contexts: Contexts, name: str) -> Contexts:
    """Return the file without a context, and without a current one if it was that."""
    contexts.check_name(name)
    file, table = contexts.file, ("contexts", name)
    gone = [
        each
        for each in file.statements
        if each.header == table or (each.keys and all(key[: len(table)] == table for key in each.keys))
    ]
    lines = file.text.splitlines(keepends=True)
    for each in reversed(gone):
        del lines[each.first - 1 : each.last]
    changed = Contexts(parse_toml(file.path, "".join(lines), "contexts"))
    if name in changed.names:
        raise _by_hand(file, table)
    return with_current(changed, "") if contexts.current == name else changed


def _with(file: TomlFile, key: Key, value: Any) -> TomlFile:
    """Return the file with one key set, or removed if ``value`` is None. Raises InvalidArgument: cannot be done."""
    lines = file.text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    new = [] if value is None else [f"{key[-1]} = {_toml(value)}\n"]
    for each in file.statements:
        if key in each.keys or any(known[: len(key)] == key for known in each.keys):
            if len(each.keys) > 1 or not lines[each.first - 1].lstrip().startswith(key[-1]):
                raise _by_hand(file, key)
            lines[each.first - 1 : each.last] = new
            break
    else:
        at = _place_for(file, key[:-1])
        if at is None:
            raise _by_hand(file, key)
        is_before_table = at < len(lines) and lines[at].lstrip().startswith("[") and not key[:-1]
        lines[at:at] = [*new, "\n"] if new and is_before_table else new
    return parse_toml(file.path, "".join(lines), "contexts")


def _place_for(file: TomlFile, table: Key) -> int | None:
    """Return the line, from 0, before which a new key goes: after the table's last; None if it has no header."""
    if not table:
        return next((each.first - 1 for each in file.statements), len(file.text.splitlines()))
    place = None
    for each in file.statements:
        if each.header == table:
            place = each.last
        elif each.header is not None and place is not None:
            break
        elif place is not None:
            place = each.last
    return place


def _by_hand(file: TomlFile, key: Key) -> InvalidArgument:
    problem = "is written in a way that this command does not change: change it by hand"
    return InvalidArgument(f"{'.'.join(key)} in {file.place(*key)}", problem)


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Sequence):
        return f"[{', '.join(json.dumps(each, ensure_ascii=False) for each in value)}]"
    return f"{value:g}"


def write_contexts(contexts: Contexts) -> None:
    """Replace the file whole; a new one is readable by its owner alone. Raises InvalidArgument."""
    import tempfile

    _check_shape(contexts.file)
    path = contexts.path.resolve()  # A link stays one.
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
                opened.write(contexts.file.text)
                os.fchmod(opened.fileno(), mode)
            Path(temporary).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise InvalidArgument("contexts", f"cannot be written: {error.strerror}", str(contexts.path)) from None
