"""Histories of transactions that read lists and append to them, judged by their reads.

A list shows the order of its tokens, so the reads tell which transaction came before which
(Kingsbury and Alvaro, *Elle: Inferring Isolation Anomalies from Experimental Observations*, 2020)::

    ww   one appended the token right before another's
    wr   one appended the last token that another read
    rw   one read a list before another appended the token that follows

No order of transactions explains a cycle of these. Which cycles are forbidden depends on the isolation. An ``rw`` edge
out of a snapshot transaction that wrote is *weak*: it leads to a commit after the one's start, and perhaps before its
own. Every other edge leads to a later commit; and ``ww`` and ``wr`` edges from a commit before the other's start. So a
cycle is forbidden if it has no weak edge, or a single one that it comes back to by ``ww`` or ``wr``: ``G0`` (``ww``
alone), ``G1c`` (``ww`` and ``wr``), ``G-single`` (one ``rw``) and, if the readers are serializable, ``G2``.

Each problem is a sentence; a sound history has none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Literal, TypeAlias

Tokens: TypeAlias = tuple[bytes, ...]
Outcome: TypeAlias = Literal["committed", "aborted", "unknown"]
Kind: TypeAlias = Literal["ww", "wr", "rw"]


@dataclass(slots=True)
class Transaction:
    """The operations of one transaction, in its order: ``(key, tokens that were read, None)`` and
    ``(key, (), token that was appended)``."""

    name: str
    is_serializable: bool = False
    outcome: Outcome = "unknown"
    steps: list[tuple[bytes, Tokens, bytes | None]] = field(default_factory=list)

    def reads(self) -> Iterator[tuple[bytes, Tokens]]:
        return ((key, tokens) for key, tokens, token in self.steps if token is None)

    def appends(self) -> Iterator[tuple[bytes, bytes]]:
        return ((key, token) for key, _, token in self.steps if token is not None)

    def __str__(self) -> str:
        steps = [f"{key!r}={tokens}" if token is None else f"{key!r}+{token!r}" for key, tokens, token in self.steps]
        return f"{self.name} ({self.outcome}{', serializable' if self.is_serializable else ''}): {', '.join(steps)}"


@dataclass(frozen=True, slots=True)
class Edge:
    """``to`` cannot be before the transaction that it leads from. ``is_weak``: snapshot isolation allows it."""

    to: str
    kind: Kind
    is_weak: bool = False


def problems(transactions: Sequence[Transaction], final: Mapping[bytes, Tokens]) -> list[str]:
    """Return the problems of a history. ``final`` is each list in the end."""
    writers = {token: txn for txn in transactions for _, token in txn.appends()}
    for txn in transactions:
        # Its effect is known in the end: all its tokens are there, or none is.
        if txn.outcome == "unknown":
            found = [token in final.get(key, ()) for key, token in txn.appends()]
            txn.outcome = "committed" if any(found) else "aborted"
    found = [*_lists(transactions, final, writers), *_reads(transactions, final, writers)]
    return found or _cycles(transactions, final, writers)


def _lists(
    transactions: Sequence[Transaction], final: Mapping[bytes, Tokens], writers: Mapping[bytes, Transaction]
) -> Iterator[str]:
    for key, tokens in final.items():
        if len(set(tokens)) < len(tokens):
            yield f"a token was appended again in {key!r}: {tokens}"
        for token in tokens:
            if token not in writers or writers[token].outcome == "aborted":
                yield f"aborted, and yet it happened: {token!r} is in {key!r}, of {writers.get(token)}"
    for txn in transactions:
        for key, token in txn.appends():
            if txn.outcome == "committed" and token not in final.get(key, ()):
                yield f"lost: {token!r} is not in {key!r}, of {txn}"


def _reads(
    transactions: Sequence[Transaction], final: Mapping[bytes, Tokens], writers: Mapping[bytes, Transaction]
) -> Iterator[str]:
    for txn in transactions:
        own: dict[bytes, list[bytes]] = {}
        for key, tokens, token in txn.steps:
            if token is not None:
                own.setdefault(key, []).append(token)
                continue
            mine = tuple(own.get(key, ()))
            others = tokens[: len(tokens) - len(mine)]
            if tokens[len(others) :] != mine:
                yield f"it did not read what it wrote, {mine} in {key!r}: {txn}"
            elif others != final.get(key, ())[: len(others)]:
                yield f"dirty read: {others} of {key!r} never was, it is {final.get(key)} in the end: {txn}"
            elif others and _goes_on(writers[others[-1]], key, others[-1]):
                yield f"intermediate read: {others[-1]!r} of {key!r} was not the last of its transaction: {txn}"


def _goes_on(writer: Transaction, key: bytes, token: bytes) -> bool:
    return [each for of, each in writer.appends() if of == key][-1] != token


# --- cycles --------------------------------------------------------------------------------------------------------


def _cycles(
    transactions: Sequence[Transaction], final: Mapping[bytes, Tokens], writers: Mapping[bytes, Transaction]
) -> list[str]:
    graph = _edges([txn for txn in transactions if txn.outcome == "committed"], final, writers)
    named = {txn.name: txn for txn in transactions}
    try:
        sorter = TopologicalSorter(
            {name: {each.to for each in edges if not each.is_weak} for name, edges in graph.items()}
        )
        place = {name: -count for count, name in enumerate(sorter.static_order())}
    except CycleError:
        place = dict.fromkeys(graph, 0)
    for name, edges in graph.items():
        for edge in edges:
            # A way back exists only if the order of the edges that are not weak leads there, too.
            back = _way(graph, edge, name) if place[edge.to] <= place[name] else None
            if back is not None:
                kinds = [edge.kind, *(each.kind for each in back)]
                names = [edge.to, *(each.to for each in back)]
                story = "; ".join(str(named[each]) for each in names)
                return [f"{_name_of(kinds)}: no order explains {name} {' '.join(kinds)}: {story}"]
    return []


def _name_of(kinds: Sequence[Kind]) -> str:
    match kinds.count("rw"), kinds.count("wr"):
        case 0, 0:
            return "G0"
        case 0, _:
            return "G1c"
        case 1, _:
            return "G-single"
    return "G2"


def _edges(
    transactions: Sequence[Transaction], final: Mapping[bytes, Tokens], writers: Mapping[bytes, Transaction]
) -> dict[str, list[Edge]]:
    graph: dict[str, list[Edge]] = {txn.name: [] for txn in transactions}

    def lead(before: Transaction, after: Transaction, kind: Kind, *, is_weak: bool = False) -> None:
        if before is not after:
            graph[before.name].append(Edge(after.name, kind, is_weak))

    for tokens in final.values():
        for before, after in pairwise(tokens):
            lead(writers[before], writers[after], "ww")
    for txn in transactions:
        own = {token for _, token in txn.appends()}
        for key, tokens in txn.reads():
            others = [token for token in tokens if token not in own]
            if others:
                lead(writers[others[-1]], txn, "wr")
            if len(others) < len(final.get(key, ())):
                # A transaction that wrote nothing stands at its beginning, in both isolations.
                is_weak = bool(own) and not txn.is_serializable
                lead(txn, writers[final[key][len(others)]], "rw", is_weak=is_weak)
    return graph


def _way(graph: Mapping[str, Sequence[Edge]], first: Edge, end: str) -> list[Edge] | None:
    """Return the shortest way on from the ``first`` edge that closes a forbidden cycle, or None."""
    ways: dict[str, list[Edge]] = {first.to: []}
    waiting = deque([first.to])
    while waiting:
        name = waiting.popleft()
        for edge in graph[name]:
            if edge.is_weak or edge.to in ways or (edge.to == end and edge.kind == "rw" and first.is_weak):
                continue
            ways[edge.to] = [*ways[name], edge]
            if edge.to == end:
                return ways[end]
            waiting.append(edge.to)
    return None
