"""Verdicts over a whole run: the answers that clients got, against the data that the cluster holds in the end.

No version is ever collected in a run, so the final data is the whole truth: every version of every key with its
timestamp. Against it each answer is checked for good::

    a read at ts returned v            the newest version at or below ts is v: on any replica, whenever it was asked
    a write was acknowledged at ts     there is a version at ts, with its value, and no other write shares ts
    a write was refused                its value is nowhere
    unknown                            its value is there once, or nowhere

Each function returns sentences, one per problem; none if all is well.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TypeAlias

from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.mvcc.versions import decode_version, timestamp_of
from support.linearizability import Call, unexplained
from support.simulation.history import History, ReadCall, WriteCall

Truth: TypeAlias = Mapping[bytes, Sequence[tuple[Timestamp, bytes | None]]]
"""Versions by user key, the oldest first."""


def truth_of(data: Mapping[bytes, bytes], user_key_of: Callable[[bytes], bytes | None]) -> Truth:
    """Return the truth of an engine's data space."""
    truth: dict[bytes, list[tuple[Timestamp, bytes | None]]] = {}
    for engine_key, value in data.items():
        key = user_key_of(engine_key[:-TIMESTAMP_BYTES])
        if key is not None:
            version = decode_version(engine_key, value, engine_key[-TIMESTAMP_BYTES:])
            ts = timestamp_of(engine_key[-TIMESTAMP_BYTES:])
            truth.setdefault(key, []).append((ts, None if version is None else version.payload))
    for versions in truth.values():
        versions.sort(key=lambda item: item[0])
    return truth


def value_at(truth: Truth, key: bytes, ts: Timestamp) -> bytes | None:
    """Return the value that a read of ``key`` at ``ts`` must return."""
    versions = truth.get(key, ())
    place = bisect_right(versions, ts, key=lambda item: item[0])
    return versions[place - 1][1] if place else None


def check_reads(truth: Truth, reads: Iterable[ReadCall]) -> list[str]:
    """Check that every answer agrees with its timestamp, for ever: no commit came below it, and none was lost."""
    problems = []
    for read in reads:
        for key, value in read.values.items():
            actual = value_at(truth, key, read.ts)
            if actual != value:
                problems.append(f"a {read.kind} read on {read.node} at {read.ts} saw {key!r}={value!r}, "
                                f"and it is {actual!r} in the end: {read}")  # fmt: skip
    return problems


def check_writes(truth: Truth, writes: Iterable[WriteCall]) -> list[str]:
    """Check that nothing acknowledged is lost, nothing refused is there, nothing happened twice."""
    problems: list[str] = []
    owners: dict[Timestamp, WriteCall] = {}
    for write in writes:
        if write.outcome == "acknowledged" and write.reply != b"nothing":
            other = owners.setdefault(write.ts, write)
            if other is not write:
                problems.append(f"two writes at {write.ts}: {write} and {other}")
            problems += _check_acknowledged(truth, write)
        if write.kind == "append":
            problems += _check_append(truth, write)
        elif write.value is not None:
            problems += _check_once(truth, write)
    return problems


def _check_acknowledged(truth: Truth, write: WriteCall) -> list[str]:
    problems = []
    for key in write.keys:
        versions = dict(truth.get(key, ()))
        expected = write.reply if write.kind == "append" else write.value
        if write.ts not in versions:
            problems.append(f"lost: acknowledged at {write.ts}, and no version of {key!r} is there: {write}")
        elif versions[write.ts] != expected:
            problems.append(f"changed: {key!r} at {write.ts} is {versions[write.ts]!r}: {write}")
    return problems


def _check_once(truth: Truth, write: WriteCall) -> list[str]:
    """Check that a value that is written once stands in one version, if it happened."""
    problems = []
    found = [[ts for ts, value in truth.get(key, ()) if value == write.value] for key in write.keys]
    if any(len(each) > 1 for each in found):
        problems.append(f"happened twice, at {found}: {write}")
    if len({tuple(each) for each in found}) > 1:
        problems.append(f"happened by halves, at {found}: {write}")
    if write.outcome in ("refused", "did not happen") and any(found):
        problems.append(f"{write.outcome}, and yet it happened, at {found}: {write}")
    if write.kind == "commit":
        times = [(key, own) for key, each in zip(write.keys, found, strict=True) for own in each]
        if any(write.began < ts < own for key, own in times for ts, _ in truth.get(key, ())):
            problems.append(f"others wrote between its beginning and its commit, at {found}: {write}")
    return problems


def _check_append(truth: Truth, write: WriteCall) -> list[str]:
    """Check that a token enters a list once, and is in it at once or never."""
    assert write.value is not None
    entered, before = [], 0
    for ts, tokens in truth.get(write.keys[0], ()):
        count = (tokens or b"").split().count(write.value)
        if count > before:
            entered.append(ts)
        if count > 1:
            return [f"appended {count} times, at {ts}: {write}"]
        before = count
    if len(entered) > 1:
        return [f"appended again, at {entered}: {write}"]
    if entered and write.outcome in ("refused", "did not happen"):
        return [f"{write.outcome}, and yet it was appended, at {entered}: {write}"]
    return []


def check_lists(truth: Truth, keys: Iterable[bytes], appended: Callable[[bytes, bytes], bytes]) -> list[str]:
    """Check that each version of a list is the one before with one token more: no writer wrote over tokens that it had
    not seen."""
    problems = []
    for key in keys:
        before = b""
        for ts, tokens in truth.get(key, ()):
            if tokens is None or not tokens or tokens != appended(before, tokens.split()[-1]):
                problems.append(f"list {key!r} at {ts} is {tokens!r}, after {before!r}")
            before = tokens or b""
    return problems


def check_linearizable(truth: Truth, history: History, keys: Sequence[bytes]) -> list[str]:
    """Check that the calls of clients on each key have an order in true time. Independent of timestamps, but for one
    question: whether an unknown write happened at all."""
    calls: list[tuple[bytes, Call]] = []
    for write in history.writes:
        for key in write.keys:
            if key in keys:
                call = _call_of(truth, write, key)
                if call is not None:
                    calls.append((key, call))
    for read in history.reads:
        if read.kind == "linearizable":
            calls += [
                (key, Call("get", read.start_ms, read.end_ms, value))
                for key, value in read.values.items()
                if key in keys
            ]
    return [f"no order explains {key!r}: {of}" for key, of in unexplained(calls)]


def _call_of(truth: Truth, write: WriteCall, key: bytes) -> Call | None:
    is_known = write.outcome == "acknowledged"
    end_ms = write.end_ms if is_known else inf
    if write.outcome == "refused" and write.kind == "cas":
        return Call("cas", write.start_ms, write.end_ms, write.value, write.expected, held=False)
    if write.outcome in ("refused", "did not happen"):
        return None
    if not is_known and write.value is not None and all(value != write.value for _, value in truth.get(key, ())):
        return None
    if write.kind == "cas":
        return Call("cas", write.start_ms, end_ms, write.value, write.expected)
    return Call("put", write.start_ms, end_ms, write.value)
