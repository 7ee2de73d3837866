"""Nothing that might be a key, a value, a document or a credential is left of a log; the helpful parts are left."""

from __future__ import annotations

import json

import pytest

from cortado.store.doctor.redact import GONE, redacted, redacted_lines

SECRET = "hunter2secret"


@pytest.mark.parametrize(
    "line",
    [
        f"damaged data: key '{SECRET}' (page 5)",
        f'refused "{SECRET}" for it',
        f"b'{SECRET}' is too long",
        f"it\\'s 'a \\' {SECRET}'",
        f"document {{'name': {SECRET}}} was refused",
        f"password={SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}",
        f"bearer {SECRET}",
        f"api-key: {SECRET}",
        f"CORTADO_TOKEN={SECRET}",
        f"client_secret = {SECRET}",
        f"value: {SECRET}",
        f"document {SECRET}",
        f"collector at https://user:{SECRET}@host:4317/x",
        f"key {SECRET.encode().hex()} is damaged",
        f"blob {SECRET}{'A' * 30}==",
        json.dumps({"level": "INFO", "message": f"key '{SECRET}'", "key": SECRET, "fields": {"value": SECRET}}),
        json.dumps({"level": "INFO", "document": [SECRET], "new_field": SECRET}),
    ],
)
def test_secrets_are_removed(line: str) -> None:
    shown = redacted(line)
    assert SECRET not in shown
    assert SECRET.encode().hex() not in shown
    assert "[removed]" in shown


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-20T19:57:20.758Z INFO stopping: 5000 ms for calls in flight",
        "2026-11-20T20:00:14.213Z INFO node n2 is in cluster 9a8d5136-5c13-42fe-9f0f-e065e29d9633 already",
        "2026-11-20T20:00:14.329Z INFO serving /var/lib/cortado/n1/data on 127.0.0.1:17621",
        "2026-11-20T20:00:15.416Z WARNING node 'n3' of the peers not connected: 127.0.0.1:17624: nothing listens there",
        "error: heartbeat-ms in /etc/cortado.toml:1: must be between 10 and 10000 (got 5)",
        '{"time": "2026-11-20T20:00:15.416Z", "level": "INFO", "message": "leads in term 5", "term": 5}',
        '{"method": "cortado.v1.KeyValue/Put", "code": "OK", "request_id": "00ff00ff00ff00ff", "duration_ms": 5.5}',
        '{"split_ms": {"queue": 1.5, "sync": 3}, "peer": "ipv4:127.0.0.1:40000", "cluster_id": "c59770f7-7925-4d3a"}',
    ],
)
def test_what_helps_stays(line: str) -> None:
    assert redacted(line, {"n3"}) == line


@pytest.mark.parametrize("joined", ["{} {}", "{}={}", "{} = {}", "{}: {}"])
@pytest.mark.parametrize(
    "word",
    (
        *("password", "passwd", "secret", "token", "credential", "authorization", "api_key", "api-key", "apikey"),
        *("cookie", "bearer", "basic", "value", "document", "body", "payload"),
    ),
)
def test_what_follows_a_word_for_a_secret_is_removed(word: str, joined: str) -> None:
    for written in (word, word.upper()):
        shown = redacted("refused: " + joined.format(written, "s3cr3t") + " at once")
        assert "s3cr3t" not in shown
        assert shown.endswith("at once")


@pytest.mark.parametrize("name", ["key", "keys", "value", "values", "document", "documents", "body", "payload"])
def test_a_field_of_a_document_is_removed_whatever_it_holds(name: str) -> None:
    for held in (5, True, "INFO", [1], {"level": "INFO"}):
        assert json.loads(redacted(json.dumps({"term": 5, name: held}))) == {"term": 5, name: GONE}


def test_numbers_stay_but_for_those_of_documents() -> None:
    assert json.loads(redacted('{"term": 5, "value": 5, "key": 7}')) == {"term": 5, "value": GONE, "key": GONE}


def test_a_key_in_a_log_is_removed_whole() -> None:
    lines = ["before", "-----BEGIN PRIVATE KEY-----", "MIIabc", "MIIdef", "-----END PRIVATE KEY-----", "after"]
    assert list(redacted_lines(lines)) == ["before", "[a PEM block was removed]", "after"]


def test_a_line_without_end_is_cut() -> None:
    assert len(redacted("word " * 10_000)) == 2_000


TOKEN = "ctd_0123456789abcdef_" + "aB3dE6gH9" * 5
KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1"
WEB_TOKEN = "eyJhbGciOiJI.eyJzdWIiOi.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "secret", [TOKEN, TOKEN[:30], TOKEN[4:], "aB3dE6gH9" * 4, "0123456789abcdef" * 2, KEY, WEB_TOKEN]
)
@pytest.mark.parametrize(
    "line", ["/{}", "{}/", "GET /v1/{}/rows", "host.{}", "{}.", "x{}", "{}x", "a-{}", "/tmp/{}.log", "at={}&b", "{}\\n"]
)
def test_a_token_is_removed_whatever_stands_beside_it(secret: str, line: str) -> None:
    for text in (line.format(secret), json.dumps({"message": line.format(secret), "peer": line.format(secret)})):
        assert secret not in redacted(text)
        assert secret[8:] not in redacted(text)
