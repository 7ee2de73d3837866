"""The effect of an invariant, and that each can be found and counted."""

from __future__ import annotations

from collections import Counter

import pytest

from cortado import invariants
from cortado.errors import Internal
from cortado.invariants import invariant
from support.simulation.coverage import NOT_SIMULATED, invariants_to_reach
from support.simulation.coverage import invariants as invariants_of_the_product


class NeverShown:
    def __str__(self) -> str:
        raise AssertionError("an invariant that holds was formatted")

    __repr__ = __str__


def test_what_holds_is_said_to_nobody_and_formats_nothing() -> None:
    invariant(True, "the sun rises", NeverShown())


def test_what_does_not_hold_is_a_defect_with_the_values_that_show_it() -> None:
    with pytest.raises(Internal) as caught:
        invariant(False, "an entry follows the last one", 7, (5, 1))
    assert caught.value.problem == "it does not hold that an entry follows the last one: 7, (5, 1)"
    with pytest.raises(Internal) as caught:
        invariant(False, "the sun rises")
    assert caught.value.problem == "it does not hold that the sun rises"


def test_whoever_counts_hears_of_each_and_whether_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, bool]] = []
    monkeypatch.setattr(invariants, "on_asserted", lambda what, holds: heard.append((what, holds)))
    invariant(True, "one")
    with pytest.raises(Internal):
        invariant(False, "two")
    assert heard == [("one", True), ("two", False)]


def test_nobody_counts_outside_of_the_simulation() -> None:
    assert invariants.on_asserted is None


def test_no_two_places_say_the_same() -> None:
    says = Counter(what for _, what in invariants_of_the_product())
    assert says.total() > 30
    assert [what for what, places in says.items() if places > 1] == []


def test_each_that_the_simulation_need_not_reach_is_there() -> None:
    assert set(NOT_SIMULATED) <= {what for _, what in invariants_of_the_product()}
    assert len(invariants_to_reach()) == len(invariants_of_the_product()) - len(NOT_SIMULATED)
