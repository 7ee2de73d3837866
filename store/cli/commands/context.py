"""``cortado context``: names for clusters and how to reach them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from cortado.errors import InvalidArgument, NotFound
from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.contexts import (
    NONE,
    Contexts,
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
from cortado.store.settings.client import CLIENT_SETTINGS, TIMEOUT_S_MAX
from cortado.store.settings.gather import Found
from cortado.store.settings.kinds import PATH

_NAMES: Final = tuple(each.name for each in CLIENT_SETTINGS)
_Name: TypeAlias = Annotated[str, Argument(help="The context's name.", metavar="NAME")]


def _pem(help: str) -> Any:
    return Option(help=help, metavar="PEM")


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """The settings that a context may hold."""

    endpoint: Annotated[
        str | None,
        Option("--endpoint", "-e", help="The servers.", metavar="HOST:PORT,..."),
    ] = None
    tls_ca: Annotated[str | None, _pem("The authority of the servers' certificates.")] = None
    tls_cert: Annotated[str | None, _pem("The client's certificate.")] = None
    tls_key: Annotated[str | None, _pem("Its private key. The file's name is kept, not the key.")] = None
    token_file: Annotated[
        str | None,
        Option(help="A file with the client's token. The file's name is kept, not the token.", metavar="FILE"),
    ] = None
    timeout: Annotated[str | None, Option(help="How long to wait for an answer.", metavar="SECONDS")] = None
    default_output: Annotated[Output | None, Option(help="How answers are shown.")] = None


@command(
    "context list",
    remote=False,
    examples="""
        cortado context list
        cortado context list -o json
    """,
)
def list_contexts(_: Session) -> Answer:
    """List the contexts. An asterisk marks the current one."""
    contexts = read_contexts(os.environ)
    listed = [] if contexts is None else [(name, contexts.found(name)) for name in contexts.names]
    current = "" if contexts is None else contexts.current
    values = {name: _values(found) for name, found in listed}
    rows = [
        (
            f"{name} *" if name == current else name,
            each.get("endpoints") or "-",
            "yes" if "tls-ca" in each else "no",
        )
        for name, each in values.items()
    ]
    return Rows(
        ("context", "endpoints", "encrypted"),
        rows,
        [{"context": name, "current": name == current, **each} for name, each in values.items()],
        note="" if rows else "there are none; cortado context set NAME --endpoint HOST:PORT creates one",
    )


@command(
    "context show",
    remote=False,
    examples="""
        cortado context show
        cortado context show prod -o json
    """,
)
def show(
    _: Session,
    name: Annotated[
        str | None,
        Argument(help="The context.", metavar="NAME", show_default="the current one"),
    ] = None,
) -> Answer:
    """Show the settings of a context, and where each is set. For a private key only the file's name is shown.

    cortado config show --client shows the settings in force, with flags and the environment.
    """
    contexts = read_contexts(os.environ)
    chosen = choose(contexts, name, os.environ)
    if contexts is None or not chosen.name:
        raise NotFound("context", "is current; name one, or choose one with cortado context use")
    found = contexts.found(chosen.name)
    places = {each.setting.name: each.place for each in found}
    return Rows(
        ("setting", "value", "from"),
        [(each.setting.name, each.setting.text(each.value), each.place) for each in found],
        [{"context": chosen.name, "current": chosen.name == contexts.current, **_values(found), "places": places}],
        head=f"context {chosen.name}, in {contexts.path}",
    )


@command(
    "context use",
    remote=False,
    examples="""
        cortado context use prod
        cortado context use none
    """,
)
def use(_: Session, name: _Name) -> Answer:
    """Choose the current context, which is used unless another is named; none is for no context."""
    contexts = read_contexts(os.environ)
    if name == NONE:
        if contexts is not None:
            write_contexts(with_current(contexts, ""))
        return Said("no context is used", {"context": None})
    write_contexts(with_current(_existing(contexts, name), name))
    return Said(f"using context {name}", {"context": name})


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
    given: ContextSettings,
    unset: Annotated[
        list[str] | None,
        Option(help=f"Remove a setting: {', '.join(_NAMES)}; may be repeated.", metavar="SETTING"),
    ] = None,
) -> Answer:
    """Create a context, or change the given settings of one. Paths are stored as absolute paths."""
    changes: dict[str, Any] = dict.fromkeys(_unset(unset or []))
    texts = {
        "endpoints": given.endpoint,
        "tls-ca": given.tls_ca,
        "tls-cert": given.tls_cert,
        "tls-key": given.tls_key,
        "token-file": given.token_file,
        "timeout": given.timeout,
        "output": None if given.default_output is None else given.default_output.value,
    }
    changes |= {setting: _checked(setting, text) for setting, text in texts.items() if text is not None}
    if not changes:
        raise InvalidArgument("--endpoint", "must be given, or another setting: there is nothing to store")
    path = contexts_path(os.environ)
    if path is None:
        raise InvalidArgument("CORTADO_CONFIG", "must be given, since this user has no home directory")
    contexts = read_contexts(os.environ, may_be_missing=True) or empty(path)
    check_new_name("NAME", name)
    changed = with_context(contexts, name, changes)
    changed.found(name)
    write_contexts(changed)
    done = f"created context {name}" if name not in contexts.names else f"changed context {name}"
    return Said(f"{done} in {changed.path}", {"context": name, **_values(changed.found(name))})


@command("context remove", remote=False, examples="cortado context remove dev")
def remove(_: Session, name: _Name) -> Answer:
    """Remove a context. The files that it names stay."""
    write_contexts(without_context(_existing(read_contexts(os.environ), name), name))
    return Said(f"removed context {name}", {"removed": name})


def _existing(contexts: Contexts | None, name: str) -> Contexts:
    """Return the file's contexts, with ``name`` among them. Raises NotFound."""
    if contexts is None:
        choose(None, name, os.environ)
    assert contexts is not None
    contexts.check_name(name)
    return contexts


def _values(found: list[Found]) -> dict[str, Any]:
    return {each.setting.name: each.setting.text(each.value) for each in found}


def _unset(names: list[str]) -> list[str]:
    for each in names:
        if each not in _NAMES:
            raise InvalidArgument("--unset", f"must be one of {', '.join(_NAMES)}", repr(each))
    return names


def _checked(name: str, text: str) -> Any:
    """Return a setting's value as the file is to have it. Raises InvalidArgument naming the option."""
    setting = next(each for each in CLIENT_SETTINGS if each.name == name)
    value = setting.read(setting.flag, text)
    if name == "endpoints":
        from cortado.store.client.endpoints import parse_endpoints

        try:
            return list(parse_endpoints(value))
        except InvalidArgument as refused:
            raise InvalidArgument(setting.flag, refused.problem, refused.value) from None
    if name == "timeout" and not 0 < value <= TIMEOUT_S_MAX:
        raise InvalidArgument("--timeout", f"must be above 0 and at most {TIMEOUT_S_MAX} seconds", text)
    return str(Path(value).absolute()) if setting.kind is PATH else value
