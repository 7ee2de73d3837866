"""Probes side by side, each bounded in time: one that hangs, on a dead disk say, is left behind and told of."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Facts: TypeAlias = dict[str, Any]


def run_probes(probes: Mapping[str, Callable[[], Any]], timeout_s: float) -> Facts:
    """Return each probe's facts, by its name; ``{"problem": why}`` for one that failed or took too long.

    All run at once, so this takes about ``timeout_s`` at most.
    """
    found: Facts = {}
    threads = []
    for name, probe in probes.items():
        # A daemon: a process that waits for a file system that is gone could not end.
        thread = threading.Thread(target=_run, args=(name, probe, found), name=f"doctor-{name}", daemon=True)
        thread.start()
        threads.append(thread)
    deadline_s = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, deadline_s - time.monotonic()))
    late = {"problem": f"no answer within {timeout_s:g} s"}
    return {name: found.get(name, late) for name in probes}


def _run(name: str, probe: Callable[[], Any], found: Facts) -> None:
    try:
        found[name] = probe()
    except Exception as error:
        # Any error is one line of a report, and not its end.
        found[name] = {"problem": describe(error)}


def describe(error: BaseException) -> str:
    """Return an error in a line."""
    text = str(error) or type(error).__name__
    return " ".join(text.split()) if not isinstance(error, OSError) else (error.strerror or text)


def problem_of(facts: Any) -> str:
    """Return why a probe failed; empty if it did not."""
    return str(facts["problem"]) if isinstance(facts, dict) and set(facts) == {"problem"} else ""
