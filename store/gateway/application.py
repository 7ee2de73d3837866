"""The ASGI application: takes a call, finds its operation, and answers it in any case."""

from __future__ import annotations

import logging
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cortado.errors import CortadoError, InvalidArgument, NotFound, TooLarge, Unsupported
from cortado.store.auth.tokens import NO_SCHEME, header_of
from cortado.store.client.authorization import NOBODY, ON_BEHALF, only_with_roles
from cortado.store.gateway import alive, batches, documents, listings, openapi, page, pairs, registry, unary, watching
from cortado.store.gateway.bounds import Bounds
from cortado.store.gateway.callers import Callers
from cortado.store.gateway.calls import Call, Operation
from cortado.store.gateway.console import pages, site
from cortado.store.gateway.console.forms import Forms
from cortado.store.gateway.console.samples import Samples
from cortado.store.gateway.limits import HEAD_BYTES_MAX, HEADERS_MAX, GatewayLimits
from cortado.store.gateway.measures import Answer
from cortado.store.gateway.problems import Refused, problem_response, unexpected
from cortado.store.gateway.routes import Routes
from cortado.store.gateway.streams import StreamCut
from cortado.store.keys.names import shown
from cortado.store.ports.addresses import is_loopback

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

_LOG: Final = logging.getLogger(__name__)

DRAINED: Final = "cortado.drained"
"""In a call's state: waits until its connection has room for more bytes, or is lost."""

_HOST: Final = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^:@\[\]/]+))(?::[0-9]{1,5})?")
_SAFE: Final = {"X-Content-Type-Options": "nosniff"}


def all_operations(samples: Samples | None = None) -> list[Operation]:
    """Return everything that is served; the console draws the ``samples``."""
    # A path that ends with a verb stands before the path that would take the verb for a part of a name.
    groups = (registry, batches, watching, pairs, documents, listings, unary, page, alive)
    served = [operation for group in groups for operation in group.operations()]
    served += site.operations(samples or Samples())
    return [*served, *openapi.operations(served)]


class Application:
    """The ASGI application. ``client`` belongs to the loop that this runs in. If it ``is_public``, other machines reach
    it, over HTTPS: then it makes its calls only while roles are on."""

    def __init__(
        self,
        client: AsyncClient,
        limits: GatewayLimits,
        operations: Iterable[Operation] | None = None,
        *,
        is_public: bool = False,
        acts_without_roles: bool = False,
    ) -> None:
        self._is_public = is_public
        self._on_behalf = only_with_roles if is_public else str
        forms, callers = Forms(without_roles=acts_without_roles), Callers(client)
        self.bounds = Bounds(limits, callers.share)
        served = all_operations() if operations is None else list(operations)
        by_path: dict[str, list[Operation]] = {}
        for each in served:
            by_path.setdefault(each.path, []).append(each)
        resources = {path: _Resource(listed, client, self.bounds, callers, forms) for path, listed in by_path.items()}
        self._routes = Routes(resources)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"serves HTTP alone, and not {scope['type']}")
        path = scope["path"] = scope["raw_path"].decode("latin-1")
        answer = Answer(self.bounds.measures, send)
        try:
            headers = Headers(scope=scope)
            self._check_request(headers)
            # A call runs with its caller's credential alone: without one it runs with none, never with the gateway's.
            ON_BEHALF.set(self._on_behalf(_authorization(headers) or NOBODY))
            found = self._routes.find(path)
            with nullcontext() if found is not None and found[0].is_probe else self.bounds.call():
                if found is None:
                    raise NotFound("resource", shown(path))
                resource, scope["path_params"] = found
                await resource(scope, receive, answer)
                if (drained := scope.get("state", {}).get(DRAINED)) is not None:
                    # The call has its place until its answer is read: unread answers are bounded as calls are.
                    await drained()
        except (CortadoError, Refused) as error:
            await _answer(_form_of(path)(error), scope, receive, answer)
        except StreamCut:
            return  # uvicorn closes a connection whose answer has no end.
        finally:
            answer.count()

    def _check_request(self, headers: Headers) -> None:
        """Raise Refused for a head that is too large, that two parsers may read as different requests, or that a
        browser sent because of another site's page."""
        size = sum(len(name) + len(value) for name, value in headers.raw)
        if len(headers.raw) > HEADERS_MAX or size > HEAD_BYTES_MAX:
            must = f"must be at most {HEADERS_MAX}, of {HEAD_BYTES_MAX} bytes"
            large = TooLarge("headers", must, f"{len(headers.raw)}, of {size} bytes", size, HEAD_BYTES_MAX)
            self.bounds.reject("head")
            raise Refused(431, large, {"Connection": "close"})
        if "transfer-encoding" in headers and "content-length" in headers:
            both = InvalidArgument("Transfer-Encoding", "must not be given together with Content-Length")
            self.bounds.reject("head")
            raise Refused(400, both, {"Connection": "close"})
        hosts = headers.getlist("host")
        # A page of another site may give its own name this machine's address; then the name is still its own, and over
        # HTTPS the certificate is not good for it.
        if len(hosts) != 1 or not (self._is_public or _is_here(hosts[0])):
            must = "must be given once" if self._is_public else "must be localhost or a loopback address"
            self.bounds.reject("host")
            raise Refused(421, InvalidArgument("Host", must, shown(", ".join(hosts))))
        origins = headers.getlist("origin")
        if len(origins) > 1 or any(each.partition("://")[2] != hosts[0] for each in origins):
            must = "must be the gateway's own: other sites' pages may not call it"
            self.bounds.reject("origin")
            raise Refused(403, InvalidArgument("Origin", must, shown(", ".join(origins))))


