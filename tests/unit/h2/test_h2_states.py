"""The table of a stream's states: each pair is listed or refused; only those of this side's own actions are missing."""

from __future__ import annotations

import pytest

from cortado.store.h2.limits import ConnectionFault, StreamFault
from cortado.store.h2.states import FAULTS, NEXT, Event, State, next_state

RECEIVED = {Event.HEADERS, Event.DATA, Event.RESET, Event.WINDOW}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_each_pair_is_listed_or_refused(state: State, event: Event) -> None:
    pair = (state, event)
    if pair in NEXT:
        assert pair not in FAULTS
        assert next_state(state, event) is NEXT[pair]
    elif event in RECEIVED:
        with pytest.raises((ConnectionFault, StreamFault)):
            next_state(state, event)
    else:
        # This side never does these; and END never comes without the frame that carries it.
        assert pair not in FAULTS


def test_nothing_leaves_the_closed_state() -> None:
    assert {after for (before, _), after in NEXT.items() if before is State.CLOSED} == {State.CLOSED}
