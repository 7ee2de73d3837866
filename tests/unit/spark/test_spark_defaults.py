"""The functions that are given a session use its connection, unless a call names an endpoint of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_cortado.defaults import with_defaults

SESSION = {"spark.cortado.endpoint": "a:1", "spark.cortado.token": "of a", "spark.cortado.tlsCa": "ca.pem"}


def session(**settings: str) -> Any:
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: settings.get(name, default)))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {"endpoint": "a:1", "token": "of a", "tlsCa": "ca.pem"}),
        ({"token": "own"}, {"endpoint": "a:1", "token": "own", "tlsCa": "ca.pem"}),
        ({"tokenFile": "own"}, {"endpoint": "a:1", "tokenFile": "own", "tlsCa": "ca.pem"}),
        ({"endpoint": "b:1"}, {"endpoint": "b:1"}),
    ],
)
def test_a_call_without_an_endpoint_has_the_sessions_connection(given: dict[str, str], found: dict[str, str]) -> None:
    assert with_defaults(session(**SESSION), given) == found


def test_a_token_of_a_session_without_an_endpoint_goes_nowhere() -> None:
    assert with_defaults(session(**{"spark.cortado.token": "of a"}), {"table": "a.b"}) == {"table": "a.b"}
