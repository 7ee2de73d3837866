"""Tests that need something of the machine: without it they fail in CI with one line, and are skipped elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


def need(there: bool, what: str) -> None:
    """End the test unless ``there``; ``what`` names the thing that the machine lacks."""
    if there:
        return
    if os.environ.get("CI"):
        pytest.fail(f"this machine lacks {what}", pytrace=False)
    pytest.skip(f"this machine lacks {what}")


def need_root() -> None:
    need(os.geteuid() == 0, "root's privileges")


def need_tool(name: str) -> None:
    """Need a program on the PATH."""
    need(shutil.which(name) is not None, name)


def need_java() -> None:
    """Need Java 17 or later, for Spark."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None or not os.path.exists(java):  # noqa: PTH110
        need(False, "Java 17 or later")
        return
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    digits = said.partition('version "')[2].partition(".")[0].partition('"')[0]
    need(digits.isdigit() and int(digits) >= 17, "Java 17 or later")
