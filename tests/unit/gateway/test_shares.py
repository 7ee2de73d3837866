"""One token holds no more of a gateway's calls and streams than it leaves free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import pytest

from cortado.errors import ResourceExhausted
from cortado.store.client.authorization import NOBODY, ON_BEHALF
from cortado.store.gateway.bounds import Bounds
from cortado.store.gateway.callers import STRANGERS
from cortado.store.gateway.limits import GatewayLimits
from cortado.store.gateway.problems import Refused

ONE, OTHER = (f"Bearer ctd_{number:016x}_{'A' * 43}" for number in (1, 2))
MOST = 8

Begin = Callable[[], AbstractContextManager[None]]


@contextmanager
def shown(header: str) -> Iterator[None]:
    before = ON_BEHALF.set(header)
    try:
        yield
    finally:
        ON_BEHALF.reset(before)


def held(stack: ExitStack, begin: Begin, header: str) -> int:
    """Return how many requests fit in."""
    with shown(header):
        for count in range(MOST + 1):
            try:
                stack.enter_context(begin())
            except Refused as refused:
                assert refused.status == 429
                assert isinstance(refused.error, ResourceExhausted) and refused.error.limit == MOST
                return count
    raise AssertionError("there is no bound")


def begins(kind: str) -> Begin:
    bounds = Bounds(GatewayLimits(calls_max=MOST, streams_max=MOST))
    return bounds.call if kind == "calls" else bounds.stream


@pytest.mark.parametrize("kind", ["calls", "streams"])
def test_one_token_alone_has_half_and_the_others_halves_of_what_is_left(kind: str) -> None:
    async def fill() -> None:
        begin = begins(kind)
        with ExitStack() as stack:
            assert [held(stack, begin, header) for header in (ONE, OTHER, NOBODY)] == [4, 2, 2]
        with ExitStack() as stack:
            assert held(stack, begin, ONE) == 4, "all were given back"

    asyncio.run(fill())


@pytest.mark.parametrize("header", [NOBODY, "", "Bearer no-token", "Bearer-with-roles ?"])
def test_calls_without_a_token_have_no_shares(header: str) -> None:
    begin = begins("calls")
    with ExitStack() as stack:
        assert held(stack, begin, header) == MOST


def test_all_strangers_have_one_share() -> None:
    share = [STRANGERS]
    bounds = Bounds(GatewayLimits(calls_max=MOST), lambda: share[0])
    with ExitStack() as stack:
        assert [held(stack, bounds.call, header) for header in (ONE, OTHER, NOBODY)] == [MOST // 2, 0, 0]
        with pytest.raises(Refused, match="for callers that are authenticated"), bounds.call():
            pass
        share[0] = b"known"
        assert held(stack, bounds.call, ONE) == 2


def test_a_caller_that_becomes_known_while_its_body_arrives_leaves_the_share_of_strangers() -> None:
    share = [STRANGERS]
    bounds = Bounds(GatewayLimits(calls_max=MOST), lambda: share[0])
    with ExitStack() as stack:
        for _ in range(3):
            share[0] = STRANGERS
            stack.enter_context(bounds.call())
            with bounds.waiting():
                share[0] = b"known"
        share[0] = STRANGERS
        assert held(stack, bounds.call, NOBODY) == 3
    with ExitStack() as stack:
        assert held(stack, bounds.call, NOBODY) == 4, "all were given back"


def test_a_call_that_waits_for_its_caller_counts_for_nobody() -> None:
    bounds = Bounds(GatewayLimits(calls_max=2))
    with shown(ONE), bounds.call():
        with bounds.waiting(), bounds.call():
            pass
        with pytest.raises(Refused, match="for other tokens"), bounds.call():
            pass
        with pytest.raises(Refused), ExitStack() as stack, bounds.waiting():
            stack.enter_context(bounds.call())
