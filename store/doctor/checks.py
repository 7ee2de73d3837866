"""Verdicts on all facts that the doctor collects. A pure function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from cortado.store.doctor.cluster_checks import DISK_FREE_BYTES_FAIL, DISK_FREE_BYTES_WARN, cluster_checks
from cortado.store.doctor.probes import Facts, problem_of
from cortado.store.doctor.verdicts import Check, check, worst_first
from cortado.store.settings.sizes import size_text

DISK_FREE_SHARE_WARN: Final = 0.05
CERTIFICATE_DAYS_WARN: Final = 30
OPEN_FILES_WARN: Final = 4_096
MEMORY_BYTES_WARN: Final = 256 << 20
SYNC_MS_WARN: Final = 20.0
SYNC_MS_FAIL: Final = 500.0
IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
OVER_A_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "fuse.glusterfs"}
)


def checks(facts: Facts) -> list[Check]:
    """Return all that can be judged by these facts, the worst first."""
    return worst_first(each for rule in _RULES for each in rule(facts))


# --- settings --------------------------------------------------------------------------------------------------


def _settings(facts: Facts) -> Iterator[Check]:
    for name, what in (("client", "settings of the command line"), ("server", "settings of a server")):
        known = facts["settings"].get(name)
        if known is not None:
            problem = problem_of(known)
            yield check(what, fail=bool(problem), found=problem or "valid", advice="correct it where it is set")


def _cluster(facts: Facts) -> Iterator[Check]:
    return cluster_checks(facts["nodes"])


# --- this host -------------------------------------------------------------------------------------------------


def _host(facts: Facts) -> Iterator[Check]:
    host = facts["host"]
    if problem_of(host):
        yield check("host", warn=True, found=problem_of(host), advice="this host could not be looked at")
        return
    files = host["limits"]["open_files"]
    yield check(
        "open files",
        warn=files is not None and files < OPEN_FILES_WARN,
        found="no limit" if files is None else str(files),
        advice=f"raise the limit for a server to {OPEN_FILES_WARN} or more (ulimit -n, LimitNOFILE=)",
    )
    available = host["memory"].get("available_bytes")
    if available is not None:
        yield check(
            "memory",
            warn=available < MEMORY_BYTES_WARN,
            found=f"{size_text(available)} available",
            advice="make room: a server that is swapped out loses its leadership",
        )
    synchronized = host["clock"]["synchronized"]
    if synchronized is not None:
        yield check(
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
            yield check(f"directory {path}", fail=True, found=problem, advice=advice)
            continue
        yield from _directory(path, directory)


def _directory(path: str, directory: Facts) -> Iterator[Check]:
    is_known = bool(directory["format"]) and bool(directory["identity"])
    if not is_known:
        advice = "it is no node's data directory, or its first start was cut off"
        yield check(f"directory {path}", fail=True, found="holds no FORMAT and identity.json", advice=advice)
    else:
        yield _log(path, directory["log"])
    disk, sync = directory["disk"], directory["sync"]
    kind = disk["filesystem"]
    yield check(
        f"file system of {path}",
        fail=kind in IN_MEMORY,
        warn=kind in OVER_A_NETWORK,
        found=kind or "unknown",
        advice="put the data on a local disk: a file system in memory is lost with the host, and one over a network "
        "syncs slowly, and not always durably",
    )
    free, total = disk["free_bytes"], disk["total_bytes"] or 1
    yield check(
        f"disk of {path}",
        fail=free < DISK_FREE_BYTES_FAIL,
        warn=free < DISK_FREE_BYTES_WARN or free / total < DISK_FREE_SHARE_WARN,
        found=f"{size_text(free)} free of {size_text(total)}",
        advice="make room: without 64 MiB the node takes no writes",
    )
    if problem_of(sync):
        found, advice = f"not measured: {problem_of(sync)}", "every write waits for a sync"
        yield check(f"sync of {path}", warn=True, found=found, advice=advice)
        return
    yield check(
        f"sync of {path}",
        fail=sync["median_ms"] > SYNC_MS_FAIL,
        warn=sync["median_ms"] > SYNC_MS_WARN,
        found=f"{sync['median_ms']} ms, at most {sync['max_ms']} ms",
        advice="every write waits for a sync: use a faster disk, and let nothing else write much to it",
    )


def _log(path: str, log: Facts) -> Check:
    """Check a directory's log files, and return the worst finding."""
    name = f"log of {path}"
    advice = "remove the node and let it join again with an empty directory; a cluster of one: restore a backup of it"
    if problem_of(log):
        return check(
            name, warn=True, found=f"not looked at: {problem_of(log)}", advice="it could not be read to its end"
        )
    if log["missing"]:
        return check(name, fail=True, found="it does not exist", advice=advice)
    size = f"{log['files']} {'file' if log['files'] == 1 else 'files'}, {size_text(log['bytes'])}"
    damaged = log.get("damaged", ())
    if damaged:
        return check(name, fail=True, found=f"{size}; damaged: {'; '.join(damaged)}", advice=advice)
    others = log["others_may_use"]
    found = f"{size}; other users may use {', '.join(others[:3])}" if others else size
    return check(
        name,
        warn=bool(others),
        found=f"{found}; not read {log['not_read']}" if "not_read" in log else found,
        advice="the next start of the server makes them private; or now: chmod -R go= on the folder",
    )


def _certificates(facts: Facts) -> Iterator[Check]:
    for name, certificate in facts["certificates"].items():
        problem = problem_of(certificate)
        if problem:
            yield check(f"certificate {name}", warn=True, found=problem, advice="it could not be looked at")
            continue
        if "mode" in certificate:
            yield check(
                f"key {name}",
                warn=certificate["others_may_read"],
                found=f"mode {certificate['mode']}",
                advice=f"chmod 600 {certificate['file']}",
            )
            continue
        days = certificate["days_left"]
        yield check(
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
            yield check(
                f"process of {node['node_id']}",
                fail=node["given_up"] != "it was removed from the cluster",
                found=node["given_up"],
                advice="correct the cause, then cortado dev down and up",
            )
        elif node["starts"] > 1:
            found = f"was started {node['starts']} times"
            yield check(f"process of {node['node_id']}", warn=True, found=found, advice="read its log")


_RULES: Final[Iterable[Callable[[Facts], Iterator[Check]]]] = (
    _settings,
    _cluster,
    _directories,
    _certificates,
    _local_cluster,
    _host,
)
