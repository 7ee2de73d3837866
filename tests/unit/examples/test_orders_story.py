"""The pipeline's story ends well, its judge fails on every kind of difference, and both know the same orders."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from examples.nycflights.checking import Difference
from examples.orders.checking import Sums, check_hours
from examples.orders.tables import BEGAN, HOUR, ORDERS_AN_HOUR, SHOPS, orders_of
from support.needs import need_java


def sums(hours: int) -> Sums:
    """Return the sums by hand, order by order."""
    found = Sums()
    for number in range(hours):
        for order in orders_of(number):
            count, cents = found.get((BEGAN + number * HOUR, order["shop"]), (0, 0))
            found[BEGAN + number * HOUR, order["shop"]] = (count + 1, cents + order["cents"])
    return found


def test_every_hour_has_orders_of_every_shop_and_no_order_comes_twice() -> None:
    placed = [order for hour in range(30) for order in orders_of(hour)]
    assert [order["number"] for order in placed] == list(range(30 * ORDERS_AN_HOUR))
    assert [order["placed_at"] for order in placed] == sorted({order["placed_at"] for order in placed})
    assert set(sums(30)) == {(BEGAN + hour * HOUR, shop) for hour in range(30) for shop in SHOPS}


def test_the_right_sums_pass() -> None:
    assert check_hours(sums(3), sums(3)) == 3
    assert check_hours({}, {}) == 0


def _first(found: Sums) -> tuple[datetime, str]:
    return next(iter(found))


def test_a_wrong_missing_or_strange_sum_fails() -> None:
    expected = sums(3)
    missing = {each: value for each, value in expected.items() if each != _first(expected)}
    twice = {**expected, _first(expected): tuple(2 * each for each in expected[_first(expected)])}
    strange = {**expected, (BEGAN, "paris"): (1, 100)}
    early = {each: value for each, value in expected.items() if each[0] != BEGAN}
    for wrong in (missing, twice, strange):
        with pytest.raises(Difference):
            check_hours(wrong, expected)  # type: ignore[arg-type]
    with pytest.raises(Difference, match="hours are missing"):
        check_hours(early, early)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.process
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_story_with_its_killed_driver_ends_well() -> None:
    need_java()
    command = [sys.executable, "-m", "examples.orders", "--hours", "8"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], timeout=580)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "Everything agrees." in told.stdout
    assert "the driver is dead" in told.stdout
