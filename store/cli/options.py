"""A command's arguments and options, declared beside the types of its parameters, and turned into click's parameters.

::

    AtOption: TypeAlias = Annotated[str | None, Option("--at", help="Read as of a timestamp.", metavar="TIME")]

    @command("kv get", examples="cortado kv get sessions user:1")
    def get(session: Session, namespace: NamespaceArgument, at: AtOption = None) -> Answer: ...

Options that belong together, or that many commands share, are the fields of a dataclass, which is one parameter.

A parameter's type decides how the text is read (``bool`` is a flag, ``list`` may be repeated, an enum is a choice). Its
default is the function's own: an option that is not on the command line is not passed.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

import click
import click.shell_completion

Completion: TypeAlias = Callable[[click.Context, str], list[str]]
"""The values that begin with the typed text."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A positional argument. ``show_default`` says its default in words."""

    help: str
    metavar: str
    parser: Callable[[str], Any] | None = None
    show_default: str = ""
    completion: Completion | None = None


@dataclass(frozen=True, slots=True, init=False)
class Option:
    """An option. Without names it is called as its parameter is. ``panel`` is its heading in the help."""

    names: tuple[str, ...]
    help: str
    metavar: str | None
    parser: Callable[[str], Any] | None
    show_default: str
    panel: str
    hidden: bool
    completion: Completion | None

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        parser: Callable[[str], Any] | None = None,
        show_default: str = "",
        panel: str = "Options",
        hidden: bool = False,
        completion: Completion | None = None,
    ) -> None:
        values = (names, help, metavar, parser, show_default, panel, hidden, completion)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)


class ShownOption(click.Option):
    """click's option, with its heading in the help."""

    def __init__(self, declared: Option, **more: Any) -> None:
        super().__init__(**more)
        self.panel = declared.panel


class ShownArgument(click.Argument):
    """click's argument, with a line in the help, which click has for options alone."""

    def __init__(self, declared: Argument, *, is_needed: bool, **more: Any) -> None:
        # click reads repeatable arguments first, and would report them missing before the arguments before them.
        super().__init__(required=is_needed and more["nargs"] == 1, **more)
        self.is_needed = is_needed
        self.help_line = _help(declared.help, declared.show_default)
        self.declared_metavar = declared.metavar

    def make_metavar(self, *_: Any) -> str:
        """Return the usage line's name: in brackets if it may be missing, with dots if it may be repeated."""
        repeated = "..." if self.nargs == -1 else ""
        return f"{self.declared_metavar}{repeated}" if self.is_needed else f"[{self.declared_metavar}{repeated}]"

    def get_error_hint(self, *_: Any) -> str:
        return f"'{self.declared_metavar}'"


class _Parsed(click.ParamType):  # type: ignore[type-arg]
    """A value that a function of ours reads; the refusal names the option, the value and the bound."""

    name = "value"

    def __init__(self, read: Callable[[str], Any]) -> None:
        self._read = read

    def convert(self, value: Any, *_: Any) -> Any:
        return self._read(value)


_OF_FILES: Final = ("FILE", "PATH", "PEM", "DESTINATION")


def _completed(declared: Option | Argument) -> Callable[..., list[click.shell_completion.CompletionItem]] | None:
    """Return the completion of a value: our own names, files, or click's completions for the type."""
    complete = declared.completion
    if complete is not None:
        return lambda ctx, _param, typed: [click.shell_completion.CompletionItem(each) for each in complete(ctx, typed)]
    if (declared.metavar or "").startswith(_OF_FILES):
        return lambda _ctx, _param, typed: [click.shell_completion.CompletionItem(typed, type="file")]
    return None


def parameters_of(function: Callable[..., Any]) -> list[click.Parameter]:
    """Return the parameters behind the first one, which is the session. Those that declare nothing are not the
    user's."""
    found: list[click.Parameter] = []
    for name, hint, default in _taken(function):
        group = _group(hint)
        if group is not None:
            fields = {each.name: each.default for each in dataclasses.fields(group)}
            hints = get_type_hints(group, include_extras=True)
            found += [_parameter(field, fields[field], *get_args(hints[field])) for field in fields]
        elif get_origin(hint) is Annotated:
            found.append(_parameter(name, default, *get_args(hint)))
    return found