class _Resource:
    """The operations of one path."""

    def __init__(
        self,
        operations: Sequence[Operation],
        client: AsyncClient,
        bounds: Bounds,
        callers: Callers,
        forms: Forms,
    ) -> None:
        self.is_probe = operations[0].is_probe
        self._operations = {each.method: each for each in operations}
        self._failed = operations[0].failed
        self._client = client
        self._bounds = bounds
        self._callers = callers
        self._forms = forms
        allowed = [*self._operations, *(["HEAD"] if "GET" in self._operations else [])]
        self._allowed = ", ".join(sorted(allowed))

    async def __call__(self, scope: Scope, receive: Receive, answer: Answer) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        operation = self._operations.get(method)
        if operation is None:
            error = Unsupported(f"{shown(scope['method'])} of this resource", f"it has {self._allowed}")
            response = self._failed(Refused(405, error, {"Allow": self._allowed}))
            await _answer(response, scope, receive, answer)
            return
        answer.route = self._bounds.measures.route(operation.path, operation.method)
        request = Request(scope, receive)
        call: Call | None = None
        try:
            call = Call(request, operation, self._client, self._bounds, self._callers, self._forms)
            response = await operation.handler(call)
        except (CortadoError, Refused) as error:
            if isinstance(error, CortadoError):
                self._bounds.measures.upstream(error)
            response = operation.failed(operation.named(error))
        except ClientDisconnect:
            return
        except Exception as error:
            _LOG.exception("%s %s failed", operation.method, operation.path)
            response = operation.failed(unexpected(error))
        finally:
            if call is not None:
                answer.route.received_bytes += call.release()
        await _answer(response, scope, receive, answer)


def _form_of(path: str) -> Callable[[CortadoError | Refused], Response]:
    """Return the form of an error for this path: a console page, the registry's, or a problem."""
    if path.startswith(registry.ROOTS):
        return registry.failed
    return pages.failed if f"{path}/".startswith(f"{site.ROOT}/") else problem_response


async def _answer(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    response.headers.update(_SAFE)
    await response(scope, receive, send)


def _authorization(headers: Headers) -> str:
    """Return the header as sent, empty without one. Of a name and a password, which is all that some clients of
    Kafka's registry can send, the password is the token. Raises Refused."""
    given = headers.getlist("authorization")
    if len(given) > 1 or any(not each.isascii() for each in given):
        raise Refused(400, InvalidArgument("Authorization", "must be given once at most, in ASCII"))
    scheme, _, rest = given[0].partition(" ") if given else ("", "", "")
    if scheme.lower() == "bearer":
        return header_of(rest)
    if scheme.lower() != "basic":
        # Of another scheme, so of no principal: no scheme of ours is taken from outside.
        return header_of(NO_SCHEME) if given else ""
    try:
        _, _, password = b64decode(rest.lstrip(" "), validate=True).decode("ascii").partition(":")
    except ValueError:
        return NOBODY
    return header_of(password)


@lru_cache(maxsize=64)
def _is_here(host: str) -> bool:
    """Return whether a ``Host``, perhaps with brackets and a port, is this machine's loopback."""
    found = _HOST.fullmatch(host)
    return found is not None and is_loopback(found[1] or found[2])
