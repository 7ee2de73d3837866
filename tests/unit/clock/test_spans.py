"""Lengths of time read well whether they are milliseconds or decades."""

from __future__ import annotations

import pytest

from cortado.store.clock.spans import between_text, exact_span_text, span_text

YEARS_45_MS = 1_419_120_000_000


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (9_999, "9999 ms"),
        (43_211, "43 s"),
        (119_999, "120 s"),
        (120_000, "2 min"),
        (7_200_000, "2 hours"),
        (172_800_000, "2 days"),
        (YEARS_45_MS, "45 years"),
        (-YEARS_45_MS, "-45 years"),
    ],
)
def test_a_span_is_told_in_the_unit_that_reads_best(ms: int, text: str) -> None:
    assert span_text(ms) == text


def test_an_exact_span_keeps_its_milliseconds() -> None:
    assert exact_span_text(250) == "250 ms"
    assert exact_span_text(YEARS_45_MS) == "1419120000000 ms (45 years)"


def test_bounds_on_a_clock_are_told_in_a_better_unit_where_it_is_far() -> None:
    assert between_text(-1, 2) == "-1 to +2 ms"
    assert between_text(YEARS_45_MS, YEARS_45_MS + 2) == "+1419120000000 to +1419120000002 ms (45 years)"
    assert between_text(-YEARS_45_MS, 2 - YEARS_45_MS) == "-1419120000000 to -1419119999998 ms (-45 years)"
