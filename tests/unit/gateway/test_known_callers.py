"""The gateway knows its callers' principals, and asks the cluster for each once in a while."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cortado.errors import Unauthenticated, Unavailable
from cortado.store.client import AsyncClient
from cortado.store.client.auth import PrincipalInfo, WhoAmI
from cortado.store.client.authorization import NOBODY, ON_BEHALF
from cortado.store.gateway.callers import KEPT_MAX, KNOWN_S, REFUSED_S, STALE_S, Callers


def token(number: int) -> str:
    return f"ctd_{number:016x}_" + "A" * 43


@dataclass
class Cluster:
    """Its own client: ``answers`` are by header, and every other one is refused."""

    answers: dict[str, WhoAmI | Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.callers = Callers(cast("AsyncClient", self), lambda: self.now_s)

    @property
    def admin(self) -> SimpleNamespace:
        return SimpleNamespace(auth=self)

    async def who_am_i(self) -> WhoAmI:
        header = ON_BEHALF.get()
        self.asked.append(header)
        await asyncio.sleep(0)
        answer = self.answers.get(header, Unauthenticated("no principal has it"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def known(self, header: str) -> str | type[Exception]:
        ON_BEHALF.set(header)
        try:
            return await self.callers.known()
        except (Unauthenticated, Unavailable) as error:
            return type(error)

    async def settled(self) -> None:
        """Wait until each look-up has its answer."""
        await asyncio.gather(*self.callers._asking.values(), return_exceptions=True)

    def add(self, number: int, name: str) -> str:
        header = f"Bearer {token(number)}"
        self.answers[header] = WhoAmI(True, PrincipalInfo(name, "token", (), ()))
        return header


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_a_principal_is_asked_for_once_in_a_while() -> None:
    cluster = Cluster()
    header = cluster.add(1, "app")

    async def calls() -> None:
        assert await asyncio.gather(*(cluster.known(header) for _ in range(10))) == ["app"] * 10
        assert len(cluster.asked) == 1
        cluster.now_s += KNOWN_S
        del cluster.answers[header]
        assert await cluster.known(header) == "app", "an old answer serves until the next one is there"
        await cluster.settled()
        assert await cluster.known(header) is Unauthenticated
        assert len(cluster.asked) == 2

    run(calls())


def test_a_refusal_is_kept_for_less_time_and_that_of_no_token_is_one() -> None:
    cluster = Cluster()
    shown = [NOBODY, "Bearer-with-roles ", "bearer", "BEARER  "]

    async def calls() -> None:
        for each in shown:
            assert await cluster.known(each) is Unauthenticated
        assert len(cluster.asked) == 1
        cluster.now_s += REFUSED_S
        assert await cluster.known(NOBODY) is Unauthenticated
        assert len(cluster.asked) == 2

    run(calls())


def test_strangers_push_no_known_caller_out() -> None:
    cluster = Cluster()
    header = cluster.add(1, "app")

    async def calls() -> None:
        assert await cluster.known(header) == "app"
        for i in range(2, KEPT_MAX + 10):
            assert await cluster.known(f"Bearer {token(i)}") is Unauthenticated
        asked = len(cluster.asked)
        assert await cluster.known(header) == "app"
        assert len(cluster.asked) == asked

    run(calls())


def test_while_roles_are_off_nobody_is_asked_for_each_time() -> None:
    cluster = Cluster({NOBODY: WhoAmI(False, None), "Bearer x": WhoAmI(False, None)})

    async def calls() -> None:
        assert await cluster.known(NOBODY) == await cluster.known("Bearer x") == ""
        assert cluster.asked == [NOBODY]
        cluster.now_s += REFUSED_S
        cluster.answers = {NOBODY: WhoAmI(True, None)}
        assert await cluster.known(NOBODY) == ""
        await cluster.settled()
        assert await cluster.known(NOBODY) is Unauthenticated

    run(calls())


@pytest.mark.parametrize("header", [NOBODY, f"Bearer {token(1)}"])
def test_an_old_answer_serves_for_a_while_where_the_cluster_gives_no_new_one(header: str) -> None:
    cluster = Cluster()
    cluster.add(1, "app")
    cluster.answers[NOBODY] = WhoAmI(False, None)

    async def calls() -> None:
        name = await cluster.known(header)
        cluster.answers = dict.fromkeys(cluster.answers, Unavailable("nobody leads"))
        for _ in range(3):
            cluster.now_s += STALE_S / 4
            assert await cluster.known(header) == name
            await cluster.settled()
        cluster.now_s += STALE_S / 4
        assert await cluster.known(header) is Unavailable

    run(calls())


def test_roles_that_are_switched_are_told_with_the_next_answer() -> None:
    cluster = Cluster()
    header = cluster.add(1, "app")
    app = cluster.answers[header]

    async def calls() -> None:
        for answer, name in ((app, "app"), (WhoAmI(False, None), ""), (app, "app"), (WhoAmI(False, None), "")):
            cluster.answers[header] = answer
            cluster.now_s += KNOWN_S
            await cluster.known(header)
            await cluster.settled()
            assert await cluster.known(header) == name

    run(calls())


def test_what_the_cluster_cannot_say_is_not_kept() -> None:
    cluster = Cluster({NOBODY: Unavailable("nobody leads")})

    async def calls() -> None:
        for _ in range(2):
            assert await cluster.known(NOBODY) is Unavailable
        assert len(cluster.asked) == 2

    run(calls())


def test_a_caller_who_hangs_up_takes_the_answer_from_no_other_one() -> None:
    cluster = Cluster()
    header = cluster.add(1, "app")

    async def calls() -> None:
        first, second = (asyncio.create_task(cluster.known(header)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "app"

    run(calls())
