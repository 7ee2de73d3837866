"""``cortado context``: names for clusters and how to reach them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from cortado.errors import InvalidArgument, NotFound
from cortado.store.cli.contexts import (
    check_new_name,
    choose,
    contexts_path,
    empty,
    read_contexts,
    with_context,
    with_current,
    without_context,
    write_contexts,
)
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Output, Session
from cortado.store.cli.tree import command
from cortado.store.client.endpoints import parse_endpoints
from cortado.store.settings.client import CLIENT_SETTINGS, TIMEOUT_S_MAX
from cortado.store.settings.gather import Found
from cortado.store.settings.kinds import PATH

_NAMES: Final = tuple(each.name for each in CLIENT_SETTINGS)
_Name: TypeAlias = Annotated[str, Argument(help="The context's name.", metavar="NAME")]


@command(
    "context list",
    remote=False,
    examples="""
        cortado context list
        cortado context list -o json
    """,
)
def list_contexts(session: Session) -> None:
    """List the contexts. An asterisk marks the one that is used where none is named."""
    contexts = read_contexts(os.environ)
    listed = [] if contexts is None else [(name, contexts.found(name)) for name in contexts.names]
    current = "" if contexts is None else contexts.current
    if session.as_json:
        for name, found in listed:
            session.show.json({"context": name, "current": name == current, **_values(found)})
        return
    rows = [
        (
            f"{name} *" if name == current else name,
            _values(found).get("endpoints") or "-",
            "yes" if "tls-ca" in _values(found) else "no",
        )
        for name, found in listed
    ]
    session.show.table(("context", "endpoints", "encrypted"), rows)
    if not rows:
        session.show.note("there are none; cortado context set NAME --endpoint HOST:PORT makes one")


@command(
    "context show",
    remote=False,
    examples="""
        cortado context show
        cortado context show prod -o json
    """,
)
def show(
    session: Session,
    name: Annotated[
        str | None,
        Argument(help="The context.", metavar="NAME", show_default="the one that is used"),
    ] = None,
) -> None:
    """Show what a context holds, and where each value stands. Of a key the file's name is shown, never the key.

    What holds now, with flags and the environment, is what cortado config show --client says.
    """
    contexts = read_contexts(os.environ)
    chosen = choose(contexts, name, os.environ)
    if contexts is None or not chosen.name:
        raise NotFound("context", "is used; name one, or choose one with cortado context use")
    found = contexts.found(chosen.name)
    if session.as_json:
        session.show.json(
            {"context": chosen.name, "current": chosen.name == contexts.current, **_values(found)}
            | {"places": {each.setting.name: each.place for each in found}}
        )
        return
    session.show.line(f"context {chosen.name}, in {contexts.path}")
    session.show.table(
        ("setting", "value", "from"),
        [(each.setting.name, each.setting.text(each.value), each.place) for each in found],
    )


@command(
    "context use",
    remote=False,
    examples="""
        cortado context use prod
        cortado context use none
    """,
)
def use(_: Session, name: _Name) -> None:
    """Choose the context that is used where none is named; none is for no context."""
    contexts = read_contexts(os.environ)
    if name == "none":
        if contexts is not None:
            write_contexts(with_current(contexts, ""))
        return
    if contexts is None:
        choose(None, name, os.environ)
    assert contexts is not None
    contexts.check_name(name)
    write_contexts(with_current(contexts, name))


@command(
    "context set",
    remote=False,
    examples="""
        cortado context set dev --endpoint 127.0.0.1:7621
        cortado context set prod --endpoint db1:7621,db2:7621 --tls-ca ca.crt --tls-cert ops.crt --tls-key ops.key
        cortado context set prod --timeout 5 --unset tls-cert --unset tls-key
    """,
)
def set_context(
    _: Session,
    name: _Name,
    endpoint: Annotated[
        str | None,
        Option("--endpoint", "-e", help="The servers.", metavar="HOST:PORT,..."),
    ] = None,
    tls_ca: Annotated[str | None, _pem("The authority of the servers' certificates.")] = None,
    tls_cert: Annotated[str | None, _pem("Our own certificate.")] = None,
    tls_key: Annotated[str | None, _pem("Its private key. The file's name is kept, not the key.")] = None,
    timeout: Annotated[str | None, Option(help="How long to wait for an answer.", metavar="SECONDS")] = None,
    default_output: Annotated[Output | None, Option(help="How answers are shown.")] = None,
    unset: Annotated[
        list[str] | None,
        Option(help=f"Take a setting out: {', '.join(_NAMES)}; may be repeated.", metavar="SETTING"),
    ] = None,
) -> None:
    """Make a context, or change the settings of one that are given. Paths are kept as absolute ones."""
    changes: dict[str, Any] = dict.fromkeys(_unset(unset or []))
    given = {"endpoints": endpoint, "tls-ca": tls_ca, "tls-cert": tls_cert, "tls-key": tls_key, "timeout": timeout}
    given["output"] = None if default_output is None else default_output.value
    changes |= {name: _checked(name, text) for name, text in given.items() if text is not None}
    path = contexts_path(os.environ)
    if path is None:
        raise InvalidArgument("CORTADO_CONFIG", "must be given, since this user has no home directory")
    contexts = read_contexts(os.environ, may_be_missing=True) or empty(path)
    check_new_name("NAME", name)
    changed = with_context(contexts, name, changes)
    changed.found(name)
    write_contexts(changed)


@command("context remove", remote=False, examples="cortado context remove dev")
def remove(_: Session, name: _Name) -> None:
    """Remove a context. The files that it names stay."""
    contexts = read_contexts(os.environ)
    if contexts is None:
        choose(None, name, os.environ)
    assert contexts is not None
    write_contexts(without_context(contexts, name))


def _pem(help: str) -> Any:
    return Option(help=help, metavar="PEM")


def _values(found: list[Found]) -> dict[str, Any]:
    return {each.setting.name: each.setting.text(each.value) for each in found}


def _unset(names: list[str]) -> list[str]:
    for each in names:
        if each not in _NAMES:
            raise InvalidArgument("--unset", f"must be one of {', '.join(_NAMES)}", repr(each))
    return names


def _checked(name: str, text: str) -> Any:
    """A setting's value as the file is to have it. Raises InvalidArgument naming the option."""
    setting = next(each for each in CLIENT_SETTINGS if each.name == name)
    value = setting.read(setting.flag, text)
    if name == "endpoints":
        try:
            return list(parse_endpoints(value))
        except InvalidArgument as refused:
            raise InvalidArgument(setting.flag, refused.problem, refused.value) from None
    if name == "timeout" and not 0 < value <= TIMEOUT_S_MAX:
        raise InvalidArgument("--timeout", f"must be above 0 and at most {TIMEOUT_S_MAX} seconds", text)
    return str(Path(value).absolute()) if setting.kind is PATH else value
