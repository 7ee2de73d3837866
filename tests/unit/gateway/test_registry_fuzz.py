"""Whatever is sent to the registry has a precise answer: an error code that is none of a defect's, in the one form.

A seeded loop puts calls together from odd parts; each is sent, and afterwards the registry still answers as before.
``FUZZ_SECONDS=600`` goes on for ten minutes, with a new seed that it tells.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import pytest

from cortado.store.gateway.application import Application
from support.gateways import Gateway

SECONDS: Final = int(os.environ.get("FUZZ_SECONDS", "0"))
CALLS: Final = 2_500
SANE: Final = 0.8
"""How often a part of a call is one that would do, so that others are looked at."""
V1_JSON: Final = "application/vnd.schemaregistry.v1+json"
GOOD: Final = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'

CODES: Final = {
    *(400, 404, 405, 406, 409, 413, 415, 422),
    *(40401, 40402, 40403, 40404, 40405, 40406, 40407, 40408),
    *(42201, 42202, 42203, 42204, 42205, 42206, 42208, 42209),
}
SUBJECTS: Final = (
    *("fuzz-value", "fuzz-value", "fuzz-key", "shop.items", "missing", ":.:fuzz-value", ":.ctx:fuzz", ":*:", ":.:"),
    *("a%2Fb", "a%2fversions%2f1", "%2E%2E", "%2e", "%00", "%FF", "%C3%28", "%F0%9F%98%80", "%25%32%46", "a%20b"),
    *(
        "",
        ".",
        "..",
        "%",
        "%zz",
        "a;b=c",
        "a%3Fb",
        "a%23b",
        "-",
        "-a",
        "_schemas",
        "x" * 200,
        "x" * 201,
        "x" * (1 << 20),
    ),
)
VERSIONS: Final = (
    *("1", "2", "latest", "LATEST", "-1", "0", "-2", "2147483647", "2147483648", "4294967296", "9" * 400, "abc", "1.0"),
    *("1e3", "0x1", "%31", "+1", "%201", "%D9%A1", "", "null", "true"),
)
PATHS: Final = {
    **dict.fromkeys(("/", "/subjects", "/schemas", "/schemas/types", "/contexts"), "GET"),
    **dict.fromkeys(("/schemas/ids/{v}", "/schemas/ids/{v}/schema", "/schemas/ids/{v}/subjects"), "GET"),
    **dict.fromkeys(("/schemas/ids/{v}/versions", "/v1/metadata/id", "/v1/metadata/version"), "GET"),
    **dict.fromkeys(("/subjects/{s}/versions/{v}/schema", "/subjects/{s}/versions/{v}/referencedby"), "GET"),
    **dict.fromkeys(("/subjects/{s}/metadata", "/schemas/guids/{s}", "/v1/metadata/x", "/associations/{s}"), "GET"),
    "/subjects/{s}": "POST POST DELETE",
    "/subjects/{s}/versions": "GET POST POST POST",
    "/subjects/{s}/versions/{v}": "GET GET DELETE",
    **dict.fromkeys(("/config", "/config/{s}", "/mode", "/mode/{s}"), "GET PUT PUT DELETE"),
    **dict.fromkeys(("/compatibility/subjects/{s}/versions", "/compatibility/subjects/{s}/versions/{v}"), "POST"),
    "/compatibility/subjects/{s}/versions/": "POST",
}
METHODS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "BREW", "get")
QUERIES: Final = (
    *(
        "",
        "",
        "",
        "deleted=true",
        "deletedOnly=true",
        "permanent=true",
        "normalize=True",
        "verbose=true",
        "force=false",
    ),
    *("defaultToGlobal=true", "deleted=maybe", "limit=-1&offset=2", "limit=99999999999999999999", "offset=x"),
    *(
        "subjectPrefix=:*:",
        "subjectPrefix=%00",
        "a=1&a=2",
        "deleted=true&deleted=false",
        "%zz",
        "&&",
        "=",
        "colour=red",
    ),
    *("subject=fuzz-value", "format=resolved", "latestOnly=true", "q=" + "x" * 10_000),
)
TYPES: Final = (
    *(V1_JSON, V1_JSON, V1_JSON, "application/json", "application/octet-stream", "application/vnd.schemaregistry+json"),
    *("text/plain", "", "application/json; charset=latin-1", "application/x-www-form-urlencoded", "\x7f"),
)
ACCEPTS: Final = ("*/*", V1_JSON, "application/json", "text/html", "", "application/*;q=0", ",,,", "x" * 1_000)
SCHEMAS: Final = (
    *(GOOD, GOOD, '"int"', '"string"', "", "{", "[]", "{}", "null", "7", '"unknown"', '["int", "int"]', "[" * 70_000),
    *('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}', '"\ud800"', '"\x00"'),
    *(
        '{"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}',
        GOOD.replace("int", "R"),
        "x" * 300_000,
    ),
    *('{"type": "array", "items": ' * 100 + '"int"' + "}" * 100, '{"type": "int", "type": "long"}', '{"type": 1e999}'),
)
VALUES: Final = (None, True, 0, -1, 7, 1.5, "", "x", "NONE", "full", "READONLY", "READWRITE", [], ["x"], {}, {"a": 1})
FIELDS: Final = (
    "schema",
    "schemaType",
    "references",
    "id",
    "version",
    "metadata",
    "compatibility",
    "mode",
    "alias",
    "x",
)
RAW: Final = (
    *(b"", b"{", b"null", b"[]", b"7", b'"x"', b"\xff\xfe", b"{}", b"[" * 200_000, b'{"a":' * 50_000, b"NaN"),
    *(b'{"schema": "\\"int\\"", "schema": "\\"long\\""}', b'{"schema": "\\ud800"}', b'{"id": ' + b"9" * 5_000 + b"}"),
    *(b" " * (10 << 20), b'{"schema": "' + b"x" * (3 << 20) + b'"}', b"{}" * 1_000),
)


@dataclass(frozen=True)
class Sent:
    """A call as it comes off the wire: nothing of it was put in order, as a client would."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    content: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.path[:200]}?{self.query[:100]} {self.headers} {self.content[:200]!r}"


