"""A run is not to be told from its calls by themselves: random messages, both ways, to the same bytes.

``RUN_MESSAGES`` says how many (2,000 unless it is set), ``RUN_SEED`` replays one seed.
"""

from __future__ import annotations

import os
import random
import re
from dataclasses import replace
from typing import Final
from unittest.mock import patch

import pytest

from cortado.proto.v1 import calls_pb2
from cortado.store.replica.write.group_commit import GroupCommit
from cortado.store.server import service
from support.nodes import run
from support.run_twins import LIMITS, METHOD, Asker, Served, sizes_of_runs

MESSAGES: Final = int(os.environ.get("RUN_MESSAGES", "2000"))
MESSAGES_OF_A_SEED: Final = 40
ONLY: Final = os.environ.get("RUN_SEED")
SEEDS: Final = [int(ONLY)] if ONLY else range(MESSAGES // MESSAGES_OF_A_SEED)


def test_random_messages_have_the_same_entries_replies_state_and_measures_both_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = sizes_of_runs(monkeypatch)
    for seed in SEEDS:
        run(lambda seed=seed: both_ways(seed))  # type: ignore[misc]
    assert sum(sizes) > 2 * MESSAGES_OF_A_SEED * len(SEEDS), "many calls went together"


READ_SINCE: Final = re.compile(rb", which was read, was written at [^,]+, (after [0-9.]+)")


def as_compared(reply: calls_pb2.CallReply) -> calls_pb2.CallReply | tuple[int, bytes]:
    """Return the part that both ways must agree in. If several keys have changed since they were read, a refusal names
    one in memory first; a commit that is evaluated beside the loop finds more or fewer of them there."""
    changed = READ_SINCE.search(reply.status)
    return reply if changed is None else (reply.id, changed[1])


def later(_self: GroupCommit, *_: object, is_wanted: bool) -> bool:
    """Apply what is asked for alone: of several keys that have changed, one in memory is named first."""
    return not is_wanted


@patch.object(GroupCommit, "may_apply_later", later)
@patch.object(service, "SLICE_MS_MAX", 60_000.0)  # A reply that may stop early is not cut by a slow machine.
async def both_ways(seed: int) -> None:
    source = random.Random(f"runs/{seed}")
    asker = Asker(source)
    # Requests are forgotten by the applied state, and its times are left to chance otherwise.
    forgets = source.random() < 0.5
    limits = replace(LIMITS, remember_requests_max=60) if forgets else LIMITS
    twins = [Served(runs=way, limits=limits, has_tables=True) for way in (True, False)]
    for each in twins:
        await each.start()
    try:
        for number in range(MESSAGES_OF_A_SEED):
            calls = asker.message(twins[0].clock.now_ms)
            together, alone = [await each.call(calls) for each in twins]
            for call in calls:
                what = f"RUN_SEED={seed}, message {number}, call {call.id} of {call.method}"
                assert as_compared(together[call.id]) == as_compared(alone[call.id]), what
                if call.method in (METHOD + "Put", "cortado.v1.Transactions/Commit"):
                    asker.answered(together[call.id])
            ahead_ms = source.choice((0, 0, 1, 50))
            for each in twins:
                each.clock.now_ms += ahead_ms
            # A read at a time may wait until that is applied, and more with it.
            waits = any(call.method.endswith(("Documents/Get", "MultiGet")) for call in calls)
            if forgets or waits or source.random() < 0.2:
                for each in twins:
                    await each.applied()
        assert twins[0].entries == twins[1].entries, f"RUN_SEED={seed}: entries"
        for each in twins:
            await each.applied()
        assert twins[0].stored() == twins[1].stored(), f"RUN_SEED={seed}: what is stored"
        assert twins[0].measured() == twins[1].measured(), f"RUN_SEED={seed}: measures"
    finally:
        for each in twins:
            await each.stop()
