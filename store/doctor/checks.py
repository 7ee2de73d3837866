"""Verdicts on facts: what is well, what is odd, what is wrong, and what to do about it. A pure function.

``fail`` is what stops something or is about to; ``warn`` is what would, if more came to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from cortado.store.clock.spans import between_text, exact_span_text
from cortado.store.doctor.nodes import answering, setting_of
from cortado.store.doctor.probes import Facts, problem_of
from cortado.store.sizes import size_text


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """``name`` is stable; ``found`` says what is, ``advice`` what to do where that is not well."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


DISK_FREE_BYTES_FAIL: Final = 64 << 20
DISK_FREE_BYTES_WARN: Final = 1 << 30
DISK_FREE_SHARE_WARN: Final = 0.05
MAP_SHARE_WARN: Final = 0.8
MAP_SHARE_FAIL: Final = 0.95
CERTIFICATE_DAYS_WARN: Final = 30
OPEN_FILES_WARN: Final = 4_096
MEMORY_BYTES_WARN: Final = 256 << 20
SYNC_MS_WARN: Final = 20.0
SYNC_MS_FAIL: Final = 500.0
BEHIND_WARN: Final = 1_000
LOOP_LAG_MS_WARN: Final = 500
QUEUE_SHARE_WARN: Final = 0.8
IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
OVER_A_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "fuse.glusterfs"}
)
# All nodes are to have the same.
_COMMON_SETTINGS: Final = ("heartbeat-ms", "election-ms", "lease", "max-clock-offset-ms")


def checks(facts: Facts) -> list[Check]:
    """All that can be judged by these facts, the worst first."""
    found = [check for rule in _RULES for check in rule(facts)]
    order = [Verdict.FAIL, Verdict.WARN, Verdict.OK]
    return sorted(found, key=lambda each: order.index(each.verdict))


def _of(name: str, *, fail: bool = False, warn: bool = False, found: str, advice: str) -> Check:
    verdict = Verdict.FAIL if fail else Verdict.WARN if warn else Verdict.OK
    return Check(name, verdict, found, advice if verdict is not Verdict.OK else "")


# --- settings --------------------------------------------------------------------------------------------------


def _settings(facts: Facts) -> Iterator[Check]:
    for name, what in (("client", "settings of the command line"), ("server", "settings of a server")):
        known = facts["settings"].get(name)
        if known is not None:
            problem = problem_of(known)
            yield _of(what, fail=bool(problem), found=problem or "valid", advice="correct it where it is set")


# --- nodes -----------------------------------------------------------------------------------------------------


def _reach(facts: Facts) -> Iterator[Check]:
    nodes: Facts = facts["nodes"]
    problem = problem_of(nodes)
    if problem:
        yield _of("nodes", fail=True, found=problem, advice="correct the settings of the command line")
        return
    reached = answering(nodes)
    silent = [f"{address}: {problem_of(each)}" for address, each in nodes.items() if problem_of(each)]
    yield _of(
        "nodes answer",
        fail=not reached,
        warn=bool(silent),
        found=f"{len(reached)} of {len(nodes)}" + (f"; {'; '.join(silent)}" if silent else ""),
        advice="start the nodes that are down and read their logs; where they run, look at --endpoint, --tls-..., "
        "firewalls and certificates",
    )


def _majority(facts: Facts) -> Iterator[Check]:
    reached = _reached(facts)
    if not reached:
        return
    members = max((each["members"] for each in reached), key=len)
    voters = {each["node_id"] for each in members if each["voter"]}
    alive = {each["node_id"] for each in reached} & voters
    leaders = {each["leader"] for each in reached if each["leader"]}
    lost = len(alive) * 2 <= len(voters)
    yield _of(
        "leader",
        fail=not leaders,
        warn=len(leaders) > 1,
        found=", ".join(sorted(leaders)) if leaders else "none is known",
        advice="a majority of the voters must run and reach each other"
        if not leaders
        else "nodes disagree: an election is going on, or some are cut off; look again in a moment",
    )
    yield _of(
        "majority",
        fail=lost,
        warn=alive != voters,
        found=f"{len(alive)} of {len(voters)} voters answer",
        advice=f"bring back {', '.join(sorted(voters - alive))}"
        + ("; if they are permanently lost: cortado recover" if lost else ""),
    )
    yield _of(
        "number of voters",
        warn=len(voters) % 2 == 0,
        found=str(len(voters)),
        advice="an even number of voters survives no more failures than one voter less: add or remove one",
    )


