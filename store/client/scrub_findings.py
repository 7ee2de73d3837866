"""Findings of a scrub, and the replicas at fault. Pure: from the replicas' replies to the faults.

The majority decides which replica is wrong, as far as there is one: two of three replicas agree. If the numbers say
nothing, the ones with a wrong checksum in the same range are wrong. Without any, all that differ are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TypeAlias

from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.keys.decoded import KeyNames, decode_key

Items: TypeAlias = Mapping[bytes, pb.StoredItem]
"""Stored keys of one replica's range, and the items behind them."""

MISSING, EXTRA, DIFFERENT = "MISSING", "EXTRA", "DIFFERENT"
DATA = "data"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. ``replica`` is a node id, or several with commas if the one at fault can't be told.

    ``kind``: CHECKSUM, ORDER, MALFORMED or SEQUENCE (the replica's own); MISSING, EXTRA or DIFFERENT (by comparison);
    for a table check its kinds, such as MISSING_ENTRY. ``space`` is data, requests, log, meta, or "table" and its name.
    ``key`` is as it is stored, empty in a table's; ``text`` is for people.
    """

    replica: str
    space: str
    kind: str
    key: bytes
    text: str
    message: str


def own_finding(replica: str, space: str, problem: pb.StoredProblem) -> Finding:
    """Return a replica's finding in its own data."""
    return Finding(replica, space, problem.kind, problem.key.key, problem.key.text, problem.message)


def differences(held: Mapping[str, Items], suspects: Set[str], names: KeyNames) -> list[Finding]:
    """Return the differences of replicas (by name) in one range. ``suspects`` have wrong checksums there."""
    found: list[Finding] = []
    for key in sorted(set().union(*held.values())):
        said = {replica: _said(items.get(key)) for replica, items in held.items()}
        if len(set(said.values())) > 1:
            found += _blame(key, said, _damaged(key, held), suspects, names)
    return found


def _said(item: pb.StoredItem | None) -> bytes | None:
    return None if item is None else item.digest


def _damaged(key: bytes, held: Mapping[str, Items]) -> set[str]:
    return {replica for replica, items in held.items() if key in items and not items[key].is_intact}


def _blame(
    key: bytes, said: Mapping[str, bytes | None], damaged: Set[str], suspects: Set[str], names: KeyNames
) -> list[Finding]:
    """Return findings against replicas that differ from the right item. Damaged items have findings of their own."""
    is_known, right = _right(said, damaged, suspects)
    text = decode_key(key).text(names)
    if not is_known:
        wrong = [replica for replica in said if replica not in damaged]
        held = ", ".join(replica for replica, digest in said.items() if digest is not None)
        message = f"held by {held}, and not alike: which of them is right cannot be told"
        return [Finding(",".join(wrong), DATA, DIFFERENT, key, text, message)] if wrong else []
    agreeing = [replica for replica, digest in said.items() if digest == right]
    found = []
    for replica, digest in said.items():
        if digest == right or replica in damaged:
            continue
        kind = MISSING if digest is None else EXTRA if right is None else DIFFERENT
        found.append(Finding(replica, DATA, kind, key, text, _message(kind, agreeing)))
    return found


def _message(kind: str, agreeing: Iterable[str]) -> str:
    others = " and ".join(agreeing)
    if kind == MISSING:
        return f"not found here; {others} hold it"
    if kind == EXTRA:
        return f"reads find it here; of {others} they find another version, or none"
    return f"another value than that of {others}"


def _right(said: Mapping[str, bytes | None], damaged: Set[str], suspects: Set[str]) -> tuple[bool, bytes | None]:
    """Return whether the right item can be told, and it: a digest, or None if no such key should be."""
    counted = Counter(digest for replica, digest in said.items() if replica not in damaged)
    for trusted in (counted, Counter(digest for replica, digest in said.items() if replica not in suspects)):
        most = trusted.most_common(1)
        if most and most[0][1] * 2 > trusted.total():
            return True, most[0][0]
    return False, None
