"""Random writes, random watches on random nodes, slow watchers, crashes, cuts and snapshots: each watcher saw the
committed changes, in order and without gaps, and they add up to the state at its last resolved mark. Each rule for that
is there for a reason: without it, the same runs must find something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.versions import Item
from cortado.store.replica.feed import feed as feed_module
from cortado.store.replica.feed import watch as watch_module
from cortado.store.replica.feed.feed import ChangeFeed, WatchQueue
from cortado.store.replica.feed.recent import RecentChanges
from cortado.store.replica.feed.watch import Batch, Watch
from support.watch_scene import run_scene, with_tiny_slices

SEEDS_MAX: Final = 10
Switch = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def _tiny_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    with_tiny_slices(monkeypatch)


@pytest.mark.parametrize("seed", range(10))
def test_watchers_see_what_was_committed_in_order_and_without_gaps(seed: int) -> None:
    assert run_scene(seed) == []


# --- the rules for it, switched off ----------------------------------------------------------------------------


def join_without_history(patch: pytest.MonkeyPatch) -> None:
    attach = ChangeFeed.attach

    def without(self: ChangeFeed, queue: WatchQueue, after: Timestamp) -> Timestamp:
        attach(self, queue, after)
        return after

    patch.setattr(ChangeFeed, "attach", without)


def drop_what_overflows(patch: pytest.MonkeyPatch) -> None:
    give_up = ChangeFeed._give_up

    def and_go_on(self: ChangeFeed, queue: WatchQueue) -> None:
        give_up(self, queue)
        queue.is_attached = True

    patch.setattr(ChangeFeed, "_give_up", and_go_on)


def resolve_before_it_is_sent(patch: pytest.MonkeyPatch) -> None:
    make = Watch._batch

    def early(self: Watch, items: list[Item], resolved: Timestamp | None) -> Batch:
        return make(self, items, self._feed.position)

    patch.setattr(Watch, "_batch", early)


def take_no_notice_of_snapshots(patch: pytest.MonkeyPatch) -> None:
    def go_on(self: ChangeFeed, position: Timestamp) -> None:
        self.position = position

    patch.setattr(ChangeFeed, "replaced", go_on)


def believe_that_memory_reaches_back(patch: pytest.MonkeyPatch) -> None:
    since = RecentChanges.since

    def all_of_it(self: RecentChanges, after: Timestamp, start: bytes, end: bytes) -> Any:
        return since(self, max(after, self.floor), start, end)

    patch.setattr(RecentChanges, "since", all_of_it)


def hand_out_in_the_order_of_keys(patch: pytest.MonkeyPatch) -> None:
    def unordered(items: Sequence[Item]) -> list[Item]:
        return list(items)

    patch.setattr(feed_module, "in_order", unordered)


def send_again_what_was_sent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(watch_module, "place_of", lambda engine_key: b"\xff")


@pytest.mark.parametrize(
    "switch_off",
    [
        join_without_history,
        drop_what_overflows,
        resolve_before_it_is_sent,
        take_no_notice_of_snapshots,
        believe_that_memory_reaches_back,
        hand_out_in_the_order_of_keys,
        send_again_what_was_sent,
    ],
)
def test_what_keeps_watches_whole_is_missed_when_it_is_switched_off(
    switch_off: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_off(monkeypatch)
    assert any(run_scene(seed) for seed in range(SEEDS_MAX))
