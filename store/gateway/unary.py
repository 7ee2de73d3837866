"""Every unary call of the API as JSON: ``POST /cortado.v1.KeyValue/Put``, in the unary form of Connect.

The body is the request in protobuf's JSON, the answer the reply; names, defaults and numbers of 64 bits (as text) are
protobuf's. A write without a ``requestId`` is given one, and retried like a write of the Python client. Errors are
problems as of the rest of the gateway, as ``application/json`` with Connect's ``code`` and ``message`` added.

One handler serves all calls, from their descriptors: a new call of the API needs no code here.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from starlette.responses import Response

from cortado.errors import CortadoError, InvalidArgument
from cortado.schema.json_text import json_text
from cortado.store.client.stubs import Method, Stubs
from cortado.store.gateway.calls import JSON, Call, Operation, Parameter, json_response
from cortado.store.gateway.problems import Refused, challenge, problem, problem_response
from cortado.store.keys.names import shown

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_TIMEOUT_MS_MAX: Final = 86_400_000
_VERSION: Final = Parameter("Connect-Protocol-Version", "1, if it is given.", "header")
_TIMEOUT: Final = Parameter("Connect-Timeout-Ms", "How long the caller waits.", "header")


def operations() -> list[Operation]:
    """Return a row for each unary call."""
    services = [value for name, value in vars(Stubs).items() if not name.startswith("_")]
    methods = [method for service in services for method in vars(service).values()]
    return [_operation(each) for each in methods if not (each.client_streaming or each.server_streaming)]


def _operation(method: Method) -> Operation:
    summary = f"{method.name} of the API (docs/api), as JSON."
    handler = partial(unary, method)
    return Operation("POST", f"/{method.name}", handler, summary, (_VERSION, _TIMEOUT), takes=(JSON,), failed=failed)


async def unary(method: Method, call: Call) -> Response:
    """Return the reply, as JSON."""
    version, timeout = call.header("Connect-Protocol-Version"), call.header("Connect-Timeout-Ms")
    if version not in (None, "1"):
        raise InvalidArgument("Connect-Protocol-Version", "must be 1", shown(version))
    client = call.client
    if timeout is not None:
        if not (timeout.isascii() and timeout.isdigit() and len(timeout) <= 10 and 0 < int(timeout) <= _TIMEOUT_MS_MAX):
            problem = f"must be a whole number from 1 to {_TIMEOUT_MS_MAX}"
            raise InvalidArgument("Connect-Timeout-Ms", problem, shown(timeout))
        call.timeout_s = int(timeout) / 1000
        client = client.with_timeout(call.timeout_s)
    request = await call.json_as(partial(_request_of, method))
    return json_response(MessageToDict(await client._open_call(method, request)))


def _request_of(method: Method, given: Any) -> Any:
    """Return the request that JSON says. Raises InvalidArgument."""
    request = method.request()
    if not isinstance(given, dict):
        raise InvalidArgument("body", f"must be an object: a {request.DESCRIPTOR.full_name}", type(given).__name__)
    try:
        json.dumps(given, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Protobuf fails on names that are no Unicode.
        raise InvalidArgument("body", "must be valid Unicode: half a character stands in it") from None
    _check_bytes(request.DESCRIPTOR, given, "body")
    try:
        ParseDict(given, request)
    except (ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = f"must be a {request.DESCRIPTOR.full_name} as protobuf's JSON has it: {error}"
        raise InvalidArgument("body", problem) from None
    return request


def _check_bytes(kind: Any, given: Any, path: str) -> None:
    """Raise InvalidArgument for bytes that are no base64: protobuf's JSON skips characters that it cannot read. A
    value of another type is left to protobuf."""
    if not isinstance(given, dict):
        return
    for name, value in given.items():
        found = kind.fields_by_camelcase_name.get(name) or kind.fields_by_name.get(name)
        if found is None:
            continue
        for place, each in enumerate(value) if isinstance(value, list) else [(None, value)]:
            at = f"{path}.{name}" if place is None else f"{path}.{name}[{place}]"
            if found.type == FieldDescriptor.TYPE_BYTES and isinstance(each, str) and not _BASE64.fullmatch(each):
                raise InvalidArgument(at, "must be base64", shown(each))
            if found.message_type is not None:
                _check_bytes(found.message_type, each, at)


def failed(error: CortadoError | Refused) -> Response:
    """Return a problem, as Connect carries one."""
    response = problem_response(error)
    cause = error.error if isinstance(error, Refused) else error
    told = {"code": cause.code.lower(), "message": cause.message(), **problem(cause, response.status_code)}
    kept = {name: value for name, value in response.headers.items() if not name.startswith(("content-", "www-"))}
    answer = Response(json_text(told).encode("utf-8", "replace"), response.status_code, kept, JSON)
    challenge(answer, cause)
    return answer
