"""The judge: at one timestamp, each hour that the pipeline has written is the sum of its orders."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cortado import Client
from examples.nycflights.checking import Difference
from examples.orders.tables import BEGAN, HOUR, ORDERS, REVENUE

Sums = dict[tuple[datetime, str], tuple[int, int]]
"""How many orders, and of how many cents, by hour and shop."""

_SUMS: Final = "count(*) as orders, sum(cents) as cents"


def written_sums(client: Client) -> Sums:
    """Return the sums that the pipeline has written."""
    rows = [row.value for row in client.table(REVENUE).scan()]
    return {(row["hour"], row["shop"]): (row["orders"], row["cents"]) for row in rows}


def sums_of(client: Client, hours: int) -> Sums:
    """Return the sums of the orders of the first ``hours`` hours: the node works it out, hour by hour."""
    orders, found = client.table(ORDERS), Sums()
    for hour in (BEGAN + number * HOUR for number in range(hours)):
        for row in orders.aggregate(_SUMS, (hour,), (hour + HOUR,), group_by="shop"):
            found[hour, row["shop"]] = (row["orders"], row["cents"])
    return found


def check_hours(written: Sums, expected: Sums) -> int:
    """Return how many hours are written, the first ones, with all of their shops. Raises Difference."""
    hours = sorted({hour for hour, _ in written})
    if hours != [BEGAN + number * HOUR for number in range(len(hours))]:
        raise Difference(f"hours are missing among {', '.join(str(hour) for hour in hours)}")
    for (hour, shop), sums in expected.items():
        if written.get((hour, shop)) != sums:
            found = written.get((hour, shop))
            raise Difference(f"{hour} {shop}: the pipeline has (orders, cents) {found}, its orders are {sums}")
    if len(written) != len(expected):
        raise Difference(f"{len(written)} sums are written, the orders have {len(expected)}")
    return len(hours)


def check_at_one_time(client: Client) -> int:
    """Ask both tables at one timestamp, and say how many hours are written there. Raises Difference."""
    then = client.at(client.now())
    written = written_sums(then)
    return check_hours(written, sums_of(then, len({hour for hour, _ in written})))
