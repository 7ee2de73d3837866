"""Verdicts follow from facts: each possible fault is said, with its remedy, and nothing else is."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cortado.store.doctor.checks import checks
from cortado.store.doctor.data_directory import data_directory_facts
from cortado.store.doctor.host import host_facts
from cortado.store.doctor.probes import run_probes
from cortado.store.doctor.verdicts import Check, Verdict

GIB = 1 << 30
Change = Callable[[dict[str, Any]], None]


def node(number: int, role: str = "follower") -> dict[str, Any]:
    members = [
        {"node_id": f"n{i}", "address": f"h{i}:1", "voter": True, "joined": True, "behind": 0, "last_heard_ms": 5}
        | {"needs_snapshot": False, "down": False}
        for i in (1, 2, 3)
    ]
    names = ("heartbeat-ms", "election-ms", "lease", "max-clock-offset-ms")
    return {
        "cluster_id": "c",
        "node_id": f"n{number}",
        "version": "1.0",
        "state": "serving",
        "role": role,
        "leader": "n1",
        "disk_free_bytes": 100 * GIB,
        "map_used_bytes": 1,
        "map_limit_bytes": 100,
        "loop_lag_ms_max": 5,
        "scan_path": "compiled",
        "damaged": 0,
        "lost": 0,
        "repaired": 0,
        "slowed": "",
        "disputes": [],
        "queues": [{"name": "writes", "count": 1, "count_max": 100, "bytes": 0, "bytes_max": 0}],
        "clock_offsets": [{"node_id": "n2", "low_ms": -1, "high_ms": 2}],
        "clock": {"ahead_ms": 0, "jump_ms": 0, "max_offset_ms": 250, "offset_low_ms": -3, "offset_high_ms": 4},
        "members": members,
        "settings": [{"name": name, "value": "1", "origin": "default", "place": ""} for name in names],
    }


DOWN = node(1)["members"][1] | {"down": True, "behind": None, "last_heard_ms": 7_000}


def well() -> dict[str, Any]:
    return {
        "host": {
            "limits": {"open_files": 65_536},
            "memory": {"available_bytes": 8 * GIB},
            "clock": {"synchronized": True},
        },
        "settings": {"client": [], "server": None},
        "nodes": {"h1:1": node(1, "leader"), "h2:1": node(2), "h3:1": node(3)},
        "data_directories": {
            "/d": {
                "format": "cortado-data 5",
                "identity": {"node_id": "n1"},
                "disk": {"filesystem": "ext4", "total_bytes": 200 * GIB, "free_bytes": 100 * GIB},
                "sync": {"median_ms": 0.5, "max_ms": 2.0, "syncs": 20},
                "log": {"missing": False, "files": 2, "bytes": 17 << 20, "others_may_use": [], "damaged": []},
            }
        },
        "certificates": {
            "ca.crt": {"days_left": 300.0, "not_after": "2027-01-01T00:00:00+00:00"},
            "ops.key": {"file": "ops.key", "mode": "600", "others_may_read": False},
        },
        "local_cluster": {"nodes": [{"node_id": "n1", "starts": 1, "given_up": ""}]},
        "logs": {},
    }


def bad(facts: dict[str, Any]) -> list[Check]:
    return [each for each in checks(facts) if each.verdict is not Verdict.OK]


def changed(path: str, value: Any) -> Change:
    """Return a change that sets the value at ``path``, its steps separated by ``>``."""

    def change(facts: dict[str, Any]) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(">")]
        at: Any = facts
        for step in steps:
            at = at[step]
        at[last] = value

    return change


def test_where_all_is_well_nothing_is_to_do() -> None:
    assert bad(well()) == []
    assert all(not each.advice for each in checks(well()))


def test_nodes_in_each_others_place_are_named_though_each_is_well() -> None:
    facts = well()
    facts["nodes"] = {"h1:1": node(2), "h2:1": node(1, "leader"), "h3:1": node(3)}
    assert [(each.verdict, each.name, each.found) for each in bad(facts)] == [
        (Verdict.FAIL, "address of n1", "at h1:1, where the cluster looks for it, node n2 answers"),
        (Verdict.FAIL, "address of n2", "at h2:1, where the cluster looks for it, node n1 answers"),
    ]


@pytest.mark.parametrize(
    ("path", "value", "verdict", "name", "found"),
    [
        ("settings>client", {"problem": "--timeout: no"}, "fail", "settings of the command line", "--timeout: no"),
        ("settings>server", {"problem": "listn: no"}, "fail", "settings of a server", "listn: no"),
        ("nodes>h3:1", {"problem": "nothing listens there"}, "warn", "nodes answer", "h3:1: nothing listens there"),
        ("nodes>h3:1", {"problem": "x"}, "warn", "majority", "2 of 3 voters answer"),
        ("nodes>h2:1>state", "read-only: the disk is full", "fail", "state of n2", "read-only: the disk is full"),
        ("nodes>h2:1>leader", "n3", "warn", "leader", "n1, n3"),
        ("nodes>h1:1>members>1>behind", 5_000, "warn", "lag of n2", "5000 entries"),
        ("nodes>h1:1>members>1>needs_snapshot", True, "warn", "lag of n2", "waits for a snapshot"),
        ("nodes>h1:1>members>1>joined", False, "warn", "lag of n2", "has not joined"),
        ("nodes>h1:1>members>1", DOWN, "warn", "lag of n2", "unknown: down, not heard of for 7000 ms"),
        ("nodes>h2:1>version", "0.9", "warn", "version", "n2 0.9"),
        ("nodes>h2:1>cluster_id", "d", "fail", "cluster", "c, d"),
        ("nodes>h2:1>settings>1>value", "2", "warn", "setting election-ms", "n1 1, n2 2, n3 1"),
        ("nodes>h1:1>clock_offsets>0>low_ms", 400, "fail", "clocks around n1", "that of n2 is off by +400"),
        ("nodes>h1:1>clock_offsets>0>high_ms", -400, "fail", "clocks around n1", "to -400 ms; the limit is 250 ms"),
        (
            "nodes>h1:1>clock>jump_ms",
            10_000,
            "warn",
            "wall clock of n1",
            "jumped by 10000 ms (10 s), which is not foll",
        ),
        ("nodes>h1:1>clock_offsets>0>low_ms", 150, "warn", "clocks around n1", "that of n2 is off by +150"),
        ("nodes>h1:1>clock>ahead_ms", 10**9, "warn", "timestamps of n1", "1000000000 ms (12 days) ahead of its clock"),
        ("nodes>h1:1>clock>offset_low_ms", 900, "warn", "clock of n1", "about 900 ms from this host's"),
        ("nodes>h1:1>disk_free_bytes", 10 << 20, "fail", "disk of n1", "10.0 MiB free"),
        ("nodes>h1:1>disk_free_bytes", 500 << 20, "warn", "disk of n1", "500 MiB free"),
        ("nodes>h1:1>map_used_bytes", 85, "warn", "map of n1", "85.0% used"),
        ("nodes>h1:1>map_used_bytes", 97, "fail", "map of n1", "97.0% used"),
        ("nodes>h1:1>queues>0>count", 90, "warn", "writes of n1", "90 of 100"),
        ("nodes>h1:1>loop_lag_ms_max", 700, "warn", "lateness of n1", "700 ms"),
        ("nodes>h1:1>disputes", ["n2: x"], "fail", "log of n1", "disputed: n2: x"),
        ("nodes>h1:1>damaged", 2, "fail", "damage of n1", "2 damaged items, 0 of them lost"),
        ("nodes>h1:1>repaired", 1, "warn", "damage of n1", "none, 1 repaired"),
        ("host>limits>open_files", 1_024, "warn", "open files", "1024"),
        ("host>memory>available_bytes", 100 << 20, "warn", "memory", "100 MiB available"),
        ("host>clock>synchronized", False, "warn", "clock of this host", "not synchronized"),
        ("host", {"problem": "x"}, "warn", "host", "x"),
        ("data_directories>/d", {"problem": "Permission denied"}, "fail", "directory /d", "Permission denied"),
        ("data_directories>/d>format", "", "fail", "directory /d", "holds no FORMAT"),
        ("data_directories>/d>disk>filesystem", "tmpfs", "fail", "file system of /d", "tmpfs"),
        ("data_directories>/d>disk>filesystem", "nfs4", "warn", "file system of /d", "nfs4"),
        ("data_directories>/d>disk>free_bytes", 1 << 20, "fail", "disk of /d", "1.0 MiB free"),
        ("data_directories>/d>disk>free_bytes", 2 * GIB, "warn", "disk of /d", "2.0 GiB free of 200 GiB"),
        ("data_directories>/d>sync>median_ms", 30.0, "warn", "sync of /d", "30.0 ms"),
        ("data_directories>/d>sync>median_ms", 900.0, "fail", "sync of /d", "900.0 ms"),
        ("data_directories>/d>sync", {"problem": "too full"}, "warn", "sync of /d", "not measured: too full"),
        ("data_directories>/d>log>missing", True, "fail", "log of /d", "it does not exist"),
        ("data_directories>/d>log>damaged", ["0000000000000001 byte 64: x"], "fail", "log of /d", "byte 64: x"),
        ("data_directories>/d>log>others_may_use", ["log"], "warn", "log of /d", "other users may use log"),
        ("data_directories>/d>log", {"problem": "no answer within 10 s"}, "warn", "log of /d", "no answer within 10 s"),
        ("certificates>ca.crt>days_left", -1.0, "fail", "certificate ca.crt", "expired on 2027-01-01"),
        ("certificates>ca.crt>days_left", 10.0, "warn", "certificate ca.crt", "valid until 2027-01-01"),
        ("certificates>ca.crt", {"problem": "No such file"}, "warn", "certificate ca.crt", "No such file"),
        ("certificates>ops.key>others_may_read", True, "warn", "key ops.key", "mode 600"),
        ("local_cluster>nodes>0>given_up", "n1 ended with 2", "fail", "process of n1", "n1 ended with 2"),
        ("local_cluster>nodes>0>starts", 4, "warn", "process of n1", "was started 4 times"),
    ],
)
def test_each_thing_that_is_wrong_is_said_with_what_to_do(
    path: str, value: Any, verdict: str, name: str, found: str
) -> None:
    facts = well()
    changed(path, value)(facts)
    [check] = [each for each in bad(facts) if each.name == name]
    assert check.verdict == verdict
    assert found in check.found
    assert check.advice


def test_a_lost_majority_fails_and_names_who_is_to_come_back() -> None:
    facts = well()
    for address in ("h2:1", "h3:1"):
        facts["nodes"][address] = {"problem": "nothing listens there"}
    facts["nodes"]["h1:1"]["leader"] = ""
    failed = {each.name: each for each in bad(facts) if each.verdict is Verdict.FAIL}
    assert set(failed) == {"leader", "majority"}
    assert "bring back n2, n3" in failed["majority"].advice
    assert "cortado recover" in failed["majority"].advice


@pytest.mark.parametrize(
    ("voters", "alive", "lost"),
    [
        (1, 1, False),
        (2, 1, True),
        (3, 2, False),
        (3, 1, True),
        (4, 3, False),
        (4, 2, True),
        (5, 3, False),
        (5, 2, True),
    ],
)
def test_half_of_the_voters_is_no_majority(voters: int, alive: int, lost: bool) -> None:
    facts = well()
    members = [{**facts["nodes"]["h1:1"]["members"][0], "node_id": f"n{each + 1}"} for each in range(voters)]
    facts["nodes"] = {f"h{each + 1}:1": {**node(each + 1), "members": members} for each in range(alive)}
    [majority] = [each for each in checks(facts) if each.name == "majority"]
    assert (majority.verdict is Verdict.FAIL) is lost
    assert ("cortado recover" in majority.advice) is lost


def test_where_nothing_answers_the_host_is_still_looked_at() -> None:
    facts = well()
    facts["nodes"] = {"h1:1": {"problem": "nothing listens there"}}
    assert [(each.name, each.verdict) for each in bad(facts)] == [("nodes answer", Verdict.FAIL)]
    assert "open files" in {each.name for each in checks(facts)}


def test_an_even_number_of_voters_is_odd() -> None:
    facts = well()
    del facts["nodes"]["h3:1"]
    for each in facts["nodes"].values():
        each["members"] = copy.deepcopy(each["members"][:2])
    assert [each.name for each in bad(facts)] == ["number of voters"]


def test_the_worst_comes_first() -> None:
    facts = well()
    facts["nodes"]["h2:1"]["version"] = "0.9"
    facts["nodes"]["h2:1"]["state"] = "no leader"
    assert [each.verdict for each in checks(facts)][:3] == [Verdict.FAIL, Verdict.WARN, Verdict.OK]


def test_a_probe_that_hangs_or_breaks_costs_no_more_than_its_own_answer() -> None:
    def hang() -> None:
        time.sleep(60)

    def fail() -> None:
        raise PermissionError(13, "Permission denied")

    found = run_probes({"hangs": hang, "fails": fail, "works": lambda: 5}, 0.2)
    assert found["works"] == 5
    assert found["fails"] == {"problem": "Permission denied"}
    assert found["hangs"] == {"problem": "no answer within 0.2 s"}


def test_a_directory_is_looked_at_without_a_change_to_it(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").write_text("cortado-data 5\n")
    (tmp_path / "identity.json").write_text('{"cluster_id": "c", "node_id": "n1", "storage_id": "s", "token": "x"}')
    (tmp_path / "LOCK").write_text("999999999\n")
    before = sorted((each.name, each.stat().st_mtime_ns) for each in tmp_path.iterdir())
    facts = data_directory_facts(tmp_path)
    assert sorted((each.name, each.stat().st_mtime_ns) for each in tmp_path.iterdir()) == before
    assert facts["identity"] == {"cluster_id": "c", "node_id": "n1", "storage_id": "s"}
    assert facts["owner_process"] == {"pid": 999999999, "alive": False}
    assert facts["sync"]["syncs"] == 20
    assert facts["disk"]["filesystem"]
    assert {each["file"] for each in facts["files"]} == {"FORMAT", "identity.json", "LOCK"}


def test_what_stands_in_the_place_of_a_directorys_files_is_neither_followed_nor_waited_for(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("a secret of mine")
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "FORMAT").symlink_to(tmp_path / "elsewhere")
    (directory / "LOCK").symlink_to("/dev/zero")
    os.mkfifo(directory / "identity.json")
    facts = data_directory_facts(directory)
    assert (facts["format"], facts["identity"], facts["owner_process"]) == ("", {}, {})
    (directory / "FORMAT").unlink()
    (directory / "identity.json").unlink()
    (directory / "FORMAT").symlink_to("/dev/zero")
    (directory / "identity.json").write_text("[" * 4_000)
    assert data_directory_facts(directory)["identity"] == {}


def test_the_host_says_what_it_is() -> None:
    facts = host_facts()
    assert facts["cortado"]
    assert facts["packages"]["grpcio"]
    assert facts["limits"]["open_files"]
    assert facts["memory"]["total_bytes"] > facts["memory"]["available_bytes"] > 0
