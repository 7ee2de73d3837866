"""The bucket against a dumb twin that counts tokens in fractions, step by step."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cortado.store.quotas.bucket import Bucket

STEPS = st.lists(
    st.tuples(st.integers(0, 10_000), st.one_of(st.none(), st.integers(0, 1 << 26))), min_size=1, max_size=60
)
"""Milliseconds that pass, and the tokens taken then; None: one token, if there is one."""


class Twin:
    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.tokens = Fraction(rate)

    def pass_ms(self, ms: int) -> None:
        self.tokens = min(Fraction(self.rate), self.tokens + Fraction(ms * self.rate, 1_000))

    @property
    def wait_ms(self) -> Fraction:
        return max(Fraction(0), (1 - self.tokens) * 1_000 / self.rate)


@given(rate=st.integers(1, 1 << 40), steps=STEPS)
def test_a_bucket_waits_as_long_as_its_twin(rate: int, steps: list[tuple[int, int | None]]) -> None:
    bucket, twin, now_ms = Bucket(rate), Twin(rate), 5_000
    for passed_ms, count in steps:
        now_ms += passed_ms
        twin.pass_ms(passed_ms)
        wait_ms = bucket.wait_ms(now_ms)
        assert abs(wait_ms - twin.wait_ms) <= 2e-3 + 1e-9 * twin.wait_ms
        taken = count if count is not None else 0 if wait_ms else 1
        bucket.take(taken, now_ms)
        twin.tokens -= taken


@given(rate=st.integers(1, 1_000), seconds=st.integers(1, 20))
def test_no_second_has_more_than_twice_the_rate_and_no_time_more_than_a_second_beyond_it(
    rate: int, seconds: int
) -> None:
    bucket, let_in = Bucket(rate), 0
    for tick in range(seconds * 50 + 1):
        now_ms = tick * 20
        while not bucket.wait_ms(now_ms):
            bucket.take(1, now_ms)
            let_in += 1
    assert rate * seconds <= let_in <= rate * (seconds + 1)


@given(rate=st.integers(1, 1 << 40), owed=st.integers(0, 1 << 40))
def test_who_waits_as_long_as_it_is_told_is_let_in(rate: int, owed: int) -> None:
    bucket, now_ms = Bucket(rate), 1_000_000.0
    bucket.take(rate + owed, now_ms)
    assert bucket.wait_ms(now_ms) > 0 or rate > 1 << 19
    assert bucket.wait_ms(now_ms + bucket.wait_ms(now_ms)) == 0
