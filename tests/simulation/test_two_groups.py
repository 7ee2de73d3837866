"""Two groups on the same hosts keep apart; without the fences between them, they do not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

import pytest

from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.mvcc.seen import Seen
from cortado.store.replica.collection.pieces import Pieces
from cortado.store.replica.group_range import META_GROUP
from support.simulation.groups import TWO_GROUPS
from support.simulation.run import simulate

pytestmark = [pytest.mark.long, pytest.mark.slow]

SEEDS = range(20_000, 20_040)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def note_what_another_log_writes(patch: pytest.MonkeyPatch) -> None:
    begin = Seen.__init__

    def all_keys(self: Seen, collected: Timestamp = ZERO, _within: object = None) -> None:
        begin(self, collected)

    patch.setattr(Seen, "__init__", all_keys)


def collect_everywhere(patch: pytest.MonkeyPatch) -> None:
    begin = Pieces.__init__

    def all_keys(self: Pieces, _within: tuple[bytes, bytes], table_ids: Iterable[int]) -> None:
        begin(self, META_GROUP.data, table_ids)

    patch.setattr(Pieces, "__init__", all_keys)


FENCES = {
    "a follower compares keys of its own group alone": (note_what_another_log_writes, "worked out rightly"),
    "a leader collects garbage of its own group alone": (collect_everywhere, "states differ"),
}


@pytest.mark.parametrize(("take_away", "says"), FENCES.values(), ids=FENCES)
def test_without_a_fence_a_group_breaks_a_promise(
    take_away: Callable[[pytest.MonkeyPatch], None], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(monkeypatch)
    assert any(says in each for seed in SEEDS for each in simulate(seed, groups=TWO_GROUPS).violations)
