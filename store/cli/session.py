"""Shared by all commands: the global options, the client, and how to show an answer.

A command is a plain function whose first parameter is a :class:`Session`. The global options are added to its own
(:mod:`cortado.store.cli.tree`), so that they work before the command and after it: ``cortado -o json get ...`` and
``cortado get ... -o json`` are the same.

A session's settings come from flags, the environment, a context and the defaults, in this order; see
:mod:`cortado.store.settings.client` and :mod:`cortado.store.cli.contexts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from cortado.errors import CortadoError, InvalidArgument
from cortado.store.cli.answers import Answer
from cortado.store.cli.contexts import Chosen, choose, read_contexts
from cortado.store.cli.failures import CheckFailed
from cortado.store.cli.numbers import seconds
from cortado.store.cli.options import Option, ShownOption, option
from cortado.store.cli.render import Renderer
from cortado.store.cli.shared import Shared
from cortado.store.settings.client import (
    CLIENT_SETTINGS,
    CONTEXT_VARIABLE,
    ENDPOINTS,
    OUTPUT,
    PREFIX,
    TIMEOUT,
    TIMEOUT_S_DEFAULT,
    TIMEOUT_S_MAX,
    TLS_CA,
    TLS_CERT,
    TLS_KEY,
    TOKEN_FILE,
    TOKEN_VARIABLE,
)
from cortado.store.settings.gather import Found, gather
from cortado.store.settings.reach import check_tls_files, check_variables_of_clients, token_source
from cortado.store.settings.setting import Setting

if TYPE_CHECKING:
    from cortado.store.client import Client, Tls
    from cortado.store.client.authorization import TokenSource
    from cortado.store.client.connection import ReadFrom

DEFAULT_ENDPOINT: Final = ",".join(ENDPOINTS.default)
DEFAULT_TIMEOUT_S: Final = TIMEOUT_S_DEFAULT


class Output(StrEnum):
    """How answers are shown."""

    TABLE = "table"
    JSON = "json"


GLOBAL_PANEL: Final = "Global options"


def global_options() -> list[ShownOption]:
    """Return the options that every command has, and ``cortado`` itself: they may stand before the command or after
    it."""
    seconds_s, default_s = seconds("--timeout"), f"{DEFAULT_TIMEOUT_S:g}"
    return [
        _global(ENDPOINTS, "endpoint", "-e", metavar="HOST:PORT,...", show_default=DEFAULT_ENDPOINT),
        _global(OUTPUT, "output", "-o", kind=Output, show_default=OUTPUT.default),
        _global(TIMEOUT, "timeout", kind=float, metavar="SECONDS", parser=seconds_s, show_default=default_s),
        _global(TLS_CA, "tls_ca", metavar="PEM"),
        _global(TLS_CERT, "tls_cert", metavar="PEM"),
        _global(TLS_KEY, "tls_key", metavar="PEM"),
        _global(TOKEN_FILE, "token_file", metavar="FILE"),
        option(
            "context",
            str,
            Option(
                "--context",
                metavar="NAME",
                help=f"The context to use; none for no context. Otherwise {CONTEXT_VARIABLE}, or what cortado context "
                "use chose.",
                panel=GLOBAL_PANEL,
            ),
        ),
    ]


def _global(setting: Setting, name: str, *names: str, kind: Any = str, **more: Any) -> ShownOption:
    help = f"{setting.meaning} Otherwise {setting.variable(PREFIX)}, or the context's."
    return option(name, kind, Option(setting.flag, *names, help=help, panel=GLOBAL_PANEL, **more))


@dataclass(frozen=True, slots=True)
class Given:
    """The global options of one run, None if one was not given."""

    endpoint: str | None = None
    output: Output | None = None
    timeout: float | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    token_file: str | None = None
    context: str | None = None

    def with_options(self, **given: Any) -> Given:
        """These, and those that stand after the command, which win."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def flags(self) -> dict[str, Any]:
        """Return the given values, by the settings' names."""
        return {
            ENDPOINTS.name: self.endpoint,
            TLS_CA.name: self.tls_ca,
            TLS_CERT.name: self.tls_cert,
            TLS_KEY.name: self.tls_key,
            TOKEN_FILE.name: self.token_file,
            TIMEOUT.name: self.timeout,
            OUTPUT.name: None if self.output is None else self.output.value,
        }


@dataclass(frozen=True, slots=True)
class Outer:
    """The surroundings of one run: nothing, or a shell with global options and a client that its commands share."""

    given: Given = field(default_factory=Given)
    shared: Shared | None = None


ALONE: Final = Outer()


