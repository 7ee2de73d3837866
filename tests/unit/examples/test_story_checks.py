"""The story's judge fails on every kind of difference; a judge that cannot would prove nothing."""

from __future__ import annotations

import pandas as pd
import pytest

from examples.nycflights import checking
from examples.nycflights.checking import Difference
from examples.nycflights.dataset import TABLES, read_with_pandas

pytestmark = pytest.mark.slow

AIRPORTS = next(table for table in TABLES if table.name == "airports")
WEATHER = next(table for table in TABLES if table.name == "weather")


@pytest.fixture(scope="module")
def expected() -> pd.DataFrame:
    """Return pandas' answer: it reads 336,776 flights for it."""
    return checking.expected_delays()


def _delays(expected: pd.DataFrame) -> list[tuple[str, float, int]]:
    return [(str(name), float(mean), int(count)) for name, mean, count in expected.to_numpy()]


def test_the_right_answer_passes(expected: pd.DataFrame) -> None:
    checking.check_delays(_delays(expected), expected)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda rows: rows[1:],
        lambda rows: [*rows[1:], rows[0]],
        lambda rows: [(rows[0][0], rows[0][1] + 1e-6, rows[0][2]), *rows[1:]],
        lambda rows: [(rows[0][0], rows[0][1], rows[0][2] - 1), *rows[1:]],
        lambda rows: [("Nobody", *rows[0][1:]), *rows[1:]],
    ],
    ids=["missing", "order", "mean", "count", "name"],
)
def test_a_wrong_answer_fails(spoil: object, expected: pd.DataFrame) -> None:
    with pytest.raises(Difference):
        checking.check_delays(spoil(_delays(expected)), expected)  # type: ignore[operator]


def _nulls(frame: pd.DataFrame) -> dict[str, int]:
    return {str(name): int(count) for name, count in frame.isna().sum().items()}


def test_missing_rows_lost_nulls_and_nans_fail() -> None:
    frame = read_with_pandas(AIRPORTS)
    nulls = _nulls(frame)
    checking.check_shape(AIRPORTS, len(frame), nulls, {"lat": 0})
    for rows, found, nans in (
        (len(frame) - 1, nulls, {}),
        (len(frame), {**nulls, "tzone": 0}, {}),
        (len(frame), nulls, {"lat": 1}),
    ):
        with pytest.raises(Difference):
            checking.check_shape(AIRPORTS, rows, found, nans)


def test_one_wrong_cell_fails() -> None:
    frame = read_with_pandas(WEATHER)
    frame["time_hour"] = pd.to_datetime(frame["time_hour"], utc=True).dt.tz_localize(None).astype("datetime64[us]")
    checking.check_content(WEATHER, frame.sample(frac=1, random_state=7))
    frame.loc[4711, "visib"] = 9.5 if frame.loc[4711, "visib"] != 9.5 else 9.0
    with pytest.raises(Difference, match=r"weather\.visib"):
        checking.check_content(WEATHER, frame)


def test_the_real_nulls_are_there() -> None:
    flights = read_with_pandas(next(table for table in TABLES if table.name == "flights"))
    assert len(flights) == 336_776
    assert _nulls(flights)["arr_delay"] == 9_430
    assert _nulls(flights)["tailnum"] == 2_512
