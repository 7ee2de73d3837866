"""Histograms count the values between their bounds, and quantiles of them are as near as a bucket."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.store.observe.measures import SECONDS, Histogram, quantile


@pytest.mark.parametrize(("value", "place"), [(0.0, 0), (1.0, 0), (1.001, 1), (2.0, 1), (5.0, 2), (5.1, 3), (1e9, 3)])
def test_a_value_on_a_bound_counts_below_it_as_prometheus_wants(value: float, place: int) -> None:
    histogram = Histogram((1.0, 2.0, 5.0))
    histogram.observe(value)
    assert histogram.counts == [int(place == each) for each in range(4)]
    assert (histogram.count, histogram.sum) == (1, value)


@given(st.lists(st.floats(1e-6, 40), min_size=1), st.floats(0.01, 1))
def test_a_quantile_lies_in_the_bucket_of_the_value_that_it_stands_for(values: list[float], q: float) -> None:
    histogram = Histogram(SECONDS)
    for value in values:
        histogram.observe(value)
    found = quantile(histogram.bounds, histogram.counts, q)
    assert found is not None
    wanted = sorted(values)[max(ceil(q * len(values)) - 1, 0)]
    bounds = (0.0, *histogram.bounds)
    assert max((each for each in bounds if each < wanted), default=0.0) <= found
    assert found <= min((each for each in bounds if each >= wanted), default=bounds[-1])


def test_of_nothing_there_is_no_quantile() -> None:
    assert quantile(SECONDS, [0] * (len(SECONDS) + 1), 0.99) is None


def test_beyond_the_last_bound_nothing_is_known_but_that_bound() -> None:
    assert quantile((1.0, 2.0), (0, 0, 7), 0.5) == 2.0


def test_within_a_bucket_values_are_taken_to_be_spread_evenly() -> None:
    assert quantile((1.0, 2.0, 4.0), (0, 0, 10, 0), 0.5) == 3.0
