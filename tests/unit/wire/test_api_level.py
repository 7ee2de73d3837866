"""A client says for which level of the API it was written; an older server refuses it instead of dropping fields."""

from __future__ import annotations

import pytest

from cortado.errors import Unsupported
from cortado.store.wire.api_level import API_LEVEL, check_api_level, user_agent


@pytest.mark.parametrize(
    "said",
    [
        "",
        "grpc-go/1.60.0",
        user_agent("0.1.0"),
        f"{user_agent('0.1.0')} grpc-python/1.85.1 grpc-c/53.0.0 (linux; chttp2)",
        "api/0",
        "rapi/9",
        "api/9x",
    ],
)
def test_who_says_nothing_or_a_level_that_is_served_is_served(said: str) -> None:
    check_api_level(said)


def test_a_client_of_a_higher_level_is_refused_with_both_levels() -> None:
    with pytest.raises(Unsupported) as refused:
        check_api_level(f"cortado/9.0.0 api/{API_LEVEL + 1} grpc-python/1.85.1")
    assert refused.value.message() == (
        f"level {API_LEVEL + 1} of the API cortado.v1 is not supported: "
        f"the client asks for it, and this server has level {API_LEVEL}: upgrade servers before clients"
    )
