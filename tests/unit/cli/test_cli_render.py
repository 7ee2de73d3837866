"""Values as people read them; scripts get them as they are."""

from __future__ import annotations

import pytest

from cortado.store.cli.render import moment
from cortado.store.clock.timestamp import ZERO, Timestamp


@pytest.mark.parametrize(
    ("ts", "shown"),
    [
        (ZERO, "-"),
        (Timestamp(0, 1_763_643_600_000, 2), "0.1763643600000.2 (2025-11-20 13:00:00Z)"),
        (Timestamp(1, 0, 0), "1.0.0 (1970-01-01 00:00:00Z)"),
    ],
)
def test_a_timestamp_is_shown_with_its_time_and_none_before_the_first_write(ts: Timestamp, shown: str) -> None:
    assert moment(ts) == shown