@dataclass
class Answered:
    """What came back."""

    status: int = 0
    media_type: str = ""
    body: bytes = b""

    async def take(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.media_type = dict(message["headers"]).get(b"content-type", b"").decode()
        else:
            self.body += message.get("body", b"")


def made(chosen: random.Random) -> Sent:
    def part(sane: Sequence[str], odd: Sequence[str]) -> str:
        return chosen.choice(sane if chosen.random() < SANE else odd)

    path = chosen.choice(list(PATHS))
    method = part(PATHS[path].split(), METHODS)
    subject, version = part(SUBJECTS[:4], SUBJECTS), part(VERSIONS[:3], VERSIONS)
    headers = {"host": "localhost:7629", "content-type": part(TYPES[:3], TYPES), "accept": part(ACCEPTS[:2], ACCEPTS)}
    if chosen.random() < 0.2:
        headers["confluent-accept-unknown-properties"] = chosen.choice(("true", "false", "yes"))
    if chosen.random() < SANE:
        names = chosen.sample(FIELDS, chosen.choice((0, 0, 0, 1, 2)))
        body: dict[str, Any] = {name: chosen.choice(VALUES) for name in names}
        body |= {"mode": "READWRITE"} if "/mode" in path and not names else {}
        body |= {"compatibility": chosen.choice(("NONE", "FULL"))} if "/config" in path and not names else {}
        body |= {"schema": part(SCHEMAS[:4], SCHEMAS)} if "/subjects" in path else {}
        content = json.dumps(body).encode()
    else:
        content = chosen.choice(RAW)
    path = path.replace("{s}", subject).replace("{v}", version)
    return Sent(method, path, part(("",), QUERIES), headers, content)


async def answer_to(application: Application, sent: Sent) -> Answered:
    headers = [(name.encode(), value.encode()) for name, value in sent.headers.items()]
    scope = {
        "type": "http",
        "method": sent.method,
        "path": unquote(sent.path),
        "raw_path": sent.path.encode(),
        "query_string": sent.query.encode(),
        "headers": [*headers, (b"content-length", str(len(sent.content)).encode())],
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": sent.content, "more_body": False}

    answered = Answered()
    await application(scope, receive, answered.take)
    return answered


def code_of(answered: Answered) -> int:
    """The error code, or 0. Fails where the answer has another form than the registry's."""
    told = json.loads(answered.body)
    if answered.status == 200:
        return 0
    assert answered.status < 500
    assert set(told) == {"error_code", "message"} and told["message"]
    assert answered.media_type == V1_JSON
    code: int = told["error_code"]
    assert answered.status == (code if code < 1_000 else code // 100)
    return code


@pytest.mark.timeout(300 + SECONDS)
def test_every_call_has_a_precise_answer(served: Gateway) -> None:
    seed = random.SystemRandom().randrange(1 << 32) if SECONDS else 13
    chosen, until_s = random.Random(seed), time.monotonic() + SECONDS
    codes: Counter[int] = Counter()
    while codes.total() < CALLS or time.monotonic() < until_s:
        sent = made(chosen)
        answered = served.run(answer_to(served.application, sent))
        shown = f"seed {seed}, call {codes.total()}: {sent} -> {answered}"[:1_500]
        try:
            code = code_of(answered)
        except Exception as error:
            raise AssertionError(shown) from error
        assert code == 0 or code in CODES, shown
        codes[code] += 1
    assert codes[0] > codes.total() // 4 and len(codes) > 20, codes
    served.request("DELETE", "/config")
    listed = served.request("GET", "/subjects/shop.items/versions")
    assert (listed.status_code, listed.json()[0]) == (200, 1), "what a table needs is there"
