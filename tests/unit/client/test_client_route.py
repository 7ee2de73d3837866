"""The route of calls, as a function of the nodes' answers."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument
from cortado.store.client.endpoints import ENDPOINTS_MAX, parse_endpoints
from cortado.store.client.route import DISTRUST_S, Route

A, B, C = "a:1", "b:2", "c:3"


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def route(clock: Clock) -> Route:
    return Route((A, B, C), clock)


def test_the_first_endpoint_is_asked_first_and_known_for_nothing(route: Route) -> None:
    assert (route.target, route.known_leader) == (A, "")


def test_a_leader_that_is_named_is_gone_to_even_if_it_is_new(route: Route) -> None:
    assert route.follow("d:4", by=A)
    assert (route.target, route.known_leader) == ("d:4", "d:4")


@pytest.mark.parametrize("hinted", ["", A, "n2", "no address"])
def test_a_hint_that_is_no_other_address_is_none(route: Route, hinted: str) -> None:
    assert not route.follow(hinted, by=A)
    assert route.target == A


def test_an_address_that_just_failed_is_not_gone_to_on_a_hint(route: Route, clock: Clock) -> None:
    route.failed(B)
    assert not route.follow(B, by=A)
    assert not route.lead(B, term=5)
    clock.now_s += DISTRUST_S
    assert route.follow(B, by=A)


def test_a_hint_of_a_node_that_is_no_target_any_more_changes_nothing(route: Route) -> None:
    route.lead(C, term=2)
    assert route.follow(B, by=A)
    assert route.target == C


def test_the_word_of_an_older_term_is_old_news(route: Route) -> None:
    assert route.lead(B, term=5)
    assert not route.lead(A, term=4)
    assert route.target == B
    route.forget_terms()
    assert route.lead(A, term=4)


def test_from_what_fails_it_batches_to_the_next_once_for_all_threads(route: Route) -> None:
    route.turn_from(A)
    route.turn_from(A)
    assert route.target == B
    route.turn_from(B)
    route.turn_from(C)
    assert (route.target, route.known_leader) == (A, "")


def test_members_come_after_the_endpoints_and_go_again(route: Route) -> None:
    assert route.learn([B, "d:4", "", "d:4"]) == set()
    assert route.addresses == (A, B, C, "d:4")
    route.lead("d:4", term=1)
    assert route.learn([A]) == {"d:4"}
    assert (route.addresses, route.target, route.known_leader) == ((A, B, C), A, "")
    assert route.learn([]) == set()


def test_anyone_is_each_in_turn_but_for_what_just_failed(route: Route) -> None:
    assert {route.anyone() for _ in range(3)} == {A, B, C}
    route.failed(B)
    assert {route.anyone() for _ in range(6)} == {A, C}
    route.failed(A)
    route.failed(C)
    assert route.anyone() == route.target


@pytest.mark.parametrize(
    ("given", "expected"),
    [("a:1", (A,)), ("a:1, b:2", (A, B)), (["a:1", "b:2", "a:1"], (A, B)), (("[::1]:7",), ("[::1]:7",))],
)
def test_endpoints_are_one_several_in_a_text_or_a_list(given: str | list[str], expected: tuple[str, ...]) -> None:
    assert parse_endpoints(given) == expected


@pytest.mark.parametrize(
    "given", ["a:1,", ",", [], ["a:1", 5], 5, None, ["a:1,b:2"], [f"a:{n + 1}" for n in range(101)]]
)
def test_wrong_endpoints_are_refused(given: object) -> None:
    assert ENDPOINTS_MAX == 100
    with pytest.raises(InvalidArgument, match="endpoint"):
        parse_endpoints(given)  # type: ignore[arg-type]
