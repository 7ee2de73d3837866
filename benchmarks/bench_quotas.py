"""The extra cost of a call for quotas, in processor time: find its principal, check for room, count its size.

A call is counted when it begins, and its reply behind that. Without quotas it is a look at an empty dictionary. This
measures a whole look, the call of the function included.

    python -m benchmarks.bench_quotas
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from typing import Final

from rich.console import Console

from benchmarks.report import Measurement, show
from cortado.proto.v1 import kv_pb2
from cortado.store.quotas.meters import Meters
from cortado.store.quotas.quota import BYTES_PER_SECOND_MAX, CALLS_PER_SECOND_MAX, Quota, Target
from cortado.store.server.permissions import RULES

TITLE: Final = "Quotas"
CALLS: Final = 100_000
REPEATS: Final = 9
AIM_WITHOUT: Final = 1e9 / 300
"""Calls a second: 0.3 microseconds each."""
AIM_WITH: Final = 1e6 / 2
QUOTAS: Final = 1_000


def settings() -> str:
    """Return one line for the table's head: data and method."""
    return f"KeyValue.Put of a principal; the best of {REPEATS} runs of {CALLS:,} calls"


def run() -> list[Measurement]:
    """Measure everything; takes some seconds."""
    request = kv_pb2.KvPutRequest(namespace="n7", key=b"k", value=b"v")
    demands = RULES["KeyValue/Put"].of(request)
    meters = Meters(lambda: time.monotonic_ns() / 1_000_000)

    def call() -> None:
        if meters.by_target:
            counted = meters.of("app", demands)
            if counted:
                meters.begin(counted, request.ByteSize)
                meters.take_bytes(counted, 40)

    def rate_with(*targets: str) -> float:
        limits = CALLS_PER_SECOND_MAX, BYTES_PER_SECOND_MAX
        others = {Target(f"namespace:other{number}") for number in range(QUOTAS - len(targets))}
        meters.use({each: Quota(each, *limits) for each in {*map(Target, targets), *others}})
        return _rate(call)

    return [
        Measurement("no quotas", _rate(call), "calls", aim=AIM_WITHOUT),
        Measurement(f"{QUOTAS:,} quotas, none of this call", rate_with(), "calls", aim=AIM_WITH),
        Measurement("calls and bytes of its namespace", rate_with("namespace:n7"), "calls", aim=AIM_WITH),
        Measurement("and of its principal", rate_with("namespace:n7", "principal:app"), "calls"),
    ]


def _rate(call: Callable[[], object]) -> float:
    best_s = min(timeit.repeat(call, timer=time.thread_time, number=CALLS, repeat=REPEATS))
    return CALLS / best_s


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console())