def arguments_of(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the function's arguments from the user's values; a group of options is made of its fields."""
    found: dict[str, Any] = {}
    for name, hint, _ in _taken(function):
        group = _group(hint)
        if group is not None:
            fields = {each.name for each in dataclasses.fields(group)}
            found[name] = group(**{field: value for field, value in values.items() if field in fields})
        elif name in values:
            found[name] = values[name]
    return found


def _taken(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    """(name, type, default) of each parameter behind the session."""
    hints = get_type_hints(function, include_extras=True)
    signature = list(inspect.signature(function).parameters.values())[1:]
    return [(each.name, hints[each.name], each.default) for each in signature]


def _group(hint: Any) -> Any:
    return hint if dataclasses.is_dataclass(hint) else None


def option(name: str, kind: Any, declared: Option, *, default: Any = None, required: bool = False) -> ShownOption:
    """Return one option as click knows it."""
    kind, is_repeated = _single(kind)
    is_flag = kind is bool
    shown = declared.show_default or _shown_default(default)
    return ShownOption(
        declared,
        param_decls=[name, *_names(name, declared)],
        # Without a default of click's, so that a missing option can be told from one given with its default.
        default=None,
        required=required,
        multiple=is_repeated,
        is_flag=is_flag,
        type=None if is_flag else _type(kind, declared.parser),
        metavar=declared.metavar,
        # That it is required, click says itself.
        help=_help(declared.help, "" if required else shown),
        hidden=declared.hidden,
        shell_complete=_completed(declared),
    )


def _parameter(name: str, default: Any, kind: Any, declared: Option | Argument) -> click.Parameter:
    required = default is inspect.Parameter.empty or default is dataclasses.MISSING
    default = None if required else default
    if isinstance(declared, Option):
        return option(name, kind, declared, default=default, required=required)
    kind, is_repeated = _single(kind)
    return ShownArgument(
        declared,
        param_decls=[name],
        default=None,
        is_needed=required,
        nargs=-1 if is_repeated else 1,
        type=_type(kind, declared.parser),
        shell_complete=_completed(declared),
    )


def missing(params: list[click.Parameter], values: dict[str, Any]) -> click.Parameter | None:
    """Return the first argument or option that must be given, and was not: some versions of click miss an option."""
    needed = (each for each in params if each.required or (isinstance(each, ShownArgument) and each.is_needed))
    return next((each for each in needed if values.get(each.name or "") in (None, ())), None)


def given(params: list[click.Parameter], values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the user's values, by the parameters' names; the rest is the function's to fill in."""
    for each in params:
        value = values.get(each.name or "")
        if value is None or (isinstance(value, tuple) and not value):
            continue
        yield each.name or "", list(value) if isinstance(value, tuple) else value


def _names(name: str, declared: Option) -> tuple[str, ...]:
    own = [each for each in declared.names if each.startswith("--")]
    return declared.names if own else (f"--{name.replace('_', '-')}", *declared.names)


def _single(kind: Any) -> tuple[Any, bool]:
    """Return a type without its None, and whether it is a list of it."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    return (get_args(kind)[0], True) if get_origin(kind) is list else (kind, False)


def _type(kind: Any, parser: Callable[[str], Any] | None) -> Any:
    if parser is not None:
        return _Parsed(parser)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _Choice(kind)
    assert kind in (str, Path), f"{kind} needs a parser"
    return _Parsed(Path) if kind is Path else click.STRING


class _Choice(click.Choice):  # type: ignore[type-arg]
    """One of an enum's values."""

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__([each.value for each in kind], case_sensitive=False)
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> StrEnum:
        return self._kind(super().convert(value, param, ctx))


_NOT_SHOWN: Final[tuple[Any, ...]] = (None, False, True, "", (), [])


def _shown_default(default: Any) -> str:
    return "" if default in _NOT_SHOWN else f"{default:g}" if isinstance(default, float) else str(default)


def _help(text: str, default: str) -> str:
    return f"{text} [default: {default}]" if default else text
