"""``make sim``: run seeds, print their findings and the command that replays each.

::

    make sim SEED=41                      one seed, with its trace
    make sim SEEDS=1000 START=5000 JOBS=2 many; the trace of those that fail
    make sim SEEDS=100 GROUPS=2           two groups divide the keys, on the same hosts
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain

from support.simulation.groups import ONE_GROUP, TWO_GROUPS
from support.simulation.messengers import MODES
from support.simulation.run import Outcome, simulate

GROUPS = {len(each): each for each in (ONE_GROUP, TWO_GROUPS)}
_TRACE_LINES = 60
_CHUNK = 20


def main() -> int:
    arguments = _arguments()
    # The nodes' logs are part of no verdict, and writing them costs more than the run.
    logging.disable(logging.CRITICAL)
    if arguments.seed is not None:
        outcome = simulate(arguments.seed, runs=arguments.runs, groups=GROUPS[arguments.groups])
        _say(describe(outcome, trace_lines=len(outcome.trace)))
        return 1 if outcome.violations else 0
    return _many(range(arguments.start, arguments.start + arguments.seeds), arguments)


def _many(seeds: range, arguments: argparse.Namespace) -> int:
    began_s = time.monotonic()
    counts: Counter[str] = Counter()
    failed: list[Outcome] = []
    done = 0
    chunks = [list(seeds[at : at + _CHUNK]) for at in range(0, len(seeds), _CHUNK)]
    for outcome in chain.from_iterable(_map(chunks, arguments)):
        done += 1
        counts += outcome.counts
        if outcome.violations:
            failed.append(outcome)
            _say(describe(outcome))
        if done % 100 == 0:
            _say(f"{done} seeds, {len(failed)} failed, {time.monotonic() - began_s:.0f} s\n")
    _say(f"\n{done} seeds in {time.monotonic() - began_s:.0f} s, {len(failed)} failed")
    if failed:
        _say(": " + ", ".join(str(each.seed) for each in failed))
    _say("\n" + table(counts))
    return 1 if failed else 0


def _map(chunks: list[list[int]], arguments: argparse.Namespace) -> map[list[Outcome]]:
    run = partial(run_chunk, runs=arguments.runs, groups=arguments.groups)
    if arguments.jobs == 1:
        return map(run, chunks)
    pool = ProcessPoolExecutor(arguments.jobs)
    return pool.map(run, chunks)  # type: ignore[return-value]


def run_chunk(seeds: list[int], runs: str | None = None, groups: int = 1) -> list[Outcome]:
    """Run several; traces are kept of those that fail."""
    logging.disable(logging.CRITICAL)
    outcomes = []
    for seed in seeds:
        outcome = simulate(seed, runs=runs, groups=GROUPS[groups])
        if not outcome.violations:
            outcome.trace.clear()
        outcomes.append(outcome)
    return outcomes


def describe(outcome: Outcome, trace_lines: int = _TRACE_LINES) -> str:
    """Return the findings of a seed, its last lines of trace, and the command that replays it."""
    lines = [f"seed {outcome.seed}: {outcome.calls} calls in {outcome.virtual_ms / 1000:.1f} s of its own time"]
    lines += outcome.trace[-trace_lines:]
    lines += [f"  violation: {each[:2_000]}" for each in outcome.violations[:5]]
    if outcome.violations:
        groups = f" GROUPS={outcome.groups}" if outcome.groups > 1 else ""
        lines.append(f"  replay it: make sim SEED={outcome.seed}{groups}")
    return "\n".join(lines) + "\n"


def table(counts: Counter[str]) -> str:
    width = max((len(name) for name in counts), default=0)
    return "".join(f"  {name:<{width}}  {count:>9,}\n" for name, count in sorted(counts.items()))


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make sim", description="Simulate clusters, each from one seed.")
    parser.add_argument("--seed", type=int, help="run this one, and show its trace")
    parser.add_argument("--seeds", type=int, default=200, help="how many to run")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--groups", type=int, choices=GROUPS, default=1, help="how many divide the keys")
    parser.add_argument("--runs", choices=MODES, help="how messages of many calls are answered, not as each seed says")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