def _addresses(facts: Facts) -> Iterator[Check]:
    """Where nodes were started with each other's directories: each is well, and nobody finds it by its name."""
    nodes = answering(facts["nodes"])
    for member in max((each["members"] for each in nodes.values()), key=len, default=()):
        there = nodes.get(member["address"])
        if there is None or there["node_id"] == member["node_id"]:
            continue
        yield _of(
            f"address of {member['node_id']}",
            fail=True,
            found=f"at {member['address']}, where the cluster looks for it, node {there['node_id']} answers",
            advice="stop the nodes whose directories were exchanged, and start each with its own data directory",
        )


def _states(facts: Facts) -> Iterator[Check]:
    for node in _reached(facts):
        if node["state"] != "serving":
            is_read_only = str(node["state"]).startswith("read-only")
            advice = "make room on its disk, or give it a larger map-size" if is_read_only else "read its log"
            yield _of(f"state of {node['node_id']}", fail=True, found=node["state"], advice=advice)
    for node in _reached(facts):
        damaged, repaired = node["damaged"], node["repaired"]
        yield _of(
            f"damage of {node['node_id']}",
            fail=damaged > 0,
            warn=repaired > 0,
            found=f"{damaged} damaged items, {node['lost']} of them lost" if damaged else f"none, {repaired} repaired",
            advice="cortado damage list shows them" if damaged else "its disk changed bytes: replace it soon",
        )
    for node in _reached(facts):
        for member in node["members"] if node["role"] == "leader" else ():
            behind = member["behind"]
            entries = "1 entry" if behind == 1 else f"{behind} entries"
            yield _of(
                f"lag of {member['node_id']}",
                fail=False,
                warn=behind > BEHIND_WARN or member["needs_snapshot"] or not member["joined"],
                found=entries + ("; waits for a snapshot" if member["needs_snapshot"] else "")
                if member["joined"]
                else "it has not joined yet",
                advice="see whether it runs and reaches the leader; if it does, its disk or network is too slow",
            )


def _sameness(facts: Facts) -> Iterator[Check]:
    reached = _reached(facts)
    versions = {each["version"] for each in reached}
    if versions:
        yield _of(
            "version",
            warn=len(versions) > 1,
            found=", ".join(f"{each['node_id']} {each['version']}" for each in reached)
            if len(versions) > 1
            else versions.pop(),
            advice="finish the upgrade: all nodes should run the same version",
        )
    clusters = {each["cluster_id"] for each in reached}
    if len(clusters) > 1:
        yield _of(
            "cluster",
            fail=True,
            found=", ".join(sorted(clusters)),
            advice="the endpoints belong to several clusters: name those of one",
        )
    for name in _COMMON_SETTINGS:
        values = {each["node_id"]: setting_of(each, name) for each in reached}
        if len({each for each in values.values() if each is not None}) > 1:
            shown = ", ".join(f"{node} {value}" for node, value in sorted(values.items()))
            yield _of(f"setting {name}", warn=True, found=shown, advice="give all nodes the same value")


