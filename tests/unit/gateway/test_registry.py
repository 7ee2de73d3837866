"""The registry's API, call by call: requests of Kafka's tools, and the answers that they wait for."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from cortado.schema.compatibility import CompatibilityMode
from support.gateways import Gateway

V1_JSON = "application/vnd.schemaregistry.v1+json"
_NUMBERS = itertools.count()


def record(*fields: dict[str, Any], **more: Any) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields), **more})


def field(name: str, avro_type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": avro_type, **more}


ORDER = record(field("id", "long"))
WITH_NOTE = record(field("id", "long"), field("note", "string", default=""))
OTHER_ID = record(field("id", "string"))

Ask = Callable[..., httpx.Response]


@pytest.fixture
def ask(served: Gateway) -> Iterator[Ask]:
    def call(method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        given = {} if body is None else {"content": json.dumps(body), "headers": {"Content-Type": V1_JSON, **headers}}
        return served.request(method, path, **({"headers": headers} | given))

    yield call
    call("DELETE", "/config")


@pytest.fixture
def subject() -> str:
    """Return a name that no other test has."""
    return f"orders-{next(_NUMBERS)}-value"


def registered(ask: Ask, subject: str, *schemas: str) -> list[int]:
    return [ask("POST", f"/subjects/{subject}/versions", {"schema": each}).json()["id"] for each in schemas]


def refusal(answer: httpx.Response) -> tuple[int, int]:
    assert answer.headers["content-type"] == V1_JSON
    assert set(answer.json()) == {"error_code", "message"}
    return answer.status_code, answer.json()["error_code"]


def test_a_version_is_registered_and_read_in_every_form(ask: Ask, subject: str) -> None:
    first, second = registered(ask, subject, ORDER, WITH_NOTE)
    versions = f"/subjects/{subject}/versions"
    assert ask("GET", versions).json() == [1, 2]
    told = {"subject": subject, "version": 1, "id": first, "schema": ORDER}
    assert ask("GET", f"{versions}/1").json() == told
    latest = {"subject": subject, "version": 2, "id": second, "schema": WITH_NOTE}
    for name in ("latest", "LATEST", "-1", "2", "02", "%20latest"):
        assert ask("GET", f"{versions}/{name}").json() == latest, name
    assert ask("GET", f"{versions}/1/schema").text == ORDER
    assert ask("GET", f"{versions}/1/referencedby").json() == []
    assert ask("GET", f"/schemas/ids/{first}").json() == {"schema": ORDER}
    assert ask("GET", f"/schemas/ids/{first}/schema").text == ORDER
    assert ask("GET", f"/schemas/ids/{second}/versions").json()[-1] == {"subject": subject, "version": 2}
    assert subject in ask("GET", f"/schemas/ids/{second}/subjects").json()


def test_one_text_has_one_id_in_all_subjects_and_in_a_subject_a_comment_makes_no_version(
    ask: Ask, subject: str
) -> None:
    mine, other = record(field("id", "long"), doc=subject), record(field("id", "long"), doc="another comment")
    first = registered(ask, subject, mine)[0]
    assert registered(ask, f"other-{subject}", mine, f" {mine}") == [first, first]
    assert ask("GET", f"/schemas/ids/{first}/subjects").json() == sorted([subject, f"other-{subject}"])
    assert ask("GET", f"/schemas/ids/{first}/subjects?limit=1&offset=1").json() == [f"other-{subject}"]
    assert ask("GET", f"/schemas/ids/{first}/versions?subject={subject}").json() == [{"subject": subject, "version": 1}]
    assert registered(ask, subject, other) == [first]
    assert ask("POST", f"/subjects/{subject}?normalize=True", {"schema": other}).json()["version"] == 1


def test_a_schema_is_looked_up_in_its_subject_and_told_apart_from_what_is_not_there(ask: Ask, subject: str) -> None:
    lookup = f"/subjects/{subject}"
    assert refusal(ask("POST", lookup, {"schema": ORDER})) == (404, 40401)
    schema_id = registered(ask, subject, ORDER)[0]
    found = {"subject": subject, "version": 1, "id": schema_id, "schema": ORDER}
    assert ask("POST", lookup, {"schema": ORDER}).json() == found
    assert refusal(ask("POST", lookup, {"schema": WITH_NOTE})) == (404, 40403)
    ask("DELETE", f"/subjects/{subject}/versions/1")
    assert refusal(ask("POST", lookup, {"schema": ORDER})) == (404, 40401)
    assert ask("POST", f"{lookup}?deleted=true", {"schema": ORDER}).json() == found
    assert refusal(ask("POST", f"{lookup}?deleted=true", {"schema": WITH_NOTE})) == (404, 40403)


def test_what_is_not_compatible_is_refused_with_every_reason(ask: Ask, subject: str) -> None:
    registered(ask, subject, ORDER)
    refused = ask("POST", f"/subjects/{subject}/versions", {"schema": OTHER_ID})
    assert refusal(refused) == (409, 409)
    assert "version 1, Order.id: long cannot be read as string" in refused.json()["message"]
    check = f"/compatibility/subjects/{subject}/versions"
    verdict = {
        "is_compatible": False,
        "messages": ["TYPE_MISMATCH: version 1, Order.id: long cannot be read as string"],
    }
    for path in (check, f"{check}/1", f"{check}/latest"):
        assert ask("POST", path, {"schema": OTHER_ID}).json() == {"is_compatible": False}
        assert ask("POST", f"{path}?verbose=true", {"schema": OTHER_ID}).json() == verdict
        assert ask("POST", f"{path}?verbose=true", {"schema": WITH_NOTE}).json() == {
            "is_compatible": True,
            "messages": [],
        }
    assert refusal(ask("POST", f"{check}/2", {"schema": ORDER})) == (404, 40402)
    unknown = "/compatibility/subjects/unknown-value/versions"
    assert ask("POST", f"{unknown}/latest", {"schema": ORDER}).json() == {"is_compatible": True}
    assert ask("POST", unknown, {"schema": ORDER}).json() == {"is_compatible": True}
    assert refusal(ask("POST", f"{unknown}/1", {"schema": ORDER})) == (404, 40401)
    assert refusal(ask("POST", f"{unknown}/latest", {"schema": "{}"})) == (422, 42201)


def test_a_check_of_one_version_goes_by_that_alone(ask: Ask, subject: str) -> None:
    registered(ask, subject, record(field("x", "int")), record())
    again = {"schema": record(field("x", "string", default=""))}
    check = f"/compatibility/subjects/{subject}/versions"
    verdicts = [ask("POST", path, again).json()["is_compatible"] for path in (f"{check}/1", f"{check}/2", check)]
    assert verdicts == [False, True, False]


@pytest.mark.parametrize("level", list(CompatibilityMode))
def test_each_level_can_be_that_of_all_subjects_and_of_one(ask: Ask, subject: str, level: str) -> None:
    assert ask("PUT", "/config", {"compatibility": level.lower()}).json() == {"compatibility": level}
    assert ask("GET", "/config").json() == {"compatibilityLevel": level}
    own = f"/config/{subject}"
    assert refusal(ask("GET", own)) == (404, 40408)
    assert ask("GET", f"{own}?defaultToGlobal=true").json() == {"compatibilityLevel": level}
    assert refusal(ask("DELETE", own)) == (404, 40401)
    other = "FULL" if level == "NONE" else "NONE"
    assert ask("PUT", own, {"compatibility": other}).json() == {"compatibility": other}
    assert ask("GET", own).json() == {"compatibilityLevel": other}
    assert ask("DELETE", own).json() == {"compatibilityLevel": other}
    assert refusal(ask("GET", own)) == (404, 40408)
    assert ask("DELETE", "/config").json() == {"compatibilityLevel": level}
    assert ask("GET", "/config").json() == {"compatibilityLevel": "BACKWARD_TRANSITIVE"}


def test_versions_are_deleted_softly_and_then_for_ever(ask: Ask, subject: str) -> None:
    registered(ask, subject, ORDER, WITH_NOTE, record(field("id", "long"), field("x", "int", default=0)))
    versions = f"/subjects/{subject}/versions"
    assert refusal(ask("DELETE", f"{versions}/1?permanent=true")) == (404, 40407)
    assert ask("DELETE", f"{versions}/latest").json() == 3
    assert ask("DELETE", f"{versions}/1").json() == 1
    assert refusal(ask("DELETE", f"{versions}/1")) == (404, 40406)
    assert refusal(ask("GET", f"{versions}/1")) == (404, 40402)
    assert ask("GET", f"{versions}/1?deleted=true").json()["deleted"] is True
    assert [ask("GET", f"{versions}{more}").json() for more in ("", "?deleted=true", "?deletedOnly=true")] == [
        [2],
        [1, 2, 3],
        [1, 3],
    ]
    assert ask("DELETE", f"{versions}/1?permanent=true").json() == 1
    for path in (f"{versions}/1?deleted=true", f"{versions}/9?deleted=true"):
        assert refusal(ask("GET", path)) == (404, 40402)
    assert refusal(ask("DELETE", f"{versions}/1?permanent=true")) == (404, 40402)
    assert registered(ask, subject, ORDER) and ask("GET", versions).json() == [2, 4], "numbers are never used again"


def test_subjects_are_deleted_softly_and_then_for_ever(ask: Ask, subject: str) -> None:
    schema_id = registered(ask, subject, ORDER, WITH_NOTE)[0]
    path = f"/subjects/{subject}"
    assert refusal(ask("DELETE", f"{path}?permanent=true")) == (404, 40405)
    assert ask("DELETE", path).json() == [1, 2]
    assert refusal(ask("DELETE", path)) == (404, 40404)
    assert refusal(ask("GET", f"{path}/versions")) == (404, 40401)
    listed = [ask("GET", f"/subjects?subjectPrefix={subject}{more}").json() for more in ("", "&deleted=true")]
    assert listed == [[], [subject]]
    assert ask("GET", f"/subjects?deleted_only=True&subjectPrefix=:*:{subject}").json() == [subject]
    assert ask("DELETE", f"{path}?permanent=true").json() == [1, 2]
    assert refusal(ask("DELETE", f"{path}?permanent=true")) == (404, 40401)
    assert refusal(ask("DELETE", path)) == (404, 40401)
    assert ask("GET", f"/schemas/ids/{schema_id}").json() == {"schema": ORDER}, "an id names its text for ever"


def test_no_version_of_a_subject_that_a_table_follows_is_deleted(ask: Ask) -> None:
    for path in ("/subjects/shop.items", "/subjects/shop.items/versions/1", "/subjects/shop.items/versions/latest"):
        refused = ask("DELETE", path)
        assert refusal(refused) == (422, 42206)
        assert "table shop.items follows it" in refused.json()["message"]
    assert ask("GET", "/subjects/shop.items/versions").json() == [1]


def test_versions_of_all_subjects_are_listed_with_their_declarations(ask: Ask, subject: str) -> None:
    names = [f"{subject}-{i}" for i in range(3)]
    for name in names:
        registered(ask, name, ORDER, WITH_NOTE)

    def listed(more: str) -> list[tuple[str, int]]:
        found = ask("GET", f"/schemas?subjectPrefix={subject}{more}").json()
        return [(each["subject"], each["version"]) for each in found]

    everything = [(name, version) for name in names for version in (1, 2)]
    assert listed("") == everything
    assert listed("&latestOnly=true") == [(name, 2) for name in names]
    for offset, limit in itertools.product(range(7), (0, 1, 2, 5)):
        assert listed(f"&offset={offset}&limit={limit}") == everything[offset : offset + limit]
    ask("DELETE", f"/subjects/{names[0]}/versions/1")
    assert listed("") == everything[1:]
    assert listed("&deleted=true") == everything


def test_what_is_fixed_is_told_and_cannot_be_set_to_anything_else(ask: Ask, subject: str) -> None:
    assert ask("GET", "/").json() == {}
    assert ask("GET", "/schemas/types").json() == ["AVRO"]
    assert ask("GET", "/contexts").json() == ["."]
    assert ask("GET", "/v1/metadata/id").json()["scope"]["clusters"]["schema-registry-cluster"]
    assert ask("GET", "/v1/metadata/version").json()["version"]
    for path in ("/mode", f"/mode/{subject}"):
        assert ask("PUT", f"{path}?force=False", {"mode": "READWRITE"}).json() == {"mode": "READWRITE"}
        for method in ("GET", "DELETE"):
            assert ask(method, path).json() == {"mode": "READWRITE"}
        for mode in ("READONLY", "IMPORT"):
            assert refusal(ask("PUT", path, {"mode": mode})) == (422, 42205)
        assert refusal(ask("PUT", path, {"mode": "WRITEONLY"})) == (422, 42204)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"schema": ORDER, "schemaType": "PROTOBUF"}, 42201),
        ({"schema": ORDER, "schemaType": "JSON"}, 42201),
        ({"schema": ORDER, "references": [{"name": "a", "subject": "b", "version": 1}]}, 42201),
        ({"schema": ORDER, "metadata": {"properties": {}}}, 42201),
        ({"schema": ORDER, "ruleSet": {"domainRules": []}}, 42201),
        ({"schema": "{"}, 42201),
        ({"schema": {"type": "int"}}, 42201),
        ({"schema": ""}, 42201),
        ({}, 42201),
        ({"schema": f'"{"x" * (256 << 10)}"'}, 42209),
        ({"schema": ORDER, "id": 7}, 42205),
        ({"schema": ORDER, "version": 7}, 42205),
        ({"schema": ORDER, "compatibility": "NONE"}, 422),
        ([ORDER], 400),
        ("\ud800", 400),
        ({"schema": '"\ud800"'}, 42201),
    ],
)
def test_a_declaration_that_cannot_be_registered_is_refused_by_name(
    ask: Ask, subject: str, body: Any, code: int
) -> None:
    for path in (
        f"/subjects/{subject}/versions",
        f"/subjects/{subject}",
        f"/compatibility/subjects/{subject}/versions",
    ):
        assert refusal(ask("POST", path, body))[1] == code, path
    assert refusal(ask("GET", f"/subjects/{subject}/versions")) == (404, 40401), "it had no effect"


def test_fields_that_the_api_does_not_have_pass_where_the_caller_says_that_it_may_send_some(
    ask: Ask, subject: str
) -> None:
    body = {"schema": ORDER, "schemaType": "AVRO", "references": [], "metadata": None, "id": -1, "version": 0, "x": 1}
    path = f"/subjects/{subject}/versions"
    assert refusal(ask("POST", path, body)) == (422, 422)
    assert ask("POST", path, body, **{"Confluent-Accept-Unknown-Properties": "true"}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/subjects/a%2Fb/versions", 42208),
        ("GET", "/subjects/%2E%2E/versions", 42208),
        ("GET", "/subjects/:.other:orders/versions", 42208),
        ("GET", "/subjects/%FF/versions", 42208),
        ("GET", f"/subjects/{'x' * 201}/versions", 42208),
        ("PUT", "/mode/a%20b", 42208),
        ("GET", "/subjects//versions", 404),
        ("GET", "/subjects/a/versions/1/nothing", 404),
        ("GET", "/associations/resources/-/orders", 404),
        ("GET", "/subjects/shop.items/versions/0", 42202),
        ("GET", "/subjects/shop.items/versions/-2", 42202),
        ("GET", "/subjects/shop.items/versions/2147483648", 42202),
        ("GET", "/subjects/shop.items/versions/abc", 42202),
        ("DELETE", "/subjects/shop.items/versions/1.0", 42202),
        ("GET", "/subjects/shop.items/versions/7", 40402),
        ("GET", "/schemas/ids/0", 40403),
        ("GET", "/schemas/ids/2147483648", 40403),
        ("GET", "/schemas/ids/1%2F2", 40403),
        ("GET", "/schemas/ids/-1/versions", 40403),
        ("GET", "/schemas/ids/2147483647/subjects", 40403),
        ("GET", "/subjects?deleted=yes", 400),
        ("GET", "/subjects?limit=many", 400),
        ("GET", "/subjects?colour=red", 400),
        ("PATCH", "/subjects/shop.items", 405),
        ("POST", "/schemas", 405),
        ("POST", "/subjects/shop.items", 415),
    ],
)
def test_odd_calls_have_a_precise_code(ask: Ask, method: str, path: str, code: int) -> None:
    assert refusal(ask(method, path))[1] == code


def test_the_default_context_may_be_named(ask: Ask, subject: str) -> None:
    registered(ask, f":.:{subject}", ORDER)
    assert ask("GET", f"/subjects/{subject}/versions").json() == [1]
    assert ask("GET", f"/subjects?subjectPrefix=:.:{subject}").json() == [subject]


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ("*/*", V1_JSON),
        ("application/json", "application/json"),
        (f"{V1_JSON}, application/vnd.schemaregistry+json; q=0.9, application/json; q=0.5", V1_JSON),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
    ],
)
def test_an_answer_comes_in_the_media_type_that_is_wanted(ask: Ask, accept: str, given: str) -> None:
    assert ask("GET", "/subjects", Accept=accept).headers["content-type"] == given
    assert refusal(ask("GET", "/subjects", Accept="text/csv"))[1] == 406
