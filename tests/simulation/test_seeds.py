"""A few hundred clusters, each grown, hurt and judged from one seed. ``make sim`` runs more, and replays one.

The seeds count what they did. A fault or a rare path that never occurred in all of them was not tested, and fails here.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.simulation.__main__ import describe
from support.simulation.coverage import MUST_OCCUR
from support.simulation.run import simulate

SEEDS: Final = int(os.environ.get("SIM_SEEDS", "400"))
CHUNK: Final = 10

_COUNTS: Final[Counter[str]] = Counter()
_CHUNKS_DONE: Final[set[int]] = set()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What the nodes log is part of no verdict, and writing it costs more than the run."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("start", range(0, SEEDS, CHUNK))
def test_whatever_goes_wrong_nothing_acknowledged_is_lost_and_no_answer_is_false(start: int) -> None:
    failed = []
    for seed in range(start, start + CHUNK):
        outcome = simulate(seed)
        _COUNTS.update(outcome.counts)
        if outcome.violations:
            failed.append(describe(outcome))
    _CHUNKS_DONE.add(start)
    assert not failed, "\n".join(failed)


def test_every_fault_and_every_rare_path_occurred() -> None:
    if len(_CHUNKS_DONE) < len(range(0, SEEDS, CHUNK)):
        pytest.skip("this counts what all the seeds of this file did")
    assert sorted(name for name in MUST_OCCUR if _COUNTS[name] == 0) == []


def test_a_seed_is_the_same_run_whatever_the_hash_seed() -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    program = (
        "import logging; logging.disable(50); from support.simulation.run import simulate; "
        "print([simulate(seed).digest for seed in (3, 4, 5)])"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert digests == {f"{[simulate(seed).digest for seed in (3, 4, 5)]}\n"}
