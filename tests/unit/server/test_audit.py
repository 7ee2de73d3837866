"""The audit log beside its callers: strangers push nothing out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cortado.errors import PermissionDenied, Unauthenticated
from cortado.store.auth.caller import Caller
from cortado.store.auth.current import Credential
from cortado.store.auth.roles import Demand, Permission
from cortado.store.server.audit import STRANGER_MS, Audit

NEEDED = (Demand(Permission.ADMINISTER),)


def caller(name: str = "") -> Caller:
    return Caller(Credential(), NEEDED, name=name)


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "audit.log").read_text().splitlines()]


def test_strangers_have_a_line_a_second_and_are_counted(tmp_path: Path) -> None:
    now_ms = 1_700_000_000_000.0
    audit = Audit(tmp_path, "n1", lambda: now_ms)
    for _ in range(1_000):
        audit.denied("cortado.v1.KeyValue/Get", caller(), Unauthenticated("nobody"), None)
    for _ in range(3):
        audit.denied("cortado.v1.KeyValue/Put", caller("reports"), PermissionDenied("reports", "writer", "x"), None)
    audit.ended("cortado.v1.Auth/Grant", caller("root"), None, None, changes=True)
    now_ms += STRANGER_MS
    audit.denied("cortado.v1.KeyValue/Get", caller(), Unauthenticated("nobody"), None)
    audit.close()
    found = lines(tmp_path)
    said = [(each["principal"], each["outcome"]) for each in found if "principal" in each]
    denied = "PERMISSION_DENIED"
    assert said == [("", "UNAUTHENTICATED"), *[("reports", denied)] * 3, ("root", "OK"), ("", "UNAUTHENTICATED")]
    assert sum(each.get("lines_missing", 0) for each in found) == 999


def test_a_clock_that_is_put_back_silences_no_stranger(tmp_path: Path) -> None:
    now_ms = 1_700_000_000_000.0
    audit = Audit(tmp_path, "n1", lambda: now_ms)
    for step_ms in (0.0, -3_600_000.0, STRANGER_MS):
        now_ms += step_ms
        audit.denied("cortado.v1.KeyValue/Get", caller(), Unauthenticated("nobody"), None)
    audit.close()
    assert [each["outcome"] for each in lines(tmp_path)] == ["UNAUTHENTICATED"] * 3
