"""``GET /openapi.json``: the operations as OpenAPI 3.1, written from the table that dispatches calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from starlette.responses import Response

from cortado.schema.json_text import json_text
from cortado.store.gateway import problems
from cortado.store.gateway.calls import JSON, Call, Operation, Parameter

PATH: Final = "/openapi.json"

_PART: Final = re.compile(r"\{(\w+)(?::path)?\}")
_TITLE: Final = "Cortado"
_DESCRIPTION: Final = "Documents, pairs and schemas of a Cortado cluster. docs/http.md explains them."
_PROBLEM: Final = {
    "type": "object",
    "description": "RFC 9457. The members beside these are those of the error, by its reason.",
    "required": ["type", "title", "status", "reason", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "reason": {"type": "string"},
        "detail": {"type": "string"},
    },
}


def operations(others: Sequence[Operation]) -> list[Operation]:
    """Return the call that answers the document of ``others``, and of itself."""
    text = b""

    async def answer(_: Call) -> Response:
        return Response(text, 200, {"Cache-Control": "no-cache"}, JSON)

    own = Operation("GET", PATH, answer, "This document.")
    text = json_text(document([*others, own])).encode()
    return [own]


def document(served: Sequence[Operation]) -> dict[str, Any]:
    """Return the document of these operations."""
    paths: dict[str, Any] = {}
    for each in served:
        paths.setdefault(_PART.sub(r"{\1}", each.path), {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": _TITLE, "version": "1", "description": _DESCRIPTION},
        "paths": paths,
        "components": {"schemas": {"Problem": _PROBLEM}},
    }


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": operation.summary,
        "parameters": [_path_part(name) for name in _PART.findall(operation.path)]
        + [_parameter(each) for each in operation.parameters],
        "responses": {str(status): _answer(types) for status, types in operation.gives.items()},
    }
    if operation.takes:
        found["requestBody"] = {"required": True, "content": _content(operation.takes)}
    refused: dict[str, Any] = {"description": "Refused, with the reason; nothing was done unless it says so."}
    if operation.failed is problems.problem_response:
        refused["content"] = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    found["responses"]["default"] = refused
    return found


def _path_part(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "description": parameter.meaning,
        "schema": {"type": parameter.kind},
    }


def _answer(types: tuple[str, ...]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "Done." if types else "Unchanged: nothing is sent."}
    return {**answer, "content": _content(types)} if types else answer


def _content(types: tuple[str, ...]) -> dict[str, Any]:
    return {each: {} for each in types}
