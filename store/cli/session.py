"""What every command has: the options that are global, the client, and how to show what it found.

A command is a plain function whose first parameter is a :class:`Session`. :func:`command` puts it into an app and adds
the global options to its own, so that they work before the command and after it: ``cortado -o json get ...`` and
``cortado get ... -o json`` are the same. It uses nothing but typer's public interface: a signature.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

import typer

from cortado.errors import InvalidArgument
from cortado.store.cli.parse import seconds
from cortado.store.cli.render import Renderer
from cortado.store.client.client import DEFAULT_ENDPOINT, Client
from cortado.store.client.endpoints import Tls

DEFAULT_TIMEOUT_S = 10.0


class Output(StrEnum):
    """How answers are shown."""

    TABLE = "table"
    JSON = "json"


EndpointOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        "-e",
        metavar="HOST:PORT,...",
        help="The server to talk to, or some of a cluster's; otherwise what CORTADO_ENDPOINT holds.",
        show_default=f"{DEFAULT_ENDPOINT}",
        rich_help_panel="Global options",
    ),
]
OutputOption: TypeAlias = Annotated[
    Output | None,
    typer.Option(
        "--output",
        "-o",
        help="Tables for people, or JSON for scripts: one object a line.",
        show_default="table",
        rich_help_panel="Global options",
    ),
]
TimeoutOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        parser=seconds("--timeout"),
        help="How long to wait for an answer.",
        show_default=f"{DEFAULT_TIMEOUT_S:g}",
        rich_help_panel="Global options",
    ),
]


def _file_option(name: str, what: str) -> Any:
    variable = _VARIABLES[name]
    help = f"{what}, or what {variable} holds."
    return typer.Option(name, metavar="PEM", help=help, show_default=False, rich_help_panel="Global options")


_VARIABLES: Final = {
    "--tls-ca": "CORTADO_TLS_CA",
    "--tls-cert": "CORTADO_TLS_CERT",
    "--tls-key": "CORTADO_TLS_KEY",
}
TlsCaOption: TypeAlias = Annotated[
    str | None, _file_option("--tls-ca", "Encrypt: the authority of the servers' certificates")
]
TlsCertOption: TypeAlias = Annotated[str | None, _file_option("--tls-cert", "Our own certificate")]
TlsKeyOption: TypeAlias = Annotated[str | None, _file_option("--tls-key", "Its private key")]


@dataclass(frozen=True, slots=True)
class Session:
    """One run of the command line."""

    endpoint: str = DEFAULT_ENDPOINT
    output: Output = Output.TABLE
    timeout_s: float = DEFAULT_TIMEOUT_S
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    show: Renderer = field(default_factory=Renderer)

    @property
    def as_json(self) -> bool:
        return self.output is Output.JSON

    @classmethod
    def from_environment(cls) -> Session:
        """The settings of this process: CORTADO_ENDPOINT and CORTADO_TLS_..., where they are set."""
        tls: dict[str, Any] = {_field(name): os.environ.get(variable) or None for name, variable in _VARIABLES.items()}
        return cls(endpoint=os.environ.get("CORTADO_ENDPOINT") or DEFAULT_ENDPOINT).with_options(**tls)

    def client(self) -> Client:
        """A client to use as a context manager. Raises InvalidArgument for a wrong endpoint, timeout or file."""
        return Client(self.endpoint, timeout_s=self.timeout_s, tls=self._tls())

    def _tls(self) -> Tls | None:
        if self.tls_ca is None:
            for name in ("--tls-cert", "--tls-key"):
                if getattr(self, _field(name)) is not None:
                    raise InvalidArgument("--tls-ca", f"must be given with {name}")
            return None
        return Tls(self.tls_ca, self.tls_cert, self.tls_key)

    def with_options(self, *, timeout: float | None = None, **given: Any) -> Session:
        """This session with what was given, by the options' names; None leaves a setting as it is."""
        changes = {"timeout_s": timeout, **given}
        return replace(self, **{name: value for name, value in changes.items() if value is not None})


def _field(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


_GLOBALS: Final = {
    "endpoint": EndpointOption,
    "output": OutputOption,
    "timeout": TimeoutOption,
    "tls_ca": TlsCaOption,
    "tls_cert": TlsCertOption,
    "tls_key": TlsKeyOption,
}


def command(
    app: typer.Typer, name: str, *, examples: str, remote: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a function as a command. ``examples`` end its help, a line each; ``remote``: it talks to a server."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        parameters = [
            parameter.replace(annotation=hints[parameter.name])
            for parameter in list(inspect.signature(function).parameters.values())[1:]
        ]
        offered = [each for each in _GLOBALS if remote or each == "output"]
        extra = [
            inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_GLOBALS[each])
            for each in offered
        ]
        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

        @functools.wraps(function)
        def run(*, context: typer.Context, **given: Any) -> None:
            settings = {each: given.pop(each, None) for each in offered}
            base = context.obj if isinstance(context.obj, Session) else Session.from_environment()
            function(base.with_options(**settings), **given)

        keyword_only = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        signature = inspect.Signature([*keyword_only, *extra, context])
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
        del run.__wrapped__  # typer would look through it, to the other signature.
        app.command(name, help=help_text(function, examples), no_args_is_help=False)(run)
        return function

    return register


def help_text(function: Callable[..., None], examples: str) -> str:
    """The docstring, then the examples as they stand."""
    lines = [line.strip() for line in examples.strip().splitlines()]
    # A lone \b keeps the lines of a paragraph as they are.
    return f"{inspect.getdoc(function)}\n\n\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