def _clocks(facts: Facts) -> Iterator[Check]:
    reached = _reached(facts)
    for node in reached:
        limit_ms = node["clock"]["max_offset_ms"]
        apart = [(_apart_ms(each), each) for each in node["clock_offsets"]]
        worst_ms, worst = max(apart, key=lambda each: each[0], default=(0, None))
        if worst is None:
            continue
        yield _of(
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
            yield _of(
                f"wall clock of {node['node_id']}",
                warn=True,
                found=f"jumped by {exact_span_text(node['clock']['jump_ms'])}, which is not followed",
                advice="synchronize the host's clock (chrony or the like)",
            )
        elif ahead_ms > limit_ms:
            yield _of(
                f"timestamps of {node['node_id']}",
                warn=True,
                found=f"{exact_span_text(ahead_ms)} ahead of its clock",
                advice="a clock was wrong once: when all clocks are right, cortado clock bump-epoch",
            )
        here_ms = _apart_ms({"low_ms": node["clock"]["offset_low_ms"], "high_ms": node["clock"]["offset_high_ms"]})
        if here_ms > limit_ms:
            yield _of(
                f"clock of {node['node_id']}",
                warn=True,
                found=f"about {exact_span_text(here_ms)} from this host's",
                advice="synchronize both clocks (chrony or the like)",
            )


def _apart_ms(offset: Facts) -> int:
    """How far apart two clocks are at least."""
    low, high = int(offset["low_ms"]), int(offset["high_ms"])
    return max(0, low, -high)


def _room(facts: Facts) -> Iterator[Check]:
    for node in _reached(facts):
        free = node["disk_free_bytes"]
        yield _of(
            f"disk of {node['node_id']}",
            fail=free < DISK_FREE_BYTES_FAIL,
            warn=free < DISK_FREE_BYTES_WARN,
            found=f"{size_text(free)} free",
            advice="make room: without 64 MiB it takes no writes",
        )
        share = node["map_used_bytes"] / (node["map_limit_bytes"] or 1)
        yield _of(
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
                yield _of(f"{queue['name']} of {node['node_id']}", warn=True, found=found, advice=advice)
        if node["loop_lag_ms_max"] > LOOP_LAG_MS_WARN:
            found = f"{node['loop_lag_ms_max']} ms in the last minute"
            yield _of(f"lateness of {node['node_id']}", warn=True, found=found, advice="its CPU is too busy")
        yield _of(f"scans of {node['node_id']}", found=node["scan_path"], advice="")


def _reached(facts: Facts) -> list[Facts]:
    """Each node that answered once, under whichever address."""
    return list({each["node_id"]: each for each in answering(facts["nodes"]).values()}.values())


# --- this host -------------------------------------------------------------------------------------------------


def _host(facts: Facts) -> Iterator[Check]:
    host = facts["host"]
    if problem_of(host):
        yield _of("host", warn=True, found=problem_of(host), advice="this host could not be looked at")
        return
    files = host["limits"]["open_files"]
    yield _of(
        "open files",
        warn=files is not None and files < OPEN_FILES_WARN,
        found="no limit" if files is None else str(files),
        advice=f"raise the limit for a server to {OPEN_FILES_WARN} or more (ulimit -n, LimitNOFILE=)",
    )
    available = host["memory"].get("available_bytes")
    if available is not None:
        yield _of(
            "memory",
            warn=available < MEMORY_BYTES_WARN,
            found=f"{size_text(available)} available",
            advice="make room: a server that is swapped out loses its leadership",
        )
    synchronized = host["clock"]["synchronized"]
    if synchronized is not None:
        yield _of(
            "clock of this host",
            warn=not synchronized,
            found="synchronized" if synchronized else "not synchronized, as the kernel says (adjtimex: UNSYNC)",
            advice="run chrony or the like",
        )


def _directories(facts: Facts) -> Iterator[Check]:
    for path, directory in facts["data_directories"].items():
        problem = problem_of(directory)
        if problem:
            advice = "give the right --data-dir, as a user who may read it"
            yield _of(f"directory {path}", fail=True, found=problem, advice=advice)
            continue
        yield from _directory(path, directory)


def _directory(path: str, directory: Facts) -> Iterator[Check]:
    is_known = bool(directory["format"]) and bool(directory["identity"])
    if not is_known:
        advice = "it is no node's data directory, or its first start was cut off"
        yield _of(f"directory {path}", fail=True, found="holds no FORMAT and identity.json", advice=advice)
    else:
        yield _log(path, directory["log"])
    disk, sync = directory["disk"], directory["sync"]
    kind = disk["filesystem"]
    yield _of(
        f"file system of {path}",
        fail=kind in IN_MEMORY,
        warn=kind in OVER_A_NETWORK,
        found=kind or "unknown",
        advice="put the data on a local disk: a file system in memory is lost with the host, and one over a network "
        "syncs slowly, and not always durably",
    )
    free, total = disk["free_bytes"], disk["total_bytes"] or 1
    yield _of(
        f"disk of {path}",
        fail=free < DISK_FREE_BYTES_FAIL,
        warn=free < DISK_FREE_BYTES_WARN or free / total < DISK_FREE_SHARE_WARN,
        found=f"{size_text(free)} free of {size_text(total)}",
        advice="make room: without 64 MiB the node takes no writes",
    )
    if problem_of(sync):
        found, advice = f"not measured: {problem_of(sync)}", "every write waits for a sync"
        yield _of(f"sync of {path}", warn=True, found=found, advice=advice)
        return
    yield _of(
        f"sync of {path}",
        fail=sync["median_ms"] > SYNC_MS_FAIL,
        warn=sync["median_ms"] > SYNC_MS_WARN,
        found=f"{sync['median_ms']} ms, at most {sync['max_ms']} ms",
        advice="every write waits for a sync: use a faster disk, and let nothing else write much to it",
    )


def _log(path: str, log: Facts) -> Check:
    """Of a directory's log files, the worst that there is."""
    name = f"log of {path}"
    advice = "remove the node and let it join again with an empty directory; a cluster of one: restore a backup of it"
    if problem_of(log):
        return _of(name, warn=True, found=f"not looked at: {problem_of(log)}", advice="it could not be read to its end")
    if log["missing"]:
        return _of(name, fail=True, found="there is none", advice=advice)
    size = f"{log['files']} {'file' if log['files'] == 1 else 'files'}, {size_text(log['bytes'])}"
    damaged = log.get("damaged", ())
    if damaged:
        return _of(name, fail=True, found=f"{size}; damaged: {'; '.join(damaged)}", advice=advice)
    others = log["others_may_use"]
    found = f"{size}; other users may use {', '.join(others[:3])}" if others else size
    return _of(
        name,
        warn=bool(others),
        found=f"{found}; not read {log['not_read']}" if "not_read" in log else found,
        advice="the next start of the server makes them private; or now: chmod -R go= on the folder",
    )


def _certificates(facts: Facts) -> Iterator[Check]:
    for name, certificate in facts["certificates"].items():
        problem = problem_of(certificate)
        if problem:
            yield _of(f"certificate {name}", warn=True, found=problem, advice="it could not be looked at")
            continue
        if "mode" in certificate:
            yield _of(
                f"key {name}",
                warn=certificate["others_may_read"],
                found=f"mode {certificate['mode']}",
                advice=f"chmod 600 {certificate['file']}",
            )
            continue
        days = certificate["days_left"]
        yield _of(
            f"certificate {name}",
            fail=days <= 0,
            warn=days < CERTIFICATE_DAYS_WARN,
            found=f"expired on {certificate['not_after'][:10]}"
            if days <= 0
            else f"valid until {certificate['not_after'][:10]}",
            advice="make a new one (cortado cert) and replace both files; a server needs no restart for it",
        )


def _local_cluster(facts: Facts) -> Iterator[Check]:
    for node in facts["local_cluster"].get("nodes", []):
        if node["given_up"]:
            yield _of(
                f"process of {node['node_id']}",
                fail=node["given_up"] != "it was removed from the cluster",
                found=node["given_up"],
                advice="correct what it says, then cortado cluster down and up",
            )
        elif node["starts"] > 1:
            found = f"was started {node['starts']} times"
            yield _of(f"process of {node['node_id']}", warn=True, found=found, advice="read its log")


_RULES: Final[Iterable[Callable[[Facts], Iterator[Check]]]] = (
    _settings,
    _reach,
    _majority,
    _addresses,
    _states,
    _sameness,
    _clocks,
    _room,
    _directories,
    _certificates,
    _local_cluster,
    _host,
)


def as_record(check: Check) -> dict[str, Any]:
    """For JSON."""
    return {"name": check.name, "verdict": check.verdict.value, "found": check.found, "advice": check.advice}
