"""Key-value pairs: ``/v1/kv/{namespace}/{key}``. The rest of the path is the key, its slashes too; the body is the
value, as it is."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from cortado.errors import NotFound
from cortado.store.gateway.calls import (
    AT,
    BYTES,
    IDEMPOTENCY,
    IF_ABSENT,
    IF_MATCH,
    IF_NONE_MATCH,
    JSON,
    TTL,
    Call,
    Operation,
    json_response,
)
from cortado.store.gateway.conditions import is_unchanged, quoted
from cortado.store.transfer.byte_text import bytes_to_text

_PAIR: Final = "/v1/kv/{namespace}/{key:path}"


def operations() -> list[Operation]:
    """Return the rows for pairs."""
    return [
        Operation(
            "GET",
            _PAIR,
            get,
            "The value of a key.",
            (AT, IF_NONE_MATCH),
            gives={200: (BYTES,), 304: ()},
        ),
        Operation(
            "PUT",
            _PAIR,
            put,
            "Stores a value under a key.",
            (TTL, IF_MATCH, IF_ABSENT, IDEMPOTENCY),
            takes=(BYTES,),
            gives={200: (JSON,), 201: (JSON,)},
        ),
        Operation("DELETE", _PAIR, delete, "Deletes a key.", (IF_MATCH, IDEMPOTENCY)),
    ]


async def get(call: Call) -> Response:
    """Return the value, with its etag and when it expires."""
    namespace, key = call.name("namespace"), call.rest_bytes("key")
    found = await call.client.kv(namespace).get(key, at=call.text("at"))
    if found is None:
        raise NotFound("key", f"{bytes_to_text(key)} in namespace {namespace}")
    headers = {"ETag": quoted(found.etag), "Cache-Control": "no-cache"}
    if is_unchanged(call.headers, found.etag):
        return Response(status_code=304, headers=headers)
    if found.expires_ms:
        headers["Cortado-Expires-Ms"] = str(found.expires_ms)
    return Response(found.value, 200, headers, BYTES)


async def put(call: Call) -> Response:
    """Return the etag of the stored value; 201 if it had to be new."""
    namespace, key, asked = call.name("namespace"), call.rest_bytes("key"), call.condition()
    call.media_type()
    etag = (
        await (await call.writer())
        .kv(namespace)
        .put(
            key,
            await call.body(),
            if_absent=asked.if_absent,
            if_present=asked.if_present,
            if_etag=asked.if_etag,
            expires=call.expires(),
        )
    )
    return json_response({"etag": etag}, 201 if asked.if_absent else 200, {"ETag": quoted(etag)})


async def delete(call: Call) -> Response:
    """Return whether it existed."""
    namespace, key, asked = call.name("namespace"), call.rest_bytes("key"), call.condition()
    existed = await (await call.writer()).kv(namespace).delete(key, if_present=asked.if_present, if_etag=asked.if_etag)
    return json_response({"existed": existed})
