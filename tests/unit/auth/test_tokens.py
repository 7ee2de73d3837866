"""The header that holds a token, as it is read."""

from __future__ import annotations

import pytest

from cortado.store.auth.tokens import (
    BEARER,
    NO_SCHEME,
    ONLY_WITH_ROLES,
    counts_only_with_roles,
    header_of,
    token_id_of,
    token_of,
)
from cortado.store.client.authorization import only_with_roles
from cortado.store.h2.fields import check_trailers

TOKEN = "ctd_0123456789abcdef_" + "A" * 43


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer-with-roles", "bearer-WITH-roles"])
@pytest.mark.parametrize("spaces", [" ", "   "])
def test_a_scheme_has_any_case(scheme: str, spaces: str) -> None:
    """RFC 9110, 11.1 and 11.4."""
    header = f"{scheme}{spaces}{TOKEN}"
    assert token_of(header) == TOKEN
    assert counts_only_with_roles(header) is (scheme.lower() != "bearer")
    assert token_of(scheme) == token_of(f"{scheme}{spaces}") == ""


@pytest.mark.parametrize(
    "header", ["", TOKEN, f"Digest {TOKEN}", f"Bearer:{TOKEN}", f"Bearer\t{TOKEN}", f" Bearer {TOKEN}"]
)
def test_a_header_of_another_scheme_holds_no_token(header: str) -> None:
    assert token_of(header) == NO_SCHEME
    assert not token_id_of(NO_SCHEME)
    assert not counts_only_with_roles(header)
    assert counts_only_with_roles(only_with_roles(header))


@pytest.mark.parametrize("token", ["", "t", " t ", "a b", "a\tb", "a\n", "\x7f", "ü", " "])
def test_a_header_is_one_that_http_carries(token: str) -> None:
    for scheme in (BEARER, ONLY_WITH_ROLES):
        header = header_of(token, scheme)
        check_trailers([(b"authorization", header.encode("ascii"))])
        assert header.isprintable()
        assert counts_only_with_roles(header) == (scheme == ONLY_WITH_ROLES)
        assert token_id_of(token_of(header)) == ""
    assert token_of(header_of("t")) == "t"
    assert token_of(header_of("")) == ""
