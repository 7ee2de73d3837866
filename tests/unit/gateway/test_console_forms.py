"""The outcome of a form is told again on each repeat, for as long as the form is valid."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import OutcomeUnknown, Unavailable
from cortado.store.gateway.console.acts.act import Done
from cortado.store.gateway.console.forms import Forms
from cortado.store.gateway.problems import Refused


def test_a_form_that_is_sent_while_it_is_done_gets_the_one_answer_also_where_the_first_one_has_left() -> None:
    async def send_twice() -> None:
        forms, may_end, began = Forms(), asyncio.Event(), []

        async def work() -> Done:
            began.append(1)
            await may_end.wait()
            return Done("done", "/ui", "its token")

        # A double click: the browser leaves the first one.
        first, second = (asyncio.create_task(forms.once("form", {}, work)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        may_end.set()
        assert await second == Done("done", "/ui", "its token")
        assert await forms.once("form", {}, work) == Done("done", "/ui", is_again=True, had_secret=True)
        assert began == [1]

    asyncio.run(send_twice())


def test_a_form_that_is_sent_again_with_other_fields_is_refused_while_it_is_done_and_behind_that() -> None:
    async def send_another() -> None:
        forms, may_end = Forms(), asyncio.Event()

        async def work() -> Done:
            await may_end.wait()
            return Done("tea was made", "/ui")

        first = asyncio.create_task(forms.once("form", {"name": "tea"}, work))
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="with other fields"):
            await forms.once("form", {"name": "oil"}, work)
        may_end.set()
        await first
        with pytest.raises(Refused, match="with other fields"):
            await forms.once("form", {"name": "oil"}, work)
        assert (await forms.once("form", {"name": "tea"}, work)).is_again

    asyncio.run(send_another())


def test_what_came_of_a_form_is_remembered_for_longer_than_it_is_valid_and_then_forgotten() -> None:
    async def send_for_an_hour() -> None:
        now_s = [1_000.0]
        forms = Forms(now_s=lambda: now_s[0])

        async def work() -> Done:
            return Done("done", "/ui")

        for minute in range(60):
            now_s[0] += 60
            await forms.once(f"form {minute}", {}, work)
        assert (await forms.once("form 49", {}, work)).is_again
        assert list(forms._done) == [f"form {minute}" for minute in range(39, 60)]

    asyncio.run(send_for_an_hour())


@pytest.mark.parametrize("error", [Unavailable("no leader"), OutcomeUnknown("the leader was lost")])
def test_a_form_whose_act_failed_may_be_sent_again(error: Exception) -> None:
    async def send_twice() -> None:
        forms, answers = Forms(), iter([error, Done("done", "/ui")])

        async def work() -> Done:
            found = next(answers)
            if isinstance(found, Done):
                return found
            raise found

        with pytest.raises(type(error)):
            await forms.once("form", {}, work)
        assert await forms.once("form", {}, work) == Done("done", "/ui")

    asyncio.run(send_twice())
