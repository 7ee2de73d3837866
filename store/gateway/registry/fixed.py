"""Answers that are the same in every cluster: modes, contexts and metadata of a registry that takes reads and
writes."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from cortado.errors import InvalidArgument
from cortado.schema.json_text import shown
from cortado.store.gateway.calls import Call, Operation, Parameter
from cortado.store.gateway.registry.codes import INVALID_MODE, NOT_PERMITTED, Coded
from cortado.store.gateway.registry.compatibility import DEFAULT_TO_GLOBAL
from cortado.store.gateway.registry.reading import PAGE, answer, fields_of, operation, page, subject_of
from cortado.version import __version__

_MODE: Final = "READWRITE"
_OTHER_MODES: Final = ("READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
_FORCE: Final = Parameter("force", "Changes nothing.", kind="boolean")


def operations() -> list[Operation]:
    """Return the rows of this module."""
    rows = [
        operation("GET", "/", root, "That a registry is here."),
        operation("GET", "/contexts", contexts, "The contexts: the default one.", *PAGE),
        operation("GET", "/v1/metadata/id", cluster, "Which cluster answers."),
        operation("GET", "/v1/metadata/version", version, "Which version of the gateway answers."),
    ]
    for path in ("/mode", "/mode/{subject}"):
        rows += [
            operation("GET", path, mode, "The mode: READWRITE.", DEFAULT_TO_GLOBAL),
            operation("PUT", path, set_mode, "Sets the mode, which is READWRITE.", _FORCE),
            operation("DELETE", path, mode, "Has no effect: the mode is READWRITE."),
        ]
    return rows


async def root(call: Call) -> Response:
    """Nothing, which is what tools look for; a browser is sent to the console."""
    if "text/html" in ",".join(call.headers.getlist("accept")):
        return Response(status_code=302, headers={"Location": "/ui", "Vary": "Accept", "Cache-Control": "no-store"})
    return answer(call, {})


async def contexts(call: Call) -> Response:
    """Return the name of the default context."""
    return answer(call, page(call, ["."]))


async def cluster(call: Call) -> Response:
    """Return the cluster's id."""
    found = (await call.client.status()).cluster_id
    clusters = {"kafka-cluster": "", "schema-registry-cluster": found}
    return answer(call, {"id": found, "scope": {"path": [], "clusters": clusters}})


async def version(call: Call) -> Response:
    """Return the gateway's version."""
    return answer(call, {"version": __version__, "commitId": ""})


async def mode(call: Call) -> Response:
    """Return the only mode, for every subject."""
    _check_subject(call)
    return answer(call, {"mode": _MODE})


async def set_mode(call: Call) -> Response:
    """Raise Coded for every other mode."""
    _check_subject(call)
    given = (await fields_of(call, {"mode"})).get("mode")
    wanted = given.upper() if isinstance(given, str) else given
    if wanted in _OTHER_MODES:
        problem = f"must be {_MODE}: there is no other here"
        raise Coded(NOT_PERMITTED, InvalidArgument("mode", problem, shown(given)))
    if wanted != _MODE:
        problem = f"must be one of {', '.join((_MODE, *_OTHER_MODES))}"
        raise Coded(INVALID_MODE, InvalidArgument("mode", problem, shown(given)))
    return answer(call, {"mode": _MODE})


def _check_subject(call: Call) -> None:
    if "{subject}" in call.operation.path:
        subject_of(call)