@dataclass(frozen=True, slots=True)
class Session:
    """One run of the command line. ``found`` has each setting and its place, ``context`` the chosen context.

    ``problem`` is why the settings could not be found, for a command that goes on without them.
    """

    endpoint: str = DEFAULT_ENDPOINT
    output: Output = Output.TABLE
    timeout_s: float = DEFAULT_TIMEOUT_S
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    token: TokenSource | None = field(default=None, repr=False)
    show: Renderer = field(default_factory=Renderer)
    context: Chosen = field(default_factory=Chosen)
    found: tuple[Found, ...] = ()
    given: Given = field(default_factory=Given)
    problem: CortadoError | None = None
    shared: Shared | None = None

    @property
    def as_json(self) -> bool:
        return self.output is Output.JSON

    @classmethod
    def resolve(cls, given: Given, environment: Mapping[str, str], *, strict: bool = True) -> Session:
        """Return the session of this run. Raises InvalidArgument for a wrong setting, NotFound for an unknown context.

        One that is not ``strict`` goes on with the given options, for a command that may need no server.
        """
        try:
            return cls._resolved(given, environment)
        except CortadoError as problem:
            if strict:
                raise
            output = given.output or environment.get(OUTPUT.variable(PREFIX))
            return cls(output=Output(output) if output in list(Output) else Output.TABLE, given=given, problem=problem)

    @classmethod
    def _resolved(cls, given: Given, environment: Mapping[str, str]) -> Session:
        check_variables_of_clients(environment)
        contexts = read_contexts(environment)
        chosen = choose(contexts, given.context, environment)
        found = gather(
            CLIENT_SETTINGS,
            flags=given.flags(),
            environment=environment,
            prefix=PREFIX,
            file=contexts.file if contexts is not None and chosen.name else None,
            table=("contexts", chosen.name),
        )
        by_name = {each.setting.name: each for each in found}
        _check_endpoints(by_name[ENDPOINTS.name])
        _check_timeout(by_name[TIMEOUT.name])
        value = {name: each.value for name, each in by_name.items()}
        return cls(
            endpoint=",".join(value[ENDPOINTS.name]),
            output=Output(value[OUTPUT.name]),
            timeout_s=value[TIMEOUT.name],
            tls_ca=_text(value[TLS_CA.name]),
            tls_cert=_text(value[TLS_CERT.name]),
            tls_key=_text(value[TLS_KEY.name]),
            token=token_source(by_name[TOKEN_FILE.name], environment),
            context=chosen,
            found=found,
            given=given,
        )

    def answer(self, answer: Answer) -> None:
        """Show a command's answer. Raises CheckFailed if the answer has an exit code of its own."""
        if self.as_json:
            for each in answer.as_json():
                self.show.json(each)
        else:
            answer.as_table(self.show)
        if answer.exit_code:
            raise CheckFailed(answer.exit_code)

    @property
    def reach(self) -> tuple[object, ...]:
        """Which servers a client talks to, and with which files."""
        return self.endpoint, self.tls_ca, self.tls_cert, self.tls_key, self.token

    def client(self, read_from: ReadFrom = "leader") -> AbstractContextManager[Client]:
        """Return a client for one command; in a shell the next one may be given the same.

        Raises InvalidArgument for a wrong endpoint, timeout or file.
        """
        if self.shared is None:
            return self._opened(read_from)
        return self.shared.lent((*self.reach, read_from), lambda: self._opened(read_from), self.timeout_s)

    def _opened(self, read_from: ReadFrom) -> Client:
        from cortado.store.client import Client
        from cortado.store.client.authorization import check_source

        if self.token is not None:
            check_source(self.token, TOKEN_VARIABLE if isinstance(self.token, str) else self._place(TOKEN_FILE))
        return Client(self.endpoint, timeout_s=self.timeout_s, tls=self.tls(), token=self.token, read_from=read_from)

    def tls(self) -> Tls | None:
        """Return the files for encrypted connections, None for plain ones. Raises InvalidArgument."""
        check_tls_files(self.tls_ca, self.tls_cert, self.tls_key, lambda setting: setting.flag)
        if self.tls_ca is None:
            return None
        from cortado.store.client import Tls
        from cortado.store.client.endpoints import TlsNames

        names = TlsNames(*map(self._place, (TLS_CA, TLS_CERT, TLS_KEY)))
        made = Tls(self.tls_ca, self.tls_cert, self.tls_key, names)
        made.context()
        return made

    def _place(self, setting: Setting) -> str:
        """Return the place of a setting: a flag, a variable, or the line of a file."""
        return next((each.named() for each in self.found if each.setting is setting), setting.flag)


def _check_endpoints(found: Found) -> None:
    from cortado.store.client.endpoints import parse_endpoints

    try:
        parse_endpoints(found.value)
    except InvalidArgument as refused:
        raise InvalidArgument(found.named(), refused.problem, refused.value) from None


def _check_timeout(found: Found) -> None:
    if not 0 < found.value <= TIMEOUT_S_MAX:
        problem = f"must be above 0 and at most {TIMEOUT_S_MAX} seconds"
        raise InvalidArgument(found.named(), problem, f"{found.value:g}")


def _text(path: Any) -> str | None:
    return None if path is None else str(path)
