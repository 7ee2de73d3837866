"""The audit log beside its callers: strangers push nothing out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cortado.errors import PermissionDenied, Unauthenticated
from cortado.store.auth.caller import Caller
from cortado.store.auth.current import Credential
from cortado.store.auth.roles import Demand, Permission
from cortado.store.server.audit import STRANGER_MS, STRANGERS_AT_ONCE, Audit

NEEDED = (Demand(Permission.ADMINISTER),)


def caller(name: str = "") -> Caller:
    return Caller(Credential(), NEEDED, name=name)


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "audit.log").read_text().splitlines()]


def test_strangers_have_a_thousand_lines_and_one_a_second_and_are_counted(tmp_path: Path) -> None:
    now_ms = 1_700_000_000_000.0
    audit = Audit(tmp_path, "n1", lambda: now_ms)
    for _ in range(STRANGERS_AT_ONCE + 500):
        audit.denied("cortado.v1.KeyValue/Get", caller(), Unauthenticated("nobody"), None)
    for _ in range(3):
        audit.denied("cortado.v1.KeyValue/Put", caller("reports"), PermissionDenied("reports", "writer", "x"), None)
    audit.ended("cortado.v1.Auth/Grant", caller("root"), None, None, changes=True)
    now_ms += 2 * STRANGER_MS
    for _ in range(10):
        audit.denied("cortado.v1.KeyValue/Get", caller(), Unauthenticated("nobody"), None)
    audit.close()
    found = lines(tmp_path)
    said = [(each["principal"], each["outcome"]) for each in found if "principal" in each]
    nobody, denied = ("", "UNAUTHENTICATED"), "PERMISSION_DENIED"
    assert said == [*[nobody] * STRANGERS_AT_ONCE, *[("reports", denied)] * 3, ("root", "OK"), *[nobody] * 2]
    assert sum(each.get("lines_missing", 0) for each in found) == 508


def test_a_clock_that_is_put_back_silences_no_stranger(tmp_path: Path) -> None:
    now_ms = 1_700_000_000_000.0
    audit = Audit(tmp_path, "n1", lambda: now_ms)
    for step_ms in (0.0, -3_600_000.0):
        now_ms += step_ms
        for _ in range(STRANGERS_AT_ONCE):
            audit.denied("cortado.v1.KeyValue/Get", caller(), Unauthenticated("nobody"), None)
    audit.close()
    assert [each.get("outcome") for each in lines(tmp_path)] == ["UNAUTHENTICATED"] * 2 * STRANGERS_AT_ONCE
