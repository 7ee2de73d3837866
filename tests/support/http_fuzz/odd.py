"""Parts of requests that are seldom sent, or never by a client that means well."""

from __future__ import annotations

from typing import Final

GOOD: Final = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
V1_JSON: Final = "application/vnd.schemaregistry.v1+json"
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
REGISTRY_FIELDS: Final = (
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

NAMES: Final = (
    "",
    "-",
    ".",
    "..",
    "%2E%2E",
    "a%2Fb",
    "%00",
    "%FF",
    "x" * 300,
    "%F0%9F%98%80",
    "a b",
    "SCRATCH",
    "a%25b",
)
KEYS: Final = (
    *(
        "",
        "/",
        "a/",
        "/a",
        "%2F",
        "%252F",
        "..",
        "%2E%2E",
        "a%00b",
        "%FF%FE",
        "%C3%A9",
        "e%CC%81",
        "x" * 400,
        "x" * 600,
    ),
    *(
        "2147483648",
        "9" * 400,
        "-0",
        "NaN",
        "1e400",
        "true",
        "%5CN",
        "2026-02-30",
        "a;b=c",
        "a:watch",
        "a%3Awatch",
        "*",
    ),
)
TEXTS: Final = (
    *("", "0", "-1", "1", "true", "True", "null", "9" * 30, "9" * 5_000, "1e400", "NaN", "0.1.0", "9.9999999999999.0"),
    *("2025-11-20T13:00:00Z", "0001-01-01T00:00:00+14:00", "beginning", "[", "[1,2", "[[]]", "{}", '"', "id", "id,id"),
    *(
        "left > 1",
        "left > 'a'",
        "id starts with 'a'",
        "((((",
        "not " * 200,
        "\\x00",
        "\\xZZ",
        "\\",
        "é",
        "😀",
        "x" * 3_000,
    ),
    *("1s", "0s", "99999999999d", "all", "AAAA", "string", "number", "by_name", "%"),
)
TAGS: Final = ("*", '"0.1.0"', "0.1.0", 'W/"0.1.0"', '"a", "b"', "", '"', '"*"', "*, *", "x" * 1_000, '""', "\xff")
HEADERS: Final = (
    *(
        ("Range", "bytes=0-1"),
        ("Expect", "100-continue"),
        ("Expect", "more"),
        ("Connection", "close"),
        ("TE", "trailers"),
    ),
    *(
        ("Content-Encoding", "gzip"),
        ("Content-Encoding", "identity"),
        ("Origin", "null"),
        ("Origin", "http://localhost"),
    ),
    *(("Upgrade", "h2c"), ("Connection", "Upgrade"), ("Authorization", "Bearer x"), ("Authorization", "Basic eDp5")),
    *(("X", "x" * 10_000), ("Cookie", "a=b"), ("If-Modified-Since", "now"), ("If-Unmodified-Since", "now")),
)
METHODS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND")
MEDIA_TYPES: Final = (
    *TYPES,
    "avro/binary",
    "application/avro",
    "application/x-ndjson",
    "text/event-stream",
    "application/*",
    "*/*;q=0",
)
DOCUMENTS: Final = (
    *(
        '{"id": "%s"}',
        '{"id": "%s", "left": 7}',
        '{"id": "%s", "left": -9223372036854775808}',
        '{"id": "%s", "left": 1e400}',
    ),
    *(
        '{"id": "%s", "left": 9223372036854775808}',
        '{"id": "%s", "x": 1}',
        '{"id": 7}',
        '{"left": 1}',
        '{"id": "\\ud800"}',
    ),
    *('{"id": "%s", "id": "%s"}', '{"id": "%s", "left": "5"}', '{"left": 5}', '{"name": null}', '{"maker.name": "x"}'),
)
OPERATIONS: Final = (
    *('{"put": {"table": "items", "document": {"id": "b"}}}', '{"put": {"table": "items"}}', '{"nothing": {}}', "7"),
    *('{"add": {"namespace": "scratch", "key": "n", "delta": 1}}', '{"add": {"namespace": "scratch", "key": "n"}}'),
    *('{"delete": {"table": "items", "key": ["b"]}}', '{"delete": {"table": "items", "key": [[1]]}}', "{}"),
    *(
        '{"require": {"table": "items", "key": ["b"], "if_absent": true}}',
        '{"put": {"namespace": "scratch", "key": "k"}}',
    ),
)
VALUES_OF_FIELDS: Final = (
    *(None, True, 0, 1, -1, 7, 1 << 31, 1 << 63, 1 << 70, 1.5, 1e300, "", "x", "scratch", "items", "YQ==", "!", "1"),
    *("9" * 400, [], [1], ["x"], {}, {"a": 1}, "\ud800", "\x00", "beginning", [[]], [None]),
)
