"""Verdicts on the status of a cluster's nodes: for ``cortado doctor`` and for the console. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from cortado.store.clock.spans import between_text, exact_span_text, span_text
from cortado.store.doctor.node_facts import answering, setting_of
from cortado.store.doctor.probes import Facts, problem_of
from cortado.store.doctor.verdicts import Check, check
from cortado.store.settings.sizes import size_text

DISK_FREE_BYTES_FAIL: Final = 64 << 20
DISK_FREE_BYTES_WARN: Final = 1 << 30
MAP_SHARE_WARN: Final = 0.8
MAP_SHARE_FAIL: Final = 0.95
BEHIND_WARN: Final = 1_000
LOOP_LAG_MS_WARN: Final = 500
QUEUE_SHARE_WARN: Final = 0.8
# All nodes are to have the same.
_COMMON_SETTINGS: Final = ("heartbeat-ms", "election-ms", "lease", "max-clock-offset-ms")


def cluster_checks(nodes: Facts) -> Iterator[Check]:
    """Yield all that can be judged by the facts of nodes, by their addresses
    (:mod:`cortado.store.doctor.node_facts`)."""
    for rule in _RULES:
        yield from rule(nodes)


def _reach(nodes: Facts) -> Iterator[Check]:
    problem = problem_of(nodes)
    if problem:
        yield check("nodes", fail=True, found=problem, advice="correct the settings of the command line")
        return
    reached = answering(nodes)
    silent = [f"{address}: {problem_of(each)}" for address, each in nodes.items() if problem_of(each)]
    yield check(
        "nodes answer",
        fail=not reached,
        warn=bool(silent),
        found=f"{len(reached)} of {len(nodes)}" + (f"; {'; '.join(silent)}" if silent else ""),
        advice="start the nodes that are down and read their logs; if they run, look at --endpoint, --tls-..., "
        "firewalls and certificates",
    )


def _majority(nodes: Facts) -> Iterator[Check]:
    reached = _reached(nodes)
    if not reached:
        return
    members = max((each["members"] for each in reached), key=len)
    voters = {each["node_id"] for each in members if each["voter"]}
    alive = {each["node_id"] for each in reached} & voters
    leaders = {each["leader"] for each in reached if each["leader"]}
    lost = len(alive) * 2 <= len(voters)
    yield check(
        "leader",
        fail=not leaders,
        warn=len(leaders) > 1,
        found=", ".join(sorted(leaders)) if leaders else "none is known",
        advice="a majority of the voters must run and reach each other"
        if not leaders
        else "nodes disagree: an election is going on, or some are cut off; look again in a moment",
    )
    yield check(
        "majority",
        fail=lost,
        warn=alive != voters,
        found=f"{len(alive)} of {len(voters)} voters answer",
        advice=f"bring back {', '.join(sorted(voters - alive))}"
        + ("; if they are permanently lost: cortado recover" if lost else ""),
    )
    yield check(
        "number of voters",
        warn=len(voters) % 2 == 0,
        found=str(len(voters)),
        advice="an even number of voters survives no more failures than one voter less: add or remove one",
    )


def _addresses(nodes: Facts) -> Iterator[Check]:
    """Find nodes that were started with each other's directories: each is well, but its name leads to another."""
    found = answering(nodes)
    for member in max((each["members"] for each in found.values()), key=len, default=()):
        there = found.get(member["address"])
        if there is None or there["node_id"] == member["node_id"]:
            continue
        yield check(
            f"address of {member['node_id']}",
            fail=True,
            found=f"at {member['address']}, where the cluster looks for it, node {there['node_id']} answers",
            advice="stop the nodes whose directories were exchanged, and start each with its own data directory",
        )


def _states(nodes: Facts) -> Iterator[Check]:
    for node in _reached(nodes):
        if node["state"] != "serving":
            is_read_only = str(node["state"]).startswith("read-only")
            advice = "make room on its disk, or give it a larger map-size" if is_read_only else "read its log"
            yield check(f"state of {node['node_id']}", fail=True, found=node["state"], advice=advice)
    for node in _reached(nodes):
        damaged, repaired = node["damaged"], node["repaired"]
        yield check(
            f"damage of {node['node_id']}",
            fail=damaged > 0,
            warn=repaired > 0,
            found=f"{damaged} damaged items, {node['lost']} of them lost" if damaged else f"none, {repaired} repaired",
            advice="cortado damage list shows them" if damaged else "its disk changed bytes: replace it soon",
        )
    for node in _reached(nodes):
        for said in node["disputes"]:
            advice = "see Damage in docs/operations.md"
            yield check(f"log of {node['node_id']}", fail=True, found=f"disputed: {said}", advice=advice)
    for node in _reached(nodes):
        if node["slowed"]:
            advice = "see Overload in docs/operations.md"
            yield check(f"writes of {node['node_id']}", warn=True, found=f"slowed: {node['slowed']}", advice=advice)
    for node in _reached(nodes):
        for member in node["members"] if node["role"] == "leader" else ():
            yield check(
                f"lag of {member['node_id']}",
                fail=False,
                warn=member["down"]
                or not member["joined"]
                or member["needs_snapshot"]
                or member["behind"] > BEHIND_WARN,
                found=_lag(member),
                advice="see whether it runs and reaches the leader; if it does, its disk or network is too slow",
            )


