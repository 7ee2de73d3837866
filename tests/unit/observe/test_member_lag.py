"""How long a member is behind: since the log first had an entry that it lacks, as far as the samples tell."""

from __future__ import annotations

import pytest

from cortado.store.observe.lag import SAMPLES_MAX, LogClock


def sampled(*samples: tuple[float, int]) -> LogClock:
    clock = LogClock()
    for at_ms, last_index in samples:
        clock.sample(at_ms, last_index)
    return clock


@pytest.mark.parametrize(
    ("match_index", "behind_ms"), [(90, 0.0), (97, 0.0), (89, 40.0), (55, 40.0), (54, 90.0), (40, 90.0), (39, 100.0)]
)
def test_behind_since_the_first_sample_that_shows_more(match_index: int, behind_ms: float) -> None:
    clock = sampled((900.0, 40), (910.0, 55), (950.0, 55), (960.0, 90))
    assert clock.behind_ms(match_index, 1_000.0) == behind_ms


def test_nothing_is_known_before_the_first_sample() -> None:
    assert LogClock().behind_ms(7, 1_000.0) == 0.0


def test_a_log_that_was_truncated_begins_again() -> None:
    clock = sampled((900.0, 90), (910.0, 60), (920.0, 61))
    assert clock.behind_ms(50, 1_000.0) == 90.0


def test_memory_is_bounded_and_the_oldest_sample_is_the_most_that_is_said() -> None:
    clock = sampled(*((float(at), at) for at in range(1, SAMPLES_MAX + 101)))
    assert clock.behind_ms(0, SAMPLES_MAX + 100.0) == SAMPLES_MAX - 1
