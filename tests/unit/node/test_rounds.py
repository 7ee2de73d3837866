"""The table of rounds: a shorter round leaves phases out, and turns none around."""

from __future__ import annotations

import pytest

from cortado.store.replica.rounds import DURABLE, ROUNDS, WHOLE, Phase


@pytest.mark.parametrize("round_", ROUNDS, ids=["whole", "proposed", "durable", "applied"])
def test_every_round_has_phases_of_the_whole_one_in_its_order(round_: tuple[Phase, ...]) -> None:
    assert [phase for phase in WHOLE if phase in round_] == list(round_)


def test_what_is_durable_leaves_and_is_stored_before_anybody_is_answered() -> None:
    for round_ in (WHOLE, DURABLE):
        assert round_.index(Phase.SEND) < round_.index(Phase.STORE) < round_.index(Phase.ANSWER)
    assert WHOLE.index(Phase.LEAD) < WHOLE.index(Phase.ANSWER)
