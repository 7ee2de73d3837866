"""Paths of the user's files, by the XDG Base Directory Specification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def user_directory(environment: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    """Return Cortado's directory: below ``variable``, else below the home directory. None for a user without one."""
    base = Path(environment.get(variable, ""))
    if not base.is_absolute():  # A relative path there counts as not set.
        try:
            base = Path.home() / below_home
        except RuntimeError:
            return None
    return base / "cortado"
