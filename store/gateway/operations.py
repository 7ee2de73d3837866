"""The table of all calls: an :class:`Operation` says everything that a caller has to know of one.

:mod:`cortado.store.gateway.application` dispatches calls by it, :mod:`cortado.store.gateway.calls` reads their
parameters by it, and :mod:`cortado.store.gateway.openapi` writes the OpenAPI document from it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from starlette.responses import Response

from cortado.errors import CortadoError, InvalidArgument
from cortado.store.gateway.problems import Refused, problem_response

if TYPE_CHECKING:
    from cortado.store.gateway.calls import Call

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"

Handler: TypeAlias = "Callable[[Call], Awaitable[Response]]"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query, or a header. ``kind`` is a type of JSON Schema; ``field`` is its name in the cluster's
    errors, if that differs."""

    name: str
    meaning: str
    where: Literal["query", "header"] = "query"
    kind: Literal["string", "integer", "boolean"] = "string"
    field: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """A call: its method, its path as Starlette writes one (``{key:path}`` is the rest), and its handler.

    - ``takes``: the media types of its body, none without a body;
    - ``gives``: its answers to a call that succeeds: by status, the media types (none: an empty body);
    - ``failed``: its answer to a call that fails;
    - ``is_probe``: it is answered beyond ``calls_max``, too.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    parameters: tuple[Parameter, ...] = ()
    takes: tuple[str, ...] = ()
    gives: Mapping[int, tuple[str, ...]] = field(default_factory=lambda: {200: (JSON,)})
    failed: Callable[[CortadoError | Refused], Response] = problem_response
    is_probe: bool = False

    def named(self, error: CortadoError | Refused) -> CortadoError | Refused:
        """Return the error, with the caller's own name for the wrong field."""
        if isinstance(error, InvalidArgument):
            names = {each.field: each.name for each in self.parameters if each.field}
            error.field = names.get(error.field, error.field)
        return error


IF_MATCH: Final = Parameter(
    "If-Match", "Only if this is the etag of the newest version; * for any.", "header", field="condition.etag"
)
IF_NONE_MATCH: Final = Parameter("If-None-Match", "Answer 304 if one of these is the newest version.", "header")
IF_ABSENT: Final = Parameter("If-None-Match", "As *: only if there is nothing yet.", "header")
IDEMPOTENCY: Final = Parameter(
    "Idempotency-Key",
    "A name for this write: made again within ten minutes, it has no second effect.",
    "header",
    field="request_id",
)
AT: Final = Parameter("at", "As of a timestamp (0.1763643600000.2) or a time (2025-11-20T13:00:00Z).")
SCHEMA_VERSION: Final = Parameter("schemaVersion", "The version of the schema to read or write with.", kind="integer")
FIELDS: Final = Parameter("fields", "Only these fields, with commas between them.", field="columns")
LONGS: Final = Parameter("longs", "string: numbers of 64 bits are text, for readers that lose them. Default: number.")
TTL: Final = Parameter("ttl", "How long it lives: 90s, 30m, 12h, 7d; none for ever.")
