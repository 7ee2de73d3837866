"""The audit log beside its callers: no caller pushes the lines of others out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import NotFound, PermissionDenied, Unauthenticated
from cortado.proto.v1 import auth_pb2
from cortado.store.auth.caller import Caller
from cortado.store.auth.current import Credential
from cortado.store.auth.roles import Demand, Permission, Resource, Rights
from cortado.store.server import audit as audit_log
from cortado.store.server.audit import FILE_BYTES_MAX, LINE_BYTES_MAX, LINE_MS, LINES_AT_ONCE, Audit

NEEDED = (Demand(Permission.ADMINISTER),)


def caller(name: str = "") -> Caller:
    return Caller(Credential(), NEEDED, name=name)


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "audit.log").read_text().splitlines()]


def test_strangers_have_a_thousand_lines_and_one_a_second_and_are_counted(tmp_path: Path) -> None:
    now_ms = 1_700_000_000_000.0
    audit = Audit(tmp_path, "n1", lambda: now_ms)
    for _ in range(LINES_AT_ONCE + 500):
        audit.denied("cortado.v1.KeyValue/Get", caller(), Unauthenticated("nobody"), None)
    for _ in range(3):
        audit.denied("cortado.v1.KeyValue/Put", caller("reports"), PermissionDenied("reports", "writer", "x"), None)
    audit.ended("cortado.v1.Auth/Grant", caller("root"), None, None, changes=True)
    now_ms += 2 * LINE_MS
    for _ in range(10):
        audit.denied("cortado.v1.KeyValue/Get", caller(), Unauthenticated("nobody"), None)
    audit.close()
    found = lines(tmp_path)
    said = [(each["principal"], each["outcome"]) for each in found if "principal" in each]
    nobody, denied = ("", "UNAUTHENTICATED"), "PERMISSION_DENIED"
    assert said == [*[nobody] * LINES_AT_ONCE, *[("reports", denied)] * 3, ("root", "OK"), *[nobody] * 2]
    assert sum(each.get("lines_missing", 0) for each in found) == 508


def test_a_clock_that_is_put_back_silences_no_stranger(tmp_path: Path) -> None:
    now_ms = 1_700_000_000_000.0
    audit = Audit(tmp_path, "n1", lambda: now_ms)
    for step_ms in (0.0, -3_600_000.0):
        now_ms += step_ms
        for _ in range(LINES_AT_ONCE):
            audit.denied("cortado.v1.KeyValue/Get", caller(), Unauthenticated("nobody"), None)
    audit.close()
    assert [each.get("outcome") for each in lines(tmp_path)] == ["UNAUTHENTICATED"] * 2 * LINES_AT_ONCE


def test_a_principal_that_is_denied_pushes_nothing_out(tmp_path: Path) -> None:
    """4,200 denials of a commit to many tables, with names of six bytes a character: these were 131 MiB."""
    now_ms = 1_700_000_000_000.0
    audit = Audit(tmp_path, "n1", lambda: now_ms)
    audit.ended("cortado.v1.Auth/Grant", caller("root"), None, None, changes=True)
    names = [Demand(Permission.WRITE, Resource("table:" + "\u00e4" * 200 + f".{each}")) for each in range(100)]
    for _ in range(4_200):
        denied = Caller(Credential(), names, name="reports")
        audit.denied("cortado.v1.Transactions/Commit", denied, PermissionDenied("reports", "writer", "x"), None)
    for _ in range(3):
        audit.denied("cortado.v1.KeyValue/Put", caller("other"), PermissionDenied("other", "writer", "x"), None)
    audit.close()
    written = (tmp_path / "audit.log").read_bytes()
    assert len(written) < FILE_BYTES_MAX / 16
    assert max(map(len, written.splitlines())) <= LINE_BYTES_MAX
    found = lines(tmp_path)
    said = [each["principal"] for each in found if "principal" in each]
    assert (said[0], said[-3:]) == ("root", ["other"] * 3)
    assert 100 < said.count("reports") < LINES_AT_ONCE
    assert sum(each.get("lines_missing", 0) for each in found) == 4_200 - said.count("reports")


def test_an_owner_that_changes_its_own_all_the_time_pushes_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "CHANGES_AT_ONCE", 100)
    audit = Audit(tmp_path, "n1", lambda: 1_700_000_000_000.0)
    for name in ("owner", "root"):
        changing = Caller(Credential(), NEEDED, name=name, rights=Rights.of([]))
        for _ in range(300 if name == "owner" else 3):
            audit.ended("cortado.v1.Schemas/SetCompatibility", changing, None, None, changes=True)
    audit.close()
    found = lines(tmp_path)
    said = [each["principal"] for each in found if "principal" in each]
    assert (said.count("owner"), said.count("root")) == (100, 3)
    assert sum(each.get("lines_missing", 0) for each in found) == 200


def test_changes_that_fail_are_bounded_as_denials_are_and_those_that_are_made_are_not(tmp_path: Path) -> None:
    audit = Audit(tmp_path, "n1", lambda: 1_700_000_000_000.0)
    for error in (NotFound("job", "7"), None):
        for _ in range(LINES_AT_ONCE + 5):
            audit.ended("cortado.v1.Jobs/Pause", caller("reports"), error, None, changes=True)
    audit.close()
    outcomes = [each.get("outcome") for each in lines(tmp_path)]
    assert (outcomes.count("NOT_FOUND"), outcomes.count("OK")) == (LINES_AT_ONCE, LINES_AT_ONCE + 5)


@pytest.mark.parametrize("character", ["x", '"', "\u00e4", "\U0001f600", "\n"])
def test_a_line_has_at_most_two_kibibytes(tmp_path: Path, character: str) -> None:
    audit = Audit(tmp_path, "n1", lambda: 1_700_000_000_000.0)
    long = character * 10_000
    request = auth_pb2.GrantRequest(principal=long, role=long, resource=long, request_id=bytes(1_000))
    demands = [Demand(Permission.WRITE, Resource(f"table:{long}.{each}")) for each in range(100)]
    name = "cortado.v1." + long
    audit.denied(name, Caller(Credential(), demands, name="p" * 64), PermissionDenied("p", "writer", long), request)
    audit.close()
    (line,) = (tmp_path / "audit.log").read_bytes().splitlines()
    assert 500 < len(line) <= LINE_BYTES_MAX
    assert json.loads(line)["resources"][-1].startswith("and ")
