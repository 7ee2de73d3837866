"""The calls of the gateway: an :class:`Operation` says everything that a caller has to know of one, and a :class:`Call`
is one as its handler sees it, with its declared parameters and body, read strictly from the request.

:mod:`cortado.store.gateway.application` dispatches calls by the operations, and :mod:`cortado.store.gateway.openapi`
writes the OpenAPI document from them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from cortado.errors import CortadoError, DeadlineExceeded, InvalidArgument, ResourceExhausted, TooLarge
from cortado.schema.json_bounds import check_json_bounds
from cortado.schema.json_text import json_text, parse_json_bytes
from cortado.store.client.values import Expires
from cortado.store.gateway.beside import beside
from cortado.store.gateway.bodies import Body
from cortado.store.gateway.bounds import Bounds
from cortado.store.gateway.callers import Callers
from cortado.store.gateway.conditions import Condition, condition_of
from cortado.store.gateway.idempotency import repeatable
from cortado.store.gateway.limits import RETRY_MS
from cortado.store.gateway.paths import key_segments, parameters, segment_bytes, segment_text
from cortado.store.gateway.places import address_of_caller
from cortado.store.gateway.problems import Refused, problem_response
from cortado.store.keys.names import check_database, check_table, shown
from cortado.store.transfer.operation_json import expires_of

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient, AsyncTable
    from cortado.store.gateway.console.forms import Forms

T = TypeVar("T")

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"

_SCHEMA_VERSION_MAX: Final = (1 << 32) - 1
_PROMISES: Final = ("If-Match", "If-None-Match", "If-Unmodified-Since", "Idempotency-Key")
"""The conditions and promises that a caller asks for. An operation that does not support one refuses the call."""
_HARMLESS_WHERE_READ: Final = ("If-None-Match", "If-Unmodified-Since", "Idempotency-Key")
_WEIGHT: Final = re.compile(r"q=([0-9]?(?:\.[0-9]{0,3})?)")
_FLAGS: Final = {"true": True, "false": False}


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
    "If-Match", "Only if this is the etag of the newest version; * for any.", "header", field="if_etag"
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
COLUMNS: Final = Parameter("columns", "Only these fields, with commas between them.")
LONGS: Final = Parameter("longs", "string: numbers of 64 bits are text, for readers that lose them. Default: number.")
TTL: Final = Parameter("ttl", "How long it lives: 90s, 30m, 12h, 7d; none for ever.")


class Call:
    """``client`` reaches the cluster, ``callers`` authenticate, ``forms`` are the console's. Its getters raise
    InvalidArgument naming the place."""

    def __init__(
        self,
        request: Request,
        operation: Operation,
        client: AsyncClient,
        bounds: Bounds,
        callers: Callers,
        forms: Forms,
    ) -> None:
        self.client = client
        self.callers = callers
        self.bounds = bounds
        self.forms = forms
        self.operation = operation
        self.headers = request.headers
        self._request = request
        self._path: dict[str, str] = request.path_params
        self._body: Body | None = None
        self.timeout_s: float | None = None
        """How long the caller waits, if it has said so."""
        self._query = parameters(request.scope["query_string"])
        if self._query:
            self._check_known()
        self._check_promises()

    def _check_known(self) -> None:
        known = {each.name for each in self.operation.parameters if each.where == "query"}
        for name, value in self._query.items():
            if name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise InvalidArgument(shown(name), f"is no parameter of this call, which has {listed}", shown(value))

    @property
    def http_version(self) -> str:
        """Such as 1.1."""
        return str(self._request.scope.get("http_version", "1.1"))

    # --- the URL -------------------------------------------------------------------------------------------------

    def name(self, part: str) -> str:
        """Return a part of the path that is one segment, as text."""
        return segment_text(self._path[part], part)

    def rest_bytes(self, part: str) -> bytes:
        """Return the rest of the path as bytes, slashes too."""
        return b"/".join(segment_bytes(each, part) for each in self._path[part].split("/"))

    def rest(self, part: str) -> list[str]:
        """Return the segments of the rest of the path, as texts; none if the path ends before it."""
        found = self._path.get(part)
        return [] if found is None else key_segments(found, part)

    def text(self, name: str) -> str | None:
        """Return a parameter as it was given, or None."""
        return self._query.get(name)

    def reader(self) -> AsyncClient:
        """Return the client as of the time that the parameter ``at`` names."""
        at = self._query.get("at")
        return self.client if at is None else self.client.at(at)

    def table(self, client: AsyncClient) -> AsyncTable:
        """Return the table that the path names, in the version of its schema that is asked for."""
        name = f"{check_database(self.name('database'))}.{check_table(self.name('table'))}"
        return client.table(name, schema_version=self.number("schemaVersion", 1, _SCHEMA_VERSION_MAX))

    def columns(self) -> list[str] | None:
        """Return the fields that are asked for; None for all."""
        given = self._query.get("columns")
        return None if given is None else [each.strip() for each in given.split(",")]

    def flag(self, name: str) -> bool:
        """Return a parameter that is true or false, by default false."""
        given = self._query.get(name, "false")
        if given not in _FLAGS:
            raise InvalidArgument(name, "must be true or false", shown(given))
        return _FLAGS[given]

    def number(self, name: str, low: int, high: int) -> int | None:
        """Return a parameter that is a whole number of these bounds."""
        given = self._query.get(name)
        if given is None:
            return None
        if not given.isascii() or not given.isdigit() or len(given) > 18 or not low <= int(given) <= high:
            raise InvalidArgument(name, f"must be a whole number from {low} to {high}", shown(given))
        return int(given)

    def expires(self) -> Expires:
        """Return the time at which the written value expires, by the parameter ``ttl``; None without it."""
        given = self._query.get("ttl")
        return None if given is None else expires_of(given, "ttl")

    async def writer(self) -> AsyncClient:
        """Return the client for the one write of this call: repeated under an ``Idempotency-Key``, it has one
        effect."""
        given = self.header("Idempotency-Key")
        if given is None:
            return self.client
        return await repeatable(self.client, given, await self.callers.owner())

    # --- the head ------------------------------------------------------------------------------------------------

    def header(self, name: str) -> str | None:
        """Return a header that is given once at most."""
        given = self.headers.getlist(name)
        if len(given) > 1:
            raise InvalidArgument(name, "must be given once", shown(", ".join(given)))
        return given[0] if given else None

    def condition(self) -> Condition:
        """Return the condition of a write."""
        return condition_of(self.headers)

    def _check_promises(self) -> None:
        declared = {each.name for each in self.operation.parameters if each.where == "header"}
        for name in _PROMISES:
            given = self.headers.get(name)
            if given is None or name in declared:
                continue
            if self.operation.method != "GET" or name not in _HARMLESS_WHERE_READ:
                raise InvalidArgument(
                    name, "is no header of this call, which would be made without regard to it", shown(given)
                )

    def media_type(self) -> str:
        """Return the body's media type, one of those that the operation takes. Raises Refused for another one."""
        given = self.header("Content-Type") or ""
        kind, _, more = given.partition(";")
        charset = more.strip().lower().replace('"', "")
        takes = self.operation.takes
        if kind.strip().lower() not in takes or (charset and charset != "charset=utf-8"):
            problem = InvalidArgument("Content-Type", f"must be {' or '.join(takes)}", shown(given))
            raise Refused(415, problem, {"Accept": ", ".join(takes)})
        return kind.strip().lower()

    def wanted(self, offered: tuple[str, ...]) -> str:
        """Return the media type of ``offered`` with the greatest weight; among equals, the first. Raises Refused if the
        caller accepts none of them."""
        given = ",".join(self.headers.getlist("accept")) or "*/*"
        ranges: dict[str, tuple[float, int]] = {}
        for place, each in enumerate(given.split(",")):
            kind, *more = (part.strip().lower() for part in each.split(";"))
            # As Java's own client writes it.
            ranges.setdefault("*/*" if kind == "*" else kind, (_weight(more), -place))

        def rank(kind: str) -> tuple[float, int]:
            named = (kind, f"{kind.partition('/')[0]}/*", "*/*")
            return next((ranges[each] for each in named if each in ranges), (0, 0))

        best = max(offered, key=rank)
        if rank(best)[0] > 0:
            return best
        raise Refused(406, InvalidArgument("Accept", f"must allow {' or '.join(offered)}", shown(given)))

    # --- the body ------------------------------------------------------------------------------------------------

    async def body(self) -> bytes:
        """Return the whole body of an authenticated caller. Raises Unauthenticated, TooLarge, and Refused if it does
        not arrive in time or has no room."""
        encoding = self.header("Content-Encoding") or "identity"
        if encoding.lower() != "identity":
            problem = InvalidArgument("Content-Encoding", "must be left out: bodies come as they are", shown(encoding))
            raise Refused(415, problem)
        # Refused before any of it is asked for, if its sender waits for a 100.
        self._check_size(int(self.headers.get("content-length", "0")))
        caller = await self._caller()
        read, bodies, loop = bytearray(), self.bounds.bodies, asyncio.get_running_loop()
        until = asyncio.timeout(self.bounds.limits.body_ms / 1000)
        self._body = body = bodies.begin(caller, lambda: until.reschedule(loop.time()))
        try:
            with self.bounds.waiting():
                async with until:
                    async for chunk in self._request.stream():
                        self._check_size(len(read) + len(chunk))
                        if not bodies.take(body, len(chunk)):
                            raise self.bounds.full("bodies", "bytes of bodies", bodies.bytes_max)
                        read += chunk
        except TimeoutError:
            raise self._late(body) from None
        finally:
            bodies.arrived(body)
        return bytes(read)

    async def json(self) -> Any:
        """Return the body, which must be JSON."""
        return await self.json_as(lambda value: value)

    async def json_as(self, made: Callable[[Any], T]) -> T:
        """Return the result of ``made`` for the body, which must be JSON. A large body is parsed beside the loop."""
        self.media_type()
        body = await self.body()
        return await self.beside(lambda: made(_json_of(body)))

    async def form(self) -> dict[str, str]:
        """Return the fields of a form, which is the body."""
        self.media_type()
        body = await self.body()
        return await self.beside(lambda: parameters(body))

    async def beside(self, work: Callable[[], T]) -> T:
        """Return the result of ``work`` on the body: on that of a large one beside the loop."""
        return await beside(0 if self._body is None else self._body.size_bytes, work)

    async def _caller(self) -> str:
        """Return the caller whose share the body uses: the principal, or the address while roles are off. Raises as
        :meth:`Callers.known`."""
        try:
            with self.bounds.waiting():
                async with asyncio.timeout(self.timeout_s):
                    principal = await self.callers.known()
        except TimeoutError:
            timeout_ms = round((self.timeout_s or 0) * 1000)
            raise DeadlineExceeded(f"no node has authenticated the caller within {timeout_ms} ms", timeout_ms) from None
        if principal:
            return f"principal {principal}"
        client = self._request.client
        return f"address {address_of_caller(client.host)}" if client is not None else ""

    def _late(self, body: Body) -> Refused:
        if body.gave_way:
            self.bounds.reject("stalled body")
            late = ResourceExhausted(
                "the body came slowly, and another one needed its room", RETRY_MS, resource="bytes of bodies"
            )
            return Refused(429, late, {"Connection": "close"})
        self.bounds.reject("late body")
        limit_ms = self.bounds.limits.body_ms
        return Refused(
            408, DeadlineExceeded(f"the body did not come within {limit_ms} ms", limit_ms), {"Connection": "close"}
        )

    def release(self) -> int:
        """Releases the body's room. Returns how many bytes have arrived."""
        if self._body is None:
            return 0
        self.bounds.bodies.end(self._body)
        return self._body.received_bytes

    def _check_size(self, size: int) -> None:
        limit = self.bounds.limits.body_bytes_max
        if size > limit:
            problem = TooLarge("body", f"must have at most {limit} bytes", str(size), length=size, limit=limit)
            raise Refused(413, problem, {"Connection": "close"})


def _json_of(body: bytes) -> Any:
    check_json_bounds(body, "body")
    return parse_json_bytes(body, "body")


def _weight(parameters: Sequence[str]) -> float:
    """Return the weight of a media type in ``Accept``: 1, unless it gives another one that can be read."""
    found = next((match for each in parameters if (match := _WEIGHT.fullmatch(each))), None)
    return float(found[1]) if found and found[1] not in ("", ".") else 1.0


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer of JSON that no cache may keep: the state behind it may change a moment later."""
    return Response(json_text(value).encode(), status, {"Cache-Control": "no-store", **(headers or {})}, JSON)
