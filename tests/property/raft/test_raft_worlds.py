"""Groups under random faults: no seed shows a violation, every fault occurs, and a broken adapter is seen.

``RAFT_SEEDS=5000 pytest tests/property/raft/test_raft_worlds.py`` runs more of them; ``RAFT_SEED=41`` runs that one.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable

import pytest

from cortado.errors import DataLoss, Internal
from cortado.raft.core import Core
from cortado.raft.following import Following
from cortado.raft.group import RaftLog
from cortado.raft.log_window import LogWindow
from cortado.raft.outbox import Outbox
from cortado.raft.replication import Replication
from support.raft_checks import Violation
from support.raft_world import World, small_settings

SEEDS = int(os.environ.get("RAFT_SEEDS", "80"))
CHUNK = 20
OCCURS = [
    "acknowledged",
    "bound",
    "broken links",
    "crashes",
    "crashes after it was applied",
    "crashes after the sync",
    "crashes before the log followed a snapshot",
    "crashes while it was applied",
    "crashes with data behind",
    "cut off",
    "delayed",
    "duplicated",
    "handed over with the log ahead",
    "hung data",
    "hung disks",
    "leaders",
    "learners",
    "lost",
    "may not lead",
    "one-way partitions",
    "partitions",
    "pauses",
    "power losses",
    "promotions",
    "promotions refused",
    "reads",
    "removals",
    "removals refused",
    "snapshots",
    "snapshots broken off",
    "snapshots that the log followed at a start",
    "snapshots that the log is ahead of",
    "snapshots with a suffix",
    "strangers refused",
    "transfers",
    "transfers refused",
    "unknown outcomes",
]
COUNTS: Counter[str] = Counter()


def live(seed: int) -> World:
    """Run six seconds of weather, then calm."""
    lease = seed % 4 == 3
    world = World(
        seed,
        voters=(3, 5, 3, 2)[seed % 4] if seed % 7 else 1,
        settings=small_settings(lease=lease),
        drift=0.004 if lease else 0.0,
    )
    world.run(6_000)
    world.calm()
    return world


# make test-quick runs the first of them; together they take some seconds.
CHUNKS = [pytest.param(first, marks=[pytest.mark.slow] if first else []) for first in range(0, SEEDS, CHUNK)]


@pytest.mark.parametrize("first", CHUNKS)
def test_no_weather_breaks_a_group(first: int) -> None:
    only = os.environ.get("RAFT_SEED")
    for seed in range(first, first + CHUNK) if only is None else (int(only),):
        COUNTS.update(live(seed).counts)


@pytest.mark.slow
def test_every_fault_and_rare_path_has_occurred() -> None:
    if "RAFT_SEED" in os.environ or not COUNTS:
        pytest.skip("it counts over all seeds")
    never = [name for name in OCCURS if not COUNTS[name]]
    assert not never, f"{never} never occurred in {SEEDS} seeds: {dict(COUNTS)}"


def _untrimmed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Following,
        "_take",
        lambda self, sender, prev, records, commit_index: self._core.engine.receive_entries(
            sender, prev, records, commit_index
        ),
    )


def _at_once(patch: pytest.MonkeyPatch) -> None:
    original = Outbox.put
    patch.setattr(Outbox, "put", lambda self, to, message, sent_ms, needs=0: original(self, to, message, sent_ms))


def _uncounted_disk(patch: pytest.MonkeyPatch) -> None:
    def count(self, progress) -> None:
        progress.counted_index = progress.match_index
        self._core.engine.acknowledge(progress.node_id, progress.counted_index)

    patch.setattr(Replication, "_count", count)
    patch.setattr(Core, "durable_commit_index", property(lambda self: self.journal.commit_index))


def _applies_before_its_log_files(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Core, "appliable_index", property(lambda self: self.journal.commit_index))


def _applies_all_that_is_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Core, "appliable_index", property(lambda self: self.journal.durable_index))


def _compacts_what_is_not_applied(patch: pytest.MonkeyPatch) -> None:
    def compact(self, index: int) -> None:
        self._core.journal.drop_to(min(self._core.durable_commit_index, self._core.journal.durable_index))

    patch.setattr(LogWindow, "compact", compact)


def _deaf_to_terms(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RaftLog, "_is_of_our_term", lambda self, sender, message, kind: message.term >= self.term)


def _reads_too_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Core, "has_applied_own_term", property(lambda self: True))


def _never_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replication, "_resend", lambda self: None)


@pytest.mark.parametrize(
    "without",
    [
        _untrimmed,
        _at_once,
        _uncounted_disk,
        _applies_before_its_log_files,
        _applies_all_that_is_durable,
        _compacts_what_is_not_applied,
        _deaf_to_terms,
        _reads_too_early,
        _never_again,
    ],
)
def test_seeds_catch_an_adapter_without(
    without: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch)
    logging.disable(logging.CRITICAL)
    try:
        for seed in range(300):
            try:
                live(seed)
            except (Violation, DataLoss, Internal, AssertionError):
                return
    finally:
        logging.disable(logging.NOTSET)
    pytest.fail("300 seeds saw nothing")
