"""A request for any operation of the OpenAPI document, from a seed: most parts of it would do, so that others are
looked at, and some never would. And the bytes of a request, damaged."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final
from urllib.parse import quote

from google.protobuf.descriptor import FieldDescriptor

from cortado.store.client.stubs import Stubs
from support.http_fuzz import odd
from support.http_fuzz.wire import Sent

SANE: Final = 0.8
"""How often a part of a request is one that would do."""
DAMAGE_MAX: Final = 4
WRECKS: Final = ("/cortado.v1.Auth/", "/cortado.v1.Restores/", "/cortado.v1.Cluster/")
"""Calls that may end resources of other tests if they succeed: sent with a version of the protocol that is refused."""
READS: Final = ("Status", "Members", "Clock", "WhoAmI", "ListPrincipals")

_METHODS: Final = {
    f"/{method.name}": method
    for service, methods in vars(Stubs).items()
    if not service.startswith("_")
    for method in vars(methods).values()
}
_NAMES: Final = {
    "database": ("scratch",),
    "table": ("items",),
    "namespace": ("scratch",),
    "subject": odd.SUBJECTS[:4],
    "version": odd.VERSIONS[:3],
    "id": ("1", "2", "3", "4"),
    "act": ("register-schema", "drop-table"),
}
_FLAGS: Final = ("true", "false")


@dataclass(frozen=True)
class Row:
    """An operation of the document."""

    method: str
    path: str
    told: dict[str, Any]


def _weight(path: str) -> float:
    """Return an operation's weight. There are many unary calls, which are served alike, and pages of the console take a
    second."""
    return 4 if path.startswith("/v1/") else 0.2 if path.startswith("/ui") else 0.5 if path in _METHODS else 2


class Requests:
    """All of one seed. ``rows`` are those of the document."""

    def __init__(self, rows: Sequence[Row], chosen: Random) -> None:
        self._rows = rows
        self._weights = [_weight(each.path) for each in rows]
        self._chosen = chosen

    def sane_or(self, sane: Sequence[Any], odd_ones: Sequence[Any]) -> Any:
        return self._chosen.choice(sane if self._chosen.random() < SANE else odd_ones)

    def made(self) -> Sent:
        """Make a request for any operation."""
        [row] = self._chosen.choices(self._rows, self._weights)
        method = self.sane_or((row.method,), odd.METHODS)
        target, headers = self._target(row), self._headers(row)
        is_wreck = row.path.startswith(WRECKS) and not row.path.endswith(READS)
        if is_wreck:
            headers.append(("Connect-Protocol-Version", "0"))
        body = b"" if method in ("GET", "HEAD", "DELETE") and self._chosen.random() < 0.9 else self._body(row)
        if "If-Match" not in dict(headers) and self._chosen.random() < 0.1:
            headers.append(self._chosen.choice(odd.HEADERS))
        return Sent(method, target, headers, body, chunked=bool(body) and self._chosen.random() < 0.1)

    def damaged(self) -> bytes:
        """Return the bytes of a request with some of them changed, missing or doubled."""
        data = bytearray(self.made().encoded()[:20_000])
        for _ in range(self._chosen.randint(1, DAMAGE_MAX)):
            self._damage(data)
        return bytes(data)

    def _damage(self, data: bytearray) -> None:
        chosen = self._chosen
        # Other parsers read the head, too.
        end = max(1, min(len(data), 400)) if chosen.random() < 0.7 else max(1, len(data))
        at = chosen.randrange(end)
        match chosen.randrange(5):
            case 0 if at < len(data):
                data[at] ^= 1 << chosen.randrange(8)
            case 1:
                data[at:at] = chosen.choice((b"\r\n", b"\n", b"\r", b"\x00", b" ", b":", b"\xff", b"%", b"0", b"\t"))
            case 2:
                del data[at : at + chosen.randint(1, 8)]
            case 3:
                data[at:at] = data[at : at + chosen.randint(1, 60)]
            case _:
                data[at:at] = chosen.choice(
                    (b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"\r\n\r\nGET / HTTP/1.1\r\n", b"%2F")
                )

    # --- parts -----------------------------------------------------------------------------------------------------

    def _target(self, row: Row) -> str:
        target = re.sub(r"\{(\w+)\}", lambda found: self._part(found[1]), row.path)
        # Measured for seconds, a page of the console takes seconds.
        known = [each for each in row.told["parameters"] if each["in"] == "query" and each["name"] != "within"]
        queried = [each for each in known if self._chosen.random() < 0.25]
        texts = [f"{each['name']}={self._parameter(each)}" for each in queried]
        if self._chosen.random() < 0.05:
            texts.append(self._chosen.choice(odd.QUERIES))
        return f"{target}?{'&'.join(texts)}" if texts else target

    def _part(self, name: str) -> str:
        if name == "key":
            return str(self.sane_or(("a", "b", "c"), odd.KEYS)).replace(" ", "%20")
        sane = _NAMES.get(name, ("x",))
        unusual = odd.SUBJECTS if name == "subject" else odd.VERSIONS if name in ("version", "id") else odd.NAMES
        return str(self.sane_or(sane, unusual)).replace(" ", "%20")

    def _parameter(self, told: dict[str, Any]) -> str:
        sane = {"boolean": _FLAGS, "integer": ("1", "5")}.get(told["schema"]["type"], ("a", "string"))
        return quote(self.sane_or(sane, odd.TEXTS), safe="")

    def _headers(self, row: Row) -> list[tuple[str, str]]:
        takes = [*row.told.get("requestBody", {}).get("content", {})]
        found = []
        if takes or self._chosen.random() < 0.05:
            found.append(("Content-Type", self.sane_or(takes or ("application/json",), odd.MEDIA_TYPES)))
        if self._chosen.random() < 0.3:
            found.append(("Accept", self.sane_or(("*/*", "application/json"), (*odd.ACCEPTS, *odd.MEDIA_TYPES))))
        declared = [each["name"] for each in row.told["parameters"] if each["in"] == "header"]
        named = [name for name in declared if self._chosen.random() < 0.2]
        found += [(name, self._chosen.choice((*odd.TAGS, "1", "x", "0.1.0", "1000"))) for name in named]
        return [(name, value.replace("\x7f", "")) for name, value in found]

    def _body(self, row: Row) -> bytes:
        if self._chosen.random() > SANE:
            return self._chosen.choice(odd.RAW)
        if row.path in _METHODS:
            return json.dumps(self._message(_METHODS[row.path].request.DESCRIPTOR, 0)).encode()
        if row.path.endswith(":batch"):
            count = self._chosen.randint(0, 4)
            return f'{{"operations": [{", ".join(self._chosen.choices(odd.OPERATIONS, k=count))}]}}'.encode()
        if row.path.startswith("/v1/db/"):
            return str(self._chosen.choice(odd.DOCUMENTS)).replace("%s", self._chosen.choice("abc")).encode()
        if row.path.startswith(("/v1/kv", "/ui")):
            return self._chosen.randbytes(self._chosen.choice((0, 1, 10, 1_000)))
        return self._registry_body(row.path)

    def _registry_body(self, path: str) -> bytes:
        names = self._chosen.sample(odd.REGISTRY_FIELDS, self._chosen.choice((0, 0, 0, 1, 2)))
        body: dict[str, Any] = {name: self._chosen.choice(odd.VALUES) for name in names}
        if "/mode" in path and not names:
            body["mode"] = "READWRITE"
        if "/config" in path and not names:
            body["compatibility"] = self._chosen.choice(("NONE", "FULL"))
        if "/subjects" in path:
            body["schema"] = self.sane_or(odd.SCHEMAS[:4], odd.SCHEMAS)
        return json.dumps(body).encode()

    def _message(self, kind: Any, depth: int) -> dict[str, Any]:
        """Return a message of protobuf's JSON with odd values in some fields."""
        found: dict[str, Any] = {}
        for each in kind.fields:
            if self._chosen.random() < 0.5:
                value = self._value(each, depth)
                found[each.camelcase_name] = value
        if self._chosen.random() < 0.02:
            found["nothing"] = 1
        return found

    def _value(self, field: Any, depth: int) -> Any:
        if self._chosen.random() > SANE:
            return self._chosen.choice(odd.VALUES_OF_FIELDS)
        value: Any
        match field.type:
            case FieldDescriptor.TYPE_MESSAGE:
                value = self._message(field.message_type, depth + 1) if depth < 4 else {}
            case FieldDescriptor.TYPE_BOOL:
                value = self._chosen.random() < 0.5
            case FieldDescriptor.TYPE_BYTES:
                value = self._chosen.choice(("YQ==", "", "AAAA"))
            case FieldDescriptor.TYPE_STRING:
                named = {"database": "scratch", "namespace": "scratch", "table": "items", "name": "items"}
                value = named.get(field.name, self._chosen.choice(("scratch", "items", "")))
            case _:
                value = self._chosen.choice((0, 1, 5))
        repeated = getattr(field, "is_repeated", None)
        if repeated is None:
            repeated = field.label == FieldDescriptor.LABEL_REPEATED
        return [value] if repeated else value
