"""The OpenAPI document describes the served API; each answer of the other tests is held against it, too."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest

from cortado.store.gateway.application import all_operations
from cortado.store.gateway.openapi import document
from support.gateways import Gateway


def test_the_document_that_is_served_is_that_of_what_is_served(served: Gateway) -> None:
    told = served.request("GET", "/openapi.json").json()
    assert told == json.loads(json.dumps(document(all_operations())))
    listed = {(method.upper(), path) for path, methods in told["paths"].items() for method in methods}
    assert len(listed) == len(all_operations())


@pytest.mark.parametrize("each", all_operations(), ids=lambda each: f"{each.method} {each.path}")
def test_an_operation_says_what_it_does_and_takes(each: object) -> None:
    [methods] = document([each])["paths"].values()  # type: ignore[list-item]
    [told] = methods.values()
    assert told["summary"].endswith(".")
    names = [(parameter["in"], parameter["name"]) for parameter in told["parameters"]]
    assert len(names) == len(set(names))
    assert all(parameter["in"] == "path" or parameter["description"] for parameter in told["parameters"])
    assert any(status.startswith("2") for status in told["responses"])


def test_the_page_is_of_this_gateway_alone(served: Gateway) -> None:
    page = served.request("GET", "/try")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    linked = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert sorted(linked) == ["/openapi.json", "/try.css", "/try.js"]
    for path in linked:
        assert served.request("GET", path).status_code == 200
    script = files("cortado.store.gateway").joinpath("page.js").read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|https?:", script)
