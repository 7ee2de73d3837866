"""The tree of commands: the function of each command's words, and the layout of help.

Commands are functions in the modules of ``commands/``, each registered under the words that call it by
:func:`command`. A module is imported when one of its commands is named. The parameters of a command are made when it is
run, explained or completed; so a run pays for one command and not for seventy.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from cortado.errors import InvalidArgument
from cortado.store.cli.options import ShownArgument, arguments_of, given, missing, parameters_of
from cortado.store.cli.other_words import COMMANDS, MOVED, OPTIONS, meant
from cortado.store.cli.session import ALONE, GLOBAL_PANEL, Outer, Session, global_options
from cortado.store.settings.setting import Setting

_HELP_COLUMNS_MAX: Final = 120
"""Help is as wide as the terminal, up to lines that are still easy to read."""
HELP_NAMES: Final = {"help_option_names": ["--help", "-h"], "max_content_width": _HELP_COLUMNS_MAX}
_COLUMN_MAX: Final = 34
# The API's names for parameters that commands name otherwise.
_OPTION_OF: Final = {
    "condition.etag": ("if_etag",),
    "aggregates": ("aggregate",),
    "options.after": ("after",),
    "options.until": ("until",),
    "to_node_id": ("node_id",),
    "range.start": ("lower",),
    "range.end": ("upper",),
    "start": ("lower",),
    "end": ("upper",),
    "key": ("key", "prefix"),
    "indexes": ("index", "unique"),
    "database": ("database", "name"),
}
# One of several that were given: key[0].path, indexes[1].name.
_LISTED: Final = re.compile(r"(key|indexes)\[")


@dataclass(frozen=True, slots=True)
class Declared:
    """A command: its function, and what :func:`command` was told of it."""

    function: Callable[..., Any]
    examples: tuple[str, ...]
    remote: bool
    strict: bool
    settings: tuple[Setting, ...]
    in_shell: bool

    @property
    def paragraphs(self) -> list[str]:
        """The docstring, without the line ends that the source has."""
        return [" ".join(each.split()) for each in (inspect.getdoc(self.function) or "").split("\n\n")]


class Line(NamedTuple):
    """A line of ``cortado --help``: the commands and groups at the top that share it, each with its modules."""

    modules: Mapping[str, tuple[str, ...]]
    help: str

    @property
    def names(self) -> str:
        return ", ".join(self.modules)


_DECLARED: Final[dict[tuple[str, ...], Declared]] = {}


def command(
    words: str,
    *,
    examples: str,
    remote: bool = True,
    strict: bool = True,
    settings: tuple[Setting, ...] = (),
    in_shell: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the command that these words call.

    ``examples`` end its help, a line each; ``remote``: it talks to a server, and takes the options for that. Without
    ``strict`` it is also run if the settings of the command line are wrong, with a session that says so. With
    ``settings`` it takes an option for each of them, and is given those as ``flags``. A command that runs as a process
    of its own is not ``in_shell``, which refuses it.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        lines = tuple(line.strip() for line in examples.strip().splitlines())
        _DECLARED[tuple(words.split())] = Declared(function, lines, remote, strict, settings, in_shell)
        return function

    return register


class Command(click.Command):
    """One command, as click runs it."""

    def __init__(self, path: tuple[str, ...], declared: Declared) -> None:
        params = parameters_of(declared.function)
        own = {each.name for each in params}
        if declared.settings:
            # A global option that is a setting of a server too is given to both.
            from cortado.store.cli.setting_options import setting_options

            params += setting_options(declared.settings)
            own = own | {each.name for each in params}
        self.offered = [each for each in global_options() if declared.remote or each.name == "output"]
        super().__init__(
            path[-1],
            params=[*params, *(each for each in self.offered if each.name not in own)],
            help="\n\n".join(declared.paragraphs),
            short_help=declared.paragraphs[0].partition(". ")[0].rstrip("."),
            context_settings=dict(HELP_NAMES),
        )
        self.declared = declared

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, and suggest the option that was perhaps meant."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as unknown:
            _refuse_option(ctx, unknown.option_name)

    def invoke(self, ctx: click.Context) -> None:
        """Resolve the session, run the function, and show its answer."""
        outer = outer_of(ctx)
        if outer.shared is not None and not self.declared.in_shell:
            name = ctx.command_path.partition(" ")[2]
            raise InvalidArgument("command", f"must be run outside of a shell: cortado {name}", name)
        lacking = missing(self.params, ctx.params)
        if lacking is not None:
            raise click.MissingParameter(ctx=ctx, param=lacking)
        values = dict(given(self.params, ctx.params))
        settings = {str(each.name): values[str(each.name)] for each in self.offered if each.name in values}
        declared, chosen = self.declared, outer.given.with_options(**settings)
        session = Session.resolve(chosen, os.environ, strict=declared.remote and declared.strict)
        session = replace(session, shared=outer.shared)
        own = arguments_of(declared.function, values)
        if declared.settings:
            from cortado.store.cli.setting_options import flags_of

            own["flags"] = flags_of(declared.settings, values)
        try:
            answer = declared.function(session, **own)
            if answer is not None:
                session.answer(answer)
        except InvalidArgument as refused:
            self._rename(refused)
            raise

    def _rename(self, refused: InvalidArgument) -> None:
        """Name the wrong value as it was given: the option ``--if-etag``, and not the API's ``condition.etag``."""
        listed = _LISTED.match(refused.field)
        field = refused.field if listed is None else listed[1]
        names = _OPTION_OF.get(field, (field,))
        found = [
            each.declared_metavar if isinstance(each, ShownArgument) else max(each.opts, key=len)
            for each in self.params
            if each.name in names
        ]
        if found:
            refused.field = " or ".join(found)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, the options under their headings, the names of the global ones, and the examples."""
        own = [each for each in self.get_params(ctx) if each not in self.offered]
        show_parameters(own, ctx, formatter)
        with formatter.section(GLOBAL_PANEL):
            names = ", ".join(max(each.opts, key=len) for each in self.offered)
            formatter.write_text(f"{names}: see cortado options")
        with formatter.section("Examples"):
            for line in self.declared.examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class Group(click.Group):
    """Commands that begin with the same words. ``headings``: the lines of those at the top; ``helps``: texts of groups
    whose line is shared, and of groups below."""

    def __init__(
        self,
        path: tuple[str, ...],
        help: str,
        headings: Mapping[str, Sequence[Line]],
        helps: Mapping[str, str],
        **more: Any,
    ) -> None:
        super().__init__(
            path[-1] if path else "cortado",
            help=help,
            short_help=help.partition("\n")[0].rstrip("."),
            context_settings=dict(HELP_NAMES),
            **more,
        )
        self._path = path
        self._headings = headings
        self._lines = {name: line for lines in headings.values() for line in lines for name in line.modules}
        self._helps = helps

    def list_commands(self, _: click.Context) -> list[str]:
        if not self._path:
            return list(self._lines)
        depth = len(self._path)
        return list(dict.fromkeys(path[depth] for path in _DECLARED if path[:depth] == self._path))

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        path = (*self._path, name)
        if not self._path:
            if name not in self._lines:
                return None
            for module in self._lines[name].modules[name]:
                importlib.import_module(f"cortado.store.cli.commands.{module}")
        if path in _DECLARED:
            return Command(path, _DECLARED[path])
        if any(each[: len(path)] == path for each in _DECLARED):
            words = " ".join(path)
            help = self._helps[words] if words in self._helps else f"{self._lines[name].help}."
            return Group(path, help, self._headings, self._helps)
        return None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete as click does, at the top without importing any command."""
        if self._path:
            return super().shell_complete(ctx, incomplete)
        found = [
            CompletionItem(name, help=line.help) for name, line in self._lines.items() if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a command the help is shown, and it counts as wrong usage."""
        if not args and not ctx.resilient_parsing:
            sys.stderr.write(ctx.get_help() + "\n")
            raise click.UsageError("", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as unknown:
            _refuse_option(ctx, unknown.option_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, and suggest the name that was perhaps meant, or the known ones."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            there = self.list_commands(ctx)
            asked = " ".join((*self._path, name))
            moved = MOVED.get(asked, "")
            near = f"cortado {moved}" if moved else meant(name, COMMANDS, [*there, *_options_of(self)])
            others = f"; {' '.join(self._path)} has {', '.join(there)}" if self._path else ""
            ctx.fail(f"there is no command {asked!r}" + (f"; did you mean {near}?" if near else others))
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and the commands; at the top the commands alone, so that they fit on a screen."""
        if self._path:
            show_parameters(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each command, at the top under its heading and without importing any."""
        if not self._path:
            width = max(len(line.names) for line in self._lines.values())
            for heading, lines in self._headings.items():
                with formatter.section(heading):
                    formatter.write_dl([(f"{line.names:{width}}", line.help) for line in lines], col_max=_COLUMN_MAX)
            return
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [(name, "" if each is None else each.short_help or "") for name, each in found.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows, col_max=_COLUMN_MAX)


def _refuse_option(ctx: click.Context, name: str) -> NoReturn:
    near = meant(name, OPTIONS, _options_of(ctx.command))
    ctx.fail(f"no such option {name}" + (f"; did you mean {near}?" if near else ""))


def _options_of(command: click.Command) -> list[str]:
    shown = (each for each in command.params if isinstance(each, click.Option) and not each.hidden)
    return [name for each in shown for name in each.opts]


def outer_of(ctx: click.Context) -> Outer:
    """Return the surroundings of the run that ``ctx`` belongs to."""
    found = ctx.find_root().obj
    return found if isinstance(found, Outer) else ALONE


def show_parameters(params: Iterable[click.Parameter], ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the parameters under their headings, the global options last."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for each in params:
        if isinstance(each, ShownArgument):
            panels.setdefault("Arguments", []).append((each.declared_metavar, each.help_line))
            continue
        record = each.get_help_record(ctx)
        if record is not None:
            panels.setdefault(getattr(each, "panel", "Options"), []).append(record)
    for name in sorted(panels, key=lambda panel: panel == GLOBAL_PANEL):
        with formatter.section(name):
            formatter.write_dl(panels[name], col_max=_COLUMN_MAX)
