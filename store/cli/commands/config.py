"""``cortado config``: the settings of a server and of this command line, and where each is set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cortado.errors import InvalidArgument, Unavailable
from cortado.extras import needing
from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.failures import OK
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import Renderer, count
from cortado.store.cli.session import Session
from cortado.store.cli.setting_options import ConfigOption
from cortado.store.cli.tree import command
from cortado.store.settings.gather import DEFAULT, Found
from cortado.store.settings.server import SETTINGS

Described: TypeAlias = Mapping[str, str | None]


# --- show ------------------------------------------------------------------------------------------------------


@command(
    "config show",
    strict=False,
    settings=SETTINGS,
    examples="""
        cortado config show
        cortado config show --config /etc/cortado.toml --heartbeat-ms 50
        cortado config show --endpoint 127.0.0.1:7621
        cortado config show --client -o json
    """,
)
def show(
    session: Session,
    flags: dict[str, Any],
    config: ConfigOption = None,
    client: Annotated[bool, Option("--client", help="The settings of this command line, and of its context.")] = False,
    changed: Annotated[bool, Option("--changed", help="Only settings that differ from the default.")] = False,
    meaning: Annotated[bool, Option("--meaning", help="Show units, bounds and meanings too.")] = False,
) -> Answer:
    """Show every setting with its value, its default, and where the value came from.

    These are the settings that cortado server would use with the same options in this shell. With --endpoint or
    --context they are those of a running node.
    """
    is_asked = session.given.endpoint is not None or session.given.context is not None
    if client:
        found = _of_client(session)
    elif is_asked:
        _refuse_flags(flags, config)
        found = _of_node(session)
    else:
        found = [each.described() for each in checked(flags, config, os.environ)]
    return _Settings([each for each in found if not changed or each["origin"] != DEFAULT], meaning)


@dataclass(frozen=True, slots=True)
class _Settings:
    """Settings with their values and the places of these."""

    found: Sequence[Described]
    with_meaning: bool
    exit_code: int = OK

    def as_json(self) -> Iterable[Any]:
        return map(dict, self.found)

    def as_table(self, show: Renderer) -> None:
        if not self.with_meaning:
            rows = [
                (each["name"], _shown(each, "value"), _shown(each, "default"), _source(each)) for each in self.found
            ]
            show.table(("setting", "value", "default", "from"), rows)
            return
        for each in self.found:
            show.record(
                [
                    (str(each["name"]), _shown(each, "value")),
                    ("  default", _shown(each, "default")),
                    *[(f"  {name}", each[name]) for name in ("unit", "bound") if each[name]],
                    ("  from", _source(each)),
                    ("  meaning", each["meaning"]),
                ]
            )


def _shown(described: Described, name: str) -> str:
    value = described[name]
    return "-" if value is None else value


def _source(described: Described) -> str:
    return described["place"] or str(described["origin"])


def _of_client(session: Session) -> list[Described]:
    if session.problem is not None:
        raise session.problem
    name = session.context.name
    context: Described = {
        "name": "context",
        "value": name or None,
        "default": None,
        "unit": "",
        "bound": "",
        "meaning": "The context that settings are taken from.",
        "origin": DEFAULT if session.context.place == DEFAULT else "chosen",
        "place": "" if session.context.place == DEFAULT else session.context.place,
    }
    return [context, *(_as_context(each.described()) for each in session.found)]


def _as_context(described: dict[str, str | None]) -> Described:
    return {**described, "origin": "context" if described["origin"] == "file" else described["origin"]}


def _of_node(session: Session) -> list[Described]:
    """Return the settings of the first endpoint that answers. Raises the last one's error if none answers."""
    if session.problem is not None:
        raise session.problem
    from cortado.store.client.endpoints import parse_endpoints
    from cortado.store.client.node import NodeConnection
    from cortado.store.client.node_settings import settings_of

    problem: Unavailable | None = None
    for address in parse_endpoints(session.endpoint):
        try:
            with NodeConnection(address, tls=session.tls(), token=session.token, timeout_s=session.timeout_s) as node:
                found = settings_of(node)
        except Unavailable as error:
            problem = Unavailable(f"cannot reach {address}: {error.message()}")
            continue
        if not session.as_json:
            session.show.note(f"node {found.node_id} at {address}")
        return [
            {name: getattr(each, name) for name in ("name", "value", "default", "unit", "bound", "meaning")}
            | {"origin": each.origin, "place": each.place}
            for each in found.settings
        ]
    assert problem is not None
    raise problem


def _refuse_flags(flags: Mapping[str, Any], config: Path | None) -> None:
    # The client may need its certificates to reach the node.
    given = [f"--{name}" for name in flags if not name.startswith("tls-")] + (
        ["--config"] if config is not None else []
    )
    if given:
        raise InvalidArgument(given[0], "applies to a start; --endpoint and --context show a running node as it is")


# --- check and reference ---------------------------------------------------------------------------------------


@command(
    "config check",
    remote=False,
    examples="""
        cortado config check /etc/cortado.toml
    """,
)
def check(
    _: Session,
    file: Annotated[Path, Argument(help="A TOML file with settings.", metavar="FILE")],
) -> Answer:
    """Check a server's file of settings, without starting anything.

    Everything that a start would refuse is refused here: names, types, bounds, and missing files. The environment is
    left out, since the server starts in another one.

    Needs the extra [server]: pip install 'cortadodb[server]'.
    """
    try:
        found = checked({}, file, {})
    except InvalidArgument as refused:
        if refused.field == "--config":
            refused.field = "FILE"
        raise
    given = [each for each in found if each.origin != DEFAULT]
    return Said(f"{file} is valid: {count(len(given), 'setting')}", {"file": str(file), "settings": len(given)})


@dataclass(frozen=True, slots=True)
class _Reference:
    """The table of all settings."""

    exit_code: int = OK

    def as_json(self) -> Iterable[Any]:
        return (Found(each, each.default).described() for each in SETTINGS)

    def as_table(self, show: Renderer) -> None:

        from cortado.store.settings.reference import reference

        show.line(reference().rstrip("\n"))


@command(
    "config reference",
    remote=False,
    examples="""
        cortado config reference
        cortado config reference -o json
    """,
)
def show_reference(_: Session) -> Answer:
    """Print all settings of a server with their defaults, units, bounds and meanings, as Markdown."""
    return _Reference()


def checked(flags: Mapping[str, Any], file: Path | None, environment: Mapping[str, str]) -> tuple[Found, ...]:
    """Return every setting, valid by itself and beside the others. Raises InvalidArgument as a start would."""
    with needing("server", "checking settings"):
        from cortado.store.server.settings import configuration, gathered
    found = gathered(flags, file, environment)
    configuration(found)
    return found