def _lag(member: Facts) -> str:
    if not member["joined"]:
        return "it has not joined yet"
    if member["down"]:
        return f"unknown: down, not heard of for {span_text(member['last_heard_ms'])}"
    entries = "1 entry" if member["behind"] == 1 else f"{member['behind']} entries"
    return entries + ("; waits for a snapshot" if member["needs_snapshot"] else "")


def _sameness(nodes: Facts) -> Iterator[Check]:
    reached = _reached(nodes)
    versions = {each["version"] for each in reached}
    if versions:
        yield check(
            "version",
            warn=len(versions) > 1,
            found=", ".join(f"{each['node_id']} {each['version']}" for each in reached)
            if len(versions) > 1
            else versions.pop(),
            advice="finish the upgrade: all nodes should run the same version",
        )
    clusters = {each["cluster_id"] for each in reached}
    if len(clusters) > 1:
        yield check(
            "cluster",
            fail=True,
            found=", ".join(sorted(clusters)),
            advice="the endpoints belong to several clusters: name those of one",
        )
    for name in _COMMON_SETTINGS:
        values = {each["node_id"]: setting_of(each, name) for each in reached}
        if len({each for each in values.values() if each is not None}) > 1:
            shown = ", ".join(f"{node} {value}" for node, value in sorted(values.items()))
            yield check(f"setting {name}", warn=True, found=shown, advice="give all nodes the same value")


def _clocks(nodes: Facts) -> Iterator[Check]:
    reached = _reached(nodes)
    for node in reached:
        limit_ms = node["clock"]["max_offset_ms"]
        apart = [(_apart_ms(each), each) for each in node["clock_offsets"]]
        worst_ms, worst = max(apart, key=lambda each: each[0], default=(0, None))
        if worst is None:
            continue
        yield check(
            f"clocks around {node['node_id']}",
            fail=worst_ms > limit_ms,
            warn=worst_ms > limit_ms / 2,
            found=f"that of {worst['node_id']} is off by {between_text(worst['low_ms'], worst['high_ms'])}; the "
            f"limit is {limit_ms} ms",
            advice="synchronize the clocks (chrony or the like), on the node that differs from most",
        )
    for node in reached:
        ahead_ms, limit_ms = node["clock"]["ahead_ms"], node["clock"]["max_offset_ms"]
        if node["clock"]["jump_ms"]:
            yield check(
                f"wall clock of {node['node_id']}",
                warn=True,
                found=f"jumped by {exact_span_text(node['clock']['jump_ms'])}, which is not followed",
                advice="synchronize the host's clock (chrony or the like)",
            )
        elif ahead_ms > limit_ms:
            yield check(
                f"timestamps of {node['node_id']}",
                warn=True,
                found=f"{exact_span_text(ahead_ms)} ahead of its clock",
                advice="a clock was wrong once: when all clocks are right, cortado clock bump-epoch",
            )
        here_ms = _apart_ms({"low_ms": node["clock"]["offset_low_ms"], "high_ms": node["clock"]["offset_high_ms"]})
        if here_ms > limit_ms:
            yield check(
                f"clock of {node['node_id']}",
                warn=True,
                found=f"about {exact_span_text(here_ms)} from this host's",
                advice="synchronize both clocks (chrony or the like)",
            )


def _apart_ms(offset: Facts) -> int:
    """Return how far apart two clocks are at least."""
    low, high = int(offset["low_ms"]), int(offset["high_ms"])
    return max(0, low, -high)


def _room(nodes: Facts) -> Iterator[Check]:
    for node in _reached(nodes):
        free = node["disk_free_bytes"]
        yield check(
            f"disk of {node['node_id']}",
            fail=free < DISK_FREE_BYTES_FAIL,
            warn=free < DISK_FREE_BYTES_WARN,
            found=f"{size_text(free)} free",
            advice="make room: without 64 MiB it takes no writes",
        )
        share = node["map_used_bytes"] / (node["map_limit_bytes"] or 1)
        yield check(
            f"map of {node['node_id']}",
            fail=share > MAP_SHARE_FAIL,
            warn=share > MAP_SHARE_WARN,
            found=f"{share:.1%} used",
            advice="start it with a larger map-size",
        )
        for queue in node["queues"]:
            if queue["count"] > QUEUE_SHARE_WARN * queue["count_max"]:
                found = f"{queue['count']} of {queue['count_max']}"
                advice = "the load is more than the node takes: see Overload in docs/operations.md"
                yield check(f"{queue['name']} of {node['node_id']}", warn=True, found=found, advice=advice)
        if node["loop_lag_ms_max"] > LOOP_LAG_MS_WARN:
            found = f"{node['loop_lag_ms_max']} ms in the last minute"
            yield check(f"lateness of {node['node_id']}", warn=True, found=found, advice="its CPU is too busy")
        yield check(f"scans of {node['node_id']}", found=node["scan_path"], advice="")


def _reached(nodes: Facts) -> list[Facts]:
    """Return each node that answered, once, under any of its addresses."""
    return list({each["node_id"]: each for each in answering(nodes).values()}.values())


_RULES: Final[Iterable[Callable[[Facts], Iterator[Check]]]] = (
    _reach,
    _majority,
    _addresses,
    _states,
    _sameness,
    _clocks,
    _room,
)
