"""The settings of a log, which a node and a gateway have alike."""

from __future__ import annotations

from cortado.store.settings.kinds import choice
from cortado.store.settings.setting import Setting


def log_settings(group: str) -> tuple[Setting, Setting]:
    """``log-format`` and ``log-level``."""
    return (
        Setting(
            "log-format",
            choice("text", "json"),
            "text",
            "Format of the log on standard error: lines for people, or JSON, one object a line.",
            group,
        ),
        Setting(
            "log-level",
            choice("debug", "info", "warning", "error"),
            "info",
            "The least severe level that is logged.",
            group,
        ),
    )
