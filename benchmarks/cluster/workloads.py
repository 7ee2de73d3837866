"""The workloads of both systems: keys, sizes, and the loads that are measured, each with its aim.

``etcd_load/main.go`` asks etcd for the same; it is given the sizes (:func:`sizes`) and has the keys' formats itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

VALUE_BYTES: Final = 200
KEYS: Final = 1_000_000
"""Puts and batches draw one of this many keys."""
STORED: Final = 10_000
"""Keys that gets and ranges find, of each kind: written once, and overwritten."""
OVERWRITES: Final = 10
BATCH_PUTS: Final = 100
RANGE_KEYS: Final = 1_000
HOT_KEYS: Final = 10
"""A hot transaction draws each key, with a hundredth's chance, from these."""
NAMESPACE: Final = "bench"

PUT_KEY: Final = b"put-%08d"
BATCH_KEY: Final = b"batch-%08d-%04d"
"""Neighbours, as the lines of one order are."""
STORED_KEY: Final = b"stored-%08d"
OVERWRITTEN_KEY: Final = b"overwritten-%08d"
FAILOVER_KEY: Final = b"failover-%d-%d"

WARM_CALLS: Final = 20
"""Calls of each caller, before it is ready."""
WARM_MS: Final = 200
"""Warm-up of each round, before it counts."""

BY_H2LOAD: Final = "unary"
"""The prefix of the names of h2load's workloads."""


@dataclass(frozen=True, slots=True)
class Load:
    """A workload and how many callers ask for it at once. A call counts for ``rows``.

    ``aim`` is the least share of etcd's rate that the project wants, 0 without an aim.
    """

    workload: str
    title: str
    callers: int
    rows: int = 1
    aim: float = 0.0


LOADS: Final = (
    Load("put", "put", 1, aim=1 / 1.5),
    Load("put", "put", 64, aim=1.5),
    Load("get", "linearizable get", 1),
    Load("get", "linearizable get", 64, aim=1.5),
    Load("batch", "batch of 100 puts", 1, BATCH_PUTS),
    Load("batch", "batch of 100 puts", 64, BATCH_PUTS, aim=3.0),
    Load("range", "range of 1,000 keys", 1, RANGE_KEYS),
    Load("range", "range of 1,000 keys", 16, RANGE_KEYS, aim=1.5),
    Load("range_overwritten", "range of 1,000 keys with ten old versions", 16, RANGE_KEYS),
    Load("unary_put", "put, a call of its own by h2load", 64, aim=0.5),
    Load("unary_get", "linearizable get, a call of its own by h2load", 64, aim=0.5),
)

TRANSACTIONS: Final = (
    *(
        Load(workload, title, callers, aim=1.0 if callers >= 16 else 0.0)
        for workload, title in (
            ("txn_1", "transaction of one read and one write"),
            ("txn_1_hot", "transaction of one read and one write, 1% hot"),
            ("txn_10", "transaction of ten reads and ten writes"),
            ("txn_10_hot", "transaction of ten reads and ten writes, 1% hot"),
        )
        for callers in (1, 16, 64)
    ),
    Load("txn_row", "transaction of one read and one write, all of one row", 64),
)
"""Measured if named: a transaction that meets another one is begun again, and counts once."""


def sizes() -> dict[str, int]:
    """Return the sizes for the program that asks etcd, by the names of its flags."""
    return {
        "keys": KEYS,
        "stored": STORED,
        "overwrites": OVERWRITES,
        "value-bytes": VALUE_BYTES,
        "batch-puts": BATCH_PUTS,
        "range-keys": RANGE_KEYS,
        "hot-keys": HOT_KEYS,
        "warm-calls": WARM_CALLS,
        "warm-ms": WARM_MS,
    }
