"""Entity tags as RFC 9110 has them: lists of them, with commas and bytes of their own."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from cortado.errors import InvalidArgument
from cortado.store.gateway.conditions import Condition, condition_of, is_unchanged
from support.gateways import Gateway

ETAG = "0.1763643600000.2"


def headers(name: str, *values: bytes) -> Headers:
    return Headers(raw=[(name.lower().encode(), value) for value in values])


@pytest.mark.parametrize(
    ("given", "is_there"),
    [
        ((b'"0.1763643600000.2"',), True),
        ((b'W/"0.1763643600000.2"',), True),
        ((b'"a,b", "0.1763643600000.2"',), True),
        ((b'"a,b"', b'"c", "0.1763643600000.2"'), True),
        ((b',, "0.1763643600000.2" , ,',), True),
        ((b'"\xe4\xff","0.1763643600000.2"',), True),
        ((b'"",\t"0.1763643600000.2"\t,',), True),
        ((b"*",), True),
        ((b'"0.1763643600000.2,"',), False),
        ((b'"x,", "y"',), False),
        ((b'"x", W/"\x80"',), False),
        ((b"",), False),
        ((b" , ,",), False),
        ((), False),
    ],
)
def test_a_list_of_entity_tags_is_read_whatever_they_hold(given: tuple[bytes, ...], is_there: bool) -> None:
    assert is_unchanged(headers("If-None-Match", *given), ETAG) is is_there


@pytest.mark.parametrize(
    "given",
    [b"0.1.1", b'"a', b'"a" "b"', b'"a"b', b'w/"a"', b'"a b"', b'*, "a"', b"*,", b'"a", b', b'W/ "a"', b'"\x7f"'],
)
def test_what_is_no_list_of_entity_tags_is_refused(given: bytes) -> None:
    with pytest.raises(InvalidArgument) as refused:
        is_unchanged(headers("If-None-Match", given), ETAG)
    assert refused.value.field == "If-None-Match"


@pytest.mark.parametrize("given", [b'"0.1.2"', b',"0.1.2"', b'"0.1.2" ,', b', ,"0.1.2", ,'])
def test_a_write_takes_one_tag_and_empty_elements_beside_it(given: bytes) -> None:
    assert condition_of(headers("If-Match", given)) == Condition(if_etag="0.1.2")


@pytest.mark.parametrize(
    "given", [b"", b",", b'""', b'W/"0.1.2"', b'"0.1.2", "0.1.3"', b'"0.1.2", W/"0.1.2"', b"0.1.2"]
)
def test_a_write_refuses_what_is_not_one_strong_tag(given: bytes) -> None:
    with pytest.raises(InvalidArgument) as refused:
        condition_of(headers("If-Match", given))
    assert refused.value.field == "If-Match"


def test_a_long_list_is_read_in_one_pass() -> None:
    tags = b'"' + b"a,\xff" * 5_000 + b'", ' + b", " * 5_000 + f'"{ETAG}"'.encode()
    assert is_unchanged(headers("If-None-Match", tags), ETAG)


def test_entity_tags_of_other_servers_are_no_mistake(served: Gateway) -> None:
    etag = served.request("PUT", "/v1/kv/tags/k", content=b"1", headers={"Content-Type": "application/octet-stream"})
    for given, status in (
        (b'"a,b", \xff', 400),
        (b'"a,b\xe4"', 200),
        (b'"a,b\xe4", ,' + etag.headers["ETag"].encode(), 304),
    ):
        answer = served.request("GET", "/v1/kv/tags/k", headers={"If-None-Match": given})
        assert answer.status_code == status, answer.text
