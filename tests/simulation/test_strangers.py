"""A stranger with a good certificate does a simulated cluster no harm; without the rules that keep him out, he does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from cortado.raft.standing import Standing
from support.simulation import network
from support.simulation.run import simulate

pytestmark = [pytest.mark.long, pytest.mark.slow]

SEEDS = range(8)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def hear_everyone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Standing, "may_speak", lambda self, node_id: True)


def believe_what_a_node_says_of_its_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(network, "vouched_position", lambda words, ours: (ours[0] + 1, ours[1]))


def test_with_the_rules_strangers_do_no_harm() -> None:
    outcomes = [simulate(seed) for seed in SEEDS]
    assert [each.violations for each in outcomes] == [[]] * len(SEEDS)
    assert sum(each.counts["attacks of a stranger"] for each in outcomes) > 0


@pytest.mark.parametrize("switch_off", [hear_everyone, believe_what_a_node_says_of_its_log])
def test_a_rule_that_is_switched_off_is_missed(
    switch_off: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_off(monkeypatch)
    assert any(simulate(seed).violations for seed in SEEDS)
